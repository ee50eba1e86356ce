"""When what is shown changes with the time alone."""

from __future__ import annotations

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.view import View

from .rendering import LOOK
from .sample_fleet import NOW, pane, worker

SECOND_S = pytest.approx(0.9)


def due_in(shown: Worker, selected_id: str | None = None) -> float:
    snapshot = Snapshot(NOW, (shown,))
    return View(LOOK, snapshot, {shown.id: shown}, selected_id).due - NOW


def test_an_age_in_seconds_changes_every_second() -> None:
    assert due_in(worker("begun", State.RUNNING, since=20)) == SECOND_S
    assert due_in(worker("running", State.RUNNING, since=3_600)) != SECOND_S


def test_ages_that_no_row_shows_do_not_draw_every_second() -> None:
    busy = worker("busy", State.RUNNING, since=3_600, ago=1, pane=pane(1))
    assert due_in(busy) != SECOND_S
    assert due_in(busy, busy.id) == SECOND_S  # the panel shows when its screen was drawn
