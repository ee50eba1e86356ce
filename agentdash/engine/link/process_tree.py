"""Who descends from whom among processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process


class Tree:
    """The tracked processes by pid, for walking upwards, and the panes that they live in.

    A tmux server numbers processes as its own pid namespace does. Where it was started inside a sandbox, these are inner numbers: its
    panes' first processes are found among its children by the number that they know themselves (`NSpid`).
    """

    def __init__(self, processes: Iterable[Process], panes: Mapping[PaneKey, Pane]) -> None:
        self._by_pid = {p.pid: p for p in processes}
        self._servers = _servers(self._by_pid.values(), panes.values())
        self._panes: dict[int, PaneKey | None] = {}
        """The pane of each pid that was asked for."""
        inner: dict[tuple[int, int], int] | None = None
        for key, pane in panes.items():
            server, pid = self._servers.get(key.server), pane.pid
            if server is not None and server.inner_pid != server.pid:
                inner = inner or {(p.ppid, p.inner_pid): p.pid for p in self._by_pid.values()}
                pid = inner.get((server.pid, pane.pid), 0)
            if pid and not pane.dead:
                self._panes[pid] = key
        self._first = {key: pid for pid, key in self._panes.items()}

    def server(self, pane: PaneKey) -> Process | None:
        """The tmux server of a pane; None where it is not among the tracked processes."""
        return self._servers.get(pane.server)

    def first_in(self, pane: PaneKey) -> Process | None:
        """The first process of a pane."""
        return self._by_pid.get(self._first.get(pane, 0))

    def get(self, pid: int) -> Process | None:
        """The tracked process with this number."""
        return self._by_pid.get(pid)

    def above(self, process: Process) -> Iterator[Process]:
        """Parents of `process`, nearest first. Ends at whatever is not tracked, and at a parent younger than its child (a reused pid)."""
        seen = {process.pid}
        while (
            (parent := self._by_pid.get(process.ppid))
            and parent.pid not in seen
            and parent.key.started <= process.key.started + 1
        ):
            yield parent
            seen.add(parent.pid)
            process = parent

    def pane(self, process: Process) -> PaneKey | None:
        """The pane that `process` descends from, or is the first process of."""
        walked, found = [], None
        for each in (process, *self.above(process)):
            if each.pid in self._panes:
                found = self._panes[each.pid]
                break
            walked.append(each.pid)
        self._panes |= dict.fromkeys(walked, found)
        return found


def _servers(processes: Iterable[Process], panes: Iterable[Pane]) -> dict[str, Process]:
    """The process of each tmux server, by its label. Inner numbers repeat: of two such a child names its socket."""
    numbers = {pane.key.server: pane.server_pid for pane in panes if pane.server_pid is not None}
    by_number: dict[int, list[Process]] = {}
    for process in processes if numbers else ():
        if is_multiplexer(process) and not process.name.endswith("client"):
            by_number.setdefault(process.inner_pid, []).append(process)
    found: dict[str, Process] = {}
    for label, number in numbers.items():
        some = by_number.get(number, [])
        if len(some) > 1:
            some = [s for s in some if any(p.ppid == s.pid and _is_on(p, label) for p in processes)]
        if len(some) == 1:
            found[label] = some[0]
    return found


def _is_on(process: Process, label: str) -> bool:
    """Whether a process was started by the tmux server of this label."""
    socket = (process.env or {}).get("TMUX", "").rsplit(",", 2)[0]
    return socket == label or socket.rpartition("/")[2] == label.removeprefix("-L ")


def is_multiplexer(process: Process) -> bool:
    """Whether this is a tmux server: what runs below it is nobody's command, whatever its environment says."""
    return process.name.startswith("tmux")


def is_codex(process: Process) -> bool:
    """Whether this process runs Codex's turns: a Codex of one terminal, or the shared server."""
    return process.agent == "codex" or is_daemon(process)


def is_daemon(process: Process) -> bool:
    """Whether this is Codex's shared background server (0.160+) rather than a Codex that belongs to one terminal."""
    return "app-server" in process.argv[:4]
