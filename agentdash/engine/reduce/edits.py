"""Which files the calls of a thread have changed, as far as its record names them."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.changes import Edit
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Call, Thread

_MAX_EDITS: Final = 50
"""Files kept of a thread, those edited last."""
_MAX_CALL_CHARS: Final = 200
_NOT_LITERAL: Final = re.compile(r"[\n$`*?|&;<>(){}~]|\[")
"""What makes more of a command than its words, outside of the quoted expression of `sed`."""


def named_files(event: e.CallStarted, cwd: str | None) -> tuple[str, ...]:
    """Return the files that a call is to change."""
    if event.changes:
        return _absolute((change.moved_to or change.path for change in event.changes), cwd)
    if event.kind == "command" and "sed " in event.text:
        return _absolute(_edited_by_sed(event.script or event.text), cwd)
    return ()


def add_edits(thread: Thread, call: Call, event: e.CallEnded) -> Thread:
    """Add the files that a call has changed, if it succeeded."""
    if event.outcome != "ended" or event.exit_code or call.denials:
        return thread
    paths = call.edits
    if event.changes:
        paths = _absolute((change.moved_to or change.path for change in event.changes), call.cwd)
    if not paths:
        return thread
    shown = clean_line(call.text if call.kind == "command" else f"{call.tool} {call.text}", _MAX_CALL_CHARS)
    others = (edit for edit in thread.edits if edit.path not in paths)
    new = (Edit(path, event.at, shown) for path in paths)
    return replace(thread, edits=(*others, *new)[-_MAX_EDITS:])


def _absolute(paths: Iterable[str], cwd: str | None) -> tuple[str, ...]:
    """Return paths below a directory; relative ones are left out where that is not known."""
    joined = (posixpath.normpath(posixpath.join(cwd or "", path)) for path in paths)
    return tuple(dict.fromkeys(path for path in joined if path.startswith("/")))


def _edited_by_sed(script: str) -> Iterator[str]:
    """Yield the files of a script that is `sed -i EXPRESSION FILE...` and nothing else."""
    try:
        words = shlex.split(script)
    except ValueError:
        return
    if len(words) < 4 or words[0] != "sed" or not words[1].startswith("-i"):
        return
    files = words[3:]
    if not any(_NOT_LITERAL.search(each) or each.startswith("-") for each in (*files, words[2][:1])):
        yield from files
