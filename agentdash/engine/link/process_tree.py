"""The descent of processes: from a command up to its Codex, its pane, its tmux server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import THREAD_AGENTS, Process


class ProcessTree:
    """The tracked processes by pid, for walking upwards, and the panes that they live in.

    A tmux server numbers processes as its own pid namespace does. Where it was started inside a sandbox,
    these are inner
    numbers: the first processes of its panes are found among its children by their innermost number
    (`NSpid`).

    Args:
        processes: all tracked processes.
        panes: all panes, dead ones too.
    """

    def __init__(self, processes: Iterable[Process], panes: Mapping[PaneKey, Pane]) -> None:
        self._by_pid = {process.pid: process for process in processes}
        self._servers = _find_servers(self._by_pid.values(), panes.values())
        self._first_pids = self._find_first_pids(panes)
        self._panes: dict[int, PaneKey | None] = {pid: key for key, pid in self._first_pids.items()}
        """The pane of each pid that was looked up, and of the first processes."""

    def server(self, pane: PaneKey) -> Process | None:
        """Return the tmux server of a pane; None where it is not among the tracked processes."""
        return self._servers.get(pane.server)

    def first_in(self, pane: PaneKey) -> Process | None:
        """Return the first process of a pane."""
        return self._by_pid.get(self._first_pids.get(pane, 0))

    def get(self, pid: int) -> Process | None:
        """Return the tracked process with this number."""
        return self._by_pid.get(pid)

    def above(self, process: Process) -> Iterator[Process]:
        """Yield the ancestors of `process`, nearest first.

        Ends at one that is not tracked, and at a parent that is younger than its child: its pid was reused.
        """
        visited = {process.pid}
        while (parent := self._by_pid.get(process.ppid)) is not None:
            # one second of tolerance: start times of two processes are rounded differently
            if parent.pid in visited or parent.key.started > process.key.started + 1:
                return
            yield parent
            visited.add(parent.pid)
            process = parent

    def pane(self, process: Process) -> PaneKey | None:
        """Return the pane that `process` descends from, or is the first process of."""
        walked, found = [], None
        for ancestor in (process, *self.above(process)):
            if ancestor.pid in self._panes:
                found = self._panes[ancestor.pid]
                break
            walked.append(ancestor.pid)
        self._panes |= dict.fromkeys(walked, found)
        return found

    def _find_first_pids(self, panes: Mapping[PaneKey, Pane]) -> dict[PaneKey, int]:
        """Return the pid of the first process of each living pane, as the host counts."""
        by_inner_pid: dict[tuple[int, int], int] | None = None
        found: dict[int, PaneKey] = {}
        for key, pane in panes.items():
            server, pid = self._servers.get(key.server), pane.pid
            if server is not None and server.inner_pid != server.pid:
                by_inner_pid = by_inner_pid or {(p.ppid, p.inner_pid): p.pid for p in self._by_pid.values()}
                pid = by_inner_pid.get((server.pid, pane.pid), 0)
            if pid and not pane.dead:
                found[pid] = key
        return {key: pid for pid, key in found.items()}


def _find_servers(processes: Iterable[Process], panes: Iterable[Pane]) -> dict[str, Process]:
    """Return the process of each tmux server, by its label.

    Inner numbers repeat between pid namespaces: of several servers with the same one, a child names the
    socket.
    """
    numbers = {pane.key.server: pane.server_pid for pane in panes if pane.server_pid is not None}
    by_number: dict[int, list[Process]] = {}
    for process in processes if numbers else ():
        if is_multiplexer(process) and not process.name.endswith("client"):
            by_number.setdefault(process.inner_pid, []).append(process)
    found: dict[str, Process] = {}
    for label, number in numbers.items():
        servers = by_number.get(number, [])
        if len(servers) > 1:
            servers = [s for s in servers if any(p.ppid == s.pid and _is_on(p, label) for p in processes)]
        if len(servers) == 1:
            found[label] = servers[0]
    return found


def _is_on(process: Process, label: str) -> bool:
    """Return whether a process was started by the tmux server of this label, by its `TMUX` variable."""
    socket = (process.env or {}).get("TMUX", "").rsplit(",", 2)[0]
    return socket == label or socket.rpartition("/")[2] == label.removeprefix("-L ")


def is_multiplexer(process: Process) -> bool:
    """Return whether this is a tmux server: its children belong to panes, not to the thread in their
    environment."""
    return process.name.startswith("tmux")


def is_codex(process: Process) -> bool:
    """Return whether this process runs Codex's turns: the Codex of one terminal, or the shared server."""
    return process.agent in THREAD_AGENTS or is_daemon(process)


def is_daemon(process: Process) -> bool:
    """Return whether this is Codex's shared background server (0.160+) rather than the Codex of one
    terminal."""
    return "app-server" in process.argv[:4]
