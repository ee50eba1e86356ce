"""What the tools of Claude Code are for, and their arguments in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.model.changes import Diff, FileChange, file_changes, whole_file
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


# ------------------------------------------------------------
# What the tools of Claude Code that edit files change (2.1.197 to 2.1.330)


_EDITS: Final = ("Edit", "MultiEdit")


def asked_changes(tool: str, arguments: Mapping[str, Any]) -> tuple[FileChange, ...]:
    """Return the changes that a call asks for, without the lines around them, which it does not have."""
    return file_changes(_asked(tool, arguments))


def _asked(tool: str, arguments: Mapping[str, Any]) -> Iterator[Diff]:
    path = arguments.get("file_path") or arguments.get("notebook_path")
    if not isinstance(path, str):
        return
    if tool == "Write":
        yield Diff(path=path, kind="update", lines=_signed("+", arguments.get("content")))
    elif tool in _EDITS:
        edits = arguments.get("edits") if isinstance(arguments.get("edits"), list) else [arguments]
        lines: list[str] = []
        for edit in edits or ():
            if isinstance(edit, Mapping):
                lines += ["@@", *_signed("-", edit.get("old_string")), *_signed("+", edit.get("new_string"))]
        yield Diff(path=path, kind="update", lines=lines)
    elif tool == "NotebookEdit":
        yield Diff(path=path, kind="update", lines=_signed("+", arguments.get("new_source")))


def _signed(sign: str, text: Any) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return [sign + line for line in text.removesuffix("\n").split("\n")]


def applied_changes(result: bytes) -> tuple[FileChange, ...]:
    """Return the changes of a `toolUseResult`, which has the lines around them (`structuredPatch`)."""
    if b'"structuredPatch"' not in result:
        return ()
    try:
        found = _any.decode(result)
    except (msgspec.DecodeError, RecursionError):
        return ()
    return file_changes(_applied(found)) if isinstance(found, dict) else ()


def _applied(result: Mapping[str, Any]) -> Iterator[Diff]:
    path, hunks = result.get("filePath"), result.get("structuredPatch")
    if not isinstance(path, str) or not isinstance(hunks, list):
        return
    if result.get("type") == "create":
        content = result.get("content")
        yield whole_file(path, "add", content if isinstance(content, str) else "")
        return
    lines: list[str] = []
    for hunk in hunks:
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list):
            ranges = [hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
            lines.append("@@ -{},{} +{},{} @@".format(*ranges))
            lines += [line for line in hunk["lines"] if isinstance(line, str)]
    yield Diff(path=path, kind="update", lines=lines)
