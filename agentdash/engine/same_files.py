"""Files of one repository that two live workers have edited within half an hour: information, no alarm."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from agentdash.model.changes import Edit, SameFile
from agentdash.model.worker import Worker

WITHIN_S: Final = 1_800.0
"""Between two edits, and from each to now."""
_MAX_FILES: Final = 10
"""Of one worker, those edited last."""


def same_files(workers: Mapping[str, Worker], now: float) -> dict[str, tuple[SameFile, ...]]:
    """Return the files that workers share with others, by the id of the worker.

    A worker is live while it is held, and so has a repository. What its own children edit is no news to it.

    Args:
        workers: by their ids.
        now: unix seconds.
    """
    live = [worker for worker in workers.values() if worker.git is not None and worker.edits]
    roots = {worker.git.root: worker.git.common for worker in workers.values() if worker.git is not None}
    edited: defaultdict[tuple[str, str], list[tuple[Worker, Edit]]] = defaultdict(list)
    for worker in live:
        for edit in worker.edits:
            place = _place(edit.path, roots) if now - edit.at < WITHIN_S else None
            if place is not None:
                edited[place].append((worker, edit))
    found: defaultdict[str, list[SameFile]] = defaultdict(list)
    for (_, path), editors in edited.items():
        for worker, edit in editors:
            for other, its in editors:
                if other is not worker and not _is_family(worker, other, workers):
                    found[worker.id].append(SameFile(path, edit, other.id, other.name, its))
    return {worker: tuple(_newest_first(files)[:_MAX_FILES]) for worker, files in found.items()}


def _newest_first(files: Iterable[SameFile]) -> list[SameFile]:
    return sorted(files, key=lambda each: -max(each.edit.at, each.other.at))


def _place(path: str, roots: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the repository of a file and its path there; worktrees may lie in each other."""
    folder = posixpath.dirname(path)
    while folder not in roots and folder not in ("/", ""):
        folder = posixpath.dirname(folder)
    common = roots.get(folder)
    return (common, path[len(folder) + 1 :]) if common else None


def _is_family(one: Worker, other: Worker, workers: Mapping[str, Worker]) -> bool:
    return one.id in _ancestors(other, workers) or other.id in _ancestors(one, workers)


def _ancestors(worker: Worker, workers: Mapping[str, Worker]) -> set[str]:
    found: set[str] = set()
    parent = worker.parent
    while parent is not None and parent not in found:
        found.add(parent)
        above = workers.get(parent)
        parent = above.parent if above is not None else None
    return found
