"""Where a thread comes from, and which lines of its file are its own.

The file of a fork, and that of a child with its parent's full history, begins with the parent's lines: the parent's `session_meta` right
behind the own one, then its history, all with fresh timestamps (0.114, 0.169). Counted as own, every call would be there twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agentdash.agents.codex.rollout.records import SessionMeta
from agentdash.model.events import ThreadStarted
from agentdash.model.sanitize import clean_line

_TURN: Final = re.compile(rb'"turn_id":"([0-9a-fA-F-]{36})"')
_STAMP: Final = re.compile(rb'\{"timestamp":"([^"]{8,40})"')
_PAUSE: Final = 1.0
"""Seconds. Copied lines are written in one go; a model takes longer to answer than this takes per line."""
_HELPERS: Final = frozenset(
    (
        "review",
        "compact",
        "guardian",
        "guardian_review",
        "guardian_subagent",
        "memory_consolidation",
        "thread_title",
    )
)


def uuid_time(text: str) -> float | None:
    """The time inside of a UUIDv7 (unix seconds); None for other versions (thread ids before October 2025) and for no uuid at all."""
    if len(text) != 36 or text[14] != "7":
        return None
    try:
        return int(text[:8] + text[9:13], 16) / 1000
    except ValueError:
        return None


def parse_time(text: str | None) -> float | None:
    """Unix seconds of an ISO timestamp, UTC where it names no zone; None if it is none."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def line_time(line: bytes) -> float | None:
    """When a line was written (unix seconds), told by its first bytes; None where they do not say."""
    stamped = _STAMP.match(line)
    return parse_time(stamped.group(1).decode("ascii", "replace")) if stamped else None


def started(thread: str, meta: SessionMeta, at: float, line: int) -> ThreadStarted:
    """The event that the first `session_meta` of a file makes."""
    source, spawn = _source(meta.source)
    feature = _word(meta.thread_source)
    return ThreadStarted(
        at=at,
        thread=thread,
        line=line,
        cwd=_clean(meta.cwd),
        version=_clean(meta.cli_version),
        originator=_clean(meta.originator),
        source=source,
        provider=_clean(meta.model_provider),
        parent=_clean(spawn.get("parent_thread_id")) or _clean(meta.parent_thread_id),
        forked_from=_clean(meta.forked_from_id),
        nickname=_clean(meta.agent_nickname) or _clean(spawn.get("agent_nickname")),
        role=_clean(meta.agent_role) or _clean(spawn.get("agent_role")),
        path=_clean(meta.agent_path) or _clean(spawn.get("agent_path")),
        helper=_is_helper(meta.source) or (feature or "").lower() in _HELPERS,
    )


def _source(source: Any) -> tuple[str | None, Mapping[str, Any]]:
    """`"cli"`, `{"custom": "x"}`, `{"internal": "guardian"}`, `{"subagent": "review" | {"thread_spawn": {...}} | {"other": "x"}}`."""
    if (
        isinstance(source, dict)
        and isinstance(sub := source.get("subagent"), dict)
        and isinstance(spawn := sub.get("thread_spawn"), dict)
    ):
        return "subagent", spawn
    return _word(source), {}


def _is_helper(source: Any) -> bool:
    if not isinstance(source, dict):
        return False
    sub = source.get("subagent")
    return (
        "internal" in source or isinstance(sub, str) or (isinstance(sub, dict) and "thread_spawn" not in sub)
    )


def _word(value: Any) -> str | None:
    """The innermost word of a tagged value."""
    while isinstance(value, dict) and value:
        value = next(iter(value.values()))
    return _clean(value)


def _clean(value: Any) -> str | None:
    return clean_line(value) or None if isinstance(value, str) else None


class OwnLines:
    """Tells a thread's own lines from those that were copied into its file."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._born = uuid_time(thread)
        self._start: int | None = None
        self._fresh = True
        self._last = 0.0
        self.copying = False
        """Whether the lines that come are somebody else's until one proves not to be."""

    def begin(self, meta: SessionMeta, at: float) -> None:
        """The file's own `session_meta`; `subagent_history_start_ordinal` (0.145+) says where the own history begins, exactly."""
        self._born = self._born or parse_time(meta.timestamp) or at
        self._start = meta.subagent_history_start_ordinal
        self.copying = self._start is not None
        self._last = at

    def other(self, meta: SessionMeta) -> None:
        """A further `session_meta`: one of another thread, right behind the first, begins the copied lines. Later ones mean nothing."""
        self.copying = self.copying or (self._fresh and meta.id is not None and meta.id != self._thread)

    def is_own(self, line: bytes, at: float, ordinal: int | None) -> bool:
        """Whether a line that is no `session_meta` is the thread's own.

        Best evidence first: its ordinal; the time inside of its turn's id; its timestamp; and, in files of 0.36-0.98, where turns have
        no ids, a pause after the burst in which copied lines are written.
        """
        self._fresh = False
        if not self.copying:
            return True
        born = self._born or 0.0
        turn = _TURN.search(line)
        turn_at = uuid_time(turn.group(1).decode()) if turn else None
        if self._start is not None and ordinal is not None:
            own = ordinal >= self._start
        elif turn_at is not None:
            own = turn_at >= born
        else:
            own = at >= born and at - self._last > _PAUSE
        self._last = at
        self.copying = not own
        return own
