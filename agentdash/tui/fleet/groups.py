"""The groups of the fleet list: by state, by project, by host. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from agentdash.model.git import Repository
from agentdash.model.states import Group
from agentdash.model.worker import Worker
from agentdash.tui.primitives.spans import Tone
from agentdash.tui.theme import GROUP_TONES

Family: TypeAlias = list[tuple[Worker, int]]
"""The members of a family with their depth, parents before their children."""


class Head(NamedTuple):
    """What stands above the rows of a group."""

    name: str
    detail: str = ""
    """Stands behind the name."""
    tone: Tone = "title"


HEADS: Final = {
    Group.NEEDS_YOU: Head("NEEDS YOU", tone=GROUP_TONES["needs-you"]),
    Group.RUNNING: Head("RUNNING", tone=GROUP_TONES["running"]),
    Group.UNCLEAR: Head("UNCLEAR", tone=GROUP_TONES["unclear"]),
    Group.DONE: Head("DONE", tone=GROUP_TONES["done"]),
    Group.PAST: Head("PAST", "x hides them", GROUP_TONES["past"]),
}
PINNED: Final = Head("PINNED")
"""Above the families with a pinned member, before all groups."""
GroupOf = Callable[[Family], tuple[tuple[str | int, ...], Head]]
"""Returns the place of a family's group among the groups, and its head."""


def rank(worker: Worker) -> int:
    """Return the place of a worker's state among the groups of states."""
    return _GROUPS.index(worker.group)


_GROUPS: Final = tuple(Group)


def _by_state(workers: Iterable[Worker]) -> GroupOf:
    del workers

    def group_of(family: Family) -> tuple[tuple[str | int, ...], Head]:
        first = min(rank(worker) for worker, _ in family)
        return (first,), HEADS[_GROUPS[first]]

    return group_of


def _by_project(workers: Iterable[Worker]) -> GroupOf:
    """Group by the repository of the directory; its worktrees follow it, each with a head of its own."""
    known = {f"{each.host or ''}:{each.git.root}": each.git for each in workers if each.git is not None}

    def group_of(family: Family) -> tuple[tuple[str | int, ...], Head]:
        worker = family[0][0]
        if not worker.cwd:
            return (1,), Head("no directory")
        git = worker.git or _repository(worker, known)
        project, worktree = (_main_tree(git), git.worktree or "") if git else (worker.cwd, "")
        name = posixpath.basename(project.rstrip("/")) or project
        place = (0, name.casefold(), worker.host or "", project, worktree)
        host = f"{worker.host}:" if worker.host else ""
        return place, Head(name, f"worktree {worktree}" if worktree else host + project)

    return group_of


def _repository(worker: Worker, known: Mapping[str, Repository]) -> Repository | None:
    """Return the repository that others have in the directory of a worker without one: it is past."""
    folder = worker.cwd or ""
    while folder.strip("/"):
        if found := known.get(f"{worker.host or ''}:{folder}"):
            return found
        folder = posixpath.dirname(folder)
    return None


def _main_tree(git: Repository) -> str:
    """Return the working tree of which a worktree is one more; for a bare repository that itself."""
    return (git.common or git.root).removesuffix("/.git")


def _by_host(workers: Iterable[Worker]) -> GroupOf:
    del workers

    def group_of(family: Family) -> tuple[tuple[str | int, ...], Head]:
        host = family[0][0].host
        return (int(host is not None), host or ""), Head(host or "this machine")

    return group_of


GROUPINGS: Final[Mapping[str, Callable[[Sequence[Worker]], GroupOf]]] = {
    "state": _by_state,
    "project": _by_project,
    "host": _by_host,
}
"""How the list can be grouped."""
