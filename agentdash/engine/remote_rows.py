"""The rows of workers of other hosts: with their standing here, and the panes that show them."""

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


def rows_of(host: RemoteHost) -> Iterator[Worker]:
    """Yield the rows of a host."""
    is_connected = host.link.state is LinkState.CONNECTED
    for row in host.workers.values():
        yield row if is_connected else unreachable(row, host.link)


def tied(row: Worker, pane: Pane) -> Worker:
    """Return a row with the pane here that shows it, by the connection of the client in it."""
    by = f"the connection of its client is that of the session there: {row.ssh_connection}"
    return replace(row, pane=pane, links=(*row.links, Link(f"pane {pane.key}", by)))


def attended(
    row: Worker, acknowledgement: Acknowledgement | None, looked_at: float | None, now: float
) -> Worker:
    """Return a row with its standing here: what was acknowledged there or here needs no one."""
    if row.group not in (Group.NEEDS_YOU, Group.DONE):
        return row
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
    return replace(row, standing=group, is_new=is_new)


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
