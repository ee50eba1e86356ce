"""The shared source of session files."""

from __future__ import annotations

from agentdash.collect.clock import SystemClock
from agentdash.collect.sources.workers import SessionFileSource
from agentdash.model.events import Event, SessionSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process, ProcessKey

KEY = ProcessKey(7, 1.0)


def fleet(*processes: Process) -> Fleet:
    return Fleet(processes={process.key: process for process in processes})


class Scripted:
    """Session files whose status is set by the test."""

    def __init__(self) -> None:
        self.status: str | None = "busy"

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        del is_alone
        if self.status is None:
            return None
        return SessionSeen(at=at, key=process.key, agent="claude", status=self.status, since=1.0)


async def polled(source: SessionFileSource, state: Fleet) -> list[str | None]:
    events: list[Event] = list(await source.poll(state))
    return [event.status for event in events if isinstance(event, SessionSeen)]


async def test_only_changed_session_files_are_emitted() -> None:
    files = Scripted()
    source = SessionFileSource(SystemClock(), {"claude": files})
    running = fleet(Process(KEY, 1, "claude", agent="claude"))
    assert await polled(source, running) == ["busy"]
    assert await polled(source, running) == []
    files.status = "idle"
    assert await polled(source, running) == ["idle"]
    assert await polled(source, Fleet()) == []
    assert await polled(source, running) == ["idle"], "forgotten with its process"


async def test_processes_of_other_agents_are_not_read() -> None:
    source = SessionFileSource(SystemClock(), {"claude": Scripted()})
    others = fleet(Process(KEY, 1, "gemini", agent="gemini"), Process(ProcessKey(8, 1.0), 1, "bash"))
    assert await polled(source, others) == []
