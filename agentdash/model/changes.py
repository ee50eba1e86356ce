"""Changes of files by tool calls, as unified diffs without their file headers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from agentdash.model.sanitize import clean_block, clean_line

ChangeKind = Literal["add", "update", "delete"]
_MAX_DIFF_CHARS: Final = 32_000
"""Of one file: more than is read on a screen; of longer diffs both ends are kept."""
_MAX_CALL_CHARS: Final = 256_000
"""Of all files of one call: what follows is listed without its diff."""


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change of one file."""

    path: str
    """As the CLI names it: absolute, or relative to the directory of the call."""
    kind: ChangeKind
    diff: str = ""
    """Lines that begin with `+`, `-`, a space, or `@@`; empty where they are not known."""
    moved_to: str | None = None
    added: int = 0
    """Lines added; 0 where the diff is not known."""
    removed: int = 0
    is_cut: bool = False
    """Whether a part of the diff was left out."""


class DirectoryDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a working tree differs from a commit."""

    base: str = ""
    """The commit, as it is shown: `main (1a2b3c4d5e)`, where the branch has left it."""
    text: str = ""
    """As git prints it; empty: it does not differ."""
    is_cut: bool = False
    problem: str = ""
    """Why it is not known; empty if it is."""


class Edit(msgspec.Struct, frozen=True):
    """The newest change of one file by a worker, as its record states it."""

    path: str
    """Absolute."""
    at: float
    """When the call ended that made it (unix seconds)."""
    call: str
    """That call on one line: `apply_patch update app.py`."""


class SameFile(msgspec.Struct, frozen=True):
    """A file of one repository that two workers have edited, maybe in two worktrees of it."""

    path: str
    """In the repository."""
    edit: Edit
    """This worker's."""
    worker: str
    """Id of the other one."""
    name: str
    """Its name."""
    other: Edit
    """Its edit."""


class Diff(msgspec.Struct, frozen=True):
    """A diff as read, before it is sanitized."""

    path: str
    kind: ChangeKind
    lines: list[str]
    moved_to: str | None = None


def file_changes(diffs: Iterable[Diff]) -> tuple[FileChange, ...]:
    """Return the changes of one call, sanitized and bounded."""
    found: list[FileChange] = []
    room = _MAX_CALL_CHARS
    for diff in diffs:
        text = "\n".join(diff.lines)
        fits = len(text) <= room
        room -= min(len(text), _MAX_DIFF_CHARS) if fits else 0
        found.append(
            FileChange(
                path=clean_line(diff.path),
                kind=diff.kind,
                diff=clean_block(text, _MAX_DIFF_CHARS) if fits else "",
                moved_to=clean_line(diff.moved_to) if diff.moved_to else None,
                added=sum(line.startswith("+") for line in diff.lines),
                removed=sum(line.startswith("-") for line in diff.lines),
                is_cut=not fits or len(text) > _MAX_DIFF_CHARS,
            )
        )
    return tuple(found)


def whole_file(path: str, kind: ChangeKind, content: str) -> Diff:
    """Return the diff of a file that was added or deleted."""
    sign = "+" if kind == "add" else "-"
    return Diff(path=path, kind=kind, lines=[sign + line for line in content.split("\n")[: _lines(content)]])


def edited(path: str, edits: Iterable[tuple[object, object]]) -> Diff:
    """Return the diff of a file in which texts were replaced by others, without the lines around them.

    Args:
        edits: pairs of the old and the new text; None for an old one: the new one is all that is known.
    """
    lines: list[str] = []
    for old, new in edits:
        lines += [] if old is None else ["@@", *_signed("-", old)]
        lines += _signed("+", new)
    return Diff(path=path, kind="update", lines=lines)


def _signed(sign: str, text: object) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return [sign + line for line in text.removesuffix("\n").split("\n")]


def _lines(content: str) -> int:
    """Return the number of lines; a line break at the end begins none."""
    return content.count("\n") + (not content.endswith("\n") and bool(content))
