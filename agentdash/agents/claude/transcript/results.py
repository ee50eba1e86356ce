"""How a tool call ended, by its result (Claude Code 2.1.197 to 2.1.330)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.claude.transcript import records
from agentdash.agents.claude.transcript.records import Block, Record, ToolResult
from agentdash.model.events import AllowedBy, CallKind, Outcome
from agentdash.model.sanitize import clean_block, clean_line

_EXIT_CODE: Final = re.compile(r"\AExit code (\d{1,3})(?:\n|\Z)")
_TIMED_OUT: Final = re.compile(r"\A(?:Exit code \d+\n)?Command timed out after ")
_VIOLATIONS: Final = re.compile(r"\n*<sandbox_violations>\n(.*?)\n?</sandbox_violations>\s*", re.DOTALL)
_NO_OUTPUT: Final = "(Bash completed with no output)"
SANDBOX_FAILED: Final = "Sandbox is enabled but failed to initialize: "
"""Begins the result of the command for which the sandbox was to be started, and the reason."""
_BY_USER: Final = re.compile(
    r"\A(?:The user doesn't want to (?:proceed with|take) this (?:tool use|action)|User rejected)"
)
_INTERRUPTED: Final = re.compile(r"\A\[Request interrupted by user")
_BY_RULE: Final = re.compile(r"\APermission to use \S+ .*has been denied", re.DOTALL)
_NOT_ASKED: Final = re.compile(
    r"needs approval\.|haven't granted it yet\.|\ARun outside of the sandbox\Z|This command requires approval"
)


class Ending(NamedTuple):
    """The outcome of a call, and its output (sanitized)."""

    outcome: Outcome
    output: str
    exit_code: int | None = None
    session: str | None = None
    """The id of a command that goes on in the background."""


class Refused(NamedTuple):
    """A connection that Claude Code's proxy refused."""

    host: str


def parse_result(record: Record, block: Block, kind: CallKind | None) -> Ending:
    """Return how a call ended.

    Args:
        record: the record of the result.
        block: its `tool_result`.
        kind: the purpose of the call; None where its beginning was not read.
    """
    text = _VIOLATIONS.sub("", result_text(block.content))
    output = clean_block("" if text == _NO_OUTPUT else text)
    detail = _detail(record)
    if detail is not None and detail.interrupted:
        return Ending("aborted", output)
    if detail is not None and detail.background_task_id:
        return Ending("running", output, session=clean_line(detail.background_task_id))
    if block.is_error:
        return _failed(record, output)
    if kind != "command":
        return Ending("ended", output)
    is_zero = detail is not None and detail.return_code_interpretation is None
    return Ending("ended", output, exit_code=0 if is_zero else None)


def _failed(record: Record, output: str) -> Ending:
    if _TIMED_OUT.match(output):
        return Ending("timed-out", output)
    if found := _EXIT_CODE.match(output):
        return Ending("ended", output[found.end() :], exit_code=int(found[1]))
    if _INTERRUPTED.match(output):
        return Ending("aborted", output)
    if (refusal := _refusal(record, output)) is not None:
        return Ending(refusal, output)
    return Ending("failed", output)


def _refusal(record: Record, output: str) -> Outcome | None:
    """Return what refused a call; `permissionDecision` since 2.1.330, words before."""
    decision = record.permission_decision
    if isinstance(decision, dict) and decision.get("decision") == "reject":
        if str(decision.get("source", "")).startswith("user"):
            return "refused-by-user"
        return "refused-by-approval" if _NOT_ASKED.search(output) else "refused-by-policy"
    if _BY_USER.match(output):
        return "refused-by-user"
    if _BY_RULE.match(output):
        return "refused-by-policy"
    return "refused-by-approval" if _NOT_ASKED.search(output) else None


def allowed_by(record: Record) -> AllowedBy | None:
    """Return what allowed a call (`permissionDecision`); None where that is not stated, or refused."""
    decision = record.permission_decision
    if not isinstance(decision, dict) or decision.get("decision") != "accept":
        return None
    if (reason := decision.get("reasonType")) in ("rule", "mode"):
        return "rule" if reason == "rule" else "mode"
    return "person" if str(decision.get("source", "")).startswith("user") else None


def refused_connections(record: Record) -> Iterator[Refused]:
    """Yield the connections that were refused during a command (`sandboxViolations`)."""
    violations: Any = record.sandbox_violations
    for violation in violations if isinstance(violations, list) else ():
        if isinstance(violation, dict) and violation.get("kind") == "network":
            host = violation.get("host")
            if isinstance(host, str) and host:
                yield Refused(clean_line(host, 300))


def result_text(content: Any) -> str:
    """Return the text of a result: a string, or content parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and _has_text(part))


def _has_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _detail(record: Record) -> ToolResult | None:
    raw = bytes(record.tool_use_result)
    if not raw.startswith(b"{"):
        return None
    try:
        return records.tool_result.decode(raw)
    except msgspec.DecodeError:
        return None


def spawned_agent(record: Record) -> tuple[str, str | None] | None:
    """Return the id and the description of the sub-agent that a call started; None for other calls."""
    detail = _detail(record)
    if detail is None or not detail.agent_id:
        return None
    return clean_line(detail.agent_id), clean_line(detail.description) if detail.description else None
