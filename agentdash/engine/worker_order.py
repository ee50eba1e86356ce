"""The order of the workers of a snapshot: families, each as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.model.states import URGENCY
from agentdash.model.worker import Worker

_MAX_NEEDS: Final = 100
"""Workers that need the user, named at each of their ancestors: a chain of 10,000 would have 50 million."""


def in_tree_order(workers: dict[str, Worker]) -> Iterator[Worker]:
    """Yield families by their newest activity, parents before their children, children in the order of their
    spawning."""
    children: dict[str, list[Worker]] = {}
    for worker in workers.values():
        if worker.parent in workers:
            children.setdefault(worker.parent, []).append(worker)
    roots = [worker for worker in workers.values() if worker.parent not in workers]
    newest = {
        root.id: _newest_activity(root, children) if root.id in children else root.last_activity or 0.0
        for root in roots
    }
    visited: set[str] = set()
    for root in sorted(roots, key=lambda worker: newest[worker.id], reverse=True):
        if root.id in children or root.depth or root.children or root.below:
            yield from _family(root, children, visited)
        else:
            visited.add(root.id)
            yield root
    for worker in workers.values():  # files may name each other as parents: such families have no root
        if worker.id not in visited:
            yield from _family(worker, children, visited)


def _newest_activity(root: Worker, children: dict[str, list[Worker]]) -> float:
    """Return the newest activity in a family. Not recursive: files may name chains of any depth."""
    newest, pending, visited = 0.0, [root], {root.id}
    while pending:
        worker = pending.pop()
        newest = max(newest, worker.last_activity or 0.0)
        below = [child for child in children.get(worker.id, ()) if child.id not in visited]
        visited.update(child.id for child in below)
        pending += below
    return newest


def _family(root: Worker, children: dict[str, list[Worker]], visited: set[str]) -> list[Worker]:
    """Return a worker and those below it, each with its depth, children and what its members need."""
    members: list[tuple[Worker, int, tuple[str, ...]]] = []
    pending = [(root, 0)]
    visited.add(root.id)
    while pending:
        worker, depth = pending.pop()
        own = [child for child in children.get(worker.id, ()) if child.id not in visited]
        visited.update(child.id for child in own)
        members.append((worker, depth, tuple(child.id for child in own)))
        pending += [(child, depth + 1) for child in reversed(own)]
    family: list[Worker] = []
    waiting: dict[str, list[Worker]] = {}
    """Workers below each one that need the user, in their order."""
    for worker, depth, child_ids in reversed(members):
        below = [each for child in child_ids for each in waiting.pop(child)]
        waiting[worker.id] = _most_urgent([worker, *below])
        needs = tuple(f"{each.state} {each.name}" for each in _most_urgent(below))
        is_unchanged = (worker.depth, worker.children, worker.below) == (depth, child_ids, needs)
        family.append(
            worker if is_unchanged else replace(worker, depth=depth, children=child_ids, below=needs)
        )
    family.reverse()
    return family


def _most_urgent(workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers that need the user, the most urgent first."""
    waiting = [worker for worker in workers if worker.needs_you]
    waiting.sort(key=lambda worker: URGENCY.index(worker.state))
    return waiting[:_MAX_NEEDS]
