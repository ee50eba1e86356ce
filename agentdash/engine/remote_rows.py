"""The rows of workers of other hosts, made again only where something has changed.

`remote_row.py` makes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args

from msgspec.structs import replace

from agentdash.engine.judge.attention import judge_attention
from agentdash.model.denials import LedgerEntry, Operation, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.findings import Direction, Finding, FindingKind, Severity, Verdict
from agentdash.model.fleet import StatePeriod
from agentdash.model.layers import DifferingField, Layer, LayerField, Reference
from agentdash.model.pane import Pane
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process, ProcessKey
from agentdash.model.remote import (
    HostLink,
    LinkState,
    RemoteDenial,
    RemoteEvidence,
    RemoteField,
    RemoteFinding,
    RemoteGot,
    RemoteHost,
    RemotePolicy,
    RemoteRequest,
    RemoteSandbox,
    RemoteWorker,
)
from agentdash.model.requested import EnvironmentRule, Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.states import Acknowledgement, Group, State, group_of_state
from agentdash.model.thread import Tokens
from agentdash.model.times import possible_time, time_of_day
from agentdash.model.worker import Agent, Assessment, Got, Link, Sandbox, Worker, WorkerKind


class RemoteRows:
    """The rows of all hosts, made again only where something has changed."""

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[RemoteHost, tuple[Worker, ...]]] = {}
        self._rows: dict[str, tuple[RemoteWorker, HostLink, Worker]] = {}
        self._attended: dict[str, tuple[Worker, tuple[object, ...], Worker]] = {}
        self._tied: dict[str, tuple[Worker, Pane, Worker]] = {}

    def of(self, hosts: Mapping[str, RemoteHost]) -> Iterator[Worker]:
        """Yield the rows of all hosts."""
        if self._hosts.keys() - hosts.keys():
            self._hosts = {name: each for name, each in self._hosts.items() if name in hosts}
        for name, host in hosts.items():
            known = self._hosts.get(name)
            if known is None or known[0] is not host:
                known = host, tuple(self._row(host.link, worker) for worker in host.workers.values())
                self._hosts[name] = known
            yield from known[1]
        self._forget({row.id for _, rows in self._hosts.values() for row in rows})

    def tied(self, row: Worker, pane: Pane) -> Worker:
        """Return a row with the pane here that shows it, by the connection of the client in it."""
        known = self._tied.get(row.id)
        if known is None or known[0] is not row or known[1] is not pane:
            by = f"the connection of its client is that of the session there: {row.ssh_connection}"
            link = Link(f"pane {pane.key}", by)
            known = row, pane, replace(row, pane=pane, links=(*row.links, link))
            self._tied[row.id] = known
        return known[2]

    def attended(
        self,
        row: Worker,
        *,
        looked_at: float | None,
        acknowledgement: Acknowledgement | None,
        now: float,
    ) -> Worker:
        """Return a row with its standing here: what was acknowledged there or here needs no one."""
        if row.group not in (Group.NEEDS_YOU, Group.DONE):
            return row
        # without any look, what is new depends on the time: that may be a minute late
        basis = (acknowledgement, now // 60 if looked_at is None else looked_at)
        known = self._attended.get(row.id)
        if known is not None and known[0] is row and known[1] == basis:
            return known[2]
        standing = judge_attention(
            row.assessment,
            is_held=True,
            is_child=row.parent is not None,
            looked_at=looked_at,
            acknowledgement=acknowledgement,
            now=now,
        )
        group = Group.DONE if Group.DONE in (row.group, standing.group) else standing.group
        is_new = standing.is_new and standing.group is group
        shown = (
            row
            if (row.standing, row.is_new) == (group, is_new)
            else replace(row, standing=group, is_new=is_new)
        )
        if known is not None and known[0] is row and known[2] == shown:
            shown = known[2]
        self._attended[row.id] = row, basis, shown
        return shown

    def _row(self, link: HostLink, worker: RemoteWorker) -> Worker:
        key = qualified(link.name, worker.id)
        known = self._rows.get(key)
        if known is not None and known[0] is worker and _give_same_rows(known[1], link):
            return known[2]
        row = remote_row(link, worker)
        self._rows[key] = worker, link, row
        return row

    def _forget(self, present: set[str]) -> None:
        """Drop what is cached of workers that are gone."""
        for cache in (self._rows, self._attended, self._tied):
            if len(cache) > len(present):
                for gone in cache.keys() - present:
                    del cache[gone]


def _give_same_rows(old: HostLink, new: HostLink) -> bool:
    if old is new:
        return True
    was_connected, is_connected = (link.state is LinkState.CONNECTED for link in (old, new))
    if was_connected or is_connected:
        return was_connected and is_connected and old.clock_offset == new.clock_offset
    return old == new


class SharedHomes:
    """The workers of hosts that are workers of this machine: of containers that share its Codex home.

    Both sides read the same session file. That it is one worker, and no copy that was continued elsewhere, is
    shown by a process of it: Linux gives the number of a process in each of its pid namespaces (`NSpid`), and
    the document of the container has the number there.
    """

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    def link(self, there: Worker, here: Worker, processes: Mapping[ProcessKey, Process]) -> Link | None:
        """Return the link between the same worker there and here; None where nothing shows that.

        It remains when the process has ended that showed it.

        Args:
            there: the row of a host.
            here: the worker of this machine with the same thread.
            processes: those of this machine.
        """
        if there.id not in self._links and there.pids and here.pids:
            inner = {
                number: process.pid
                for process in processes.values()
                if process.pid in here.pids and process.kernel is not None
                for number in process.kernel.ns_pids[1:]
            }
            for number in there.pids:
                if number in inner:
                    by = f"process {inner[number]} has the number {number} there"
                    self._links[there.id] = Link(f"host {there.host}", by)
        return self._links.get(there.id)


# ------------------------------------------------------------
# The row of a worker of another host: what the agentdash there states, in the types of a worker here
# States and verdicts are judged there. Here the times are corrected by the offset of the clocks, ids get the
# name of the host in front of them, and a lost link makes its workers `unreachable`.


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
