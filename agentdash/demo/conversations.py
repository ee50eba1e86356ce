"""The conversations of the scripted day: of its events, since the demo has no session files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from agentdash.engine.conversation import ConversationBuilder
from agentdash.model.clock import Clock
from agentdash.model.conversation import Conversation
from agentdash.model.events import Event, ThreadEvent

_FOLDERS: Final = {
    "codex": "/home/dev/.codex/sessions/2026/11/20",
    "claude": "/home/dev/.claude/projects/-home-dev-project",
}


def session_path(thread: str, agent: str) -> str:
    """Return where the file of a session would be."""
    name = f"rollout-{thread}" if agent == "codex" else thread
    return f"{_FOLDERS[agent]}/{name}.jsonl"


class DayConversations:
    """Reads conversations of the day as they are at the time of its clock.

    Args:
        day: returns the events of the day, in any order; called when the first conversation is read.
        clock: the time up to which things have happened.
    """

    def __init__(self, day: Callable[[], Sequence[Event]], clock: Clock) -> None:
        self._day = day
        self._clock = clock

    @cached_property
    def _by_thread(self) -> dict[str, list[ThreadEvent]]:
        threads: dict[str, list[ThreadEvent]] = {}
        for event in sorted(self._day(), key=lambda event: event.at):
            if isinstance(event, ThreadEvent):
                threads.setdefault(event.thread, []).append(event)
        return threads

    def open(self, path: Path) -> Callable[[float], Conversation]:
        """Return a function that builds the conversation of a session file up to a time (unix seconds)."""
        thread = path.stem.removeprefix("rollout-")

        def read(until: float) -> Conversation:
            builder = ConversationBuilder(thread)
            for event in self._by_thread.get(thread, ()):
                if event.at <= min(until, self._clock.now()):
                    builder.add(event)
            return builder.conversation()

        return read
