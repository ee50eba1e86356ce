"""Parse the records of transcripts into events, for Claude Code 2.0 to 2.1.332."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from agentdash.agents.claude.home import spawning_subagent, subagent_thread
from agentdash.agents.claude.transcript import records, tools
from agentdash.agents.claude.transcript.records import SILENT_RECORDS, Block, Message, Record
from agentdash.agents.claude.transcript.tools import NO_SANDBOX, applied_changes, described_policy
from agentdash.agents.line_events import LineEvents
from agentdash.model.events import (
    CallEnded,
    CallKind,
    CallStarted,
    ChildSpawned,
    MessageLogged,
    PolicySet,
    SandboxFailed,
    ThreadNamed,
    ThreadStarted,
    TokensCounted,
    TroubleLogged,
    TurnEnded,
    TurnStarted,
    ViolationLogged,
)
from agentdash.model.policy import Policy
from agentdash.model.prompts import without_context
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.times import parse_iso
from agentdash.model.tokens import ModelUsage, TokenUsage, merged_usage
from agentdash.model.versions import is_before

_INTERRUPTED: Final = re.compile(r"\[Request interrupted by user(?: for tool use)?\]\s*")
_COMMAND: Final = re.compile(
    r"<command-message>.*?</command-message>\s*<command-name>/?(.*?)</command-name>"
    r"(?:\s*<command-args>(.*?)</command-args>)?",
    re.DOTALL,
)
"""A command that the user typed for the model; its expansion follows. Of commands for Claude Code itself
(`/clear`) the name comes first."""
_OWN_TEXT: Final = re.compile(r"<(?:command-(?:name|message|args|contents)|local-command-\w+|bash-\w+)>")
"""Begins what Claude Code itself writes as a message of the user."""
_CAVEAT: Final = "<local-command-caveat>"
"""Begins the message that comes before what Claude Code did by itself: a command of its own, or none of that
name (`Unknown skill: usage`)."""
_FINAL: Final = ("end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded")
"""Values of `stop_reason` with which a turn ends."""
_CALLS: Final = frozenset(("tool_use", "mcp_tool_use"))
"""Types of blocks that call a tool."""
_ENDS_MARKED_SINCE: Final = (2, 1, 93)
"""First version that states how its last answer ended: before, a text that no call follows ends a turn."""

_REMEMBERED: Final = 1_000
"""Open calls, and answers whose records may stand apart."""


class TranscriptReader(LineEvents):
    """Parses the records of one transcript into events.

    Every record gives events, or a `LineSkipped`, or is of a kind that is not shown.

    Args:
        thread: the thread's id, from the file's name.
        path: the file, for what stands beside it; None: not known.
    """

    def __init__(self, thread: str, path: Path | None = None) -> None:
        super().__init__(thread)
        self._path = path
        self._begun = False
        self._in_turn = False
        self._marks_turns = True
        """Whether this version states where turns end."""
        self._said: str | None = None
        """The newest text of the model, if no call came after it."""
        self._cwd: str | None = None
        self._model: str | None = None
        self._policy = Policy(enforced_by="agent")
        """As set last; of an unknown sandbox until a record states it."""
        self._told = False
        """Whether a record has stated the sandbox."""
        self._stated = False
        """Whether a policy has been emitted."""
        self._kinds: dict[str, CallKind] = {}
        """The kinds of open calls."""
        self._caveat: str | None = None
        """The message whose successor is no prompt."""
        self._usage = UsageOfAnswers()

    # ------------------------------------------------------------ records and their rules

    def _read(self, line: bytes) -> None:
        record = records.record.decode(line)
        self._at = parse_iso(record.timestamp) or self._at
        self._begin(record)
        if record.version is not None:
            self._marks_turns = is_before(record.version, _ENDS_MARKED_SINCE) is not True
        if (rule := _RULES.get(record.type)) is not None:
            rule(self, record)
        elif record.type not in SILENT_RECORDS:
            self._skip("unknown", record.type or "a record without a type")

    def _begin(self, record: Record) -> None:
        """Emit the start of the thread at the first record that has its working directory."""
        if self._begun or record.cwd is None:
            return
        self._begun = True
        self._cwd = clean_line(record.cwd)
        is_child = self._thread.startswith("agent-")
        self._emit(
            ThreadStarted,
            agent="claude",
            cwd=self._cwd,
            version=_line(record.version),
            originator=_line(record.entrypoint),
            source="subagent" if is_child else _line(record.entrypoint),
            parent=self._parent(record) if is_child else None,
        )

    def _parent(self, record: Record) -> str | None:
        """Return the thread that spawned this sub-agent: another sub-agent, or else its session."""
        spawner = spawning_subagent(self._path) if self._path is not None else None
        return spawner or (clean_line(record.session_id) if record.session_id else None)

    # ------------------------------------------------------------ the user, and results of tools

    def _user(self, record: Record) -> None:
        self._set_mode(record)
        message = records.message.decode(record.message)
        texts: list[str] = []
        for block in message.blocks:
            if block.type == "tool_result":
                self._result(record, block)
            elif block.type == "text" and block.text and (said := without_context(block.text)):
                texts.append(said)
        if texts:
            self._prompt(record, "\n".join(texts))

    def _prompt(self, record: Record, text: str) -> None:
        if _INTERRUPTED.fullmatch(text):
            self._end_turn("aborted", reason="interrupted")
        elif record.is_meta or record.is_compact_summary:
            self._caveat = record.uuid if text.startswith(_CAVEAT) else self._caveat
        elif isinstance(record.origin, dict) and record.origin.get("kind") not in (None, "human"):
            self._start_turn()  # it goes on by itself: a sub-agent has ended, a task was scheduled
        elif command := _COMMAND.match(text):
            self._start_turn()
            typed = f"/{command[1]} {command[2] or ''}".strip()
            self._emit(MessageLogged, role="user", text=clean_block(typed))
        elif not _OWN_TEXT.match(text) and (record.parent_uuid is None or record.parent_uuid != self._caveat):
            self._start_turn()
            self._emit(MessageLogged, role="user", text=clean_block(text))

    def _result(self, record: Record, block: Block) -> None:
        call = clean_line(block.tool_use_id or "")
        if not call:
            self._skip("malformed", "a result without the id of its call")
            return
        if (spawned := tools.spawned_agent(record)) is not None:
            self._emit(ChildSpawned, child=subagent_thread(spawned))
        kind = self._kinds.pop(call, None)
        ending = tools.parse_result(record, block, kind)
        for host in tools.refused_hosts(record):
            self._emit(ViolationLogged, call=call, resource="network", reason="sandbox_violation", host=host)
        self._emit(
            CallEnded,
            call=call,
            outcome=ending.outcome,
            exit_code=ending.exit_code,
            output=ending.output,
            session=ending.session,
            sandboxed=record.sandboxed if isinstance(record.sandboxed, bool) else None,
            allowed_by=tools.allowed_by(record),
            changes=applied_changes(bytes(record.tool_use_result)) if kind == "patch" else (),
        )
        if block.is_error and ending.output.startswith(tools.SANDBOX_FAILED):
            self._emit(SandboxFailed, call=call, text=clean_line(ending.output, 300))

    # ------------------------------------------------------------ the model

    def _assistant(self, record: Record) -> None:
        message = records.message.decode(record.message)
        if record.is_api_error_message:
            self._fail(record, message)
            return
        if not self._stated and self._policy.approval:
            self._emit_policy("permission_mode")  # this version describes no sandbox to the model
        self._set_model(message.model)
        self._count(message)
        for block in message.blocks:
            if block.type == "text" and block.text and block.text.strip():
                self._said = clean_block(block.text)
                self._emit(MessageLogged, role="agent", text=self._said)
            elif block.type in _CALLS:
                self._call(record, block)
        kinds = {block.type for block in message.blocks}
        has_ended = message.stop_reason in _FINAL and "text" in kinds
        if has_ended or (message.stop_reason == "end_turn" and not kinds & _CALLS):
            self._end_turn("completed", message=self._said)

    def _call(self, record: Record, block: Block) -> None:
        call = clean_line(block.id or "")
        if not call:
            self._skip("malformed", "a call without an id")
            return
        self._start_turn()
        self._said = None
        tool = tools.describe(block.name, bytes(block.input))
        if len(self._kinds) >= _REMEMBERED:
            self._kinds.pop(next(iter(self._kinds)))
        self._kinds[call] = tool.kind
        self._emit(
            CallStarted,
            call=call,
            kind=tool.kind,
            tool=tool.name,
            text=tool.text,
            script=tool.script,
            changes=tool.changes,
            cwd=_line(record.cwd) or self._cwd,
            escalation=tool.escalation,
        )

    def _fail(self, record: Record, message: Message) -> None:
        """Emit the end of a turn at an error of the provider, which Claude Code writes as an answer."""
        text = "\n".join(block.text for block in message.blocks if block.text)
        kind = _line(record.error) if isinstance(record.error, str) else None
        if (limit := records.usage_limit(record.quota_limits, text, self._at)) is not None:
            self._emit(TokensCounted, limits=(limit,))
        self._end_turn("completed", error=clean_block(text, 2_000) or "error", error_kind=kind or "api_error")

    def _count(self, message: Message) -> None:
        """Count the tokens of an answer, of which every block is a record with the same id."""
        newest = stated_usage(message)
        if newest is not None and self._usage.add(message.id, newest):
            total, context = self._usage.total, newest.usage.total
            self._emit(TokensCounted, total=total, context=context, by_model=self._usage.by_model)

    def _compacted(self, record: Record) -> None:
        """Emit what is left in the context; not every version states it."""
        metadata = record.compact_metadata
        left = metadata.get("postTokens") if isinstance(metadata, dict) else None
        if isinstance(left, int) and left >= 0:
            self._emit(TokensCounted, context=left)

    # ------------------------------------------------------------ turns

    def _start_turn(self) -> None:
        if self._in_turn and self._marks_turns:
            return
        self._in_turn = True
        self._said = None
        if self._marks_turns:  # else each prompt begins one
            self._emit(TurnStarted)

    def _end_turn(self, how: str, **fields: Any) -> None:
        self._in_turn = False
        self._emit(TurnEnded, how=how, **fields)

    def _system(self, record: Record) -> None:
        if record.subtype == "turn_duration":
            if self._in_turn:
                self._end_turn("completed", message=self._said)
        elif record.subtype == "api_error":
            detail = record.error.get("formatted") if isinstance(record.error, dict) else record.error
            text = detail if isinstance(detail, str) else "a request failed"
            self._emit(TroubleLogged, text=clean_line(text, 300))
        elif record.subtype == "compact_boundary":
            self._compacted(record)

    # ------------------------------------------------------------ the sandbox and the mode

    def _attachment(self, record: Record) -> None:
        attachment = records.attachment.decode(record.attachment)
        if attachment.type == "sandbox_instructions":
            content = attachment.content if isinstance(attachment.content, str) else ""
            self._told = True
            self._set_policy(described_policy(content, _line(record.cwd) or self._cwd))
        elif attachment.type == "environment" and not self._told:
            # written behind the instructions, if there are any (2.1.330)
            self._told = True
            self._set_policy(NO_SANDBOX)
        elif attachment.type == "queued_command" and isinstance(attachment.prompt, str):
            self._prompt(record, attachment.prompt)

    def _set_mode(self, record: Record) -> None:
        mode = _line(record.permission_mode)
        if mode is not None and mode != self._policy.approval:
            self._policy = replace(self._policy, approval=mode)
            if self._stated:  # the first mode stands before the sandbox
                self._emit_policy("permission_mode")

    def _set_policy(self, policy: Policy) -> None:
        policy = replace(policy, approval=self._policy.approval)
        if policy != self._policy or not self._stated:
            self._policy = policy
            self._emit_policy("sandbox_instructions")

    def _set_model(self, model: str | None) -> None:
        if model and model != self._model and not model.startswith("<"):
            self._model = clean_line(model, 100)
            self._emit(PolicySet, policy=None, origin="permission_mode", model=self._model)

    def _emit_policy(self, origin: str) -> None:
        self._stated = True
        self._emit(PolicySet, policy=self._policy, origin=origin)

    def _named(self, record: Record) -> None:
        if name := record.custom_title or record.ai_title:
            self._emit(ThreadNamed, name=clean_line(name))


_RULES: Final[dict[str, Callable[[TranscriptReader, Record], None]]] = {
    "user": TranscriptReader._user,
    "assistant": TranscriptReader._assistant,
    "system": TranscriptReader._system,
    "attachment": TranscriptReader._attachment,
    "permission-mode": TranscriptReader._set_mode,
    "custom-title": TranscriptReader._named,
    "ai-title": TranscriptReader._named,
}


def _line(text: str | None) -> str | None:
    return clean_line(text) if text else None


# ------------------------------------------------------------
# The tokens of a session, by the answers of the model


class UsageOfAnswers:
    """Sums the tokens of answers. Every block of an answer is a record that states the tokens so far."""

    def __init__(self) -> None:
        self.by_model: tuple[ModelUsage, ...] = ()
        self._answers: dict[str, TokenUsage] = {}

    @property
    def total(self) -> int:
        """Return the sum of all tokens."""
        return sum(each.usage.total for each in self.by_model)

    def add(self, answer: str | None, stated: ModelUsage) -> bool:
        """Add what a record states of an answer with this id; return whether it is more than before."""
        counted = self._answers.get(answer or "", TokenUsage())
        if stated.usage.total <= counted.total:
            return False
        if answer:
            if len(self._answers) >= _REMEMBERED:
                self._answers.pop(next(iter(self._answers)))
            self._answers[answer] = stated.usage
        newest = replace(stated, usage=stated.usage - counted)
        self.by_model = merged_usage((*self.by_model, newest))
        return True


def stated_usage(message: Message) -> ModelUsage | None:
    """Return the tokens that a record states of its answer; None where it states none, or no model gave it
    (`<synthetic>`)."""
    usage, model = message.usage, message.model or ""
    if usage is None or model.startswith("<"):
        return None
    return ModelUsage(
        model=clean_line(model) if model else None,
        usage=usage.parts,
        tier=clean_line(usage.speed) if usage.speed not in (None, "", "standard") else None,
        longest_prompt=usage.parts.prompt,
    )
