"""Parse the origin of a thread, and find out which lines of its file are its own.

The file of a fork, and that of a child with its parent's full history, begins with copied lines: the parent's
`session_meta` right after the own one, then its history, all with new timestamps (0.114, 0.169). Read as own
lines, every call would count twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agentdash.agents.codex.rollout.records import SessionMeta
from agentdash.model.events import ThreadStarted
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso, possible_time

_TURN_ID: Final = re.compile(rb'"turn_id":"([0-9a-fA-F-]{36})"')
_TIMESTAMP: Final = re.compile(rb'\{"timestamp":"([^"]{8,40})"')
_COPY_PAUSE_S: Final = 1.0
"""Copied lines are written without pauses; a model needs longer for its first response."""
_HELPERS: Final = (
    *("review", "compact", "memory_consolidation", "thread_title"),
    *("guardian", "guardian_review", "guardian_subagent"),
)
_SIDE_CHAT: Final = "tui_side_chat"
"""`thread_source` of a conversation beside another one in a TUI, `forked_from_id` (0.171)."""


def uuid_time(text: str) -> float | None:
    """Return the time in a UUIDv7 (unix seconds); None for other versions (thread ids before October 2025)
    other text, and impossible times."""
    if len(text) != 36 or text[14] != "7":
        return None
    try:
        return possible_time(int(text[:8] + text[9:13], 16) / 1000)
    except ValueError:
        return None


def line_time(line: bytes) -> float | None:
    """Return when a line was written (unix seconds), by its first bytes, or None if these have no time."""
    stamped = _TIMESTAMP.match(line)
    return parse_iso(stamped.group(1).decode("ascii", "replace")) if stamped else None


def thread_started(thread: str, meta: SessionMeta, at: float, line: int) -> ThreadStarted:
    """Return the event of the first `session_meta` of a file.

    Its source is `"cli"`, `{"custom": "x"}`, `{"internal": "guardian"}`, or `{"subagent": "review" |
    {"thread_spawn": {...}} | {"other": "x"}}`.
    """
    spawn: Mapping[str, Any] = {}
    source, feature = _word(meta.source), _word(meta.thread_source)
    match meta.source:
        case {"subagent": {"thread_spawn": dict(spawn)}}:
            source, is_helper = "subagent", False
        case {"subagent": _} | {"internal": _}:
            is_helper = True
        case _:
            is_helper = False
    return ThreadStarted(
        at=at,
        thread=thread,
        line=line,
        cwd=text_or_none(meta.cwd),
        version=text_or_none(meta.cli_version),
        originator=text_or_none(meta.originator),
        source=source,
        parent=text_or_none(spawn.get("parent_thread_id")) or text_or_none(meta.parent_thread_id),
        forked_from=text_or_none(meta.forked_from_id),
        nickname=text_or_none(meta.agent_nickname) or text_or_none(spawn.get("agent_nickname")),
        role=text_or_none(meta.agent_role) or text_or_none(spawn.get("agent_role")),
        path=text_or_none(meta.agent_path) or text_or_none(spawn.get("agent_path")),
        side_chat=feature == _SIDE_CHAT,
        helper=is_helper or (feature or "").lower() in _HELPERS,
    )


def _word(value: Any) -> str | None:
    """Return the innermost value of a tagged one."""
    while isinstance(value, dict) and value:
        value = next(iter(value.values()))
    return text_or_none(value)


def text_or_none(value: Any) -> str | None:
    """Return a text on one line, or None for an empty one and other values."""
    return clean_line(value) or None if isinstance(value, str) else None


class OwnLineFilter:
    """Separates a thread's own lines from those that were copied into its file.

    Args:
        thread: the thread's id.
    """

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._created = uuid_time(thread)
        self._start: int | None = None
        self._at_beginning = True
        self._is_foreign = False
        """Whether lines belong to another session, appended to the file, until an own `session_meta`."""
        self._last_at = 0.0
        self.copying = False
        """Whether lines count as copied until one is found to be the thread's own."""

    def begin(self, meta: SessionMeta, at: float) -> None:
        """Take the file's own `session_meta`. Its `subagent_history_start_ordinal` (0.145+) is the first own
        line."""
        self._created = self._created or parse_iso(meta.timestamp) or at
        self._start = meta.subagent_history_start_ordinal
        self.copying = self._start is not None
        self._last_at = at

    def add_further_meta(self, meta: SessionMeta) -> bool:
        """Take another `session_meta`, and return whether another session begins with it.

        One of another thread, right after the first, begins the copied lines; copied lines may have more of
        them. After own lines it is another session, which was appended to the file.
        """
        if meta.id in (None, self._thread):
            self.copying = self.copying and not self._is_foreign
            self._is_foreign = False
            return False
        begins = not self._at_beginning and not self.copying
        self._is_foreign = self._is_foreign or begins
        self.copying = True
        return begins

    def is_own(self, line: bytes, at: float, ordinal: int | None) -> bool:
        """Return whether a line other than `session_meta` is the thread's own.

        Decided by the best evidence available: its ordinal; the time in its turn's id; its timestamp,
        together with a pause after the copied lines (0.36-0.98, where turns have no ids).
        """
        self._at_beginning = False
        if not self.copying or self._is_foreign:
            return not self.copying
        created = self._created or 0.0
        turn = _TURN_ID.search(line)
        turn_at = uuid_time(turn.group(1).decode()) if turn else None
        if self._start is not None and ordinal is not None:
            own = ordinal >= self._start
        elif turn_at is not None:
            own = turn_at >= created
        else:
            own = at >= created and at - self._last_at > _COPY_PAUSE_S
        self._last_at = at
        self.copying = not own
        return own
