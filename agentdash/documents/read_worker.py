"""Workers of other hosts: their documents as rows of this fleet.

States and verdicts are judged there. Here ids get the name of the host in front of them. Hosts may run other
versions with the same schema: what those add has defaults here, and a value that this version does not know
becomes a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.documents.worker import (
    ConfiguredReport,
    DenialReport,
    Field,
    FindingReport,
    RequestedReport,
    SandboxReport,
    WorkerReport,
    fields_of,
)
from agentdash.model.denials import LedgerEntry, Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.fact import Fact
from agentdash.model.findings import Finding
from agentdash.model.fleet import StatePeriod
from agentdash.model.git import Repository
from agentdash.model.policy import Policy, PolicyRule
from agentdash.model.requested import Requested, RequestOrigin
from agentdash.model.states import Group, State, group_of_state
from agentdash.model.thread import Tokens
from agentdash.model.times import parse_iso
from agentdash.model.worker import Assessment, Got, Sandbox, Worker

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def read_worker(report: WorkerReport, host: str) -> Worker:
    """Return the row of a worker of another host."""
    return _Reader(host).row(report)


class _Reader:
    """Reads the document of one worker."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._notes: dict[str, None] = {}
        """What was left out because this version does not know it, in the order of reading."""

    def row(self, worker: WorkerReport) -> Worker:
        """Return the row."""
        state = State.UNKNOWN
        if worker.state in list(State):
            state = State(worker.state)
        else:
            self._notes[f"state of another version: {worker.state}"] = None
        assessment = Assessment(
            state=state,
            since=parse_iso(worker.since),
            why=worker.why,
            evidence=self._all("evidence", Evidence, worker.evidence),
            fact=self._read("fact", Fact, worker.fact) if worker.fact.kind else None,
        )
        return Worker(
            id=self._qualified(worker.id),
            kind=worker.kind,
            name=worker.name or worker.id,
            agent=worker.agent,
            assessment=assessment,
            parent=self._qualified(worker.parent) if worker.parent else None,
            sandbox=self._sandbox(worker.sandbox),
            pids=tuple(worker.pids),
            cwd=worker.cwd,
            tokens=Tokens(total=worker.tokens),
            last_activity=parse_iso(worker.last_activity),
            line=worker.why,
            history=self._all("state", StatePeriod, worker.history),
            standing=Group(worker.group) if worker.group in list(Group) else group_of_state(state),
            stalled=parse_iso(worker.stalled_since),
            limited_until=parse_iso(worker.limited_until),
            host=self._host,
            pane_there=worker.pane,
            git=self._read("repository", Repository, worker.git) if worker.git else None,
            on_screen=worker.on_screen,
            label=worker.label,
            notes=tuple(self._notes),
        )

    def _qualified(self, worker: str) -> str:
        """Return the id of a worker in a fleet of several hosts."""
        return f"{self._host}:{worker}"

    def _sandbox(self, sandbox: SandboxReport) -> Sandbox:
        return Sandbox(
            verdict=sandbox.verdict,
            configured=self._policy(sandbox.configured) if sandbox.configured else None,
            applied=sandbox.applied,
            got=self._read("observation", Got, sandbox.got) or Got(),
            findings=tuple(filter(None, map(self._finding, sandbox.findings))),
            unread=tuple(sandbox.not_known),
            denials=tuple(filter(None, map(self._denial, sandbox.denials))),
            requested=self._requested(sandbox.requested) if sandbox.requested else None,
        )

    def _policy(self, stated: ConfiguredReport) -> Policy | None:
        rules = tuple(PolicyRule(root, "write") for root in stated.writable_roots)
        return self._read("policy", Policy, stated, rules=rules)

    def _requested(self, request: RequestedReport) -> Requested | None:
        unknown = "unknown"  # what nothing asked for
        filesystem, network = request.filesystem or unknown, request.network or unknown
        stated = ConfiguredReport(filesystem, network, request.writable_roots, request.approval)
        if (policy := self._policy(stated)) is None:
            return None
        return Requested(
            policy=replace(policy, reviewer=request.reviewer),
            origins=self._all("request", RequestOrigin, request.origin),
            since=parse_iso(request.since),
            read_at=parse_iso(request.as_of),
        )

    def _finding(self, finding: FindingReport) -> Finding | None:
        return self._read("finding", Finding, finding, remedy=_remedy(finding))

    def _denial(self, denial: DenialReport) -> LedgerEntry | None:
        return self._read("denial", LedgerEntry, denial, remedy=_remedy(denial))

    def _all(self, what: str, kind: type[_Struct], reports: Iterable[Any]) -> tuple[_Struct, ...]:
        return tuple(filter(None, (self._read(what, kind, each) for each in reports)))

    def _read(self, what: str, kind: type[_Struct], report: msgspec.Struct, **stated: Any) -> _Struct | None:
        """Return what a report is of, as `document` wrote it: the values of its fields, but for those that
        are stated. None, with a note, if this version does not know one of them."""
        values = {
            field.name: self._value(field, getattr(report, field.name))
            for field in fields_of(kind)
            if field.name in report.__struct_fields__ and field.name not in stated
        }
        try:
            return msgspec.convert(values | stated, kind)
        except msgspec.ValidationError:
            self._notes[f"{what} of another version: left out"] = None
            return None

    def _value(self, field: Field, value: Any) -> Any:
        if float in field.types:
            return parse_iso(value) or (None if NoneType in field.types else 0.0)
        if field.struct is not None and isinstance(value, list):
            return self._all(field.name, field.struct, value)
        return value


def _remedy(stated: FindingReport | DenialReport) -> Remedy | None:
    if stated.remedy is None:
        return None
    return Remedy(text=stated.remedy, where=stated.remedy_where, once=stated.remedy_once)
