"""The order of the fleet list: as a tree, or flat with the most urgent worker first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from agentdash.model.states import NEEDS_YOU, State
from agentdash.model.worker import Worker

_MISMATCH: Final = len(NEEDS_YOU)
"""A mismatch comes after the workers that need the user and before all others."""
_URGENCY: Final = {state: rank for rank, state in enumerate(NEEDS_YOU)} | {
    State.RUNNING: _MISMATCH + 1,
    State.UNKNOWN: _MISMATCH + 2,
    State.UNREACHABLE: _MISMATCH + 3,
    State.COMPLETED: _MISMATCH + 4,
    State.INTERRUPTED: _MISMATCH + 4,
    State.EXITED: _MISMATCH + 5,
}


class Row(NamedTuple):
    """The place of a worker in the list.

    The worker itself is looked up when it is drawn: places change far less often than workers do.
    """

    id: str
    stem: str = ""
    """The lines of the tree that lead to it."""
    path: str = ""
    """The names of its ancestors where the tree does not show them: `main/`."""


def urgency(worker: Worker) -> int:
    """Return the sort rank of a worker: the smaller, the more urgent."""
    rank = _URGENCY[worker.state]
    return min(rank, _MISMATCH) if worker.mismatch else rank


def same_places(old: Sequence[Worker], new: Sequence[Worker]) -> bool:
    """Return whether both fleets have the same order and the same names."""
    return len(old) == len(new) and all(
        a is b or _sort_input(a) == _sort_input(b) for a, b in zip(old, new, strict=True)
    )


def _sort_input(worker: Worker) -> tuple[str, str | None, str, State, bool]:
    mismatch = worker.sandbox.verdict == "mismatch"
    return worker.id, worker.parent, worker.name, worker.assessment.state, mismatch


def flat(workers: Sequence[Worker], every: Sequence[Worker]) -> tuple[Row, ...]:
    """Return the rows of a flat list, the most urgent first; equally urgent workers keep their order.

    Args:
        workers: the workers to show.
        every: the whole fleet, for the names of the ancestors.
    """
    by_id = {worker.id: worker for worker in every}
    return tuple(Row(worker.id, path=_path(worker, by_id)) for worker in sorted(workers, key=urgency))


def tree(workers: Sequence[Worker], every: Sequence[Worker], glyphs: tuple[str, str, str]) -> tuple[Row, ...]:
    """Return the rows of a tree: families stay together, the one with the most urgent member first.

    A worker without its parent among `workers` is the root of a tree of its own.

    Args:
        workers: the workers to show, parents before their children.
        every: the whole fleet, for the names of the ancestors.
        glyphs: a child with siblings below it, the last child, the line past a child.
    """
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
    families.sort(key=lambda family: min(urgency(worker) for worker, _ in family))
    by_id = {worker.id: worker for worker in every} if len(workers) < len(every) else {}
    return tuple(row for family in families for row in _family(family, by_id, glyphs))


def _family(
    members: Sequence[tuple[Worker, int]], by_id: dict[str, Worker], glyphs: tuple[str, str, str]
) -> list[Row]:
    """Return the rows of one family, built from the last one up: only then is it known which lines go on."""
    first = members[0][0]
    if len(members) == 1:
        return [Row(first.id, path=_path(first, by_id))]
    tee, corner, bar = glyphs
    below: list[bool] = []  # for each depth: is there a later sibling?
    rows = []
    for worker, depth in reversed(members):
        below.extend([False] * (depth + 1 - len(below)))
        stem = "".join(bar if on else " " * len(bar) for on in below[1:depth])
        if depth:
            rows.append(Row(worker.id, stem + (tee if below[depth] else corner)))
        else:
            rows.append(Row(worker.id, path=_path(worker, by_id)))
        del below[depth + 1 :]
        below[depth] = True
    return rows[::-1]


def _path(worker: Worker, by_id: dict[str, Worker]) -> str:
    names: list[str] = []
    seen = {worker.id}
    while (parent := by_id.get(worker.parent or "")) is not None and parent.id not in seen:
        names.append(parent.name)
        seen.add(parent.id)
        worker = parent
    return "".join(f"{name}/" for name in reversed(names))
