"""Reduce events of tmux panes: where they are, what is on their screens, how the screens were read."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states.activity import differs_beyond_clocks
from agentdash.engine.reduce.recall import known_since
from agentdash.model import events as e
from agentdash.model.activity import counted
from agentdash.model.fleet import FleetDraft, ProviderTrouble
from agentdash.model.states import State

_PROVIDER_ANSWERS: Final = (State.RUNNING, State.COMPLETED, State.WAITING_APPROVAL)
"""States of a screen which show that the model provider answers again."""


def reduce_pane(draft: FleetDraft, event: e.PaneSeen) -> None:
    """Add or update a pane. `list-panes` has no screen: the one that was drawn last stays."""
    pane, before = event.pane, draft.panes.get(event.pane.key)
    dead_at = None
    if pane.dead:
        dead_at = (before.dead_at if before else None) or pane.dead_at or event.at
    if before is None:
        draft.panes[pane.key] = replace(pane, titled_at=event.at, dead_at=dead_at)
        return
    draft.panes[pane.key] = replace(
        pane,
        screen=before.screen,
        drawn_at=before.drawn_at,
        activity=before.activity,
        moved_at=before.moved_at,
        titled_at=before.titled_at if before.title == pane.title else event.at,
        dead_at=dead_at,
    )


def reduce_screen(draft: FleetDraft, event: e.PaneDrawn) -> None:
    """Update the screen of a known pane, and, of a pane with a worker, whether more than a clock moved on
    it."""
    pane = draft.panes.get(event.key)
    if pane is None:
        return
    moved_at = pane.moved_at
    activity = pane.activity
    if event.key in draft.occupants:
        moved_at = pane.drawn_at if moved_at is None else moved_at
        if differs_beyond_clocks(pane.screen, event.screen):
            moved_at = event.at
            activity = counted(activity, event.at)
    drawn_at = event.at if event.since is None else event.since
    draft.panes[event.key] = replace(
        pane, screen=event.screen, drawn_at=drawn_at, moved_at=moved_at, activity=activity
    )


def remove_pane(draft: FleetDraft, event: e.PaneGone) -> None:
    """Remove a pane and everything that is known by its key."""
    draft.panes.discard(event.key)
    draft.occupants.discard(event.key)
    draft.readings.discard(event.key)
    draft.troubles.discard(str(event.key))


def reduce_reading(draft: FleetDraft, event: e.ScreenRead | e.LabelRead) -> None:
    """Update what a screen states of a sandbox, or its reading, and the provider trouble that it shows for
    the pane and the threads in it."""
    if isinstance(event, e.LabelRead):
        draft.labels[event.label.thread] = event
        return
    before = draft.readings.get(event.key)
    if before is None:
        event = replace(event, at=_shown_since(draft, event))
    draft.readings[event.key] = _merge_readings(before, event)
    for worker in (str(event.key), *draft.links.threads_in(event.key)):
        _update_trouble(draft, worker, event)


def _shown_since(draft: FleetDraft, reading: e.ScreenRead) -> float:
    """Return since when a screen that is read for the first time has shown its state, at the latest."""
    if (since := known_since(draft, reading)) is not None:
        return min(since, reading.at)
    pane, occupant = draft.panes.get(reading.key), draft.occupants.get(reading.key)
    if pane is None or pane.drawn_at is None or occupant is None:
        return reading.at
    return min(reading.at, max(pane.drawn_at, occupant.key.started))


def _merge_readings(old: e.ScreenRead | None, new: e.ScreenRead) -> e.ScreenRead:
    """A pager or a picker hides the prompt: the reading before it still holds. An unchanged state keeps its
    time, and figures that a dialog hides are kept."""
    if old is None or old.agent != new.agent:
        return new
    if new.usage is None:
        new = replace(new, usage=old.usage)
    if new.frozen:
        return replace(old, frozen=True)
    return replace(new, at=old.at) if (new.state, new.rule) == (old.state, old.rule) else new


def _update_trouble(draft: FleetDraft, worker: str, reading: e.ScreenRead) -> None:
    """Keep trouble that only a screen shows, since it is shown; when it shows work or an answer again, the
    trouble may be over."""
    known = draft.troubles.get(worker)
    if reading.state == State.FAILED_PROVIDER or reading.is_retrying:
        at = reading.at
        if known is not None and known.over is None and known.text == reading.text:
            at = known.at
        draft.troubles[worker] = ProviderTrouble(at, reading.source, reading.text)
    elif known is not None and known.over is None and reading.state in _PROVIDER_ANSWERS:
        draft.troubles[worker] = replace(known, over=reading.at)
