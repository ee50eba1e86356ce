"""Classify the lines of a rollout by their first bytes, without decoding them where these are as usual."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

import msgspec

from agentdash.model.decoders import JsonDecoder

RECORD_START: Final = b'{"timestamp":"'
"""The beginning of a record. Inside a line it is the end of a torn one: after a write error Codex writes the
record again."""

Family = Literal["line", "response_item", "event_msg", "item", "record"]

HEAD: Final = re.compile(
    rb'\{"timestamp":"[^"]{8,40}",(?:"ordinal":\d+,)?"type":"(\w+)"(?:,"payload":\{"type":"(\w+)")?'
)
"""The usual beginning of a line: its type, and that of its payload. With another order of keys the outline is
decoded."""
_BARE: Final = re.compile(rb'\{"(type|record_type)":"(\w+)"')
"""Likewise for lines of the bare era (0.20, 0.25)."""


class Kind(NamedTuple):
    """The kind of a line."""

    family: Family
    """What the name belongs to: a line, a `response_item`, an `event_msg`, an `item_completed` item, or a
    bare `record_type`."""
    name: bytes
    bare: bool = False
    """Whether it is a line of the bare era: a payload without an envelope."""

    def __str__(self) -> str:
        """Return `world_state`, `event_msg task_started`, `item Plan`."""
        name = self.name.decode(errors="replace") or "without a type"
        return name if self.family == "line" else f"{self.family} {name}"

    @property
    def silent(self) -> bool:
        """Whether it is known and contains nothing that is shown."""
        return self.name in _SILENT[self.family]


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


def kind_of(line: bytes) -> Kind:
    """Return the kind of a line.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    if (head := HEAD.match(line)) and is_complete(head):
        return _kind(head[1], head[2])
    if bare := _BARE.match(line):
        return Kind(
            "record" if bare.group(1) == b"record_type" else "response_item", bare.group(2), bare=True
        )
    outline = _outline.decode(line)
    if payload := bytes(outline.payload):
        return _kind((outline.type or "").encode(), _name(payload) if payload.startswith(b"{") else b"")
    if outline.record_type is not None:
        return Kind("record", outline.record_type.encode(), bare=True)
    if outline.type is None and outline.id is not None and outline.timestamp is not None:
        return Kind("line", b"session_meta", bare=True)
    return Kind("response_item", (outline.type or "").encode(), bare=True)


def kind_of_item(item: msgspec.Raw) -> Kind:
    """Return the kind of an `item_completed` item.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    return Kind("item", _name(bytes(item)))


def is_json(line: bytes) -> bool:
    """Return whether a line is one whole JSON object."""
    try:
        _outline.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def is_complete(head: re.Match[bytes]) -> bool:
    """Return whether a match of `HEAD` has the whole kind of its line."""
    return head[2] is not None or head[1] not in _SILENT_IN


def is_silent(top: bytes, sub: bytes | None) -> bool:
    """Return whether lines with these groups of `HEAD` are known and contain nothing that is shown."""
    return sub in _SILENT_IN[top] if top in _SILENT_IN else top in _SILENT["line"]


def _kind(top: bytes, sub: bytes | None) -> Kind:
    if top == b"event_msg":
        return Kind("event_msg", sub or b"")
    if top == b"response_item":
        return Kind("response_item", sub or b"")
    return Kind("line", top)


def _name(tagged: bytes) -> bytes:
    return (_tagged.decode(tagged).type or "").encode()


LAST_VERSION: Final = "0.171"
"""The newest Codex whose files were tested; lines of later ones may be unknown."""

_SILENT: Final[dict[Family, frozenset[bytes]]] = {
    "line": frozenset(
        b"session_state inter_agent_communication inter_agent_communication_metadata world_state"
        b" security_risk_score realtime_item retained_context token_usage_record"
        b" dynamic_tools_updated".split()
    ),
    "response_item": frozenset(
        b"reasoning web_search_call other ghost_snapshot compaction compaction_trigger tool_search_call"
        b" tool_search_output image_generation_call context_compaction configuration_update"
        b" additional_tools".split()
    ),
    "event_msg": frozenset(
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
    ),
    "item": frozenset(
        b"Plan Reasoning WebSearch ImageView ImageGeneration Sleep Extension EnteredReviewMode"
        b" ExitedReviewMode ContextCompaction HookPrompt FunctionCallOutput".split()
    ),
    "record": frozenset((b"state",)),
}
"""Known kinds that are not shown (0.20 to 0.171)."""
_SILENT_IN: Final = {
    b"response_item": _SILENT["response_item"],
    b"event_msg": _SILENT["event_msg"],
}
