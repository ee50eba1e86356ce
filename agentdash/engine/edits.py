"""Which files workers have edited, as far as their records name them, and which two of them have."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.changes import Edit, SameFile
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Call, Thread
from agentdash.model.worker import Worker

_MAX_EDITS: Final = 50
"""Files kept of a thread, those edited last."""
_MAX_CALL_CHARS: Final = 200
_SED: Final = re.compile(r"\s*sed\s+-i")
_NOT_LITERAL: Final = re.compile(r"[\n$`*?|&;<>(){}~]|\[")
"""What makes more of a command than its words, outside of the quoted expression of `sed`."""


def named_files(event: e.CallStarted, cwd: str | None) -> tuple[str, ...]:
    """Return the files that a call is to change."""
    if event.changes:
        return _absolute((change.moved_to or change.path for change in event.changes), cwd)
    if event.kind == "command":
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
    if _SED.match(script) is None:
        return
    try:
        words = shlex.split(script)
    except ValueError:
        return
    files = words[3:]
    if files and not any(
        _NOT_LITERAL.search(each) or each.startswith("-") for each in (*files, words[2][:1])
    ):
        yield from files


# ------------------------------------------------------------
# Files of one repository that two live workers have edited within half an hour: information, no alarm


_WITHIN_S: Final = 1_800.0
"""Between two edits, and from each to now."""
_MAX_FILES: Final = 10
"""Of one worker, those edited last."""


def same_files(
    editors: Sequence[Worker], workers: Mapping[str, Worker], now: float
) -> dict[str, tuple[SameFile, ...]]:
    """Return the files that workers share with others, by the id of the worker.

    What the children of a worker edit is no news to it.

    Args:
        editors: the workers that have edits and a repository; only those that are held have one.
        workers: all of them by their ids.
        now: unix seconds.
    """
    if len(editors) < 2:
        return {}
    roots = {worker.git.root: worker.git.common for worker in editors if worker.git is not None}
    edited: defaultdict[tuple[str, str], list[tuple[Worker, Edit]]] = defaultdict(list)
    for worker in editors:
        for edit in worker.edits:
            place = _place(edit.path, roots) if now - edit.at < _WITHIN_S else None
            if place is not None:
                edited[place].append((worker, edit))
    lines = {worker.id: _line(worker, workers) for worker in editors}
    found: defaultdict[str, list[SameFile]] = defaultdict(list)
    for (_, path), edits in edited.items():
        for worker, edit in edits:
            for other, its in edits:
                if other.id not in lines[worker.id] and worker.id not in lines[other.id]:
                    found[worker.id].append(SameFile(path, edit, other.id, other.name, its))
    for files in found.values():
        files.sort(key=lambda each: -max(each.edit.at, each.other.at))
    return {worker: tuple(files[:_MAX_FILES]) for worker, files in found.items()}


def _place(path: str, roots: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the repository of a file and its path there; worktrees may lie in each other."""
    folder = posixpath.dirname(path)
    while folder not in roots and folder not in ("/", ""):
        folder = posixpath.dirname(folder)
    common = roots.get(folder)
    return (common, path[len(folder) + 1 :]) if common else None


def _line(worker: Worker | None, workers: Mapping[str, Worker]) -> set[str]:
    """Return a worker and those above it; files may name each other as parents."""
    found: set[str] = set()
    while worker is not None and worker.id not in found:
        found.add(worker.id)
        worker = workers.get(worker.parent or "")
    return found
