"""Reads rollout files: lines in, events out, for every Codex from 0.20 to 0.169.

What a line means depends on its type, and little on the lines before it: which calls are open, what was said in another dialect, whether a
copied history is going on. That little is what a `RolloutReader` keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.policy_formats import from_environment_context, from_turn
from agentdash.agents.codex.rollout import items, tools
from agentdash.agents.codex.rollout import messages as speech
from agentdash.agents.codex.rollout import records as shape
from agentdash.agents.codex.rollout.calls import Calls
from agentdash.agents.codex.rollout.items import Finished
from agentdash.agents.codex.rollout.kinds import (
    HEAD,
    LINE_LIMIT,
    RECORD,
    Family,
    is_json,
    kind_of,
    kind_of_item,
)
from agentdash.agents.codex.rollout.lineage import OwnLines, parse_time, started, uuid_time
from agentdash.agents.codex.rollout.tokens import Tally
from agentdash.agents.codex.rollout.tools import Tool
from agentdash.model.events import (
    ChildSpawned,
    Event,
    LineSkipped,
    MessageLogged,
    PolicySet,
    ThreadNamed,
    TokensCounted,
    TurnEnded,
    TurnStarted,
)
from agentdash.model.sanitize import clean_block, clean_line


class RolloutReader:
    """Turns the lines of one rollout file into events.

    Every line gives its events or a `LineSkipped`, or is known to say nothing that is shown; nothing raises.

    Args:
        thread: the thread's id, from the file's name.
    """

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._events: list[Event] = []
        self._number = 0
        self._at = uuid_time(thread) or 0.0
        self._begun = False
        self._bare = False
        """Bare lines have no times: theirs is the header's."""
        self._path: str | None = None
        """The thread's own agent path."""
        self._policy_known = False
        self._error: shape.TurnError | None = None
        self._own = OwnLines(thread)
        self._calls = Calls(thread)
        self._tally = Tally()
        self._told = {who: speech.MessageDeduplicator() for who in ("user", "agent", "shell")}

    @property
    def at(self) -> float:
        """When the newest line was written (unix seconds)."""
        return self._at

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[Event]:
        """The events of these lines, in the order in which the file tells them.

        The `at` of a nested command's start is earlier than its line: the line was written when it had ended.

        Args:
            lines: with or without their newline.
            first: number of the first of them, counted from 1; 0 where it is not known: then the events have line 0.
        """
        events: list[Event] = []
        self._events = events
        for offset, line in enumerate(lines):
            self._number = first + offset if first else 0
            if not line.isspace() and line:
                self._read(line)
        self._events = []  # what was given out is not ours any more
        return events

    # ------------------------------------------------------------ from a line to its rule

    def _read(self, line: bytes) -> None:
        if len(line) > LINE_LIMIT:
            self._skip(
                "oversized", f"longer than {LINE_LIMIT >> 20} MiB: {line[:80].decode(errors='replace')}"
            )
            return
        if line.find(RECORD, 1) > 0 and not is_json(line):
            self._skip("malformed", "a torn record before a whole one")
            line = line[line.rfind(RECORD) :]
        try:
            self._dispatch(line)
        except msgspec.ValidationError as error:
            self._skip("malformed", str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._skip("malformed", f"not JSON: {error}")

    def _dispatch(self, line: bytes) -> None:
        if (head := HEAD.match(line)) and (usual := _USUAL.get((head[1], head[2]))):
            self._apply(usual, line)
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

    def _apply(self, rule: _Rule, line: bytes) -> None:
        record = rule.line.decode(line)
        self._at = parse_time(record.timestamp) or self._at
        if rule is _SESSION_META or self._own.is_own(line, self._at, record.ordinal):
            rule.act(self, record.payload)

    def _skip(self, what: Any, detail: str) -> None:
        self._emit(LineSkipped, what=what, detail=clean_line(detail, 200))

    def _emit(self, event: Callable[..., Event], **fields: Any) -> None:
        self._events.append(event(at=self._at, thread=self._thread, line=self._number, **fields))

    # ------------------------------------------------------------ the thread, its policy, its turns

    def _session_meta(self, meta: shape.SessionMeta) -> None:
        if self._begun:
            self._own.other(meta)
            return
        self._begun = True
        self._own.begin(meta, self._at)
        created = parse_time(meta.timestamp) or self._at
        if self._bare:
            self._at = created
        event = started(self._thread, meta, created, self._number)
        self._path = event.path
        self._events.append(event)

    def _turn_context(self, payload: dict[str, Any]) -> None:
        self._set_policy(payload, "turn_context")

    def _thread_settings(self, payload: shape.ThreadSettings) -> None:
        if payload.thread_id in (None, self._thread):
            self._set_policy(payload.thread_settings, "thread_settings_applied")

    def _set_policy(self, payload: Mapping[str, Any], origin: str) -> None:
        policy = from_turn(payload)
        self._policy_known = self._policy_known or policy is not None
        self._emit(
            PolicySet,
            policy=policy,
            origin=origin,
            cwd=_line(payload.get("cwd")),
            model=_line(payload.get("model")),
            effort=_line(payload.get("effort") or payload.get("reasoning_effort")),
        )

    def _environment(self, text: str) -> None:
        """Counts where nothing better was said: always in bare files, and until the first `turn_context` in those of 2025."""
        policy, cwd = from_environment_context(text)
        if (policy and not self._policy_known) or (self._bare and (policy or cwd)):
            self._emit(PolicySet, policy=policy, origin="environment_context", cwd=cwd)

    def _task_started(self, mark: shape.TurnMark) -> None:
        self._error = None
        self._told["agent"].forget()
        self._emit(TurnStarted, turn=_line(mark.turn_id))

    def _task_complete(self, mark: shape.TurnMark) -> None:
        self._end_turn(mark, "completed")

    def _turn_aborted(self, mark: shape.TurnMark) -> None:
        self._end_turn(mark, "aborted")

    def _end_turn(self, mark: shape.TurnMark, how: str) -> None:
        error, self._error = mark.error or self._error, None
        self._emit(
            TurnEnded,
            turn=_line(mark.turn_id),
            how=how,
            message=_block(mark.last_agent_message),
            reason=_line(mark.reason),
            error=_block(error.message) if error else None,
            error_kind=_error_kind(error.codex_error_info) if error else None,
        )

    def _turn_error(self, error: shape.TurnError) -> None:
        self._error = error

    def _token_count(self, count: shape.TokenCount) -> None:
        self._count(self._tally.counted(count, self._at))

    def _token_usage(self, record: shape.TokenUsageRecord) -> None:
        self._count(self._tally.recorded(record))

    def _count(self, tally: Tally) -> None:
        if tally != self._tally:
            self._tally = tally
            self._emit(TokensCounted, **tally._asdict())

    def _named(self, payload: shape.ThreadNameUpdated) -> None:
        if payload.thread_name and payload.thread_id in (None, self._thread):
            self._emit(ThreadNamed, name=clean_line(payload.thread_name))

    # ------------------------------------------------------------ what was said

    def _message(self, message: shape.Message) -> None:
        text = tools.parts_text(message.content)
        if message.role == "assistant":
            self._say_agent("response_item", text)
        elif message.role != "user":
            return
        elif "<environment_context>" in text:
            self._environment(text)
        elif (done := items.user_command(text, self._at)) is not None:
            self._finish(done, "message")
        elif self._bare:
            self._say_user("response_item", text)

    def _letter(self, letter: shape.Letter) -> None:
        """The task that a child of multi-agent v2 is given; letters to others are not its prompts."""
        text = speech.letter(tools.parts_text(letter.content))
        if text and self._path is not None and letter.recipient == self._path:
            self._say_user("agent_message", text)

    def _user_message(self, telling: shape.LoggedMessage) -> None:
        if telling.kind in (None, "plain"):
            self._say_user("event_msg", telling.message or "")

    def _agent_message(self, telling: shape.LoggedMessage) -> None:
        self._say_agent("event_msg", telling.message or "")

    def _say_user(self, dialect: str, text: str) -> None:
        if (asked := speech.prompt(text)) and self._told["user"].is_new(dialect, asked):
            self._told["agent"].forget()
            self._emit(MessageLogged, role="user", text=clean_block(asked))

    def _say_agent(self, dialect: str, text: str) -> None:
        if text.strip() and self._told["agent"].is_new(dialect, text):
            self._emit(MessageLogged, role="agent", text=clean_block(text))

    # ------------------------------------------------------------ tool calls

    def _tool_call(self, call: shape.ToolCall) -> None:
        custom = call.input is not None
        tool = (
            tools.describe_custom(call.name, call.namespace, call.input or "")
            if custom
            else tools.describe(call.name, call.namespace, call.arguments)
        )
        self._start(call.call_id, tool)

    def _local_shell(self, call: shape.LocalShellCall) -> None:
        self._start(call.call_id or call.id or "", tools.describe("local_shell", None, call.action))

    def _start(self, call: str, tool: Tool) -> None:
        if call:
            self._events.extend(self._calls.start(clean_line(call), tool, self._at, self._number))
        else:
            self._skip("malformed", f"a call of {tool.name} without an id")

    def _tool_output(self, output: shape.ToolOutput) -> None:
        if output.call_id:  # outputs that answer no call exist since 0.151
            self._events.extend(
                self._calls.answer(clean_line(output.call_id), output.output, self._at, self._number)
            )

    def _finish(self, done: Finished, dialect: str, started_ms: int | None = None) -> None:
        if done.by_user and not self._told["shell"].is_new(dialect, done.tool.text):
            return
        began = started_ms / 1000 if started_ms else self._at
        self._events.extend(
            self._calls.finish(
                clean_line(done.call),
                done.tool,
                done.ending,
                self._at,
                self._number,
                began,
                by_user=done.by_user,
            )
        )

    # ------------------------------------------------------------ items and end events

    def _item_completed(self, payload: shape.ItemCompleted) -> None:
        kind = kind_of_item(payload.item)
        if (rule := _RULES["item"].get(kind.name)) is not None:
            rule.act(self, rule.payload.decode(payload.item), payload.started_at_ms)
        elif not kind.silent:
            self._skip("unknown", str(kind))

    def _user_item(self, item: shape.Message, _started_ms: int | None) -> None:
        self._say_user("item_completed", tools.parts_text(item.content))

    def _agent_item(self, item: shape.Message, _started_ms: int | None) -> None:
        self._say_agent("item_completed", tools.parts_text(item.content))

    def _command(self, item: shape.Command, started_ms: int | None = None) -> None:
        if (done := items.command(item)) is not None:
            self._finish(done, "item", started_ms)

    def _patch(self, item: shape.Patch, started_ms: int | None = None) -> None:
        self._finish(items.patch(item), "item", started_ms)

    def _mcp_call(self, item: shape.McpCall, started_ms: int | None = None) -> None:
        self._finish(items.mcp_call(item), "item", started_ms)

    def _collab_call(self, item: shape.CollabCall, _started_ms: int | None = None) -> None:
        if item.tool == "spawn_agent":
            names = {agent.thread_id: agent.agent_nickname for agent in item.receiver_agents}
            for child in item.receiver_thread_ids:
                self._child(child, names.get(child))
        elif item.new_thread_id:
            self._child(item.new_thread_id, item.new_agent_nickname)

    def _activity(self, item: shape.Activity, _started_ms: int | None = None) -> None:
        if item.kind == "started" and item.agent_thread_id:
            self._child(item.agent_thread_id, None)

    def _child(self, thread: str, nickname: str | None) -> None:
        self._emit(ChildSpawned, child=clean_line(thread), nickname=_line(nickname))


# ---------------------------------------------------------------- the tables


class _Rule(NamedTuple):
    """How one kind of line is decoded, and what is done with it."""

    line: msgspec.json.Decoder[Any]
    payload: msgspec.json.Decoder[Any]
    act: Callable[..., None]


def _rule(payload: Any, act: Callable[..., None]) -> _Rule:
    return _Rule(msgspec.json.Decoder(shape.Line[payload]), msgspec.json.Decoder(payload), act)


_SESSION_META: Final = _rule(shape.SessionMeta, RolloutReader._session_meta)
_LINES: Final = {
    b"session_meta": _SESSION_META,
    b"turn_context": _rule(dict[str, Any], RolloutReader._turn_context),
    b"token_usage_record": _rule(shape.TokenUsageRecord, RolloutReader._token_usage),
}
_RESPONSES: Final = {
    b"message": _rule(shape.Message, RolloutReader._message),
    b"agent_message": _rule(shape.Letter, RolloutReader._letter),
    b"function_call": _rule(shape.ToolCall, RolloutReader._tool_call),
    b"custom_tool_call": _rule(shape.ToolCall, RolloutReader._tool_call),
    b"local_shell_call": _rule(shape.LocalShellCall, RolloutReader._local_shell),
    b"function_call_output": _rule(shape.ToolOutput, RolloutReader._tool_output),
    b"custom_tool_call_output": _rule(shape.ToolOutput, RolloutReader._tool_output),
}
_EVENTS: Final = {
    **dict.fromkeys((b"task_started", b"turn_started"), _rule(shape.TurnMark, RolloutReader._task_started)),
    **dict.fromkeys(
        (b"task_complete", b"turn_complete"), _rule(shape.TurnMark, RolloutReader._task_complete)
    ),
    b"turn_aborted": _rule(shape.TurnMark, RolloutReader._turn_aborted),
    b"error": _rule(shape.TurnError, RolloutReader._turn_error),
    b"thread_settings_applied": _rule(shape.ThreadSettings, RolloutReader._thread_settings),
    b"thread_name_updated": _rule(shape.ThreadNameUpdated, RolloutReader._named),
    b"token_count": _rule(shape.TokenCount, RolloutReader._token_count),
    b"user_message": _rule(shape.LoggedMessage, RolloutReader._user_message),
    b"agent_message": _rule(shape.LoggedMessage, RolloutReader._agent_message),
    b"item_completed": _rule(shape.ItemCompleted, RolloutReader._item_completed),
    b"exec_command_end": _rule(shape.Command, RolloutReader._command),
    b"patch_apply_end": _rule(shape.Patch, RolloutReader._patch),
    b"mcp_tool_call_end": _rule(shape.McpCall, RolloutReader._mcp_call),
    b"collab_agent_spawn_end": _rule(shape.CollabCall, RolloutReader._collab_call),
    b"sub_agent_activity": _rule(shape.Activity, RolloutReader._activity),
}
_ITEMS: Final = {
    b"UserMessage": _rule(shape.Message, RolloutReader._user_item),
    b"AgentMessage": _rule(shape.Message, RolloutReader._agent_item),
    b"CommandExecution": _rule(shape.Command, RolloutReader._command),
    b"FileChange": _rule(shape.Patch, RolloutReader._patch),
    b"McpToolCall": _rule(shape.McpCall, RolloutReader._mcp_call),
    b"DynamicToolCall": _rule(shape.McpCall, RolloutReader._mcp_call),
    b"CollabAgentToolCall": _rule(shape.CollabCall, RolloutReader._collab_call),
    b"SubAgentActivity": _rule(shape.Activity, RolloutReader._activity),
}


_RULES: Final[dict[Family, dict[bytes, _Rule]]] = {
    "line": _LINES,
    "response_item": _RESPONSES,
    "event_msg": _EVENTS,
    "item": _ITEMS,
    "record": {},
}
_USUAL: Final[dict[tuple[bytes, bytes | None], _Rule]] = {
    **{(name, None): rule for name, rule in _LINES.items()},
    **{(b"response_item", name): rule for name, rule in _RESPONSES.items()},
    **{(b"event_msg", name): rule for name, rule in _EVENTS.items()},
}
"""The same rules by what `HEAD` finds: most lines are told by one look."""


def _line(value: Any) -> str | None:
    return clean_line(value) or None if isinstance(value, str) else None


def _block(value: str | None) -> str | None:
    return clean_block(value) or None if value else None


def _error_kind(info: Any) -> str | None:
    """`usage_limit_exceeded`, or `{"http_connection_failed": {"http_status_code": 401}}` as `http_connection_failed 401`."""
    if isinstance(info, dict) and info:
        kind, detail = next(iter(info.items()))
        values = [str(v) for v in detail.values() if v is not None] if isinstance(detail, dict) else []
        return clean_line(" ".join((str(kind), *values)))
    return _line(info)
