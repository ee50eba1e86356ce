"""The rows of workers of other hosts in this fleet: with their standing here, and the panes that show them.

They are made again only where something has changed. `documents/read_worker.py` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agentdash.engine.judge.attention import judge_attention
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.pane import Pane
from agentdash.model.process import Process, ProcessKey
from agentdash.model.remote import HostLink, LinkState, RemoteHost
from agentdash.model.states import Acknowledgement, Group, State
from agentdash.model.times import time_of_day
from agentdash.model.worker import Assessment, Link, Worker


class RemoteRows:
    """The rows of all hosts, made again only where something has changed."""

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[RemoteHost, tuple[Worker, ...]]] = {}
        self._attended: dict[str, tuple[Worker, tuple[object, ...], Worker]] = {}
        self._tied: dict[str, tuple[Worker, Pane, Worker]] = {}

    def of(self, hosts: Mapping[str, RemoteHost]) -> Iterator[Worker]:
        """Yield the rows of all hosts."""
        known = self._hosts
        self._hosts = {}
        for name, host in hosts.items():
            is_same = name in known and known[name][0] is host
            self._hosts[name] = known[name] if is_same else (host, tuple(_rows(host)))
            yield from self._hosts[name][1]
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

    def _forget(self, present: set[str]) -> None:
        """Drop what is cached of workers that are gone."""
        for cache in (self._attended, self._tied):
            if len(cache) > len(present):
                for gone in cache.keys() - present:
                    del cache[gone]


def _rows(host: RemoteHost) -> Iterator[Worker]:
    is_connected = host.link.state is LinkState.CONNECTED
    for row in host.workers.values():
        yield row if is_connected else unreachable(row, host.link)


def unreachable(row: Worker, link: HostLink) -> Worker:
    """Return the row of a worker behind a lost link: what it was then says nothing about now."""
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


class SharedHomes:
    """The workers of hosts that are workers of this machine: of containers that share its Codex home.

    Both sides read the same session file. That it is one worker, and no copy that was continued elsewhere, is
    shown by a process of it: Linux gives the number of a process in each of its pid namespaces (`NSpid`), and
    the document of the container has the number there.
    """

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    def link(self, there: Worker, here: Worker, processes: Mapping[ProcessKey, Process]) -> Link | None:
        """Return the link between the same worker there and here, or None if nothing shows that.

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
