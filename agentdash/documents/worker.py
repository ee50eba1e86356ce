"""The documents of a worker and of a change: `status`, `wait` and `status --watch` write them, and they are
read from other hosts (`read_worker.py`). `check` and `explain` have parts of them.
"""

from __future__ import annotations

from functools import cache, singledispatch
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from agentdash.model import worker as w
from agentdash.model.denials import LedgerEntry, Remedy
from agentdash.model.findings import Finding, Verdict
from agentdash.model.pane import ScreenUsage
from agentdash.model.requested import Requested, RequestField
from agentdash.model.thread import PolicyPeriod
from agentdash.model.times import iso

_Document = TypeVar("_Document", bound=msgspec.Struct)


def document(kind: type[_Document], thing: object, **stated: Any) -> _Document:
    """Return a document of a thing: the values of its fields of the same names, or what is stated of it;
    structs in them likewise, times as ISO 8601, tuples as lists.

    Args:
        stated: the fields that are stated otherwise.
    """
    known = _stated(thing) | stated
    values = {}
    for field in fields_of(kind):
        name = field.name
        value = known[name] if name in known else getattr(thing, name)
        values[name] = value if value is None or type(value) is str else _value(field, value)
    return kind(**values)


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    types: tuple[Any, ...]
    """Its type, and those in it: `float` and `None` of `float | None`."""
    struct: type[msgspec.Struct] | None
    """The struct that it has, or several of."""


@cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of a struct."""
    found = []
    for field in msgspec.structs.fields(kind):
        types = (field.type, *get_args(field.type))
        structs = (each for each in types if isinstance(each, type) and issubclass(each, msgspec.Struct))
        found.append(Field(field.name, types, next(structs, None)))
    return tuple(found)


def _value(field: Field, value: Any) -> Any:
    if field.struct is not None:
        if isinstance(value, (tuple, list)):
            return [_value(field, each) for each in value]
        return value if isinstance(value, field.struct) else document(field.struct, value)
    if isinstance(value, tuple):
        return list(value)
    return iso(value) if isinstance(value, float) and float not in field.types else value


@singledispatch
def _stated(thing: object) -> dict[str, Any]:
    """Return the fields of the documents of a thing that it has not itself, by their names."""
    del thing
    return {}


class FactReport(msgspec.Struct):
    """What a worker does or needs, and the object it is about."""

    kind: str
    """`run`, `leave`, `edit`, `approve`, `ask`, `idle`, `denied`, `refused`, `provider`, `sandbox`, `work`,
    `done`, `stopped`, `crashed`, `quit`, `unclear`."""
    what: str
    """In a few words, before the object."""
    object: str
    """The command, path, host, question or message, whole; empty if there is none."""
    form: str
    """What the object is: `command`, `path`, `host`, `text`."""
    why: str
    """In a few words, after the object; empty if nothing more is known."""
    text: str
    """All of it on one line."""


class RepositoryReport(msgspec.Struct):
    """The git repository of a worker's directory; null where a part is not known."""

    root: str
    """The working tree."""
    branch: str | None
    """Null also where HEAD is detached."""
    commit: str | None
    """The commit that is checked out."""
    worktree: str | None
    """Its name, if it is a linked worktree."""
    dirty: bool | None
    """Whether tracked files differ from the last commit."""


class EditReport(msgspec.Struct):
    """The newest change of a file by a worker."""

    path: str
    at: str | None
    call: str
    """The call that made it, on one line."""


class SameFileReport(msgspec.Struct):
    """A file of one repository that two workers have edited, maybe in two worktrees of it."""

    path: str
    """In the repository."""
    edit: EditReport
    """This worker's."""
    worker: str
    """Id of the other one."""
    name: str
    other: EditReport
    """Its edit."""


class EvidenceReport(msgspec.Struct):
    """One piece of evidence."""

    source: str
    at: str | None
    rule: str
    text: str
    agrees: bool
    """Whether it supports the state or verdict; contradicting evidence is listed too."""


def remedy_fields(remedy: Remedy | None) -> dict[str, str | None]:
    """Return the three fields of a remedy in documents."""
    if remedy is None:
        return {"remedy": None, "remedy_where": None, "remedy_once": None}
    return {"remedy": remedy.text, "remedy_where": remedy.where, "remedy_once": remedy.once}


