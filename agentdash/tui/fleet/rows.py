"""The order of the fleet list: groups, families within them, and what distinguishes equal names. Pure."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from agentdash.model.git import Repository
from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import URGENCY, Group, State
from agentdash.model.worker import Worker
from agentdash.prices import priced_usd
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


_GROUPS: Final = tuple(Group)
HEADS: Final = {
    group: Head(group.value.replace("-", " ").upper(), tone=GROUP_TONES[group]) for group in _GROUPS
} | {Group.PAST: Head("PAST", "x hides them", GROUP_TONES["past"])}
PINNED: Final = Head("PINNED")
"""Above the families with a pinned member, before all groups."""
Repositories: TypeAlias = Mapping[tuple[str | None, str | None], Repository | None]
"""Those of live workers, by host and directory: a past worker has none of its own."""
GroupOf = Callable[[Family, Repositories], tuple[tuple[str | int, ...], Head]]
"""Returns the place of a family's group among the groups, and its head."""
SortKey = Callable[[Worker], tuple[float, ...] | str]


class Row(NamedTuple):
    """The place of a worker in the list.

    The worker itself is looked up when it is drawn: places change far less often than workers do.
    """

    id: str
    stem: str = ""
    """The lines of the tree that lead to it."""
    head: Head = HEADS[Group.DONE]
    """The head of the group under which it stands: that of its family."""
    tag: str = ""
    """What distinguishes it from others of the same name."""
    folded: int = 0
    """How many workers are folded below it."""


def _attention(worker: Worker) -> tuple[float, ...]:
    since = worker.assessment.since or 0.0
    if worker.needs_you:
        return (URGENCY.index(worker.state), since)
    if worker.state is State.RUNNING:  # the newest first; it keeps its place for as long as it runs
        return (0.0, -(worker.started or 0.0))
    return (0.0, -since)


SORTS: Final[dict[str, SortKey]] = {
    "attention": _attention,
    "activity": lambda worker: (-(worker.last_activity or 0.0),),
    "age": lambda worker: (worker.assessment.since or 0.0,),
    "tokens": lambda worker: (-float(worker.tokens.total or 0),),
    "cost": lambda worker: (-(priced_usd(worker.tokens.by_model) or 0.0),),
    "name": lambda worker: worker.title.casefold(),
}
"""By what the families of a group can be sorted; the smallest comes first."""
USUAL_SORT: Final = "attention"


class Order(NamedTuple):
    """How rows are arranged."""

    groups: str = "state"
    """A name of `GROUPINGS`."""
    sort: str = USUAL_SORT
    """A name of `SORTS`."""
    folded: frozenset[str] = frozenset()
    """Ids of workers whose descendants are hidden."""
    unfolded: frozenset[str] = frozenset()
    """Ids of workers whose descendants are shown also where families are folded: by project."""
    shows_past: bool = False
    """Whether the rows of past families are shown."""


def arrange(workers: Sequence[Worker], order: Order, tree: tuple[str, str, str]) -> tuple[Row, ...]:
    """Return the rows: the pinned families, which keep their places, then groups in their order, families
    within them by their most urgent member.

    A worker without its parent among `workers` is the root of a family of its own.

    Args:
        workers: parents before their children.
        order: how they are arranged.
        tree: the lines of a child with siblings below it, of the last child, and past a child.
    """
    key = SORTS[order.sort]
    families = _families(workers)
    if not order.shows_past:
        families = [each for each in families if _is_pinned(each) or not _is_past(each)]
    families.sort(key=lambda family: min((_rank(worker), key(worker)) for worker, _ in family))
    pinned = [each for each in families if _is_pinned(each)]
    pinned.sort(key=lambda family: family[0][0].title.casefold())  # by what does not change
    known = {(each.host, each.cwd): each.git for each in workers if each.git is not None}
    tags, folded = tell_apart(workers), _folded(workers, order)
    rows: list[Row] = []
    grouped = [(*GROUPINGS[order.groups](each, known), each) for each in families if not _is_pinned(each)]
    grouped.sort(key=operator.itemgetter(0))
    for head, family in (*((PINNED, each) for each in pinned), *((head, each) for _, head, each in grouped)):
        shown, hidden = _unfold(family, folded)
        stems = _stems([depth for _, depth in shown], tree)
        rows += (
            Row(worker.id, stem, head, tags.get(worker.id, ""), hidden.get(worker.id, 0))
            for (worker, _), stem in zip(shown, stems, strict=True)
        )
    return tuple(rows)


def keep_places(old: Sequence[Row], new: Sequence[Row]) -> tuple[Row, ...]:
    """Return the new rows, those shown already at their places, and the others at the end."""
    now = {row.id: row for row in new}
    kept = [now.pop(row.id)._replace(stem=row.stem, head=row.head) for row in old if row.id in now]
    return (*kept, *(row._replace(stem="") for row in now.values()))


