"""The lines of chats of other CLIs than Codex and Claude Code as events, as of other session logs.

Their records are read by the `ChatFacts` that live workers are judged by. They state no sandbox: threads of
them have no policy, and stay `unverified`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agentdash.agents.chats import ChatFacts
from agentdash.agents.copilot import CopilotFacts
from agentdash.agents.gemini import GeminiFacts
from agentdash.agents.line_events import LineEvents
from agentdash.agents.opencode import OpencodeFacts
from agentdash.agents.qwen import QwenFacts
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import ThreadEvent, ThreadStarted
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso

_FACTS: Final[dict[str, Callable[[], ChatFacts]]] = {
    "gemini": GeminiFacts,
    "qwen": QwenFacts,
    "copilot": CopilotFacts,
    "opencode": OpencodeFacts,
    "kilo": OpencodeFacts,
}
_REMEMBERED: Final = 1_000
"""Messages and calls that records may repeat."""
_record: Final = JsonDecoder(dict[str, Any])


class ChatReader(LineEvents):
    """Parses the records of one chat into events.

    Args:
        thread: the thread's id.
        agent: the worker CLI.
        path: the file.
    """

    def __init__(self, thread: str, agent: str, path: Path) -> None:
        super().__init__(thread)
        self._agent = agent
        self._path = path
        self._facts = _FACTS[agent]()
        self._facts.tell = self._tell
        self._has_begun = False
        self._told: dict[object, None] = {}
        """What may be repeated, and was told."""

    def _read(self, line: bytes) -> None:
        record = _record.decode(line)
        self._at = parse_iso(str(record.get("timestamp") or record.get("startTime"))) or self._at
        self._begin(record)
        self._facts.add(record)

    def _begin(self, record: dict[str, Any]) -> None:
        """Emit the start of the thread at its first record."""
        if self._has_begun:
            return
        self._has_begun = True
        stated = self._facts.place(record, self._path)
        cwd, version, parent = (clean_line(part) if isinstance(part, str) else None for part in stated)
        self._emit(ThreadStarted, agent=self._agent, cwd=cwd, version=version, parent=parent)

    def _tell(self, event: Callable[..., ThreadEvent], key: object = None, **fields: Any) -> None:
        """Emit what is not a repetition."""
        if key is not None:
            told = event, str(key)
            if told in self._told:
                return
            if len(self._told) >= _REMEMBERED:
                self._told.pop(next(iter(self._told)))
            self._told[told] = None
        self._emit(event, **fields)
