"""The row of a worker of another host: what the agentdash there states, in the types of a worker here.

States and verdicts are judged there. Here the times are corrected by the offset of the clocks, ids get the
name of the host in front of them, and a lost link makes its workers `unreachable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args

from msgspec.structs import replace

from agentdash.model.attention import Group, group_of_state
from agentdash.model.denials import LedgerEntry, Operation
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.findings import Direction, Finding, FindingKind, Severity, Verdict
from agentdash.model.fleet import StatePeriod
from agentdash.model.layers import DifferingField, Layer, LayerField, Reference
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.remedies import Remedy
from agentdash.model.remote import (
    HostLink,
    LinkState,
    RemoteDenial,
    RemoteEvidence,
    RemoteField,
    RemoteFinding,
    RemoteGot,
    RemotePolicy,
    RemoteRequest,
    RemoteSandbox,
    RemoteWorker,
)
from agentdash.model.requested import EnvironmentRule, Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.states import State
from agentdash.model.thread import Tokens
from agentdash.model.times import possible_time, time_of_day
from agentdash.model.worker import Agent, Assessment, Got, Sandbox, Worker, WorkerKind

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_Enum = TypeVar("_Enum", bound=StrEnum)
_ENVIRONMENT_RULE: Final = re.compile(
    r"(?P<file>[^:]*(?::\d+)?): (?P<text>.*) (?P<verb>keeps from|sets for) commands: (?P<names>.*)", re.DOTALL
)
"""`EnvironmentRule` as a text."""


def qualified(host: str, worker: str) -> str:
    """Return the id of a worker in a fleet of several hosts."""
    return f"{host}:{worker}"


def remote_row(link: HostLink, worker: RemoteWorker) -> Worker:
    """Return the row of a worker of another host; `unreachable` while the link to it is not connected."""
    row = _Reader(link).row(worker)
    return row if link.state is LinkState.CONNECTED else _unreachable(row, link)


def _unreachable(row: Worker, link: HostLink) -> Worker:
    """Return the row of a worker behind a lost link: what it was then is no statement about now."""
    last = "" if link.news_at is None else f" since {time_of_day(link.news_at)} UTC"
    detail = f": {link.detail}" if link.detail else ""
    why = f"no news from {link.name}{last}{detail}"
    evidence = Evidence(EvidenceSource.HOST, link.news_at or link.at, "link-lost", why)
    before = Evidence(
        EvidenceSource.HOST,
        link.news_at or link.at,
        "last-news",
        f"{row.state} then: {row.assessment.why}",
        agrees=False,
    )
    return replace(
        row,
        assessment=Assessment(
            state=State.UNREACHABLE,
            since=link.news_at or link.at,
            why=why,
            evidence=(evidence, before),
            fact=Fact(FactKind.UNCLEAR, f"no news from {link.name}", why=link.detail),
        ),
        standing=Group.PAST if row.group is Group.PAST else Group.UNCLEAR,
        stalled=None,
        line=why,
    )


class _Reader:
    """Reads the document of one worker.

    Args:
        link: the link to its host.
    """

    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._notes: dict[str, None] = {}
        """What was left out because this version does not know it, in the order of reading."""

    def row(self, worker: RemoteWorker) -> Worker:
        """Return the row."""
        state = self._enum(State, worker.state, State.UNKNOWN, "state")
        kind: WorkerKind = worker.kind if worker.kind in get_args(WorkerKind) else "process"  # type: ignore[assignment]
        name = self._link.name
        assessment = Assessment(
            state=state,
            since=self._time(worker.since),
            why=worker.why,
            evidence=self._evidence(worker.evidence),
            fact=self._fact(worker),
        )
        sandbox = self._sandbox(worker.sandbox)
        return Worker(
            id=qualified(name, worker.id),
            kind=kind,
            name=worker.name or worker.id,
            agent=Agent(worker.agent.name, worker.agent.version),
            assessment=assessment,
            parent=qualified(name, worker.parent) if worker.parent else None,
            sandbox=sandbox,
            pids=worker.pids,
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
            host=name,
            pane_there=worker.pane,
            ssh_connection=worker.ssh_connection,
            git=worker.git,
            on_screen=worker.on_screen,
            notes=tuple(self._notes),
        )

    def _fact(self, worker: RemoteWorker) -> Fact | None:
        if (fact := worker.fact) is None:
            return None
        return Fact(
            kind=self._enum(FactKind, fact.kind, FactKind.UNCLEAR, "fact"),
            what=fact.what,
            object=fact.object,
            form=self._enum(ObjectForm, fact.form, ObjectForm.TEXT, "form"),
            why=fact.why,
        )

    def _evidence(self, pieces: Iterable[RemoteEvidence]) -> tuple[Evidence, ...]:
        return tuple(
            Evidence(
                source=self._enum(EvidenceSource, piece.source, EvidenceSource.HOST, "evidence source"),
                at=self._time(piece.at) or 0.0,
                rule=piece.rule,
                text=piece.text,
                agrees=piece.agrees,
            )
            for piece in pieces
        )

    def _sandbox(self, sandbox: RemoteSandbox) -> Sandbox:
        is_verdict = sandbox.verdict in get_args(Verdict)
        if not is_verdict:
            self._note("verdict", sandbox.verdict)
        return Sandbox(
            verdict=sandbox.verdict if is_verdict else "unverified",  # type: ignore[arg-type]
            configured=self._policy(sandbox.configured) if sandbox.configured else None,
            applied=sandbox.applied,
            got=self._got(sandbox.got),
            findings=tuple(self._findings(sandbox.findings)),
            unread=sandbox.not_known,
            denials=tuple(self._denials(sandbox.denials)),
            requested=self._requested(sandbox.requested) if sandbox.requested else None,
        )

    def _policy(self, policy: RemotePolicy) -> Policy:
        return Policy(
            filesystem=self._enum(Filesystem, policy.filesystem, Filesystem.UNKNOWN, "file policy"),
            network=self._enum(Network, policy.network, Network.UNKNOWN, "network policy"),
            rules=tuple(PolicyRule(root, "write") for root in policy.writable_roots),
            approval=policy.approval,
        )

    def _requested(self, request: RemoteRequest) -> Requested:
        policy = RemotePolicy(
            request.filesystem or Filesystem.UNKNOWN,
            request.network or Network.UNKNOWN,
            request.writable_roots,
            request.approval,
        )
        origins = (
            RequestOrigin(field=field, layer=layer, text=origin.text, file=origin.file, line=origin.line)
            for origin in request.origin
            if (field := self._known(RequestField, origin.field, "part of a request"))
            and (layer := self._known(RequestLayer, origin.layer, "layer of a request"))
        )
        return Requested(
            policy=replace(self._policy(policy), reviewer=request.reviewer),
            origins=tuple(origins),
            since=self._time(request.since),
            read_at=self._time(request.as_of),
            environment=tuple(self._environment(request.environment)),
        )

    def _environment(self, rules: Iterable[str]) -> Iterator[EnvironmentRule]:
        for rule in rules:
            found = _ENVIRONMENT_RULE.fullmatch(rule)
            if found is None:
                self._note("environment rule", rule)
                continue
            yield EnvironmentRule(
                effect="drops" if found["verb"] == "keeps from" else "sets",
                names=tuple(found["names"].split(", ")),
                text=found["text"],
                file=None if found["file"] == "argv" else found["file"],
            )

    def _got(self, got: RemoteGot) -> Got:
        is_known = got.network_namespace in ("host", "own", None)
        return Got(
            network_flag=got.network_flag,
            sandbox_flag=got.sandbox_flag,
            seccomp=got.seccomp,
            network_namespace=got.network_namespace if is_known else None,  # type: ignore[arg-type]
            no_new_privs=got.no_new_privs,
            sandboxed=got.sandboxed,
        )

    def _findings(self, findings: Iterable[RemoteFinding]) -> Iterator[Finding]:
        for finding in findings:
            kind = self._known(FindingKind, finding.kind, "finding")
            is_direction = finding.direction in get_args(Direction)
            if kind is None or not is_direction or finding.severity not in get_args(Severity):
                self._note("finding", f"{finding.kind}: {finding.message}")
                continue
            since = self._time(finding.since)
            last = self._time(finding.last)
            yield Finding(
                kind=kind,
                direction=finding.direction,  # type: ignore[arg-type]
                severity=finding.severity,  # type: ignore[arg-type]
                configured=finding.configured,
                got=finding.got,
                message=finding.message,
                since=since or 0.0,
                last=last or since or 0.0,
                count=finding.count,
                evidence=self._evidence(finding.evidence),
                remedy=_remedy(finding),
                fields=tuple(self._fields(finding.fields)),
            )

    def _fields(self, fields: Iterable[RemoteField]) -> Iterator[DifferingField]:
        for field in fields:
            name = self._known(LayerField, field.name, "layer field")
            if name is None:
                continue
            if field.layer not in get_args(Layer) or field.reference not in get_args(Reference):
                self._note("layer", f"{field.layer} {field.reference}")
                continue
            yield DifferingField(
                name=name,
                expected=field.expected,
                actual=field.actual,
                layer=field.layer,  # type: ignore[arg-type]
                reference=field.reference,  # type: ignore[arg-type]
                expected_at=self._time(field.expected_at),
                actual_at=self._time(field.actual_at),
            )

    def _denials(self, denials: Iterable[RemoteDenial]) -> Iterator[LedgerEntry]:
        for denial in denials:
            if denial.operation not in get_args(Operation):
                self._note("denial", f"{denial.operation} {denial.target or ''}")
                continue
            yield LedgerEntry(
                what=denial.what if denial.what in ("filesystem", "network") else "other",  # type: ignore[arg-type]
                operation=denial.operation,  # type: ignore[arg-type]
                target=denial.target,
                certainty="certain" if denial.certainty == "certain" else "likely",
                quote=denial.quote,
                first=self._time(denial.first) or 0.0,
                last=self._time(denial.last) or 0.0,
                count=denial.count,
                calls=denial.calls,
                got_past=denial.got_past,
                nested=denial.nested,
                days=tuple(_days(denial.days)),
                remedy=_remedy(denial),
            )

    def _time(self, text: str | None) -> float | None:
        """Return a time of that host by the clock of this one (unix seconds); None where it is none."""
        if text is None:
            return None
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        if at.tzinfo is None:
            return None
        return possible_time(at.timestamp() + self._link.clock_offset)

    def _enum(self, kind: type[_Enum], value: str, default: _Enum, what: str) -> _Enum:
        return self._known(kind, value, what) or default

    def _known(self, kind: type[_Enum], value: str, what: str) -> _Enum | None:
        """Return a member by its value; None, with a note, where this version does not have it."""
        known: Mapping[Any, _Enum] = kind._value2member_map_  # type: ignore[assignment]
        if (member := known.get(value)) is None and value:
            self._note(what, value)
        return member

    def _note(self, what: str, value: str) -> None:
        self._notes[f"{what} of another version: {value}"] = None


def _days(days: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the days since 1970 and their counts; what is no date is left out."""
    for day, count in days.items():
        try:
            yield date.fromisoformat(day).toordinal() - _EPOCH_DAY, count
        except ValueError:
            continue


def _remedy(stated: RemoteFinding | RemoteDenial) -> Remedy | None:
    if stated.remedy is None:
        return None
    return Remedy(text=stated.remedy, where=stated.remedy_where, once=stated.remedy_once)