class DenialReport(msgspec.Struct):
    """All denials of one operation on one target, from the denial ledger."""

    what: Literal["filesystem", "network", "other"]
    operation: str
    target: str | None
    """Path, host or socket; null where neither output nor script names it."""
    certainty: str
    """`certain`, or `likely`: another cause could have the same words."""
    quote: str
    calls: list[str]
    """The newest calls that were denied."""
    count: int
    first: str | None
    last: str | None
    got_past: bool
    """Whether the same command, or a change of the same target, succeeded afterwards."""
    nested: str | None
    """The worker CLI that ran inside the sandbox and failed there."""
    remedy: str | None = None
    remedy_where: str | None = None
    remedy_once: str | None = None


@_stated.register
def _(denial: LedgerEntry) -> dict[str, Any]:
    what = "other" if denial.what == "sandbox" else denial.what
    return {"what": what, **remedy_fields(denial.remedy)}


class FieldReport(msgspec.Struct):
    """A cell of the layers in which two values differ."""

    name: str
    """`files`, `network`, `network_flag`, `sandbox_flag`, `seccomp`, `approval`, `reviewer`, `tmux`."""
    expected: str
    """The value it was compared with."""
    actual: str
    """The value that differs."""
    layer: str
    """The layer of the actual value: `requested`, `configured`, `applied`, `observed`."""
    reference: str
    """What it was compared with: `requested`, `configured`, `earlier` (the policy in force then),
    `allowed` (an escalation), `parent`, `before` (the policy before a change)."""
    expected_at: str | None
    """When that came into force."""
    actual_at: str | None
    """When it was observed, or came into force."""


class FindingReport(msgspec.Struct):
    """A difference between configured and observed sandbox, or a denial that stopped the worker."""

    kind: str
    direction: str
    severity: str
    message: str
    fields: list[FieldReport]
    """The cells that differ; empty for a denial."""
    evidence: list[EvidenceReport]
    remedy: str | None
    remedy_where: str | None = None
    remedy_once: str | None = None
    configured: str = ""
    """The configured side, quoted, with where it was read; empty where it is not known."""
    got: str = ""
    """The observed side, likewise."""
    since: str | None = None
    last: str | None = None
    count: int = 1
    """Observations that show it."""
    calls: list[str] = []
    pids: list[int] = []


@_stated.register
def _(finding: Finding) -> dict[str, Any]:
    return remedy_fields(finding.remedy)


class RequestOriginReport(msgspec.Struct):
    """Where one part of a request was set."""

    field: str
    """`filesystem`, `network`, `writable_roots`, `approval`, `reviewer`, `profile`."""
    layer: str
    """`argv`, `environment`, `thread setting`, `role`, `profile`, `project config`, `user config` ..."""
    file: str | None
    line: int | None
    text: str


class RequestedReport(msgspec.Struct):
    """What was asked for; null or empty where nothing asked for it."""

    filesystem: str | None
    network: str | None
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None
    origin: list[RequestOriginReport]
    """Where each part was set."""
    since: str | None
    """When it was asked for."""
    as_of: str | None
    """When the configuration files were read, if they have changed since; null: as they were then."""


@_stated.register
def _(requested: Requested) -> dict[str, Any]:
    policy = requested.policy
    values = {
        RequestField.FILESYSTEM: policy.filesystem.value,
        RequestField.NETWORK: policy.network.value,
        RequestField.APPROVAL: policy.approval,
        RequestField.REVIEWER: policy.reviewer,
    }
    asked = {field.value: requested.origin(field) and value for field, value in values.items()}
    roots = policy.writable_roots if asked["filesystem"] else ()
    return {**asked, "writable_roots": roots, "origin": requested.origins, "as_of": requested.read_at}


class ConfiguredReport(msgspec.Struct):
    """The policy in force."""

    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None


class PolicyReport(ConfiguredReport):
    """A policy and when it came into force."""

    reviewer: str | None
    since: str | None
    origin: str
    """What stated it: the record of the session log."""
    line: int


@_stated.register
def _(period: PolicyPeriod) -> dict[str, Any]:
    names = ("filesystem", "network", "writable_roots", "approval", "reviewer")
    return {name: getattr(period.policy, name) for name in names}


class GotReport(msgspec.Struct):
    """What was observed of the newest command; null where it was not observed."""

    network_flag: str | None
    sandbox_flag: str | None
    seccomp: int | None
    no_new_privs: bool | None
    network_namespace: str | None
    sandboxed: bool | None


class StatePeriodReport(msgspec.Struct):
    """A period that a worker spent in one state."""

    state: str
    since: str | None
    until: str | None
    why: str


