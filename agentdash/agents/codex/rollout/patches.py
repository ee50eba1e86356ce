"""Parse what patches change: the text that the model wrote, and the changes that Codex has applied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentdash.model.changes import ChangeKind, Diff, FileChange, file_changes, whole_file
from agentdash.model.sanitize import clean_block, clean_line

_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE: Final = re.compile(r"\*\*\* Move to: (.+)")
_KINDS: Final[Mapping[str, ChangeKind]] = {"Add": "add", "Update": "update", "Delete": "delete"}
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_MAX_PATCH_CHARS: Final = 400
"""Of a patch that is shown as it is."""
_CONTENT: Final = ("+", "-", " ", "@@")
"""How the lines of a diff begin. An empty line stands for an empty line of context."""


def patch_changes(text: str) -> tuple[FileChange, ...]:
    """Return the changes that a patch asks for, from its `*** Begin Patch` on; what surrounds it (a shell
    command with a here-document) is skipped."""
    begin = text.find(_BEGIN)
    if begin < 0:
        return ()
    end = text.find(_END, begin)
    return file_changes(_diffs(text[begin : end if end >= 0 else None]))


def _diffs(patch: str) -> Iterator[Diff]:
    path = ""
    kind: ChangeKind | None = None
    moved_to: str | None = None
    lines: list[str] = []
    for line in patch.split("\n"):
        if header := _FILE.fullmatch(line.rstrip()):
            if kind is not None:
                yield Diff(path, kind, lines, moved_to)
            path = header[2].strip()
            kind = _KINDS[header[1]]
            moved_to = None
            lines = []
        elif move := _MOVE.fullmatch(line.rstrip()):
            moved_to = move[1].strip()
        elif line.startswith(_CONTENT):
            lines.append(line)
        elif not line and kind == "update":
            lines.append(" ")
    if kind is not None:
        yield Diff(path, kind, _without_end(lines), moved_to)


def _without_end(lines: list[str]) -> list[str]:
    """Return lines without the empty one that precedes the end of a patch."""
    return lines[:-1] if lines and lines[-1] == " " else lines


def applied_changes(changes: Mapping[str, Any]) -> tuple[FileChange, ...]:
    """Return the changes of a `FileChange` item or a `patch_apply_end` event, by path.

    `{"type": "update", "unified_diff", "move_path"}`, or with the type as the key of an object (until about
    0.60); `add` and `delete` have the content of the file.
    """
    return file_changes(_applied(changes))


def _applied(changes: Mapping[str, Any]) -> Iterator[Diff]:
    for path, change in changes.items():
        if not isinstance(change, Mapping):
            continue
        kind = change.get("type")
        detail = change
        if kind is None and len(change) == 1:
            kind, detail = next(iter(change.items()))
        if not isinstance(detail, Mapping):
            detail = {}
        if kind == "update":
            move = detail.get("move_path")
            yield Diff(
                path=path,
                kind="update",
                lines=_text(detail.get("unified_diff")).removesuffix("\n").split("\n"),
                moved_to=move if isinstance(move, str) else None,
            )
        elif kind in ("add", "delete"):
            yield whole_file(path, kind, _text(detail.get("content")))


def patch_text(patch: str) -> str:
    """Return `add a.py, update b.py` of a patch; its beginning where it names no files."""
    files = re.findall(r"^\*\*\* (Add|Update|Delete) File: (.+)$", patch, re.MULTILINE)
    return clean_line(
        ", ".join(f"{verb.lower()} {path.strip()}" for verb, path in files)
        or clean_block(patch, _MAX_PATCH_CHARS)
    )


def changes_text(changes: Mapping[str, Any]) -> str:
    """Return the same of a `changes` map, path -> `{"type": "add"}` or `{"add": ...}`."""

    def verb(change: Any) -> str:
        return (
            str(change.get("type") or next(iter(change), "change")) if isinstance(change, dict) else "change"
        )

    return clean_line(", ".join(f"{verb(change)} {path}" for path, change in changes.items()))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
