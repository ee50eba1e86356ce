"""The lines of a rollout: their kinds, and of each the fields that are used.

A line is `{"timestamp", "type", "payload", "ordinal"?}` since autumn 2025 (0.36 at the latest). In the bare
era before (0.20, 0.25) the payload was the whole line, without a time. Fields that are not declared here are
skipped undecoded.
"""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar

import msgspec

from agentdash.model.decoders import JsonDecoder

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


class ThreadChange(msgspec.Struct, gc=False):
    """`thread_settings_applied` (0.133+), `thread_name_updated` (about 0.100-0.128)."""

    thread_id: str | None = None
    thread_settings: dict[str, Any] | None = None
    thread_name: str | None = None


class TurnError(msgspec.Struct, gc=False):
    """The error of a turn: in `task_complete` (0.145+) and `turn_aborted` (0.160+), or an `error` event
    (extended files of 0.100 to 0.135)."""

    message: str | None = None
    codex_error_info: Any = None


class TurnMark(msgspec.Struct, gc=False):
    """`task_started`, `task_complete`, `turn_aborted`."""

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
    """`message` of any role; `UserMessage` and `AgentMessage` items have none."""

    role: str | None = None
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


class ReviewEnd(msgspec.Struct, gc=False):
    """`exited_review_mode`."""

    review_output: Any = None
    """None if the review did not get to its end."""


class Invocation(msgspec.Struct, gc=False):
    """`mcp_tool_call_end.invocation`."""

    server: str = ""
    tool: str = ""
    arguments: Any = None


class Item(msgspec.Struct, gc=False):
    """What has ended: an item of `item_completed` (0.150+), or the event of an extended file."""

    id: str = ""
    call_id: str = ""
    """Of events."""
    status: str | None = None
    stdout: str | None = None
    stderr: str | None = None

    # CommandExecution, exec_command_end
    command: list[str] | str = ""
    cwd: str | None = None
    """A path, or a `file://` URI in items."""
    source: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None

    # FileChange, patch_apply_end
    changes: dict[str, Any] = {}
    success: bool | None = None

    # McpToolCall, DynamicToolCall, mcp_tool_call_end
    server: str = ""
    tool: str = ""
    namespace: str | None = None
    arguments: Any = None
    invocation: Invocation | None = None
    result: Any = None
    error: Any = None

    # CollabAgentToolCall, collab_agent_spawn_end, SubAgentActivity, sub_agent_activity
    receiver_thread_ids: list[str] = []
    new_thread_id: str | None = None
    agent_thread_id: str | None = None
    kind: str | None = None


class ItemCompleted(msgspec.Struct, gc=False):
    """`item_completed`: written once, when the item is done."""

    item: msgspec.Raw
    started_at_ms: int | None = None


# ---------------------------------------------------------------- lines and their kinds


P = TypeVar("P")
RECORD_START: Final = b'{"timestamp":"'
"""The beginning of a record. Inside a line it is the end of a torn one: after a write error Codex writes the
record again."""
Kind = str
"""The type of a line, with that of its payload where this counts: `turn_context`, `event_msg task_started`;
`item Plan` of an item of `item_completed`, `record state` of a bare `record_type`."""
_PAYLOAD: Final = b'","payload":{"type":"'
_HEAD: Final = re.compile(
    rb'\{"timestamp":"[^"]{8,40}",(?:"ordinal":\d+,)?"type":"'
    rb'((?:event_msg|response_item)","payload":\{"type":"\w+|(?!event_msg"|response_item")\w+)"'
)
"""The usual beginning of a line. One with another order of keys is decoded for its kind."""


class _Tagged(msgspec.Struct, gc=False):
    type: str | None = None


class Record(msgspec.Struct, Generic[P], gc=False):
    """A line of a known kind."""

    payload: P
    timestamp: str = ""
    """Time of writing, ISO, UTC."""
    ordinal: int | None = None
    """Number of the record in a paginated file (0.145+)."""


class Line(msgspec.Struct, gc=False):
    """Any line; in the bare era a payload."""

    type: str | None = None
    record_type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    ordinal: int | None = None
    payload: msgspec.Raw = msgspec.Raw()

    @property
    def kind(self) -> Kind:
        """Its kind.

        Raises:
            msgspec.DecodeError: its payload is no JSON object.
        """
        if self.payload:
            top = self.type or NAMELESS
            return f"{top} {tag_of(self.payload)}" if top in ("event_msg", "response_item") else top
        if self.record_type is not None:
            return f"record {self.record_type}"
        is_header = self.type is None and self.id is not None and self.timestamp is not None
        return "session_meta" if is_header else f"response_item {self.type or NAMELESS}"


NAMELESS: Final = "without a type"
LINES: Final = JsonDecoder(Line)
_tagged: Final = JsonDecoder(_Tagged)


def kind_of(line: bytes) -> Kind | None:
    """Return the kind of a line by its first bytes, or None if they do not show it."""
    head = _HEAD.match(line)
    return None if head is None else head[1].replace(_PAYLOAD, b" ").decode()


def tag_of(payload: msgspec.Raw) -> str:
    """Return the `type` of an object.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    return _tagged.decode(payload).type or NAMELESS


LAST_VERSION: Final = "0.171"
"""The newest Codex whose files were tested; lines of later ones may be unknown."""
_SILENT: Final = {
    "": "session_state inter_agent_communication inter_agent_communication_metadata world_state"
    " security_risk_score realtime_item retained_context token_usage_record dynamic_tools_updated",
    "record ": "state",
    "response_item ": "reasoning web_search_call other ghost_snapshot compaction compaction_trigger"
    " tool_search_call tool_search_output image_generation_call context_compaction configuration_update"
    " additional_tools agent_message",
    "item ": "Plan Reasoning WebSearch ImageView ImageGeneration Sleep Extension EnteredReviewMode"
    " ExitedReviewMode ContextCompaction HookPrompt FunctionCallOutput",
}
SILENT: Final = frozenset(top + name for top, names in _SILENT.items() for name in names.split())
"""Known kinds that are not shown (0.20 to 0.171); those of events need not be known, which repeat what items
have."""
