"""The meaning of the lines of a rollout, by their kind, for every Codex from 0.20 to 0.169.

It depends little on earlier lines: which calls are open, which messages another dialect has written, whether
a copied history is in progress. That state is kept in a `LineHandler`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from agentdash.agents.codex.policy_formats import TurnSettings, from_environment_context, turn_settings
from agentdash.agents.codex.rollout import calls as items
from agentdash.agents.codex.rollout import reader as messages
from agentdash.agents.codex.rollout import records, tools
from agentdash.agents.codex.rollout.calls import CallTracker, Finished
from agentdash.agents.codex.rollout.lineage import OwnLineFilter, thread_started, uuid_time
from agentdash.agents.codex.rollout.tokens import TokenCounter, TokenTotals
from agentdash.agents.codex.rollout.tools import Tool
from agentdash.agents.line_events import LineEvents
from agentdash.model.command_rules import CommandRules
from agentdash.model.events import (
    CallsLeftOut,
    ChildSpawned,
    MessageLogged,
    PolicySet,
    ThreadNamed,
    TokensCounted,
    TurnEnded,
    TurnStarted,
)
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.times import parse_iso, possible_time

_object: Final = msgspec.json.Decoder(dict[str, Any])


class LineHandler(LineEvents):
    """Emits the events of decoded lines of one rollout; `RolloutReader` decodes them.

    Args:
        thread: the thread's id, from the file's name.
        counts_tokens: whether tokens are counted; otherwise events of token lines are without counts, one for
            all of those that are read at once.
        rules: returns the rules that decide on commands, by the directory that a thread began in; None: they
            are not known.
    """

    def __init__(
        self,
        thread: str,
        *,
        counts_tokens: bool = True,
        rules: Callable[[str], CommandRules] | None = None,
    ) -> None:
        super().__init__(thread, uuid_time(thread) or 0.0)
        self._rules = rules
        self._cwd = ""
        self._counts_tokens = counts_tokens
        self._uncounted: TokensCounted | None = None
        """The newest token line, where tokens are not counted."""
        self._begun = False
        self._bare = False
        """Whether the file is of the bare era: its lines have the time of its header."""
        self._path: str | None = None
        """The thread's own agent path."""
        self._policy_known = False
        self._context: tuple[bytes, TurnSettings] = (b"", TurnSettings())
        """The newest `turn_context` as written, and what it states."""
        self._error: records.TurnError | None = None
        self._is_prompted = False
        """Whether this turn has a prompt, to which a message is the answer."""
        self._has_result = False
        self._own_lines = OwnLineFilter(thread)
        self._calls = CallTracker(thread, self._let_out_by)
        self._tokens = TokenCounter()
        self._has_gap = False
        """Whether a part of the file was left out."""
        self._deduplicators = {role: messages.MessageDeduplicator() for role in ("user", "agent", "shell")}

    def leave_out(
        self, calls: Sequence[str], *, line: int, started_line: int, time: bytes, repeated: Sequence[bytes]
    ) -> CallsLeftOut:
        """Return the event of calls that have ended and are not read.

        Args:
            calls: their ids.
            line: number of the last line of them.
            started_line: number of the line that began the last one.
            time: of the newest of their lines, as written.
            repeated: times of the lines between them that repeat the newest `turn_context`, as written.
        """
        policy_at: tuple[float, ...] = ()
        if self._context[1].policy is not None:
            policy_at = tuple(_seconds(stamp) or self._at for stamp in repeated)
        self._at = _seconds(time) or self._at
        self._calls.leave_out(map(clean_line, calls))
        return CallsLeftOut(
            at=self._at,
            thread=self._thread,
            line=line,
            count=len(calls),
            started_line=started_line,
            policy_at=policy_at,
        )

    # ------------------------------------------------------------ the thread, its policy, its turns

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
        self._path, self._cwd = event.path, event.cwd or ""
        self._events.append(event)

    def _turn_context(self, payload: msgspec.Raw) -> None:
        encoded = bytes(payload)
        if encoded != self._context[0]:  # many versions write the same one before each request
            self._context = (encoded, turn_settings(_object.decode(encoded)))
        self._set_policy(self._context[1], "turn_context")

    def _thread_settings(self, payload: records.ThreadSettings) -> None:
        if payload.thread_id in (None, self._thread):
            self._set_policy(turn_settings(payload.thread_settings), "thread_settings_applied")

    def _set_policy(self, stated: TurnSettings, origin: str) -> None:
        self._tokens.set_model(stated.model, stated.tier)
        self._policy_known = self._policy_known or stated.policy is not None
        self._emit(
            PolicySet,
            policy=stated.policy,
            origin=origin,
            cwd=stated.cwd,
            model=stated.model,
            effort=stated.effort,
        )

    def _environment(self, text: str) -> None:
        """Set the policy of an `<environment_context>`: in bare files always, else until the first
        `turn_context`."""
        self._calls.set_user_shell(text)
        policy, cwd = from_environment_context(text)
        if (policy and not self._policy_known) or (self._bare and (policy or cwd)):
            self._emit(PolicySet, policy=policy, origin="environment_context", cwd=cwd)

    def _task_started(self, mark: records.TurnMark) -> None:
        self._error = None
        self._is_prompted = self._has_result = False
        self._deduplicators["agent"].forget()
        self._emit(TurnStarted, turn=_line(mark.turn_id))

    def _task_complete(self, mark: records.TurnMark) -> None:
        self._end_turn(mark, "completed")

    def _turn_aborted(self, mark: records.TurnMark) -> None:
        self._end_turn(mark, "aborted")

    def _end_turn(self, mark: records.TurnMark, how: str) -> None:
        error = mark.error or self._error
        self._error = None
        self._events.extend(self._calls.release())
        self._emit(
            TurnEnded,
            turn=_line(mark.turn_id),
            how=how,
            message=_block(mark.last_agent_message),
            reason=_line(mark.reason),
            error=_block(error.message) if error else None,
            error_kind=_error_kind(error.codex_error_info) if error else None,
            has_result=self._has_result,
        )

    def _compacted(self, _payload: msgspec.Raw) -> None:
        """Take `/compact` as done; in a turn with a prompt Codex compacts by itself, and goes on."""
        self._has_result = not self._is_prompted

    def _review_ended(self, end: records.ReviewEnd) -> None:
        self._has_result = end.review_output is not None

    def _turn_error(self, error: records.TurnError) -> None:
        self._error = error

    def _token_count(self, count: records.TokenCount) -> None:
        if not self._counts_tokens:
            self._uncounted = TokensCounted(at=self._at, thread=self._thread, line=self._number)
            return
        before = self._tokens.totals
        self._count_tokens(before, self._tokens.count(count, self._at))

    def _token_usage(self, record: records.TokenUsageRecord) -> None:
        if not self._counts_tokens:
            self._uncounted = TokensCounted(at=self._at, thread=self._thread, line=self._number)
            return
        before = self._tokens.totals
        self._count_tokens(before, self._tokens.count_record(record))

    def _count_tokens(self, before: TokenTotals, after: TokenTotals) -> None:
        if after != before:
            self._emit(TokensCounted, **after._asdict())

    def _named(self, payload: records.ThreadNameUpdated) -> None:
        if payload.thread_name and payload.thread_id in (None, self._thread):
            self._emit(ThreadNamed, name=clean_line(payload.thread_name))

    # ------------------------------------------------------------ messages

    def _message(self, message: records.Message) -> None:
        text = tools.parts_text(message.content)
        if message.role == "assistant":
            self._log_agent("response_item", text)
        elif message.role != "user":
            return
        elif "<environment_context>" in text:
            self._environment(text)
        elif (done := items.user_command(text, self._at)) is not None:
            self._finish(done, "message")
        elif self._bare:
            self._log_user("response_item", text)

    def _inter_agent_message(self, message: records.InterAgentMessage) -> None:
        """Log the task of a child of multi-agent v2; messages to other agents are not its prompts."""
        text = messages.inter_agent_payload(tools.parts_text(message.content))
        if text and self._path is not None and message.recipient == self._path:
            self._log_user("agent_message", text)

    def _user_message(self, logged: records.LoggedMessage) -> None:
        if logged.kind in (None, "plain"):
            self._log_user("event_msg", logged.message or "")

    def _agent_message(self, logged: records.LoggedMessage) -> None:
        self._log_agent("event_msg", logged.message or "")

    def _log_user(self, dialect: str, text: str) -> None:
        self._is_prompted = True
        if (prompt := messages.prompt(text)) and self._deduplicators["user"].is_new(dialect, prompt):
            self._deduplicators["agent"].forget()
            self._emit(MessageLogged, role="user", text=clean_block(prompt))

    def _log_agent(self, dialect: str, text: str) -> None:
        if text.strip() and self._deduplicators["agent"].is_new(dialect, text):
            self._emit(MessageLogged, role="agent", text=clean_block(text))

    # ------------------------------------------------------------ tool calls

    def _let_out_by(self, script: str) -> str:
        """Return the rule that lets a script run outside of the sandbox, now that it is read."""
        found = self._rules(self._cwd).letting_out(script) if self._rules is not None else None
        return found.place if found is not None else ""

    def _tool_call(self, call: records.ToolCall) -> None:
        if call.input is not None:
            tool = tools.describe_custom(call.name, call.namespace, call.input)
        else:
            tool = tools.describe(call.name, call.namespace, call.arguments)
        self._start(call.call_id, tool)

    def _local_shell(self, call: records.LocalShellCall) -> None:
        self._start(call.call_id or call.id or "", tools.describe("local_shell", None, call.action))

    def _start(self, call: str, tool: Tool) -> None:
        if call:
            self._events.extend(self._calls.start(clean_line(call), tool, self._at, self._number))
        else:
            self._skip("malformed", f"a call of {tool.name} without an id")

    def _tool_output(self, output: records.ToolOutput) -> None:
        if output.call_id:  # outputs without a call exist since 0.151
            self._events.extend(
                self._calls.add_output(clean_line(output.call_id), output.output, self._at, self._number)
            )

    def _finish(self, done: Finished, dialect: str, started_ms: int | None = None) -> None:
        self._has_result = self._has_result or (done.by_user and not self._is_prompted)
        if done.by_user and not self._deduplicators["shell"].is_new(dialect, done.tool.text):
            return
        started_at = possible_time(started_ms / 1000 if started_ms else None) or self._at
        self._events.extend(
            self._calls.finish(
                call=clean_line(done.call),
                tool=done.tool,
                ending=done.ending,
                at=self._at,
                line=self._number,
                started_at=started_at,
                by_user=done.by_user,
            )
        )

    # ------------------------------------------------------------ items and end events

    def _user_item(self, item: records.Message, _started_ms: int | None) -> None:
        self._log_user("item_completed", tools.parts_text(item.content))

    def _agent_item(self, item: records.Message, _started_ms: int | None) -> None:
        self._log_agent("item_completed", tools.parts_text(item.content))

    def _command(self, item: records.Command, started_ms: int | None = None) -> None:
        if (done := items.command(item)) is not None:
            self._finish(done, "item", started_ms)

    def _patch(self, item: records.Patch, started_ms: int | None = None) -> None:
        self._finish(items.patch(item), "item", started_ms)

    def _mcp_call(self, item: records.McpCall, started_ms: int | None = None) -> None:
        self._finish(items.mcp_call(item), "item", started_ms)

    def _collab_call(self, item: records.CollabCall, _started_ms: int | None = None) -> None:
        if item.tool == "spawn_agent":
            names = {agent.thread_id: agent.agent_nickname for agent in item.receiver_agents}
            for child in item.receiver_thread_ids:
                self._child(child, names.get(child))
        elif item.new_thread_id:
            self._child(item.new_thread_id, item.new_agent_nickname)

    def _activity(self, item: records.Activity, _started_ms: int | None = None) -> None:
        if item.kind == "started" and item.agent_thread_id:
            self._child(item.agent_thread_id, None)

    def _child(self, thread: str, nickname: str | None) -> None:
        self._emit(ChildSpawned, child=clean_line(thread), nickname=_line(nickname))


def _seconds(stamp: bytes) -> float | None:
    return parse_iso(stamp.decode("ascii", "replace"))


def _line(value: Any) -> str | None:
    return clean_line(value) or None if isinstance(value, str) else None


def _block(value: str | None) -> str | None:
    return clean_block(value) or None if value else None


def _error_kind(info: Any) -> str | None:
    """Return `usage_limit_exceeded`; `{"http_connection_failed": {"http_status_code": 401}}` as
    `http_connection_failed 401`."""
    if isinstance(info, dict) and info:
        kind, detail = next(iter(info.items()))
        values = [str(v) for v in detail.values() if v is not None] if isinstance(detail, dict) else []
        return clean_line(" ".join((str(kind), *values)))
    return _line(info)
