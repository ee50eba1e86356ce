"""Lines of `status --watch` and sentences of `status --follow`: a clock that ticks is neither."""

import re
from collections.abc import Sequence
from itertools import groupby

import pytest
from msgspec.structs import replace

from agentdash.demo.day import demo_events
from agentdash.documents.worker import ChangeReport, TickReport
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.thread import Tokens
from agentdash.model.worker import Assessment, Snapshot, Worker
from agentdash.report.status import _VERBS, Heartbeats, changes, news
from tests.unit.story import row

WORKER = row("default %1", since=100.0, why="retrying in 59s · esc to interrupt", name="⠋ fix the tests")


def lines_of(before: Worker, after: Worker) -> list[ChangeReport]:
    return list(changes(Snapshot(1.0, workers=(before,)), Snapshot(2.0, workers=(after,))))


def said(why: str, state: State = State.RUNNING) -> Worker:
    return replace(WORKER, assessment=Assessment(state, 100.0, why))


@pytest.mark.parametrize(
    "ticked",
    [
        said("retrying in 58s · esc to interrupt"),
        said("retrying in 1m 05s · esc to interrupt"),
        said("retrying in 7.5 s  ∗ esc to interrupt"),
        replace(WORKER, name="⠙ fix the tests"),
        replace(WORKER, last_activity=150.0, pids=(1, 2), line="other output"),
        replace(WORKER, depth=2),
    ],
)
def test_what_ticks_is_no_change(ticked: Worker) -> None:
    assert lines_of(WORKER, ticked) == []


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        (said("waits for file 2 of 9"), ["why"]),
        (said("retrying in 59s · esc to interrupt", State.COMPLETED), ["state", "needs_you", "group"]),
        (replace(WORKER, name="⠋ fix the docs"), ["name"]),
        (replace(WORKER, stalled=120.0), ["stalled_since"]),
        (replace(WORKER, cwd="/elsewhere"), ["cwd"]),
    ],
)
def test_a_change_names_its_fields(changed: Worker, fields: Sequence[str]) -> None:
    (line,) = lines_of(WORKER, changed)
    assert line.change == "changed"
    assert set(line.changed) & set(fields)
    assert set(line.changed) <= {*fields, "fact"}


def test_another_command_is_another_question() -> None:
    def wants(command: str) -> Worker:
        fact = Fact(FactKind.RUN, "wants to run", command, ObjectForm.COMMAND)
        assessment = Assessment(State.WAITING_APPROVAL, 100.0, "asks", fact=fact)
        return replace(WORKER, assessment=assessment)

    assert lines_of(wants("sleep 5s"), wants("sleep 5s")) == []
    (line,) = lines_of(wants("sleep 5s"), wants("sleep 6s"))
    assert line.changed == ["fact"]


def test_heartbeats_have_what_grew() -> None:
    heartbeats = Heartbeats()
    for change in changes(None, Snapshot(1.0, workers=(WORKER,))):
        heartbeats.add(change)
    assert heartbeats.next(2.0, (WORKER,)).ticks == []
    grown = replace(WORKER, tokens=Tokens(total=5), last_activity=1.0)
    tick = TickReport(WORKER.id, "1970-01-01T00:00:01.000Z", 5)
    assert heartbeats.next(3.0, (grown,)).ticks == [tick]
    assert heartbeats.next(4.0, (grown,)).ticks == []
    assert heartbeats.next(5.0, ()).change == "alive"


# ---------------------------------------------------------------- plain sentences: `status --follow`

RUNNING = row("a", since=1.0, why="", name="Push it")
ASKS = row(
    "a",
    State.WAITING_APPROVAL,
    since=2.0,
    name="Push it",
    fact=Fact(FactKind.RUN, what="wants to run", object="git push"),
)


def sentences(old: Snapshot | None, new: Snapshot) -> list[str]:
    return [line.split("  ", 1)[1] for line in news(old, new)]


def test_summary_comes_first() -> None:
    assert sentences(None, Snapshot(5.0, workers=(RUNNING, ASKS))) == [
        "2 workers: 1 needs you, 1 running",
        f"Push it (codex) waits for approval: {ASKS.fact.text}",
    ]


def test_work_is_no_news() -> None:
    works = replace(RUNNING, last_activity=9.0, assessment=Assessment(State.RUNNING, 1.0, "ran a command"))
    assert sentences(Snapshot(1.0, workers=(RUNNING,)), Snapshot(2.0, workers=(works,))) == []


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
