"""`agentdash watch`: what changes in the fleet as plain sentences, for screen readers and logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentdash.model.attention import Group
from agentdash.model.states import State
from agentdash.model.times import time_of_day
from agentdash.model.worker import Snapshot, Worker

_VERBS: Final = {
    State.RUNNING: "is running",
    State.WAITING_INPUT: "waits for input",
    State.WAITING_APPROVAL: "waits for approval",
    State.BLOCKED_SANDBOX: "is blocked by a sandbox",
    State.FAILED_PERMISSION: "was refused a permission",
    State.FAILED_PROVIDER: "failed at the provider",
    State.COMPLETED: "has completed",
    State.INTERRUPTED: "was interrupted",
    State.EXITED: "has exited",
    State.UNREACHABLE: "is unreachable",
    State.UNKNOWN: "is in an unknown state",
}


def news(old: Snapshot | None, new: Snapshot) -> Iterator[str]:
    """Yield one line for each change that matters to a person; with None as the old snapshot, a summary.

    A worker that works on is no news; one that needs somebody, ends, appears or goes is, and so are new
    findings and sources that fail or recover.
    """
    at = time_of_day(new.at)
    if old is None:
        yield f"{at}  {_summary(new)}"
        yield from (f"{at}  {_state(worker)}" for worker in new.workers if worker.group is Group.NEEDS_YOU)
        return
    before = {worker.id: worker for worker in old.workers}
    for worker in new.workers:
        known = before.pop(worker.id, None)
        if known is not worker:
            yield from (f"{at}  {line}" for line in _of_worker(known, worker))
    yield from (f"{at}  {_name(worker)} has gone" for worker in before.values())
    health = {source.name: source.ok for source in old.sources}
    for source in new.sources:
        if health.get(source.name) is not source.ok:
            yield f"{at}  source {source.name} {'works' if source.ok else 'fails'}: {source.detail}"


def _of_worker(known: Worker | None, worker: Worker) -> Iterator[str]:
    if known is None:
        yield f"new: {_state(worker)}"
    elif _standing(known) != _standing(worker):
        yield _state(worker)
    found = {(finding.kind, finding.message) for finding in known.sandbox.findings} if known else set()
    for finding in worker.sandbox.findings:
        if finding.severity != "info" and (finding.kind, finding.message) not in found:
            yield f"{_name(worker)}, sandbox: {finding.kind}: {finding.message}"


def _standing(worker: Worker) -> tuple[str, ...]:
    """Return what is news when it differs: the state, and where it needs the user, for what."""
    return (worker.state, worker.fact.text) if worker.group is Group.NEEDS_YOU else (worker.state,)


def _state(worker: Worker) -> str:
    why = f": {worker.fact.text}" if worker.fact.text else ""
    stalled = ", stalled" if worker.stalled is not None else ""
    return f"{_name(worker)} {_VERBS[worker.state]}{stalled}{why}"


def _name(worker: Worker) -> str:
    host = f" on {worker.host}" if worker.host else ""
    return f"{worker.name} ({worker.agent.name}{host})"


def _summary(snapshot: Snapshot) -> str:
    counts, total = snapshot.counts(), len(snapshot.workers)
    parts = [f"{counts[group]} {group.replace('-', ' ')}" for group in Group if counts[group]]
    return f"{total} worker{'' if total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"