def _is_pinned(family: Family) -> bool:
    return any(worker.pinned for worker, _ in family)


def _is_past(family: Family) -> bool:
    return all(worker.group is Group.PAST for worker, _ in family)


def _folded(workers: Iterable[Worker], order: Order) -> frozenset[str]:
    """Return the workers whose descendants are hidden: by project all that are not unfolded."""
    if order.groups != "project":
        return order.folded
    return frozenset(worker.id for worker in workers if worker.children) - order.unfolded


def _families(workers: Sequence[Worker]) -> list[Family]:
    families: list[Family] = []
    places: dict[str, tuple[int, Family]] = {}
    for worker in workers:
        if worker.parent in places:
            depth, family = places[worker.parent]
            depth += 1
        else:
            depth, family = 0, []
            families.append(family)
        family.append((worker, depth))
        places[worker.id] = depth, family
    return families


def _unfold(family: Family, folded: Collection[str]) -> tuple[Family, dict[str, int]]:
    """Return the members that are not folded away, and how many are, by the worker they are folded into."""
    shown: Family = []
    hidden: dict[str, int] = {}
    fold: tuple[str, int] | None = None
    for worker, depth in family:
        if fold is not None and depth > fold[1]:
            hidden[fold[0]] = hidden.get(fold[0], 0) + 1
            continue
        fold = (worker.id, depth) if worker.id in folded else None
        shown.append((worker, depth))
    return shown, hidden


def _stems(depths: Sequence[int], tree: tuple[str, str, str]) -> list[str]:
    """Return the lines that lead to members of these depths, built from the last one up: only then is it
    known which lines go on."""
    tee, corner, bar = tree
    below: list[bool] = []  # for each depth: is there a later sibling?
    stems: list[str] = []
    for depth in reversed(depths):
        below.extend([False] * (depth + 1 - len(below)))
        lines = "".join(bar if on else " " * len(bar) for on in below[max(1, depth - MAX_INDENT) : depth])
        stems.append(lines + (tee if below[depth] else corner) if depth else "")
        del below[depth + 1 :]
        below[depth] = True
    return stems[::-1]


# ---------------------------------------------------------------- equal names


def tell_apart(workers: Iterable[Worker]) -> dict[str, str]:
    """Return for each worker that shares its title what it alone has of them: its directory, or its id."""
    named: dict[str, list[Worker]] = {}
    for worker in workers:
        named.setdefault(worker.title, []).append(worker)
    tags: dict[str, str] = {}
    for same in (each for each in named.values() if len(each) > 1):
        directories = [(worker.cwd or "").rstrip("/").rpartition("/")[2] for worker in same]
        if not all(directories) or len(set(directories)) < len(directories):
            directories = [worker.id[-_ID_CHARS:] for worker in same]
        tags |= {worker.id: tag for worker, tag in zip(same, directories, strict=True)}
    return tags


_ID_CHARS: Final = 6
"""Of the end of a thread's id, which is random (UUIDv7)."""


# ---------------------------------------------------------------- groups


def _rank(worker: Worker) -> int:
    """Return the place of a worker's state among the groups of states."""
    return _GROUPS.index(worker.group)


def _by_state(family: Family, _: Repositories) -> tuple[tuple[str | int, ...], Head]:
    first = min(_rank(worker) for worker, _ in family)
    return (first,), HEADS[_GROUPS[first]]


def _by_project(family: Family, known: Repositories) -> tuple[tuple[str | int, ...], Head]:
    """Group by the repository of the directory; its worktrees follow it, each with a head of its own."""
    worker = family[0][0]
    if not worker.cwd:
        return (1,), Head("no directory")
    git = worker.git or known.get((worker.host, worker.cwd))
    project, worktree = worker.cwd, ""
    if git is not None:  # of a worktree the one to which it belongs; a bare repository itself
        project, worktree = (git.common or git.root).removesuffix("/.git"), git.worktree or ""
    name = posixpath.basename(project.rstrip("/")) or project
    host = f"{worker.host}:" if worker.host else ""
    place = (0, name.casefold(), worker.host or "", project, worktree)
    return place, Head(name, f"worktree {worktree}" if worktree else host + project)


def _by_host(family: Family, _: Repositories) -> tuple[tuple[str | int, ...], Head]:
    host = family[0][0].host
    return (int(host is not None), host or ""), Head(host or "this machine")


GROUPINGS: Final[Mapping[str, GroupOf]] = {"state": _by_state, "project": _by_project, "host": _by_host}
"""How the list can be grouped."""
