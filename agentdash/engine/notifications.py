"""Which changes of a fleet deserve that somebody is told. Pure: how it is told is the affair of `agentdash.tui.notifier`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker

_TEXT = 160


class Notification(msgspec.Struct, frozen=True):
    """One thing to tell."""

    worker: str
    """Its id."""
    state: State
    title: str
    text: str


class NotificationState(msgspec.Struct, frozen=True):
    """What has been told so far."""

    since: float | None = None
    """When watching began: what was so before is no news. None: it has not begun."""
    states: dict[str, State] = {}
    """Of each worker, the state it was seen in last."""
    spoken: dict[str, float] = {}
    """When each was spoken of last."""


def next_notifications(
    told: NotificationState, snapshot: Snapshot, wanted: Collection[State], pause: float
) -> tuple[NotificationState, tuple[Notification, ...]]:
    """What to tell of a snapshot, and what has been told then.

    A worker is spoken of when it enters one of the wanted states, once in `pause` seconds at most; not for what it was in already when
    watching began. Who changes to and fro within the pause is not spoken of again until after it.

    Args:
        wanted: states that deserve a notice.
        pause: seconds in which the same worker is not spoken of again.
    """
    since = snapshot.at if told.since is None else told.since
    spoken = {worker: at for worker, at in told.spoken.items() if snapshot.at - at < pause}
    found = [
        worker
        for worker in snapshot.workers
        if _is_news(worker, told, since, wanted) and worker.id not in spoken
    ]
    spoken |= {worker.id: snapshot.at for worker in found}
    return NotificationState(since, {worker.id: worker.state for worker in snapshot.workers}, spoken), tuple(
        map(_notice, found)
    )


def _is_news(worker: Worker, told: NotificationState, since: float, wanted: Collection[State]) -> bool:
    return (
        worker.state in wanted
        and told.states.get(worker.id) != worker.state
        and (worker.assessment.since or 0.0) >= since
    )


def _notice(worker: Worker) -> Notification:
    return Notification(
        worker.id,
        worker.state,
        clean_line(f"{worker.name}: {worker.state.replace('-', ' ')}", _TEXT),
        clean_line(worker.assessment.why, _TEXT),
    )


def together(said: Iterable[Notification]) -> Notification | None:
    """Several notices as one: nobody wants ten at once."""
    said = tuple(said)
    if len(said) < 2:
        return said[0] if said else None
    names = ", ".join(notice.title.partition(":")[0] for notice in said)
    return Notification("", said[0].state, f"{len(said)} workers need you", clean_line(names, _TEXT))
