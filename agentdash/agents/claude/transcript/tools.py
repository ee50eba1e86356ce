"""What the tools of Claude Code are for, and their arguments in short."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.claude.transcript.tools import asked_changes
from agentdash.model.changes import FileChange
from agentdash.model.events import CallKind, Escalation
from agentdash.model.sanitize import clean_block, clean_line

_KINDS: Final[dict[str, CallKind]] = {
    "Bash": "command",
    "PowerShell": "command",
    "BashOutput": "poll",
    "TaskOutput": "wait",
    "AgentOutputTool": "wait",
    "Edit": "patch",
    "MultiEdit": "patch",
    "Write": "patch",
    "NotebookEdit": "patch",
    "AskUserQuestion": "question",
    "ExitPlanMode": "permission",
    "Task": "spawn",
    "Agent": "spawn",
}
_SHOWN: Final = ("command", "file_path", "notebook_path", "description", "pattern", "query", "url", "prompt")
"""Arguments that show what a call does; the first that it has counts."""
_any: Final = msgspec.json.Decoder()


class Tool(NamedTuple):
    """A tool call."""

    kind: CallKind
    name: str
    text: str
    script: str = ""
    escalation: Escalation | None = None
    changes: tuple[FileChange, ...] = ()
    """What a call that edits files is to change."""


def describe(name: str | None, raw: bytes) -> Tool:
    """Return what a call of a tool does.

    Args:
        name: the tool.
        raw: its `input`, as JSON.
    """
    tool = clean_line(name or "?", 100)
    try:
        arguments = _any.decode(raw) if raw else {}
    except (msgspec.DecodeError, RecursionError):
        arguments = {}
    if not isinstance(arguments, dict):
        arguments = {}
    kind = _KINDS.get(tool, "other")
    if kind == "command":
        script = clean_block(str(arguments.get("command") or ""))
        return Tool(kind, tool, clean_line(script), script, _escalation(arguments))
    text = _question(arguments) if kind == "question" else _short(arguments)
    return Tool(kind, tool, text, changes=asked_changes(tool, arguments) if kind == "patch" else ())


def _escalation(arguments: dict[str, Any]) -> Escalation | None:
    """Return the request to run without the sandbox."""
    if arguments.get("dangerouslyDisableSandbox") is not True:
        return None
    return Escalation("escalated", clean_line(str(arguments.get("description") or "")) or None)


def _question(arguments: dict[str, Any]) -> str:
    questions = arguments.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else arguments
    text = first.get("question") if isinstance(first, dict) else None
    return clean_line(str(text or ""))


def _short(arguments: dict[str, Any]) -> str:
    return next((clean_line(str(arguments[name])) for name in _SHOWN if arguments.get(name)), "")
