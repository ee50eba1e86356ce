"""The descent of processes: from a command up to its Codex, its pane, its tmux server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import THREAD_AGENTS, Process


class ProcessTree:
    """The tracked processes by pid, for walking upwards, and the panes that they live in.

    Panes are those of servers outside of every sandbox: no other server is asked for any.

    Args:
        processes: all tracked processes.
        panes: all panes, dead ones too.
    """

    def __init__(self, processes: Iterable[Process], panes: Mapping[PaneKey, Pane]) -> None:
        self._by_pid = {process.pid: process for process in processes}
        self._panes: dict[int, PaneKey | None] = {
            pane.pid: key for key, pane in panes.items() if pane.pid and not pane.dead
        }
        """The pane of each pid that was looked up, and of the first processes."""

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

    def server_above(self, process: Process) -> Process | None:
        """Return the tmux server that a process descends from, or None."""
        return next((parent for parent in self.above(process) if is_multiplexer(parent)), None)

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
