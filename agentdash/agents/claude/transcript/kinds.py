"""The kinds of records that are known and contain nothing that is shown, by the version in whose files they
were seen first."""

from __future__ import annotations

from typing import Final

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
