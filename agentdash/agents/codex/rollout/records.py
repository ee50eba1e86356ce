"""Types of the lines of a rollout: of each only the fields that are used.

A line is `{"timestamp", "type", "payload", "ordinal"?}` since autumn 2025 (0.36 at the latest). In the bare
era before (0.20, 0.25) the payload was the whole line, without a time. Fields that are not declared here are
skipped undecoded.
"""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar

import msgspec

from agentdash.model.decoders import JsonDecoder

P = TypeVar("P")


class Line(msgspec.Struct, Generic[P], gc=False):
    """A line with a payload of known type."""

    payload: P
    timestamp: str = ""
    """Time of writing, ISO, UTC."""
    ordinal: int | None = None
    """Number of the record in a paginated file (0.145+)."""


# ---------------------------------------------------------------- the thread


class SessionMeta(msgspec.Struct, gc=False):
    """`session_meta`; the first line of the bare era has its `id` and `timestamp` only."""

    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    source: Any = None
    thread_source: Any = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    agent_path: str | None = None
    subagent_history_start_ordinal: int | None = None


class ThreadSettings(msgspec.Struct, gc=False):
    """`thread_settings_applied` (0.133+)."""

    thread_settings: dict[str, Any]
    thread_id: str | None = None


class ThreadNameUpdated(msgspec.Struct, gc=False):
    """`thread_name_updated` (about 0.100-0.128)."""

    thread_name: str | None = None
    thread_id: str | None = None


class TurnError(msgspec.Struct, gc=False):
    """The error of a turn: in `task_complete` (0.145+) and `turn_aborted` (0.160+), or an `error` event
    (extended files)."""

    message: str | None = None
    codex_error_info: Any = None


class TurnMark(msgspec.Struct, gc=False):
    """`task_started`, `task_complete`, `turn_aborted`."""

    turn_id: str | None = None
    last_agent_message: str | None = None
    reason: str | None = None
    error: TurnError | None = None


class Usage(msgspec.Struct, gc=False):
    """`TokenUsage`."""

    total_tokens: int | None = None
    input_tokens: int | None = None
    """With those from the cache and those written to it."""
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    """Since 0.160 or earlier."""
    output_tokens: int | None = None
    """With those of the reasoning."""
    reasoning_output_tokens: int | None = None


class TokenInfo(msgspec.Struct, gc=False):
    """`token_count.info`."""

    total_token_usage: Usage | None = None
    last_token_usage: Usage | None = None
    model_context_window: int | None = None


class TokenCount(msgspec.Struct, gc=False):
    """`token_count`."""

    info: TokenInfo | None = None
    rate_limits: dict[str, Any] | None = None


# ---------------------------------------------------------------- messages


class Part(msgspec.Struct, gc=False):
    """A part of content; images and encrypted parts have no text."""

    text: str | None = None


class Message(msgspec.Struct, gc=False):
    """`message` of any role; `UserMessage` and `AgentMessage` items have no role."""

    role: str | None = None
    content: list[Part] | str | None = None


class InterAgentMessage(msgspec.Struct, gc=False):
    """`agent_message` response item (0.140+): a message between agents of a tree, which are named by path."""

    recipient: str | None = None
    content: list[Part] | str | None = None


class LoggedMessage(msgspec.Struct, gc=False):
    """`user_message` and `agent_message` events."""

    message: str | None = None
    kind: str | None = None
    """0.36: `plain`, `user_instructions`, `environment_context`."""


# ---------------------------------------------------------------- tool calls


class ToolCall(msgspec.Struct, gc=False):
    """`function_call` and `custom_tool_call`."""

    name: str = ""
    call_id: str = ""
    namespace: str | None = None
    arguments: str | dict[str, Any] | None = None
    """JSON in a string."""
    input: str | None = None
    """Free text, of custom tools."""


class ToolOutput(msgspec.Struct, gc=False):
    """`function_call_output` and `custom_tool_call_output`."""

    call_id: str | None = None
    output: str | list[Part] | None = None


class Command(msgspec.Struct, gc=False):
    """`CommandExecution` item (0.150+) and `exec_command_end` event (extended files)."""

    id: str = ""
    call_id: str = ""
    command: list[str] | str = ""
    cwd: str | None = None
    """A path, or a `file://` URI in items."""
    source: str | None = None
    status: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    stderr: str | None = None


class Patch(msgspec.Struct, gc=False):
    """`FileChange` item and `patch_apply_end` event."""

    id: str = ""
    call_id: str = ""
    changes: dict[str, Any] = {}
    success: bool | None = None
    status: str | None = None
    stdout: str | None = None
    stderr: str | None = None


class ReviewEnd(msgspec.Struct, gc=False):
    """`exited_review_mode`."""

    review_output: Any = None
    """None if the review did not get to its end."""


class Invocation(msgspec.Struct, gc=False):
    """`mcp_tool_call_end.invocation`."""

    server: str = ""
    tool: str = ""
    arguments: Any = None


