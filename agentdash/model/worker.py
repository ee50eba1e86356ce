"""Workers with their states, verdicts and reasons, as one frozen snapshot.

The screen and every JSON document are functions of a `Snapshot`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from agentdash.model.changes import Edit, SameFile
from agentdash.model.denials import LedgerEntry
from agentdash.model.engine_failure import EngineFailure
from agentdash.model.events import SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.findings import Finding, Verdict
from agentdash.model.fleet import StatePeriod
from agentdash.model.git import Repository
from agentdash.model.layers import (
    HOST_NETWORK,
    IN_SANDBOX,
    NO_SANDBOX,
    OWN_NETWORK,
    SECCOMP_MODES,
    LayerField,
)
from agentdash.model.pane import NO_SERVER, Pane, PaneKey, ScreenUsage, tmux_source
from agentdash.model.policy import Policy
from agentdash.model.remote import HostLink
from agentdash.model.requested import Requested
from agentdash.model.source import NO_CODEX_HOME
from agentdash.model.states import Group, State, group_of_state
from agentdash.model.thread import Call, Moment, PolicyPeriod, Tokens

WorkerKind = Literal["codex-thread", "claude-session", "chat", "pane", "process"]


class Assessment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state, its begin, its reason and its evidence."""

    state: State
    since: float | None
    why: str
    evidence: tuple[Evidence, ...] = ()
    fact: Fact | None = None
    """The same in short, with its object, or None while an earlier state is still shown."""
    asker: str = ""
    """The id of the sub-agent whose approval it waits for; empty: its own."""


