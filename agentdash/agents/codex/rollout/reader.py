"""Parse the lines of rollouts into events, for every Codex from 0.20 to 0.171.

`_reads` says how each kind of line is decoded, and which method has its meaning. That depends little on
earlier lines: which calls are open, which messages another dialect has written, whether a copied
history is in progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from agentdash.agents.codex.policy_formats import from_environment_context, from_turn
from agentdash.agents.codex.rollout import records, tools
from agentdash.agents.codex.rollout.calls import CallTracker, Finished, command, mcp_call, patch, user_command
from agentdash.agents.codex.rollout.lineage import OwnLineFilter, text_or_none, thread_started, uuid_time
from agentdash.agents.codex.rollout.records import RECORD_START, SILENT, Kind
from agentdash.agents.codex.rollout.tokens import TokenCounter
from agentdash.agents.line_events import LineEvents
from agentdash.files import is_record
from agentdash.model.command_rules import CommandRules
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import (
    ChildSpawned,
    MessageLogged,
    PolicySet,
    ThreadEvent,
    ThreadNamed,
    TokensCounted,
    TurnEnded,
    TurnStarted,
)
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.times import parse_iso, possible_time
from agentdash.model.tokens import ModelUsage

_CONTEXT: Final = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|"
    r"permissions instructions|\w+_instructions|"
    r"collaboration_mode|multi_agent_mode|recommended_plugins|skills?|tools|personality_spec|"
    r"context_window|rollout_budget|token_budget|"
    r"additional_context|user_shell_command|turn_aborted|subagent_notification|internal_model_context|"
    r"codex_internal_context|goal_context|"
    r"hook_prompt|external_\w+|model_switch)[\s>])"
)
"""Messages of the role `user` that Codex writes itself."""
_IDE_HEADER: Final = re.compile(r"\s*(?:# [^\n]+:\s*\n.*\n)?## My request for [^\n:]{1,40}:", re.DOTALL)
"""What IDEs and the desktop's app write before a prompt: open files, selections, files that it mentions."""
_STRIPPED_TAGS: Final = re.compile(r"<(?:oai-mem-citation|proposed_plan)>")
_KEY_CHARS: Final = 200
"""Compared of two messages; after these one copy may have lost a citation."""
_MAX_MESSAGES: Final = 500
"""Remembered at once: more than one turn writes."""


def prompt_of(text: str) -> str | None:
    """Return the text of a user's prompt, or None for context and instructions in the form of one."""
    if _CONTEXT.match(text):
        return None
    header = _IDE_HEADER.match(text)
    request = text[header.end() :].strip() if header is not None else ""
    return request or text.strip() or None