class McpCall(msgspec.Struct, gc=False):
    """`McpToolCall` and `DynamicToolCall` items, and the `mcp_tool_call_end` event."""

    id: str = ""
    call_id: str = ""
    server: str = ""
    tool: str = ""
    namespace: str | None = None
    arguments: Any = None
    invocation: Invocation | None = None
    status: str | None = None
    result: Any = None
    error: Any = None


class CollabCall(msgspec.Struct, gc=False):
    """`CollabAgentToolCall` item (0.150+) and `collab_agent_spawn_end` event (extended files)."""

    tool: str | None = None
    receiver_thread_ids: list[str] = []
    new_thread_id: str | None = None


class Activity(msgspec.Struct, gc=False):
    """`SubAgentActivity` item and `sub_agent_activity` event (0.140+)."""

    agent_thread_id: str = ""
    kind: str | None = None


class ItemCompleted(msgspec.Struct, gc=False):
    """`item_completed`: written once, when the item is done."""

    item: msgspec.Raw
    started_at_ms: int | None = None


# ---------------------------------------------------------------- kinds of lines, by their first bytes


RECORD_START: Final = b'{"timestamp":"'
"""The beginning of a record. Inside a line it is the end of a torn one: after a write error Codex writes the
record again."""

Kind = tuple[bytes, bytes | None]
"""The type of a line and that of its payload: `(b"event_msg", b"task_started")`, `(b"turn_context", None)`;
`(b"item", b"Plan")` of an item of `item_completed`, `(b"record", b"state")` of a bare `record_type`."""

HEAD: Final = re.compile(
    rb'\{"timestamp":"[^"]{8,40}",(?:"ordinal":\d+,)?"type":"(\w+)"(?:,"payload":\{"type":"(\w+)")?'
)
"""The usual beginning of a line: its type, and that of its payload. With another order of keys the outline is
decoded."""
_BARE: Final = re.compile(rb'\{"(type|record_type)":"(\w+)"')
"""Likewise for lines of the bare era (0.20, 0.25)."""
_NESTED: Final = (b"event_msg", b"response_item")
"""Types of lines whose payload has a type that counts."""


class _Tagged(msgspec.Struct, gc=False):
    type: str | None = None


class _Outline(msgspec.Struct, gc=False):
    type: str | None = None
    record_type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


_outline = JsonDecoder(_Outline)
_tagged = JsonDecoder(_Tagged)


def kind_of(line: bytes) -> tuple[Kind, bool]:
    """Return the kind of a line, and whether it is of the bare era: a payload without an envelope.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    if (head := HEAD.match(line)) and is_complete(head):
        return _kind(head[1], head[2]), False
    if bare := _BARE.match(line):
        return (b"record" if bare[1] == b"record_type" else b"response_item", bare[2]), True
    outline = _outline.decode(line)
    name = (outline.type or "").encode()
    if payload := bytes(outline.payload):
        return _kind(name, _name(payload) if payload.startswith(b"{") else b""), False
    if outline.record_type is not None:
        return (b"record", outline.record_type.encode()), True
    if outline.type is None and outline.id is not None and outline.timestamp is not None:
        return (b"session_meta", None), True
    return (b"response_item", name), True


def kind_of_item(item: msgspec.Raw) -> Kind:
    """Return the kind of an `item_completed` item.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    return b"item", _name(bytes(item))


def kind_text(kind: Kind) -> str:
    """Return `world_state`, `event_msg task_started`, `item Plan`."""
    names = (kind[0],) if kind[1] is None else kind
    return " ".join((name or b"").decode(errors="replace") or "without a type" for name in names)


def is_json(line: bytes) -> bool:
    """Return whether a line is one whole JSON object."""
    try:
        _outline.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def is_complete(head: re.Match[bytes]) -> bool:
    """Return whether a match of `HEAD` has the whole kind of its line."""
    return head[2] is not None or head[1] not in _NESTED


def _kind(top: bytes, sub: bytes | None) -> Kind:
    return (top, sub or b"") if top in _NESTED else (top, None)


def _name(tagged: bytes) -> bytes:
    return (_tagged.decode(tagged).type or "").encode()


LAST_VERSION: Final = "0.171"
"""The newest Codex whose files were tested; lines of later ones may be unknown."""
_LINES: Final = (
    b"session_state inter_agent_communication inter_agent_communication_metadata world_state"
    b" security_risk_score realtime_item retained_context token_usage_record"
    b" dynamic_tools_updated".split()
)
_RESPONSES: Final = (
    b"reasoning web_search_call other ghost_snapshot compaction compaction_trigger tool_search_call"
    b" tool_search_output image_generation_call context_compaction configuration_update"
    b" additional_tools".split()
)
_ITEMS: Final = (
    b"Plan Reasoning WebSearch ImageView ImageGeneration Sleep Extension EnteredReviewMode"
    b" ExitedReviewMode ContextCompaction HookPrompt FunctionCallOutput".split()
)
SILENT: Final[frozenset[Kind]] = frozenset(
    (
        *((name, None) for name in _LINES),
        *((b"response_item", name) for name in _RESPONSES),
        *((b"item", name) for name in _ITEMS),
        (b"record", b"state"),
    )
)
"""Known kinds that are not shown (0.20 to 0.171); those of events need not be known, which repeat what items
have."""
