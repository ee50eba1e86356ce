"""The documents of a worker and of a change: `status`, `wait` and `status --watch` write them, and they are
read from other hosts (`read_worker.py`). `check` and `explain` have parts of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec

from agentdash.model import worker as w
from agentdash.model.changes import SameFile
from agentdash.model.denials import LedgerEntry, Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, Verdict
from agentdash.model.pane import ScreenUsage
from agentdash.model.requested import Requested, RequestField
from agentdash.model.times import iso

_Document = TypeVar("_Document", bound=msgspec.Struct)


def document(kind: type[_Document], thing: object, **stated: Any) -> _Document:
    """Return a document with the values of a thing in the fields of the same names: times as ISO 8601, tuples
    as lists.

    Args:
        stated: the fields that are stated otherwise.
    """
    names = (name for name in kind.__struct_fields__ if name not in stated)
    return kind(**{name: _value(getattr(thing, name)) for name in names}, **stated)


def _value(value: Any) -> Any:
    """Return a value as documents have it; of what they show in this way, only times are floats."""
    if isinstance(value, float):
        return iso(value)
    return list(value) if isinstance(value, tuple) else value


class AgentReport(msgspec.Struct):
    """The CLI that a worker runs."""

    name: str
    version: str | None


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
    """Its name."""
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


def evidence_report(evidence: Iterable[Evidence]) -> list[EvidenceReport]:
    """Return the reports of pieces of evidence."""
    return [document(EvidenceReport, piece) for piece in evidence]


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


def denial_report(entry: LedgerEntry) -> DenialReport:
    """Return the report of an entry of the denial ledger."""
    return document(
        DenialReport,
        entry,
        what="other" if entry.what == "sandbox" else entry.what,
        **remedy_fields(entry.remedy),
    )


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


_Finding = TypeVar("_Finding", bound="FindingReport")


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
    """Lines of a configuration file, or words; null where nothing narrow enough is known."""
    remedy_where: str | None = None
    """The file and the place in it for the lines; null where `remedy` is no configuration."""
    remedy_once: str | None = None
    """The shell command that starts Codex with this change for one run; null where there is none."""
    configured: str = ""
    """The configured side, quoted, with where it was read; empty where it is not known."""
    got: str = ""
    """The observed side, likewise."""
    since: str | None = None
    last: str | None = None
    count: int = 1
    """Observations that show it."""


def finding_report(finding: Finding, kind: type[_Finding]) -> _Finding:
    """Return the report of a finding."""
    return document(
        kind,
        finding,
        fields=[document(FieldReport, field) for field in finding.fields],
        evidence=evidence_report(finding.evidence),
        **remedy_fields(finding.remedy),
    )


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


def requested_report(requested: Requested | None) -> RequestedReport | None:
    """Return the report of a request, or None without one."""
    if requested is None:
        return None
    policy = requested.policy

    def asked(field: RequestField, value: str | None) -> str | None:
        return value if requested.origin(field) is not None else None

    return RequestedReport(
        filesystem=asked(RequestField.FILESYSTEM, policy.filesystem.value),
        network=asked(RequestField.NETWORK, policy.network.value),
        writable_roots=list(policy.writable_roots) if requested.origin(RequestField.FILESYSTEM) else [],
        approval=asked(RequestField.APPROVAL, policy.approval),
        reviewer=asked(RequestField.REVIEWER, policy.reviewer),
        origin=[document(RequestOriginReport, origin) for origin in requested.origins],
        since=iso(requested.since),
        as_of=iso(requested.read_at),
    )


class ConfiguredReport(msgspec.Struct):
    """The policy in force."""

    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None


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
    """What was asked for, and where; null where that is not known."""
    configured: ConfiguredReport | None
    applied: str | None
    got: GotReport
    verdict: Verdict
    findings: list[FindingReport]
    denials: list[DenialReport]
    """The denial ledger: also denials that the worker got past."""
    not_known: list[str]
    """What could not be observed, or was not read: verdict and ledger are without it. `status` reads only the
    beginning and the end of large session files; `check` reads all of them."""


class WorkerReport(msgspec.Struct):
    """One worker."""

    id: str
    kind: w.WorkerKind
    name: str
    agent: AgentReport
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


def worker_report(worker: w.Worker) -> WorkerReport:
    """Return the report of a worker."""
    pane = str(worker.pane.key) if worker.pane else None
    return WorkerReport(
        id=worker.id,
        kind=worker.kind,
        name=worker.name,
        agent=document(AgentReport, worker.agent),
        parent=worker.parent,
        children=list(worker.children),
        state=str(worker.state),
        since=iso(worker.assessment.since),
        why=worker.assessment.why,
        needs_you=worker.needs_you,
        group=worker.group,
        fact=document(FactReport, worker.fact),
        evidence=evidence_report(worker.assessment.evidence),
        sandbox=_sandbox_report(worker.sandbox, worker.notes),
        pane=pane if worker.host is None else worker.pane_there,
        pids=list(worker.pids),
        cwd=worker.cwd,
        tokens=worker.tokens.total,
        git=document(RepositoryReport, worker.git) if worker.git else None,
        last_activity=iso(worker.last_activity),
        stalled_since=iso(worker.stalled),
        history=[document(StatePeriodReport, period) for period in worker.history],
        host=worker.host,
        on_screen=worker.on_screen,
        limited_until=iso(worker.limited_until),
        same_files=[_same_file_report(each) for each in worker.same_files],
        known=list(worker.known),
        label=worker.label,
        pinned=worker.pinned,
    )


def _same_file_report(same: SameFile) -> SameFileReport:
    edits = {"edit": document(EditReport, same.edit), "other": document(EditReport, same.other)}
    return document(SameFileReport, same, **edits)


def _sandbox_report(sandbox: w.Sandbox, notes: Iterable[str]) -> SandboxReport:
    return SandboxReport(
        requested=requested_report(sandbox.requested),
        configured=document(ConfiguredReport, sandbox.configured) if sandbox.configured else None,
        applied=sandbox.applied,
        got=document(GotReport, sandbox.got),
        verdict=sandbox.verdict,
        findings=[finding_report(finding, FindingReport) for finding in sandbox.findings],
        denials=[denial_report(entry) for entry in sandbox.denials],
        not_known=[*sandbox.unread, *notes],
    )


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
