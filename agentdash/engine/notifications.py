"""Which changes of a snapshot deserve a notification. Pure: `agentdash.tui.notifier` sends them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker

_MAX_TEXT_CHARS: Final = 160
"""Characters of a title or text: desktops show no more."""


class Notification(msgspec.Struct, frozen=True):
    """One notification."""

    worker: str
    """The worker's id; empty for several workers."""
    state: State
    title: str
    text: str


class NotificationState(msgspec.Struct, frozen=True):
    """What has been notified so far."""

    since: float | None = None
    """Time of the first snapshot (unix seconds): earlier states are not notified."""
    states: dict[str, State] = {}
    """The newest known state of each worker."""
    notified: dict[str, float] = {}
    """When each worker was last notified (unix seconds), within the pause."""


def next_notifications(
    state: NotificationState, snapshot: Snapshot, wanted: Collection[State], pause: float
) -> tuple[NotificationState, tuple[Notification, ...]]:
    """Return the state after a snapshot, and the notifications that it makes due.

    A worker is notified when it enters a wanted state after the first snapshot, at most once per pause.

    Args:
        state: after the snapshot before.
        wanted: the states to notify.
        pause: seconds between two notifications of one worker.
    """
    since = snapshot.at if state.since is None else state.since
    notified = {worker: at for worker, at in state.notified.items() if snapshot.at - at < pause}
    due = [
        worker
        for worker in snapshot.workers
        if worker.state in wanted
        and _is_present(worker)
        and worker.id not in notified
        and _has_entered(worker, state, since)
    ]
    notified |= {worker.id: snapshot.at for worker in due}
    states = {worker.id: worker.state for worker in snapshot.workers}
    return NotificationState(since=since, states=states, notified=notified), tuple(map(_notification, due))


def _is_present(worker: Worker) -> bool:
    """Return whether a state that would need the user does so: it is not acknowledged, nor past."""
    return worker.needs_you or not worker.state.needs_you


def _has_entered(worker: Worker, state: NotificationState, since: float) -> bool:
    """Return whether a worker has entered its state since the snapshot before, and since the first one."""
    return state.states.get(worker.id) != worker.state and (worker.assessment.since or 0.0) >= since


def _notification(worker: Worker) -> Notification:
    return Notification(
        worker=worker.id,
        state=worker.state,
        title=clean_line(f"{worker.name}: {worker.state.replace('-', ' ')}", _MAX_TEXT_CHARS),
        text=clean_line(worker.fact.text, _MAX_TEXT_CHARS),
    )


def merge_notifications(found: Iterable[Notification]) -> Notification | None:
    """Return several notifications as one; None for none."""
    found = tuple(found)
    if len(found) < 2:
        return found[0] if found else None
    names = ", ".join(notification.title.partition(":")[0] for notification in found)
    return Notification(
        worker="",
        state=found[0].state,
        title=f"{len(found)} workers need you",
        text=clean_line(names, _MAX_TEXT_CHARS),
    )
