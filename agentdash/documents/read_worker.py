"""Workers of other hosts: their documents as rows of this fleet.

States and verdicts are judged there. Here the times are corrected by the offset of the clocks, and ids get
the name of the host in front of them. Hosts may run other versions: any field of a document may be missing,
and further ones are ignored. A value that this version does not know becomes a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec.structs import replace

from agentdash.documents.worker import (
    ConfiguredReport,
    DenialReport,
    EvidenceReport,
    FactReport,
    FieldReport,
    FindingReport,
    RequestedReport,
    SandboxReport,
    WorkerReport,
)
from agentdash.model.denials import LedgerEntry, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.findings import Finding, Verdict
from agentdash.model.fleet import StatePeriod
from agentdash.model.git import Repository
from agentdash.model.layers import DifferingField
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.requested import Requested, RequestOrigin
from agentdash.model.states import Group, State, group_of_state
from agentdash.model.thread import Tokens
from agentdash.model.times import possible_time
from agentdash.model.worker import Agent, Assessment, Got, Sandbox, Worker, WorkerKind

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_Enum = TypeVar("_Enum", bound=StrEnum)
_Document = TypeVar("_Document", bound=msgspec.Struct)


def lenient(document: type[_Document]) -> type[_Document]:
    """Return a subclass of a document that also decodes those of other versions: a field that is missing has
    its default, or the empty value of its type, and a literal may be any text."""
    fields = msgspec.structs.fields(document)
    if not any(field.required for field in fields):
        return document
    lenient_fields = [(field.name, _lenient_type(field.type), _default(field)) for field in fields]
    return cast("type[_Document]", msgspec.defstruct(document.__name__, lenient_fields, bases=(document,)))


def _lenient_type(kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return lenient(kind)
    if origin is Literal:
        return str
    if origin is list:
        return list[_lenient_type(arguments[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_lenient_type(each) for each in arguments)]  # noqa: UP007 - made from a tuple
    return kind


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    if not field.required:
        return field.default
    kind = _lenient_type(field.type)
    if NoneType in get_args(kind):
        return None
    return msgspec.field(default_factory=get_origin(kind) or kind)


def read_worker(report: WorkerReport, host: str) -> Worker:
    """Return the row of a worker of another host, of its document, decoded by `lenient`."""
    return _Reader(host).row(report)


def qualified(host: str, worker: str) -> str:
    """Return the id of a worker in a fleet of several hosts."""
    return f"{host}:{worker}"


class _Reader:
    """Reads the document of one worker."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._notes: dict[str, None] = {}
        """What was left out because this version does not know it, in the order of reading."""

    def row(self, worker: WorkerReport) -> Worker:
        """Return the row."""
        state = self._enum(State, worker.state, State.UNKNOWN, "state")
        kind: WorkerKind = worker.kind if worker.kind in get_args(WorkerKind) else "process"
        assessment = Assessment(
            state=state,
            since=self._time(worker.since),
            why=worker.why,
            evidence=self._evidence(worker.evidence),
            fact=self._fact(worker.fact),
        )
        sandbox = self._sandbox(worker.sandbox)
        return Worker(
            id=qualified(self._host, worker.id),
            kind=kind,
            name=worker.name or worker.id,
            agent=Agent(worker.agent.name, worker.agent.version),
            assessment=assessment,
            parent=qualified(self._host, worker.parent) if worker.parent else None,
            sandbox=sandbox,
            pids=tuple(worker.pids),
            cwd=worker.cwd,
            tokens=Tokens(total=worker.tokens),
            last_activity=self._time(worker.last_activity),
            line=worker.why,
            history=tuple(
                StatePeriod(
                    state=period.state,
                    since=self._time(period.since) or 0.0,
                    why=period.why,
                    until=self._time(period.until),
                )
                for period in worker.history
            ),
            standing=self._enum(Group, worker.group, group_of_state(state), "group"),
            stalled=self._time(worker.stalled_since),
            host=self._host,
            pane_there=worker.pane,
            git=Repository(**msgspec.structs.asdict(worker.git)) if worker.git else None,
            on_screen=worker.on_screen,
            notes=tuple(self._notes),
        )

    def _fact(self, fact: FactReport) -> Fact | None:
        if not fact.kind:
            return None
        return Fact(
            kind=self._enum(FactKind, fact.kind, FactKind.UNCLEAR, "fact"),
            what=fact.what,
            object=fact.object,
            form=self._enum(ObjectForm, fact.form, ObjectForm.TEXT, "form"),
            why=fact.why,
        )

    def _evidence(self, pieces: Iterable[EvidenceReport]) -> tuple[Evidence, ...]:
        found = []
        for piece in pieces:
            source = self._enum(EvidenceSource, piece.source, EvidenceSource.HOST, "evidence source")
            found.append(Evidence(source, self._time(piece.at) or 0.0, piece.rule, piece.text, piece.agrees))
        return tuple(found)

    def _sandbox(self, sandbox: SandboxReport) -> Sandbox:
        is_verdict = sandbox.verdict in get_args(Verdict)
        if not is_verdict:
            self._note("verdict", sandbox.verdict)
        return Sandbox(
            verdict=sandbox.verdict if is_verdict else "unverified",
            configured=self._policy(sandbox.configured) if sandbox.configured else None,
            applied=sandbox.applied,
            got=self._known_thing(Got, sandbox.got, "observation of another version") or Got(),
            findings=tuple(self._findings(sandbox.findings)),
            unread=tuple(sandbox.not_known),
            denials=tuple(self._denials(sandbox.denials)),
            requested=self._requested(sandbox.requested) if sandbox.requested else None,
        )

    def _policy(self, policy: ConfiguredReport) -> Policy:
        return Policy(
            filesystem=self._enum(Filesystem, policy.filesystem, Filesystem.UNKNOWN, "file policy"),
            network=self._enum(Network, policy.network, Network.UNKNOWN, "network policy"),
            rules=tuple(PolicyRule(root, "write") for root in policy.writable_roots),
            approval=policy.approval,
        )

    def _requested(self, request: RequestedReport) -> Requested:
        policy = ConfiguredReport(
            request.filesystem or Filesystem.UNKNOWN,
            request.network or Network.UNKNOWN,
            request.writable_roots,
            request.approval,
        )
        origins = (
            self._known_thing(RequestOrigin, origin, f"request of another version: {origin.text}")
            for origin in request.origin
        )
        return Requested(
            policy=replace(self._policy(policy), reviewer=request.reviewer),
            origins=tuple(filter(None, origins)),
            since=self._time(request.since),
            read_at=self._time(request.as_of),
        )

    def _findings(self, findings: Iterable[FindingReport]) -> Iterator[Finding]:
        for finding in findings:
            since = self._time(finding.since) or 0.0
            found = self._known_thing(
                Finding,
                finding,
                f"finding of another version: {finding.kind}: {finding.message}",
                since=since,
                last=self._time(finding.last) or since,
                evidence=self._evidence(finding.evidence),
                remedy=_remedy(finding),
                fields=tuple(self._fields(finding.fields)),
            )
            if found is not None:
                yield found

    def _fields(self, fields: Iterable[FieldReport]) -> Iterator[DifferingField]:
        for field in fields:
            found = self._known_thing(
                DifferingField,
                field,
                f"layer of another version: {field.name} {field.layer} {field.reference}",
                expected_at=self._time(field.expected_at),
                actual_at=self._time(field.actual_at),
            )
            if found is not None:
                yield found

    def _denials(self, denials: Iterable[DenialReport]) -> Iterator[LedgerEntry]:
        for denial in denials:
            found = self._known_thing(
                LedgerEntry,
                denial,
                f"denial of another version: {denial.operation} {denial.target or ''}",
                first=self._time(denial.first) or 0.0,
                last=self._time(denial.last) or 0.0,
                days=tuple(_days(denial.days)),
                remedy=_remedy(denial),
            )
            if found is not None:
                yield found

    def _known_thing(
        self, kind: type[_Document], report: msgspec.Struct, unknown: str, **stated: Any
    ) -> _Document | None:
        """Return what a report is of: the values of its fields, but for those that are stated. None, with a
        note, if this version does not know one of them."""
        values = {name: getattr(report, name) for name in report.__struct_fields__}
        fields = {name: values[name] for name in kind.__struct_fields__ if name in values}
        try:
            return msgspec.convert({**fields, **stated}, kind)
        except msgspec.ValidationError:
            self._notes[unknown] = None
            return None

    def _time(self, text: str | None) -> float | None:
        """Return a time by the clock of that host (unix seconds), or None."""
        if text is None:
            return None
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        if at.tzinfo is None:
            return None
        return possible_time(at.timestamp())

    def _enum(self, kind: type[_Enum], value: str, default: _Enum, what: str) -> _Enum:
        return self._known(kind, value, what) or default

    def _known(self, kind: type[_Enum], value: str, what: str) -> _Enum | None:
        """Return a member by its value, or None, with a note, if this version does not have it."""
        known: Mapping[Any, _Enum] = kind._value2member_map_  # type: ignore[assignment]
        if (member := known.get(value)) is None:
            self._note(what, value)
        return member

    def _note(self, what: str, value: str) -> None:
        if value:
            self._notes[f"{what} of another version: {value}"] = None


def _days(days: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the days since 1970 and their counts, without what is not a date."""
    for day, count in days.items():
        try:
            yield date.fromisoformat(day).toordinal() - _EPOCH_DAY, count
        except ValueError:
            continue


def _remedy(stated: FindingReport | DenialReport) -> Remedy | None:
    if stated.remedy is None:
        return None
    return Remedy(text=stated.remedy, where=stated.remedy_where, once=stated.remedy_once)
