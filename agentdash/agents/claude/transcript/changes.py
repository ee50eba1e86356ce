"""What the tools of Claude Code that edit files change (2.1.197 to 2.1.330)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from agentdash.model.changes import Diff, FileChange, file_changes, whole_file

_EDITS: Final = ("Edit", "MultiEdit")
_any: Final = msgspec.json.Decoder()


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
