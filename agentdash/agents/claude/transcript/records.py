"""The records of a transcript, as far as they are read (Claude Code 2.1.197 to 2.1.330)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentdash.model.decoders import JsonDecoder
from agentdash.model.tokens import TokenUsage


class Record(msgspec.Struct, rename="camel", gc=False):
    """One line. Fields of a type that later versions may change are read as they are."""

    type: str = ""
    subtype: str | None = None
    timestamp: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    prompt_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    permission_mode: str | None = None
    """`default`, `acceptEdits`, `plan`, `auto`, `dontAsk`, `bypassPermissions`: of user records, and of
    `permission-mode` records."""
    message: msgspec.Raw = msgspec.Raw()
    attachment: msgspec.Raw = msgspec.Raw()
    tool_use_result: msgspec.Raw = msgspec.Raw()
    sandboxed: Any = None
    """Of a Bash result since 2.1.330 or a little earlier: whether the command ran in the sandbox."""
    sandbox_violations: Any = None
    permission_decision: Any = None
    origin: Any = None
    error: Any = None
    """Of a failed request: its kind (assistant records), or an object with `formatted` (`api_error`)."""
    quota_limits: Any = None
    """Of a request that a usage limit refused (2.1.332): `{"resetsAt": 1795738835, "rateLimitType": ...}`."""
    content: Any = None
    compact_metadata: Any = None
    """Of `compact_boundary` records: `{"preTokens": 1150, "postTokens": 250}`."""
    custom_title: str | None = None
    ai_title: str | None = None


class Usage(msgspec.Struct, gc=False):
    """Tokens of one request."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation: Any = None
    """The parts of `cache_creation_input_tokens`: `{"ephemeral_1h_input_tokens": 0}`."""
    speed: str | None = None
    """`standard`, or `fast` with prices of its own."""

    @property
    def parts(self) -> TokenUsage:
        """The tokens in the parts that are priced differently."""
        written = self.cache_creation_input_tokens or 0
        parts = self.cache_creation if isinstance(self.cache_creation, dict) else {}
        kept = parts.get("ephemeral_1h_input_tokens")
        for_an_hour = min(kept, written) if isinstance(kept, int) and kept > 0 else 0
        return TokenUsage(
            input=self.input_tokens or 0,
            cached=self.cache_read_input_tokens or 0,
            cache_writes=written - for_an_hour,
            cache_writes_1h=for_an_hour,
            output=self.output_tokens or 0,
        )


class Block(msgspec.Struct, gc=False):
    """A content block of a message."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    """The `message` of a record."""

    role: str | None = None
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None

    @property
    def blocks(self) -> list[Block]:
        """Its content blocks; a plain string is one."""
        if isinstance(self.content, str):
            return [Block(type="text", text=self.content)]
        return self.content or []


class Attachment(msgspec.Struct, gc=False):
    """The `attachment` of a record: what the model is told besides the conversation."""

    type: str = ""
    content: Any = None
    prompt: Any = None


class ToolResult(msgspec.Struct, rename="camel", gc=False):
    """The `toolUseResult` of a result, where it is an object."""

    interrupted: bool | None = None
    return_code_interpretation: str | None = None
    """`No matches found`: the exit code was not 0, and is no error."""
    background_task_id: str | None = None
    agent_id: str | None = None


record: JsonDecoder[Record] = JsonDecoder(Record)
message: JsonDecoder[Message] = JsonDecoder(Message)
attachment: JsonDecoder[Attachment] = JsonDecoder(Attachment)
tool_result: JsonDecoder[ToolResult] = JsonDecoder(ToolResult)


LAST_VERSION: Final = "2.1.332"
"""The newest Claude Code whose transcripts were tested; records of later ones may be unknown."""

_RECORDS_SINCE: Final = {
    "2.1.197": (
        "summary file-history-snapshot queue-operation progress agent-name agent-color agent-setting tag"
        " last-prompt mode pr-link worktree-state attribution-snapshot content-replacement"
    ),
    "2.1.240": "atis-latch",
    "2.1.330": (
        "api-request api-request-shape api-request-blob api-request-resumed tools-used cost-state"
        " file-history-delta frame-link continued-in bridge-session session-owner resume-head-vouch"
        " isolation-latch ended-by-model dev-mods derived-from data-flow-records data-flow-incomplete"
        " artifact-comment-monitor artifact-autoreact-ledger slack-channel observer-ref mid-command"
        " fork-context-ref"
    ),
}
_ATTACHMENTS_SINCE: Final = {
    "2.1.197": (
        "agent_listing_delta skill_listing deferred_tools_delta mcp_instructions_delta plan_mode"
        " plan_mode_exit plan_mode_reentry auto_mode auto_mode_exit todo_reminder task_reminder task_status"
        " file directory edited_text_file edited_image_file compact_file_reference already_read_file"
        " selected_lines_in_ide opened_file_in_ide diagnostics nested_memory relevant_memories date_change"
        " hook_success hook_non_blocking_error hook_blocking_error hook_cancelled hook_additional_context"
        " hook_stopped_continuation hook_permission_decision hook_error_during_execution hook_system_message"
        " hook_deferred_tool async_hook_response output_style critical_system_reminder mcp_resource"
        " agent_mention invoked_skills dynamic_skill command_permissions structured_output token_usage"
        " budget_usd output_token_usage plan_file_reference pdf_reference teammate_mailbox team_context"
    ),
    "2.1.240": "total_tokens_reminder",
    "2.1.330": (
        "environment model session_context date remote_session_change prompt_snapshot plugin_note document"
        " image async_hook_response_batch teammate_shutdown_batch"
    ),
}
_SYSTEM_SINCE: Final = {
    "2.1.197": (
        "informational local_command microcompact_boundary stop_hook_summary away_summary"
        " memory_saved bridge_status scheduled_task_fire agents_killed api_metrics permission_retry"
        " file_snapshot model_fallback model_refusal_fallback"
    ),
}


def _names(since: dict[str, str]) -> frozenset[str]:
    return frozenset(name for names in since.values() for name in names.split())


SILENT_RECORDS: Final = _names(_RECORDS_SINCE)
"""Values of `type`."""
SILENT_ATTACHMENTS: Final = _names(_ATTACHMENTS_SINCE)
"""Values of `attachment.type`."""
SILENT_SYSTEM: Final = _names(_SYSTEM_SINCE)
"""Values of `subtype` of `system` records."""
