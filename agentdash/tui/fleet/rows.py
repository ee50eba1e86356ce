"""The order of the fleet list: groups, families within them, and what distinguishes equal names. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import URGENCY, Group, State
from agentdash.model.worker import Worker
from agentdash.prices import priced_usd

_GROUPS: Final = tuple(Group)
SortKey = Callable[[Worker], tuple[float, ...] | str]


class Row(NamedTuple):
    """The place of a worker in the list.

    The worker itself is looked up when it is drawn: places change far less often than workers do.
    """

    id: str
    stem: str = ""
    """The lines of the tree that lead to it."""
    path: str = ""
    """The names of its ancestors where the tree does not show them: `main/`."""
    group: Group = Group.DONE
    """The group under whose head it stands: that of its family."""
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
    "name": lambda worker: worker.name.casefold(),
}
"""By what the families of a group can be sorted; the smallest comes first."""


class Order(NamedTuple):
    """How rows are arranged."""

    sort: str = "attention"
    """A name of `SORTS`."""
    folded: frozenset[str] = frozenset()
    """Ids of workers whose descendants are hidden."""
    shows_past: bool = False
    """Whether the rows of past families are shown."""
    is_flat: bool = False
    """Whether families are taken apart, the most urgent worker first: for screens of a few lines."""


def same_places(old: Sequence[Worker], new: Sequence[Worker], sort: str) -> bool:
    """Return whether both fleets are arranged alike."""
    if len(old) != len(new):
        return False
    key = SORTS[sort]
    return all(
        a is b or (_identity(a) == _identity(b) and key(a) == key(b)) for a, b in zip(old, new, strict=True)
    )


def _identity(worker: Worker) -> tuple[str, str | None, str, Group, State, str | None]:
    return worker.id, worker.parent, worker.name, worker.group, worker.state, worker.cwd


def arrange(
    workers: Sequence[Worker], every: Sequence[Worker], order: Order, glyphs: tuple[str, str, str]
) -> tuple[Row, ...]:
    """Return the rows: groups in their order, families within them by their most urgent member.

    A worker without its parent among `workers` is the root of a family of its own.

    Args:
        workers: the workers to show, parents before their children.
        every: the whole fleet, for the names of ancestors.
        glyphs: a child with siblings below it, the last child, the line past a child.
    """
    families = [[(worker, 0)] for worker in workers] if order.is_flat else _families(workers)
    key = SORTS[order.sort]
    families.sort(key=lambda family: min((_rank(worker), key(worker)) for worker, _ in family))
    by_id = {worker.id: worker for worker in every} if order.is_flat or len(workers) < len(every) else {}
    tags = tell_apart(workers)
    rows: list[Row] = []
    for family in families:
        group = _GROUPS[min(_rank(worker) for worker, _ in family)]
        if group is not Group.PAST or order.shows_past:
            shown, hidden = _unfolded(family, order.folded)
            rows += _family(shown, by_id, glyphs, group=group, tags=tags, hidden=hidden)
    return tuple(rows)


def kept_in_place(
    old: Sequence[Row], new: Sequence[Row], by_id: Mapping[str, Worker], cursor: str | None
) -> tuple[Row, ...]:
    """Return the new rows at their old places.

    Those that are really new come last of their group, or, where that is above the cursor, last of all. There
    they have no parent above them: a child has its path in place of a stem.

    Args:
        old: the rows as they are shown.
        new: the rows as they would be arranged.
        by_id: all workers, for the names of ancestors.
        cursor: the worker under the cursor, which stays on its line.
    """
    now = {row.id: row for row in new}
    rows = [row._replace(tag=now[row.id].tag, folded=now[row.id].folded) for row in old if row.id in now]
    known = {row.id for row in rows}
    lowest = next((i for i, row in enumerate(rows) if row.id == cursor), -1) + 1
    for row in new:
        if row.id not in known:
            at = next((i for i, each in enumerate(rows) if _is_below(each, row)), len(rows))
            rows.insert(at if at >= lowest else len(rows), _apart(row, by_id))
    return tuple(_with_true_stems(rows, by_id))


def _with_true_stems(rows: Iterable[Row], by_id: Mapping[str, Worker]) -> Iterator[Row]:
    """Yield the rows; one that does not stand below its parent any more has its path in place of its stem."""
    above: list[Row] = []
    for row in rows:
        while above and len(above[-1].stem) >= len(row.stem):
            above.pop()
        is_child = bool(row.stem and above) and by_id[row.id].parent == above[-1].id
        shown = row if is_child else _apart(row, by_id)
        above = [*above, shown] if is_child else [shown]
        yield shown


def _apart(row: Row, by_id: Mapping[str, Worker]) -> Row:
    """Return a row that does not stand below its parent."""
    return row._replace(stem="", path=_path(by_id[row.id], by_id))


def _is_below(row: Row, other: Row) -> bool:
    return _GROUPS.index(row.group) > _GROUPS.index(other.group)


def _rank(worker: Worker) -> int:
    return _GROUPS.index(worker.group)


def _families(workers: Sequence[Worker]) -> list[list[tuple[Worker, int]]]:
    """Return the members of each family with their depth."""
    families: list[list[tuple[Worker, int]]] = []
    places: dict[str, tuple[int, list[tuple[Worker, int]]]] = {}
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


def _unfolded(
    family: Sequence[tuple[Worker, int]], folded: Collection[str]
) -> tuple[list[tuple[Worker, int]], dict[str, int]]:
    """Return the members that are not folded away, and how many are, by the worker they are folded into."""
    shown: list[tuple[Worker, int]] = []
    hidden: dict[str, int] = {}
    fold: tuple[str, int] | None = None
    for worker, depth in family:
        if fold is not None and depth > fold[1]:
            hidden[fold[0]] = hidden.get(fold[0], 0) + 1
            continue
        fold = (worker.id, depth) if worker.id in folded else None
        shown.append((worker, depth))
    return shown, hidden


def _family(
    members: Sequence[tuple[Worker, int]],
    by_id: dict[str, Worker],
    glyphs: tuple[str, str, str],
    *,
    group: Group,
    tags: dict[str, str],
    hidden: dict[str, int],
) -> list[Row]:
    """Return the rows of one family, built from the last one up: only then is it known which lines go on."""
    tee, corner, bar = glyphs
    below: list[bool] = []  # for each depth: is there a later sibling?
    rows = []
    for worker, depth in reversed(members):
        below.extend([False] * (depth + 1 - len(below)))
        stem = "".join(bar if on else " " * len(bar) for on in below[max(1, depth - MAX_INDENT) : depth])
        rows.append(
            Row(
                id=worker.id,
                stem=stem + (tee if below[depth] else corner) if depth else "",
                path="" if depth else _path(worker, by_id),
                group=group,
                tag=tags.get(worker.id, ""),
                folded=hidden.get(worker.id, 0),
            )
        )
        del below[depth + 1 :]
        below[depth] = True
    return rows[::-1]


def _path(worker: Worker, by_id: Mapping[str, Worker]) -> str:
    names: list[str] = []
    seen = {worker.id}
    while (parent := by_id.get(worker.parent or "")) is not None and parent.id not in seen:
        names.append(parent.name)
        seen.add(parent.id)
        worker = parent
    return "".join(f"{name}/" for name in reversed(names))


# ---------------------------------------------------------------- equal names


def tell_apart(workers: Iterable[Worker]) -> dict[str, str]:
    """Return for each worker that shares its name what it alone has of them: directory, pane, or id."""
    named: dict[str, list[Worker]] = {}
    for worker in workers:
        named.setdefault(worker.name, []).append(worker)
    tags: dict[str, str] = {}
    for same in named.values():
        if len(same) > 1:
            candidates = ([tag(worker) for worker in same] for tag in _TAGS)
            found = next((each for each in candidates if all(each) and len(set(each)) == len(each)), None)
            found = found or [worker.id[-_ID_CHARS:] for worker in same]
            tags |= {worker.id: tag for worker, tag in zip(same, found, strict=True)}
    return tags


_ID_CHARS: Final = 6
"""Of the end of a thread's id, which is random (UUIDv7)."""
_TAGS: Final[tuple[Callable[[Worker], str], ...]] = (
    lambda worker: (worker.cwd or "").rstrip("/").rpartition("/")[2],
    lambda worker: str(worker.pane.key) if worker.pane else "",
)
