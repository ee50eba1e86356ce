"""Parse the lines of rollouts into events, for every Codex from 0.20 to 0.169.

`LineHandler` has the meaning of each kind of line; this module decodes the lines, by the tables at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.rollout import records
from agentdash.agents.codex.rollout.kinds import (
    HEAD,
    RECORD_START,
    Family,
    is_json,
    kind_of,
    kind_of_item,
)
from agentdash.agents.codex.rollout.line_handler import LineHandler
from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import ThreadEvent
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.times import parse_iso

_ORDINAL: Final = re.compile(rb'\{"timestamp":"[^"]{8,40}","ordinal":(\d{1,18}),')


class RolloutReader(LineHandler):
    """Parses the lines of one rollout into events.

    Every line gives events, or a `LineSkipped`, or is of a kind that is not shown. Never raises.

    Args:
        thread: the thread's id, from the file's name.
        counts_tokens: whether tokens are counted; otherwise events of token lines are without counts, one for
            all of those that are read at once.
        rules: returns the rules that decide on commands, by the directory that a thread began in; None: they
            are not known.
    """

    @property
    def is_copying(self) -> bool:
        """Whether lines count as copied from another thread until one is found to be the thread's own."""
        return self._own_lines.copying

    def is_copied(self, line: bytes) -> bool:
        """Return whether a line, the newest one that was read, was copied from another thread."""
        if not self._own_lines.copying:
            return False
        ordinal = _ORDINAL.match(line)
        at = line_time(line) or self._at
        return not self._own_lines.is_own(line, at, int(ordinal[1]) if ordinal else None)

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[ThreadEvent]:
        """Return the events of lines, in the order of the file.

        The start of a nested command has an earlier time than its line, which is written when it has ended.

        Args:
            lines: with or without their newline.
            first: number of the first line, counted from 1; 0 where it is unknown: then the events have line
                0.
        """
        if first:
            return self.read_numbered(enumerate(lines, first))
        if not self._has_gap:
            self._has_gap = True
            self._tokens.skip_lines()
        return self.read_numbered((0, line) for line in lines)

    def read_numbered(self, lines: Iterable[tuple[int, bytes]]) -> list[ThreadEvent]:
        """Return the events of numbered lines; see `read`."""
        events: list[ThreadEvent] = []
        self._events = events
        for self._number, line in lines:
            if not line.isspace() and line:
                self._read(line)
        if self._uncounted is not None:
            events.append(self._uncounted)
            self._uncounted = None
        self._events = []  # the returned list belongs to the caller
        return events

    # ------------------------------------------------------------ lines and their rules

    def _read(self, line: bytes) -> None:
        if len(line) > MAX_LINE_BYTES:
            beginning = line[:80].decode(errors="replace")
            self._skip("oversized", f"longer than {MAX_LINE_BYTES >> 20} MiB: {beginning}")
            return
        if line.find(RECORD_START, 1) > 0 and not is_json(line):
            self._skip("malformed", "a torn record before a whole one")
            line = line[line.rfind(RECORD_START) :]
        try:
            self._dispatch(line)
        except msgspec.ValidationError as error:
            self._skip("malformed", str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._skip("malformed", f"not JSON: {error}")

    def _dispatch(self, line: bytes) -> None:
        if (head := HEAD.match(line)) and (by_head := _RULES_BY_HEAD.get((head[1], head[2]))):
            self._apply(by_head, line)
            return
        kind = kind_of(line)
        rule = _RULES[kind.family].get(kind.name)
        if rule is None:
            if kind.silent and line.rstrip().endswith(b"}"):
                return
            if is_json(line):
                self._skip("unknown", str(kind))
            else:
                self._skip("malformed", f"not JSON: {kind}")
        elif kind.bare:
            self._bare = True
            rule.act(self, rule.payload.decode(line))
        else:
            self._apply(rule, line)

    def _apply(self, rule: _LineRule, line: bytes) -> None:
        record = rule.line.decode(line)
        self._at = parse_iso(record.timestamp) or self._at
        if rule is _SESSION_META or self._own_lines.is_own(line, self._at, record.ordinal):
            rule.act(self, record.payload)
        elif rule is _TOKEN_COUNT:
            self._tokens.inherit(record.payload)

    def _item_completed(self, payload: records.ItemCompleted) -> None:
        kind = kind_of_item(payload.item)
        if (rule := _RULES["item"].get(kind.name)) is not None:
            rule.act(self, rule.payload.decode(payload.item), payload.started_at_ms)
        elif not kind.silent:
            self._skip("unknown", str(kind))


# ---------------------------------------------------------------- the tables


class _LineRule(NamedTuple):
    """The decoders of one kind of line, and the method that handles it."""

    line: JsonDecoder[Any]
    payload: JsonDecoder[Any]
    act: Callable[..., None]


def _rule(payload: Any, act: Callable[..., None]) -> _LineRule:
    return _LineRule(JsonDecoder(records.Line[payload]), JsonDecoder(payload), act)


_SESSION_META: Final = _rule(records.SessionMeta, RolloutReader._session_meta)
_TOKEN_COUNT: Final = _rule(records.TokenCount, RolloutReader._token_count)
_LINES: Final = {
    b"session_meta": _SESSION_META,
    b"turn_context": _rule(msgspec.Raw, RolloutReader._turn_context),
    b"compacted": _rule(msgspec.Raw, RolloutReader._compacted),
    b"token_usage_record": _rule(records.TokenUsageRecord, RolloutReader._token_usage),
}
_RESPONSES: Final = {
    b"message": _rule(records.Message, RolloutReader._message),
    b"agent_message": _rule(records.InterAgentMessage, RolloutReader._inter_agent_message),
    b"function_call": _rule(records.ToolCall, RolloutReader._tool_call),
    b"custom_tool_call": _rule(records.ToolCall, RolloutReader._tool_call),
    b"local_shell_call": _rule(records.LocalShellCall, RolloutReader._local_shell),
    b"function_call_output": _rule(records.ToolOutput, RolloutReader._tool_output),
    b"custom_tool_call_output": _rule(records.ToolOutput, RolloutReader._tool_output),
}
_EVENTS: Final = {
    **dict.fromkeys((b"task_started", b"turn_started"), _rule(records.TurnMark, RolloutReader._task_started)),
    **dict.fromkeys(
        (b"task_complete", b"turn_complete"), _rule(records.TurnMark, RolloutReader._task_complete)
    ),
    b"turn_aborted": _rule(records.TurnMark, RolloutReader._turn_aborted),
    b"exited_review_mode": _rule(records.ReviewEnd, RolloutReader._review_ended),
    b"error": _rule(records.TurnError, RolloutReader._turn_error),
    b"thread_settings_applied": _rule(records.ThreadSettings, RolloutReader._thread_settings),
    b"thread_name_updated": _rule(records.ThreadNameUpdated, RolloutReader._named),
    b"token_count": _TOKEN_COUNT,
    b"user_message": _rule(records.LoggedMessage, RolloutReader._user_message),
    b"agent_message": _rule(records.LoggedMessage, RolloutReader._agent_message),
    b"item_completed": _rule(records.ItemCompleted, RolloutReader._item_completed),
    b"exec_command_end": _rule(records.Command, RolloutReader._command),
    b"patch_apply_end": _rule(records.Patch, RolloutReader._patch),
    b"mcp_tool_call_end": _rule(records.McpCall, RolloutReader._mcp_call),
    b"collab_agent_spawn_end": _rule(records.CollabCall, RolloutReader._collab_call),
    b"sub_agent_activity": _rule(records.Activity, RolloutReader._activity),
}
_ITEMS: Final = {
    b"UserMessage": _rule(records.Message, RolloutReader._user_item),
    b"AgentMessage": _rule(records.Message, RolloutReader._agent_item),
    b"CommandExecution": _rule(records.Command, RolloutReader._command),
    b"FileChange": _rule(records.Patch, RolloutReader._patch),
    b"McpToolCall": _rule(records.McpCall, RolloutReader._mcp_call),
    b"DynamicToolCall": _rule(records.McpCall, RolloutReader._mcp_call),
    b"CollabAgentToolCall": _rule(records.CollabCall, RolloutReader._collab_call),
    b"SubAgentActivity": _rule(records.Activity, RolloutReader._activity),
}


_RULES: Final[dict[Family, dict[bytes, _LineRule]]] = {
    "line": _LINES,
    "response_item": _RESPONSES,
    "event_msg": _EVENTS,
    "item": _ITEMS,
    "record": {},
}
_RULES_BY_HEAD: Final[dict[tuple[bytes, bytes | None], _LineRule]] = {
    **{(name, None): rule for name, rule in _LINES.items()},
    **{(b"response_item", name): rule for name, rule in _RESPONSES.items()},
    **{(b"event_msg", name): rule for name, rule in _EVENTS.items()},
}
"""The same rules by the groups of `HEAD`, which matches most lines."""
