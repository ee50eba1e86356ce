"""`agentdash status --follow`: plain sentences for what changes."""

from __future__ import annotations

import re
from itertools import groupby

import pytest
from msgspec.structs import replace

from agentdash.demo.day import demo_events
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Assessment, Snapshot
from agentdash.report.status import _VERBS, news
from tests.unit.story import row

RUNNING = row("a", since=1.0, why="", name="Push it")
ASKS = row(
    "a",
    State.WAITING_APPROVAL,
    since=2.0,
    name="Push it",
    fact=Fact(FactKind.RUN, what="wants to run", object="git push"),
)


def lines(old: Snapshot | None, new: Snapshot) -> list[str]:
    return [line.split("  ", 1)[1] for line in news(old, new)]


def test_summary_comes_first() -> None:
    assert lines(None, Snapshot(5.0, workers=(RUNNING, ASKS))) == [
        "2 workers: 1 needs you, 1 running",
        f"Push it (codex) waits for approval: {ASKS.fact.text}",
    ]


def test_work_is_no_news() -> None:
    works = replace(RUNNING, last_activity=9.0, assessment=Assessment(State.RUNNING, 1.0, "ran a command"))
    assert lines(Snapshot(1.0, workers=(RUNNING,)), Snapshot(2.0, workers=(works,))) == []


@pytest.mark.slow
def test_a_day_in_plain_words() -> None:
    """Every state and mismatch of the demo is a sentence, without signs that a screen reader spells out."""
    _, events = demo_events()
    fleet, last, printed = Fleet(), None, []
    for at, at_once in groupby(sorted(events, key=lambda event: event.at), key=lambda event: round(event.at)):
        fleet = reduce(fleet, list(at_once))
        snapshot = build_snapshot(fleet, at)
        printed += news(last, snapshot)
        last = snapshot
    text = "\n".join(printed)
    shown = {state for state in State if f") {_VERBS[state]}" in text}
    assert shown >= {State.RUNNING, State.WAITING_APPROVAL, State.BLOCKED_SANDBOX}
    assert shown >= {State.FAILED_PROVIDER, State.COMPLETED}
    assert "sandbox: tmux-escape: " in text
    assert re.search("[⠀-⣿▸●≠⋅│]", text) is None