class Got(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of the newest command whose sandbox was observed. None: not observed."""

    network_flag: str | None = None
    sandbox_flag: str | None = None
    seccomp: int | None = None
    network_namespace: Literal["host", "own"] | None = None
    at: float | None = None
    source: EvidenceSource | None = None
    no_new_privs: bool | None = None
    sandboxed: bool | None = None
    """Whether the kernel restricts it more than its Codex."""
    under_earlier_policy: bool = False
    """Whether it was observed under an earlier policy than the one configured now: they must not be
    compared."""

    def values(self) -> dict[LayerField, str]:
        """Return the observed facts by their row in the layers table; others are left out."""
        values: dict[LayerField, str] = {}
        if self.sandboxed is not None:
            values[LayerField.FILES] = IN_SANDBOX if self.sandboxed else NO_SANDBOX
        if self.network_namespace is not None:
            values[LayerField.NETWORK] = HOST_NETWORK if self.network_namespace == "host" else OWN_NETWORK
        if self.network_flag is not None:
            values[LayerField.NETWORK_FLAG] = self.network_flag
        if self.sandbox_flag is not None:
            values[LayerField.SANDBOX_FLAG] = self.sandbox_flag
        if self.seccomp is not None:
            values[LayerField.SECCOMP] = SECCOMP_MODES.get(self.seccomp, str(self.seccomp))
        return values


class Sandbox(msgspec.Struct, frozen=True, omit_defaults=True):
    """The layers of one worker's sandbox, and the result of comparing them."""

    verdict: Verdict = "unverified"
    configured: Policy | None = None
    applied: str | None = None
    """The launcher of the newest command and the outcome of a requested escalation, in words. None: not
    observed."""
    got: Got = Got()
    findings: tuple[Finding, ...] = ()
    applied_policy: Policy | None = None
    """The policy in the arguments of the newest command's launcher."""
    evidence: tuple[Evidence, ...] = ()
    """Evidence of the verdict, and against it."""
    unread: tuple[str, ...] = ()
    """What could not be observed, and limits the verdict."""
    denials: tuple[LedgerEntry, ...] = ()
    """The denial ledger: what the sandbox refused so far, oldest first, got past or not."""
    requested: Requested | None = None
    """What was asked for, and where. None: not known."""
    launcher: str | None = None
    """The program that started the newest command in its sandbox; `none`: Codex itself. None: not seen."""
    escalation: str | None = None
    """The newest escalation that was asked for, and its outcome, in words."""


class Agent(msgspec.Struct, frozen=True):
    """The program a worker is."""

    name: str
    version: str | None = None


class Link(msgspec.Struct, frozen=True):
    """A link between a worker and something else, with its evidence."""

    to: str
    """`pane %4`, `pid 4242`, `thread 01a1...`"""
    by: str
    """The rule or fact that it is based on."""


class Worker(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the fleet."""

    id: str
    """Thread id, pane id, or `pid:4242` of a worker CLI that a command of a thread has started."""
    kind: WorkerKind
    name: str
    agent: Agent
    assessment: Assessment
    parent: str | None = None
    children: tuple[str, ...] = ()
    depth: int = 0
    """Depth in the tree, for indenting."""
    below: tuple[str, ...] = ()
    """States of workers below this one that need the user, worst first: `waiting-approval Pasteur`."""
    sandbox: Sandbox = Sandbox()
    pane: Pane | None = None
    part: str = ""
    """Of a pane with several threads: which of them it is, and whether it is in front."""
    pids: tuple[int, ...] = ()
    cwd: str | None = None
    tokens: Tokens = Tokens()
    last_activity: float | None = None
    line: str = ""
    """Its present or last activity, on one line."""
    links: tuple[Link, ...] = ()
    policies: tuple[PolicyPeriod, ...] = ()
    moments: tuple[Moment, ...] = ()
    calls: tuple[Call, ...] = ()
    """Open calls first, then ended ones, newest first."""
    model: str | None = None
    file: str | None = None
    turns: int = 0
    notes: tuple[str, ...] = ()
    """Known gaps: `read head and tail only`, `3 lines skipped`."""
    history: tuple[StatePeriod, ...] = ()
    """The states it has been in, oldest first, the present one last."""
    standing: Group | None = None
    """Its group, as judged with what the user has looked at; None: by its state alone."""
    known: tuple[str, ...] = ()
    """The kinds of its findings that the user has marked as known."""
    label: str = ""
    """What the user calls it; empty: by its name."""
    pinned: bool = False
    """Whether the user has pinned it: it stands above all groups."""
    started: float | None = None
    """When it began (unix seconds)."""
    git: Repository | None = None
    """Of its directory, while it is held; None: in no repository, or not read."""
    stalled: float | None = None
    """Of a running worker: since when it has given no sign of life, neither output nor CPU nor I/O; None: it
    gives some, or has not been silent for long enough."""
    limited_until: float | None = None
    """When the usage limit that it has stopped at is reset, or was (unix seconds); None: at none."""
    edits: tuple[Edit, ...] = ()
    """The newest edit of each file, by its record; bounded."""
    same_files: tuple[SameFile, ...] = ()
    """Files that another live worker has edited as well within half an hour, the newest first."""
    host: str | None = None
    """The host that it runs on, as it is named here; None: this machine. Paths and pids are those of that
    host. `id` and `parent` have its name in front of them, and `pane` is None."""
    pane_there: str | None = None
    """Of a worker of another host: its pane there."""
    on_screen: ScreenUsage | None = None
    """What the screen of its pane states of model, context and cost; None: nothing."""

    @property
    def is_thread(self) -> bool:
        """Whether it is a session that is read from its log."""
        return self.kind not in ("pane", "process")

    @property
    def state(self) -> State:
        """Return its state."""
        return self.assessment.state

    @property
    def group(self) -> Group:
        """Return its group in the list."""
        return self.standing or group_of_state(self.state)

    @property
    def title(self) -> str:
        """Return what it is called in lists."""
        return self.label or self.name

    @property
    def needs_you(self) -> bool:
        """Return whether it needs the user now."""
        return self.group is Group.NEEDS_YOU

    @property
    def fact(self) -> Fact:
        """Return what it does or needs, in short; the reason of its state where nothing shorter is known."""
        return self.assessment.fact or Fact(FactKind.UNCLEAR, self.assessment.why)

    @property
    def context_share(self) -> float | None:
        """Return how full its context is, by its file, else by its screen; None if not known."""
        if self.tokens.context is not None and self.tokens.window:
            return self.tokens.context / self.tokens.window
        shown = self.on_screen
        return shown.percent / 100 if shown is not None and shown.percent is not None else None

    @property
    def mismatch(self) -> bool:
        """Return whether its sandbox differs from the configured one in more than what the user knows of."""
        if self.sandbox.verdict != "mismatch" or not self.known:
            return self.sandbox.verdict == "mismatch"
        counted = (finding for finding in self.sandbox.findings if finding.severity != "info")
        return any(finding.kind not in self.known for finding in counted)

    @property
    def place(self) -> str:
        """Return its directory, with its host in front if that is another one; empty if not known."""
        return f"{self.host}:{self.cwd}" if self.host and self.cwd else self.cwd or ""


def nested_worker_id(pid: int) -> str:
    """Return the id of a worker CLI that a command of a thread has started."""
    return f"pid:{pid}"


class PastPane(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pane that has gone, or that its worker has left: a target that still has an answer."""

    key: PaneKey
    worker: str
    """Id of its last worker."""
    shown: Worker | None = None
    """The worker; None for a Codex thread, which is one of the workers of the snapshot."""
    is_stale: bool = False
    """Whether its tmux server has ended: a new server counts its panes from `%0` again."""


class Snapshot(msgspec.Struct, frozen=True):
    """The fleet at one moment, in the order of its tree: parents before their children, newest families
    first."""

    at: float
    workers: tuple[Worker, ...] = ()
    sources: tuple[SourceSeen, ...] = ()
    due: float | None = None
    """When the next snapshot differs even without events: a state settles, or a worker has been silent for
    too long."""
    failure: EngineFailure | None = None
    """The engine's own failure, where there was one: `workers` may be old or incomplete."""
    past: tuple[PastPane, ...] = ()
    """Panes of past workers, the newest last; bounded."""
    idle_panes: tuple[PaneKey, ...] = ()
    """Panes without a worker."""
    hosts: tuple[HostLink, ...] = ()
    """The links to other hosts, by name."""

    def differs_from(self, other: Snapshot | None) -> bool:
        """Return whether anything but the time differs."""
        if other is None:
            return True
        return replace(self, at=other.at, due=other.due) != other

    @property
    def failing_sources(self) -> tuple[SourceSeen, ...]:
        """Return the sources that cannot be read: also the default tmux server, unless another one runs, and
        Codex's home, unless there are workers of other CLIs."""
        default = tmux_source("default")
        another = any(s.ok and s.name != default and s.name.startswith(default) for s in self.sources)
        return tuple(
            s
            for s in self.sources
            if not s.ok
            and not (another and s.name == default and s.detail == NO_SERVER)
            and not (self.workers and s.detail.endswith(NO_CODEX_HOME))
        )

    def counts(self) -> dict[str, int]:
        """Return the number of workers by group, and, beside these, of mismatches (`mismatch`), without past
        ones."""
        out = {**{group.value: 0 for group in Group}, "mismatch": 0}
        for worker in self.workers:
            out[worker.group] += 1
            out["mismatch"] += worker.mismatch and worker.group is not Group.PAST
        return out