class MessageDeduplicator:
    """Separates repeated messages from copies of one message in several dialects.

    A message is written up to once per dialect (`response_item`, `event_msg`, `item_completed`). So it is new
    whenever one dialect has written it more often than any did before: a message that the model repeats after
    a dropped stream counts, a copy does not.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def is_new(self, dialect: str, text: str) -> bool:
        """Return whether this is a new message; counts it."""
        key = _STRIPPED_TAGS.split(text, maxsplit=1)[0].strip()[:_KEY_CHARS]
        counts = self._counts.setdefault(key, {})
        before = max(counts.values(), default=0)
        counts[dialect] = counts.get(dialect, 0) + 1
        if len(self._counts) > _MAX_MESSAGES:
            del self._counts[next(iter(self._counts))]
        return counts[dialect] > before

    def forget(self) -> None:
        """Forget all messages: at a new turn, copies of earlier ones do not follow any more."""
        self._counts.clear()


# ---------------------------------------------------------------- lines and their rules

_M = TypeVar("_M", bound=Callable[..., None])


class _Rule(NamedTuple):
    """How one kind of line is decoded, and the method that handles its payload."""

    line: JsonDecoder[records.Record[Any]]
    payload: JsonDecoder[Any]
    act: Callable[..., None]


_RULES: Final[dict[Kind, _Rule]] = {}


def _reads(payload: Any, *kinds: Kind) -> Callable[[_M], _M]:
    """Let a method handle the payloads of some kinds of lines, decoded as a type."""

    def add(method: _M) -> _M:
        rule = _Rule(JsonDecoder(records.Record[payload]), JsonDecoder(payload), method)
        _RULES.update(dict.fromkeys(kinds, rule))
        return method

    return add


class RolloutReader(LineEvents):
    """Parses the lines of one rollout into events.

    Every line gives events, or a `LineSkipped`, or has a kind that is not shown.

    Args:
        thread: the thread's id, from the file's name.
        rules: returns the rules that decide on commands, by the directory that a thread began in; None: they
            are not known.
    """

    def __init__(self, thread: str, *, rules: Callable[[str], CommandRules] | None = None) -> None:
        super().__init__(thread, uuid_time(thread) or 0.0)
        self._rules = rules
        self._cwd = ""
        self._begun = False
        self._bare = False
        """Whether the lines carry no time (0.20, 0.25): they have that of the header."""
        self._policy_known = False
        self._item_began: float | None = None
        """When the item of this line began, where it states that."""
        self._is_prompted = False
        """Whether this turn has a prompt, to which a message is the answer."""
        self._has_result = False
        self._error: records.TurnError | None = None
        self._own_lines = OwnLineFilter(thread)
        self._calls = CallTracker(self._emit, self._let_out_by)
        self._tokens = TokenCounter()
        self._has_gap = False
        """Whether a part of the file was left out."""
        self._deduplicators = {role: MessageDeduplicator() for role in ("user", "agent", "shell")}

    @property
    def is_copying(self) -> bool:
        """Whether the newest line was copied from another thread."""
        return self._own_lines.copying

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[ThreadEvent]:
        """Return the events of lines, in the order of the file.

        The start of a nested command has an earlier time than its line, which is written when it has ended.

        Args:
            lines: with or without their newline.
            first: number of the first line, counted from 1; 0 where it is unknown: then the events have line
                0.
        """
        if not first and not self._has_gap:
            self._has_gap = True
            self._tokens.skip_lines()
        return super().read(lines, first)

    def _read(self, line: bytes) -> None:
        if line.find(RECORD_START, 1) > 0 and not is_record(line):
            self._skip("malformed", "a torn record before a whole one")
            line = line[line.rfind(RECORD_START) :]
        kind = records.kind_of(line) or ""
        record: records.Record[Any] | records.Line
        if (rule := _RULES.get(kind)) is not None:
            record = rule.line.decode(line)
            payload = record.payload
        elif kind and _is_silent(kind) and not self.is_copying and line.rstrip().endswith(b"}"):
            return
        else:
            record = records.LINES.decode(line)
            kind = kind or record.kind
            if (rule := self._rule(kind)) is not None:
                payload = rule.payload.decode(record.payload or line)
                self._bare = self._bare or not record.payload
        at = parse_iso(record.timestamp) or self._at
        is_own = kind == "session_meta" or self._own_lines.is_own(line, at, record.ordinal)
        if rule is None:
            return
        self._at = at
        if is_own:
            rule.act(self, payload)
        elif kind == "event_msg token_count":
            self._tokens.inherit(payload)

    def _rule(self, kind: Kind) -> _Rule | None:
        """Return the rule of a kind of lines; count one that is not known."""
        rule = _RULES.get(kind)
        if rule is None and not _is_silent(kind):
            self._skip("unknown", kind)
        return rule

    @_reads(records.ItemCompleted, "event_msg item_completed")
    def _item_completed(self, completed: records.ItemCompleted) -> None:
        if (rule := self._rule(f"item {records.tag_of(completed.item)}")) is not None:
            item, began_ms = rule.payload.decode(completed.item), completed.started_at_ms
            self._item_began = possible_time(began_ms / 1000) if began_ms else None
            rule.act(self, item)
            self._item_began = None

    # ------------------------------------------------------------ the thread, its policy, its turns

    @_reads(records.SessionMeta, "session_meta")
    def _session_meta(self, meta: records.SessionMeta) -> None:
        if self._begun:
            if self._own_lines.add_further_meta(meta):
                self._skip("malformed", f"another session follows: {meta.id}")
            return
        self._begun = True
        self._own_lines.begin(meta, self._at)
        created = parse_iso(meta.timestamp) or self._at
        if self._bare:
            self._at = created
        if meta.forked_from_id or meta.subagent_history_start_ordinal is not None:
            self._tokens.begin_fork()
        event = thread_started(self._thread, meta, created, self._number)
        self._cwd = event.cwd or ""
        self._events.append(event)

    @_reads(dict[str, Any], "turn_context")
    def _turn_context(self, payload: dict[str, Any]) -> None:
        self._set_policy(payload, "turn_context")

    @_reads(records.ThreadChange, "event_msg thread_settings_applied", "event_msg thread_name_updated")
    def _thread_changed(self, change: records.ThreadChange) -> None:
        if change.thread_id not in (None, self._thread):
            return
        if change.thread_settings is not None:
            self._set_policy(change.thread_settings, "thread_settings_applied")
        if change.thread_name:
            self._emit(ThreadNamed, name=clean_line(change.thread_name))

    def _set_policy(self, settings: dict[str, Any], origin: str) -> None:
        policy = from_turn(settings)
        stated = {name: text_or_none(settings.get(name)) for name in ("cwd", "model", "service_tier")}
        self._tokens.set_model(stated["model"], stated["service_tier"])
        self._policy_known = self._policy_known or policy is not None
        self._emit(PolicySet, policy=policy, origin=origin, cwd=stated["cwd"], model=stated["model"])

    def _environment(self, text: str) -> None:
        """Set the policy of an `<environment_context>`: in bare files always, else until the first
        `turn_context`."""
        policy, cwd, shell = from_environment_context(text)
        if shell and text.lstrip().startswith("<environment_context>"):  # others quote one
            self._calls.user_shell = shell
        if (policy and not self._policy_known) or (self._bare and (policy or cwd)):
            self._emit(PolicySet, policy=policy, origin="environment_context", cwd=cwd)

    @_reads(records.TurnMark, "event_msg task_started", "event_msg turn_started")
    def _task_started(self, _mark: records.TurnMark) -> None:
        self._error = None
        self._is_prompted = self._has_result = False
        self._deduplicators["agent"].forget()
        self._emit(TurnStarted)

    @_reads(records.TurnMark, "event_msg task_complete", "event_msg turn_complete")
    def _task_complete(self, mark: records.TurnMark) -> None:
        self._end_turn(mark, "completed")

    @_reads(records.TurnMark, "event_msg turn_aborted")
    def _turn_aborted(self, mark: records.TurnMark) -> None:
        self._end_turn(mark, "aborted")

    @_reads(records.TurnError, "event_msg error")
    def _turn_error(self, error: records.TurnError) -> None:
        self._error = error

    def _end_turn(self, mark: records.TurnMark, how: str) -> None:
        error = mark.error or self._error
        self._calls.release()
        self._emit(
            TurnEnded,
            how=how,
            message=_block(mark.last_agent_message),
            reason=text_or_none(mark.reason),
            error=_block(error.message) if error else None,
            error_kind=_error_kind(error.codex_error_info) if error else None,
            has_result=self._has_result,
        )

    @_reads(msgspec.Raw, "compacted")
    def _compacted(self, _payload: msgspec.Raw) -> None:
        """Take `/compact` as done; in a turn with a prompt Codex compacts by itself, and goes on."""
        self._has_result = not self._is_prompted

    @_reads(records.ReviewEnd, "event_msg exited_review_mode")
    def _review_ended(self, end: records.ReviewEnd) -> None:
        self._has_result = end.review_output is not None

    @_reads(records.TokenCount, "event_msg token_count")
    def _token_count(self, count: records.TokenCount) -> None:
        before = self._tokens.totals
        self._tokens.count(count, self._at)
        if self._tokens.totals != before:
            self._emit(TokensCounted, **self._tokens.totals)

    # ------------------------------------------------------------ messages

    @_reads(records.Message, "response_item message")
    def _message(self, message: records.Message) -> None:
        text = tools.parts_text(message.content)
        if message.role == "assistant":
            self._log_agent("response_item", text)
        elif message.role != "user":
            return
        elif "<environment_context>" in text:
            self._environment(text)
        elif (done := user_command(text, self._at)) is not None:
            self._finish(done, "message")
        elif self._bare:
            self._log_user("response_item", text)

    @_reads(records.LoggedMessage, "event_msg user_message")
    def _user_message(self, logged: records.LoggedMessage) -> None:
        if logged.kind in (None, "plain"):
            self._log_user("event_msg", logged.message or "")

    @_reads(records.LoggedMessage, "event_msg agent_message")
    def _agent_message(self, logged: records.LoggedMessage) -> None:
        self._log_agent("event_msg", logged.message or "")

    def _log_user(self, dialect: str, text: str) -> None:
        self._is_prompted = True
        if (prompt := prompt_of(text)) and self._deduplicators["user"].is_new(dialect, prompt):
            self._deduplicators["agent"].forget()
            self._emit(MessageLogged, role="user", text=clean_block(prompt))

    def _log_agent(self, dialect: str, text: str) -> None:
        if text.strip() and self._deduplicators["agent"].is_new(dialect, text):
            self._emit(MessageLogged, role="agent", text=clean_block(text))

    # ------------------------------------------------------------ tool calls

    def _let_out_by(self, script: str) -> str:
        """Return the rule that lets a script run outside the sandbox, now that it is read."""
        found = self._rules(self._cwd).letting_out(script) if self._rules is not None else None
        return found.place if found is not None else ""

    @_reads(records.ToolCall, "response_item function_call", "response_item custom_tool_call")
    def _tool_call(self, call: records.ToolCall) -> None:
        if call.input is not None:
            tool = tools.describe_custom(call.name, call.namespace, call.input)
        else:
            tool = tools.describe(call.name, call.namespace, call.arguments)
        if call.call_id:
            self._calls.start(clean_line(call.call_id), tool, at=self._at)
        else:
            self._skip("malformed", f"a call of {tool.name} without an id")

    @_reads(records.ToolOutput, "response_item function_call_output", "response_item custom_tool_call_output")
    def _tool_output(self, output: records.ToolOutput) -> None:
        if output.call_id:  # outputs without a call exist since 0.151
            self._calls.add_output(clean_line(output.call_id), output.output)

    def _finish(self, done: Finished, dialect: str = "item") -> None:
        self._has_result = self._has_result or (done.by_user and not self._is_prompted)
        if done.by_user and not self._deduplicators["shell"].is_new(dialect, done.tool.text):
            return
        started_at = self._item_began or self._at
        self._calls.finish(done, started_at=started_at, at=self._at, line=self._number)

    # ------------------------------------------------------------ items and end events

    @_reads(records.Message, "item UserMessage")
    def _user_item(self, item: records.Message) -> None:
        self._log_user("item_completed", tools.parts_text(item.content))

    @_reads(records.Message, "item AgentMessage")
    def _agent_item(self, item: records.Message) -> None:
        self._log_agent("item_completed", tools.parts_text(item.content))

    @_reads(records.Item, "item CommandExecution", "event_msg exec_command_end")
    def _command(self, item: records.Item) -> None:
        if (done := command(item)) is not None:
            self._finish(done)

    @_reads(records.Item, "item FileChange", "event_msg patch_apply_end")
    def _patch(self, item: records.Item) -> None:
        self._finish(patch(item))

    @_reads(records.Item, "item McpToolCall", "item DynamicToolCall", "event_msg mcp_tool_call_end")
    def _mcp_call(self, item: records.Item) -> None:
        self._finish(mcp_call(item))

    @_reads(records.Item, "item CollabAgentToolCall", "event_msg collab_agent_spawn_end")
    def _collab_call(self, item: records.Item) -> None:
        children = item.receiver_thread_ids if item.tool == "spawn_agent" else [item.new_thread_id]
        for child in filter(None, children):
            self._child(child)

    @_reads(records.Item, "item SubAgentActivity", "event_msg sub_agent_activity")
    def _activity(self, item: records.Item) -> None:
        if item.kind == "started" and item.agent_thread_id:
            self._child(item.agent_thread_id)

    def _child(self, thread: str) -> None:
        self._emit(ChildSpawned, child=clean_line(thread))


def _is_silent(kind: Kind) -> bool:
    return kind in SILENT or kind.startswith("event_msg ")


def _block(value: str | None) -> str | None:
    return clean_block(value) or None if value else None


def _error_kind(info: Any) -> str | None:
    """Return `usage_limit_exceeded`; `{"http_connection_failed": {"http_status_code": 401}}` as
    `http_connection_failed 401`."""
    if isinstance(info, dict) and info:
        kind, detail = next(iter(info.items()))
        values = [str(v) for v in detail.values() if v is not None] if isinstance(detail, dict) else []
        return clean_line(" ".join((str(kind), *values)))
    return text_or_none(info)


_MARK: Final = re.compile(rb'"(?:token_count|turn_context|thread_settings_applied|session_meta)"')
"""What the relevant lines contain; others that quote it are parsed in vain."""
_FORK_MARKS: Final = (b'"forked_from_id"', b'"subagent"')
"""What the first line of a file contains that may begin with copied lines."""


def tokens_by_model(thread: str, lines: Iterable[bytes]) -> tuple[ModelUsage, ...]:
    """Return the tokens that a thread used itself, by model.

    Args:
        thread: its id.
        lines: all lines of its rollout.
    """
    found: tuple[ModelUsage, ...] = ()
    for event in RolloutReader(thread).read(_relevant(lines)):
        if isinstance(event, TokensCounted):
            found = event.by_model
    return found


def _relevant(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines that matter; of a file that may begin with copied lines, all: the times and turns of
    the others show which lines are copied."""
    every = iter(lines)
    first = next(every, b"")
    yield first
    if any(mark in first for mark in _FORK_MARKS):
        yield from every
        return
    yield from filter(_MARK.search, every)
