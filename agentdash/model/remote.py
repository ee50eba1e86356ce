"""Workers of other hosts, as the agentdash there states them in `agentdash status --watch` (documents
`agentdash.change/1`), and the link to each host.

The structs have the fields of that document. Missing fields have defaults and further ones are ignored, so
that versions may differ. Texts are sanitized and bounded where the document is parsed (`collect/remote`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agentdash.model.git import Repository
from agentdash.model.pane import ScreenUsage


class LinkState(StrEnum):
    """The state of the link to a host. The values are those of the documents."""

    CONNECTING = "connecting"
    """Nothing was received yet."""
    CONNECTED = "connected"
    LOST = "lost"
    """It has ended, or nothing arrives over it: what was received last holds no longer."""


class RemoteAgent(msgspec.Struct, frozen=True):
    """The CLI that a worker runs."""

    name: str = ""
    version: str | None = None


class RemoteFact(msgspec.Struct, frozen=True):
    """What a worker does or needs."""

    kind: str = ""
    what: str = ""
    object: str = ""
    form: str = ""
    why: str = ""


class RemoteEvidence(msgspec.Struct, frozen=True):
    """One piece of evidence."""

    source: str = ""
    at: str | None = None
    rule: str = ""
    text: str = ""
    agrees: bool = True


class RemotePolicy(msgspec.Struct, frozen=True):
    """A configured policy."""

    filesystem: str = ""
    network: str = ""
    writable_roots: tuple[str, ...] = ()
    approval: str | None = None


class RemoteOrigin(msgspec.Struct, frozen=True):
    """Where one part of a request was set."""

    field: str = ""
    layer: str = ""
    file: str | None = None
    line: int | None = None
    text: str = ""


class RemoteRequest(msgspec.Struct, frozen=True):
    """A requested policy."""

    filesystem: str | None = None
    network: str | None = None
    writable_roots: tuple[str, ...] = ()
    approval: str | None = None
    reviewer: str | None = None
    origin: tuple[RemoteOrigin, ...] = ()
    environment: tuple[str, ...] = ()
    since: str | None = None
    as_of: str | None = None


class RemoteGot(msgspec.Struct, frozen=True):
    """What was observed of the newest command."""

    network_flag: str | None = None
    sandbox_flag: str | None = None
    seccomp: int | None = None
    no_new_privs: bool | None = None
    network_namespace: str | None = None
    sandboxed: bool | None = None


class RemoteField(msgspec.Struct, frozen=True):
    """A cell of the layers that differs."""

    name: str = ""
    expected: str = ""
    actual: str = ""
    layer: str = ""
    reference: str = ""
    expected_at: str | None = None
    actual_at: str | None = None


class RemoteFinding(msgspec.Struct, frozen=True):
    """A finding."""

    kind: str = ""
    direction: str = ""
    severity: str = ""
    message: str = ""
    configured: str = ""
    got: str = ""
    since: str | None = None
    last: str | None = None
    count: int = 1
    fields: tuple[RemoteField, ...] = ()
    evidence: tuple[RemoteEvidence, ...] = ()
    remedy: str | None = None
    remedy_where: str | None = None
    remedy_once: str | None = None


class RemoteDenial(msgspec.Struct, frozen=True):
    """An entry of the denial ledger."""

    what: str = ""
    operation: str = ""
    target: str | None = None
    certainty: str = ""
    quote: str = ""
    calls: tuple[str, ...] = ()
    count: int = 1
    first: str | None = None
    last: str | None = None
    got_past: bool = False
    nested: str | None = None
    days: dict[str, int] = {}
    remedy: str | None = None
    remedy_where: str | None = None
    remedy_once: str | None = None


class RemoteSandbox(msgspec.Struct, frozen=True):
    """The layers of a sandbox."""

    requested: RemoteRequest | None = None
    configured: RemotePolicy | None = None
    applied: str | None = None
    got: RemoteGot = RemoteGot()
    verdict: str = "unverified"
    findings: tuple[RemoteFinding, ...] = ()
    denials: tuple[RemoteDenial, ...] = ()
    not_known: tuple[str, ...] = ()


class RemotePeriod(msgspec.Struct, frozen=True):
    """A period that a worker spent in one state."""

    state: str = ""
    since: str | None = None
    until: str | None = None
    why: str = ""


class RemoteWorker(msgspec.Struct, frozen=True):
    """One worker. Ids, paths, panes and pids are those of its host."""

    id: str
    kind: str
    state: str
    name: str = ""
    agent: RemoteAgent = RemoteAgent()
    parent: str | None = None
    since: str | None = None
    why: str = ""
    group: str = ""
    fact: RemoteFact | None = None
    evidence: tuple[RemoteEvidence, ...] = ()
    sandbox: RemoteSandbox = RemoteSandbox()
    pane: str | None = None
    pids: tuple[int, ...] = ()
    cwd: str | None = None
    tokens: int | None = None
    last_activity: str | None = None
    stalled_since: str | None = None
    history: tuple[RemotePeriod, ...] = ()
    host: str | None = None
    """Set for a worker of a host beyond that one."""
    ssh_connection: str | None = None
    git: Repository | None = None
    on_screen: ScreenUsage | None = None


class HostLink(msgspec.Struct, frozen=True):
    """The link to a host, at one moment."""

    name: str
    """As it was given: `build1`, `me@gpu2:2222`."""
    state: LinkState
    at: float
    """Since when it is in this state (unix seconds)."""
    detail: str = ""
    """Why it was lost; what else is wrong with it."""
    version: str | None = None
    """Of the agentdash there; None: not received yet."""
    news_at: float | None = None
    """Of a lost link: when something was last received; None: never, or it is not lost."""
    clock_offset: float = 0.0
    """Seconds to add to the times of that host, measured by when they arrive; 0 below one second."""
    address: str | None = None
    """The address by which this machine reaches it: both ends name the TCP connection of the link alike.
    None: it is reached by a jump host, through NAT, a shared ControlMaster or another program."""


class RemoteHost(msgspec.Struct, frozen=True):
    """A host, and its workers as received last."""

    link: HostLink
    workers: dict[str, RemoteWorker] = {}
    """By their id there."""
    failed_sources: tuple[tuple[str, str], ...] = ()
    """What the agentdash there could not read: the source, and the detail."""
