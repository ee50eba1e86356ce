"""Which threads processes have loaded now, by one look at locks and processes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agentdash.agents.adapter import UnreadableSessionError
from agentdash.agents.codex.home import CodexHome, locks
from agentdash.agents.registry import adapters
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.model.events import Event, LocksSeen, ProcessesCounted, ProcessSeen
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line


class Owners(NamedTuple):
    """The processes that have threads loaded."""

    at: float
    """When was looked (unix seconds)."""
    by_thread: dict[str, int]
    """Pids by thread: of lock holders, and of processes with session files."""
    by_path: dict[str, int]
    """Pids by the path of a log that they hold open."""

    @classmethod
    def look(cls, home: CodexHome, at: float) -> Owners:
        """Return the owners of all threads; `at` is now (unix seconds)."""
        sensor = ProcessSensor()
        seen = [*sensor.poll(at), *sensor.poll(at)]  # the first one defers processes in the middle of an exec
        processes = [event.process for event in seen if isinstance(event, ProcessSeen)]
        by_thread: dict[str, int] = {}
        for process in processes:
            if (thread := _thread_of(process, at)) is not None:
                by_thread[thread] = process.pid
        by_path = {path: process.pid for process in processes for path in process.rollouts}
        return cls(at, by_thread | locks(home, at).holders, by_path)

    def owner(self, thread: str, path: Path, parent: str | None) -> int | None:
        """Return the process that has a thread loaded."""
        pids = (
            self.by_thread.get(thread),
            self.by_path.get(clean_line(str(path))),
            self.by_thread.get(parent or "") if thread.startswith("agent-") else None,
        )
        return next((pid for pid in pids if pid is not None), None)

    def events(self, thread: str, path: Path, parent: str | None) -> list[Event]:
        """Return the events by which a thread has an owner, or none.

        A sub-agent of Claude Code runs in the process of its session.
        """
        pid = self.owner(thread, path, parent)
        holders = {} if pid is None else {thread: pid}
        return [
            LocksSeen(at=self.at, holders=holders, readable=True),
            ProcessesCounted(at=self.at),
        ]


def _thread_of(process: Process, at: float) -> str | None:
    """Return the thread that the session file of a process names."""
    if process.zombie or process.agent is None:
        return None
    reader = adapters()[process.agent].session_files
    try:
        session = reader.read(process, at) if reader is not None else None
    except UnreadableSessionError:
        return None
    return session.session if session is not None else None
