"""The records of a transcript, as far as they are read (Claude Code 2.1.197 to 2.1.330)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from agentdash.model.decoders import JsonDecoder
from agentdash.model.sanitize import clean_line
from agentdash.model.times import possible_time
from agentdash.model.tokens import TokenUsage, UsageWindow


class Record(msgspec.Struct, rename="camel", gc=False):
    """One line. Fields of a type that later versions may change are read as they are."""

    type: str = ""
    subtype: str | None = None
    timestamp: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
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

_RECORDS: Final = (
    "summary file-history-snapshot queue-operation progress agent-name agent-color agent-setting tag "
    "last-prompt mode pr-link worktree-state attribution-snapshot content-replacement atis-latch "
    "api-request api-request-shape api-request-blob api-request-resumed tools-used cost-state "
    "file-history-delta frame-link continued-in bridge-session session-owner resume-head-vouch "
    "isolation-latch ended-by-model dev-mods derived-from data-flow-records data-flow-incomplete "
    "artifact-comment-monitor artifact-autoreact-ledger slack-channel observer-ref mid-command "
    "fork-context-ref"
)
SILENT_RECORDS: Final = frozenset(_RECORDS.split())
"""Values of `type` of records that are not shown."""


# ------------------------------------------------------------
# The usage limit that the record of a refused request states


_RESETS: Final = re.compile(
    r"limit\b.{0,40}\bresets (?:(?P<day>[A-Z][a-z]{2} \d{1,2}),? (?:at )?)?"
    r"(?P<hour>1[0-2]|[1-9])(?::(?P<minute>\d\d))?(?P<half>[ap]m) \((?P<zone>[\w+/-]{1,40})\)"
)
"""`You've hit your weekly limit · resets Apr 17, 7pm (Asia/Riyadh)` (2.1.69 to 2.1.332)."""
_MINUTES: Final = {"five_hour": 300, "seven_day": 10_080, "5-hour": 300, "session": 300, "weekly": 10_080}
"""Length of a limit, by how its `rateLimitType` begins, or by a word of the message."""


def usage_limit(quota: Any, text: str, at: float) -> UsageWindow | None:
    """Return the usage limit that stopped a request, or None.

    Args:
        quota: `quotaLimits` of the record (2.1.332); None: an earlier version.
        text: its message.
        at: when it was written (unix seconds).
    """
    stated = quota if isinstance(quota, dict) else {}
    kind, resets_at = clean_line(str(stated.get("rateLimitType") or ""), 40), stated.get("resetsAt")
    if not isinstance(resets_at, int | float):
        resets_at = _in_words(text, at)
    if (resets_at := possible_time(resets_at)) is None:
        return None
    words = kind or text
    minutes = next((length for word, length in _MINUTES.items() if word in words), None)
    return UsageWindow(used=100.0, resets_at=resets_at, minutes=minutes, at=at, plan=kind)


def _in_words(text: str, at: float) -> float | None:
    """Return the time of a message; without a day, the next one after `at`."""
    if (found := _RESETS.search(text)) is None:
        return None
    try:
        written = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(found["zone"]))
        hour = int(found["hour"]) % 12 + 12 * (found["half"] == "pm")
        resets = written.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["day"]:
            day = datetime.strptime(f"{found['day']} {written.year}", "%b %d %Y")  # noqa: DTZ007 - only the day
            resets = resets.replace(month=day.month, day=day.day)
            if resets < written - timedelta(days=1):
                resets = resets.replace(year=written.year + 1)
        elif resets <= written:
            resets += timedelta(days=1)
    except (ValueError, KeyError, OSError):  # an unknown zone is a KeyError
        return None
    return resets.timestamp()
