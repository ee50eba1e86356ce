"""Classify the lines of a rollout by their first bytes, without decoding them where these are as usual."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.model.decoders import JsonDecoder

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
_EVENTS: Final = (
    b"agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break plan_update"
    b" background_event context_compacted entered_review_mode turn_diff shutdown_complete"
    b" session_configured stream_error web_search_begin web_search_end exec_command_begin"
    b" exec_command_output_delta exec_approval_request apply_patch_approval_request patch_apply_begin"
    b" mcp_tool_call_begin undo_started undo_completed view_image_tool_call deprecation_notice warning"
    b" elicitation_request request_user_input item_started mcp_startup_update mcp_startup_complete"
    b" raw_response_item terminal_interaction agent_message_content_delta plan_delta"
    b" reasoning_content_delta reasoning_raw_content_delta collab_agent_spawn_begin"
    b" collab_agent_interaction_begin collab_agent_interaction_end collab_waiting_begin"
    b" collab_waiting_end collab_close_begin collab_close_end thread_rolled_back image_generation_begin"
    b" image_generation_end dynamic_tool_call_request dynamic_tool_call_response model_reroute"
    b" collab_resume_begin collab_resume_end realtime_conversation_started"
    b" realtime_conversation_realtime realtime_conversation_closed thread_goal_updated"
    b" guardian_assessment guardian_warning request_permissions hook_started hook_completed"
    b" model_verification realtime_conversation_sdp realtime_conversation_list_voices_response"
    b" auth_recovery_started auth_recovery_completed environment_connected environment_disconnected"
    b" thread_queue_changed elicitation_abandoned patch_apply_updated raw_response_completed"
    b" turn_moderation_metadata safety_buffering".split()
)
_ITEMS: Final = (
    b"Plan Reasoning WebSearch ImageView ImageGeneration Sleep Extension EnteredReviewMode"
    b" ExitedReviewMode ContextCompaction HookPrompt FunctionCallOutput".split()
)
SILENT: Final[frozenset[Kind]] = frozenset(
    (
        *((name, None) for name in _LINES),
        *((b"response_item", name) for name in _RESPONSES),
        *((b"event_msg", name) for name in _EVENTS),
        *((b"item", name) for name in _ITEMS),
        (b"record", b"state"),
    )
)
"""Known kinds that are not shown (0.20 to 0.171)."""
