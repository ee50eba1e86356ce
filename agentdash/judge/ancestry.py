"""Who descends from whom among processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentdash.facts.pane import Pane, PaneKey
from agentdash.facts.process import Process


class Tree:
    """The tracked processes by pid, for walking upwards, and the panes that they live in."""

    def __init__(self, processes: Iterable[Process], panes: Mapping[PaneKey, Pane]) -> None:
        self._by_pid = {p.pid: p for p in processes}
        self._panes: dict[int, PaneKey | None] = {pane.pid: key for key, pane in panes.items() if not pane.dead}
        """The pane of each pid that was asked for."""

    def get(self, pid: int) -> Process | None:
        """The tracked process with this number."""
        return self._by_pid.get(pid)

    def above(self, process: Process) -> Iterator[Process]:
        """Parents of `process`, nearest first. Ends at whatever is not tracked, and at a parent younger than its child (a reused pid)."""
        seen = {process.pid}
        while (parent := self._by_pid.get(process.ppid)) and parent.pid not in seen and parent.key.started <= process.key.started + 1:
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


def is_multiplexer(process: Process) -> bool:
    """Whether this is a tmux server: what runs below it is nobody's command, whatever its environment says."""
    return process.name.startswith("tmux")


def is_codex(process: Process) -> bool:
    """Whether this process runs Codex's turns: a Codex of one terminal, or the shared server."""
    return process.agent == "codex" or is_daemon(process)


def is_daemon(process: Process) -> bool:
    """Whether this is Codex's shared background server (0.160+) rather than a Codex that belongs to one terminal."""
    return "app-server" in process.argv[:4]