class SandboxReport(msgspec.Struct):
    """Requested, configured, applied and observed sandbox, and the verdict."""

    requested: RequestedReport | None
    configured: ConfiguredReport | None
    applied: str | None
    got: GotReport
    verdict: Verdict
    findings: list[FindingReport]
    denials: list[DenialReport]
    not_known: list[str]
    """What could not be observed, or was not read: verdict and ledger are without it. `status` reads only the
    beginning and the end of large session files; `check` reads all of them."""


@_stated.register
def _(sandbox: w.Sandbox) -> dict[str, Any]:
    return {"not_known": sandbox.unread}


class WorkerReport(msgspec.Struct):
    """One worker."""

    id: str
    kind: w.WorkerKind
    name: str
    agent: w.Agent
    parent: str | None
    children: list[str]
    """Ids of the threads that it started."""
    state: str
    since: str | None
    why: str
    needs_you: bool
    """Whether it needs the user now: it waits, is blocked or has failed, is not acknowledged and not past."""
    group: str
    """`needs-you`, `running`, `unclear`, `done`, `past`."""
    fact: FactReport
    """The reason in short, with its object whole."""
    evidence: list[EvidenceReport]
    sandbox: SandboxReport
    """The layers of its sandbox."""
    pane: str | None
    """Its tmux pane; null where it has none."""
    pids: list[int]
    cwd: str | None
    tokens: int | None
    """Tokens of the whole session; null where they are not known."""
    last_activity: str | None
    """When it last gave a sign of life."""
    stalled_since: str | None
    """Time since which a running worker has shown no activity; null if it is active."""
    history: list[StatePeriodReport]
    """Its states, oldest first, the current one last; bounded."""
    host: str | None = None
    """The host it runs on; null: this machine. Then `id`, `parent` and `children` have its name in front of
    them, and `pane`, `pids` and paths are those of that host."""
    git: RepositoryReport | None = None
    """The git repository of its directory; null where it lies in none, or was not read in time, and of past
    workers."""
    on_screen: ScreenUsage | None = None
    """What the screen of its pane states of model, context and cost, as the CLI rounds it; null: nothing."""
    limited_until: str | None = None
    """When the usage limit that it has stopped at is reset, or was; null: at none."""
    same_files: list[SameFileReport] = []
    """Files of its repository that another live worker has edited as well within half an hour."""
    known: list[str] = []
    """The kinds of its findings that the user has marked as known: nothing counts them as problems."""
    label: str = ""
    """What the user calls it; empty: by its name."""
    pinned: bool = False
    """Whether the user has pinned it: it stands above all groups of the list."""


@_stated.register
def _(worker: w.Worker) -> dict[str, Any]:
    unread = (*worker.sandbox.unread, *worker.notes)
    return {
        "since": worker.assessment.since,
        "why": worker.assessment.why,
        "state": worker.state.value,
        "evidence": worker.assessment.evidence,
        "sandbox": replace(worker.sandbox, unread=unread),
        "pane": worker.pane_there if worker.pane is None else str(worker.pane.key),
        "tokens": worker.tokens.total,
        "stalled_since": worker.stalled,
    }


# ------------------------------------------------------------
# A line of `agentdash status --watch`, the document `agentdash.change/2`


class SourceReport(msgspec.Struct):
    """Health of one source."""

    name: str
    ok: bool
    detail: str


class TickReport(msgspec.Struct):
    """What grows while a worker works, and is no change by itself."""

    id: str
    """The worker."""
    last_activity: str | None
    """When it was last active."""
    tokens: int | None
    """Its tokens so far."""


class ChangeReport(msgspec.Struct):
    """A line of `agentdash status --watch`: a worker or source that was added, changed or removed; or a
    heartbeat."""

    schema: Literal["agentdash.change/2"]
    at: str
    change: Literal["added", "changed", "removed", "source", "alive"]
    """What happened. `alive`: a heartbeat; the first one ends the lines of the first snapshot."""
    changed: list[str] = []
    """The fields of a changed worker that differ, `state`, `why`, `sandbox.findings` ...; else empty."""
    worker: WorkerReport | None = None
    """As of now; the last known form of a removed one."""
    source: SourceReport | None = None
    version: str | None = None
    """Of `alive`: the version of agentdash."""
    ticks: list[TickReport] = []
    """Of `alive`: workers of which only these have changed since their last line."""
