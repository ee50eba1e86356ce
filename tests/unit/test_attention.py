"""Which workers need the user: alive, since the last look, acknowledged, past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.engine.hub import Hub
from agentdash.engine.judge.attention import judge_attention
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.engine.user_attention import UserAttention
from agentdash.model import events as e
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import Fleet
from agentdash.model.states import NEEDS_YOU, Acknowledgement, Attention, Group, State, fact_digest
from agentdash.model.worker import Assessment
from agentdash.replay.clock import VirtualClock
from agentdash.store.attention import AttentionFile

NOW = 1_773_260_000.0
HOUR = 3_600.0
ASKS = Fact(FactKind.ASK, "asks", "Which one?")


def group(
    state: State,
    *,
    since: float = NOW - 60,
    held: bool = True,
    looked: float | None = None,
    acknowledged: Acknowledgement | None = None,
    fact: Fact | None = ASKS,
) -> Group:
    return judge_attention(
        Assessment(state=state, since=since, why="", fact=fact),
        is_held=held,
        looked_at=looked,
        acknowledgement=acknowledged,
        now=NOW,
    ).group


@pytest.mark.parametrize("state", NEEDS_YOU)
def test_a_session_that_nothing_holds_needs_you_if_it_ended_since_the_last_look(state: State) -> None:
    assert group(state, held=False, since=NOW - 5 * HOUR, looked=NOW - 6 * HOUR) is Group.NEEDS_YOU
    assert group(state, held=False, since=NOW - 5 * HOUR, looked=NOW - 4 * HOUR) is Group.PAST
    assert group(state, held=False, since=NOW - 200 * HOUR, looked=NOW - 900 * HOUR) is Group.PAST
    # without any look, the last hour counts
    assert group(state, held=False, since=NOW - 60) is Group.NEEDS_YOU
    assert group(state, held=False, since=NOW - 2 * HOUR) is Group.PAST


def test_an_acknowledged_state_needs_no_attention_until_it_changes() -> None:
    done = Acknowledgement("a", State.WAITING_INPUT, NOW - 30, fact_digest(ASKS))
    assert group(State.WAITING_INPUT, acknowledged=done) is Group.DONE
    # another state, a later one of the same kind, another question
    assert group(State.BLOCKED_SANDBOX, acknowledged=done) is Group.NEEDS_YOU
    assert group(State.WAITING_INPUT, since=NOW - 10, acknowledged=done) is Group.NEEDS_YOU
    other = Fact(FactKind.ASK, "asks", "Which other one?")
    assert group(State.WAITING_INPUT, acknowledged=done, fact=other) is Group.NEEDS_YOU


# ---------------------------------------------------------------- whole fleets


def dead(at: float) -> Sequence[e.Event]:
    """Return a session that ended in a turn."""
    thread = "019cd000-7aa1-7c03-9d5e-0242ac120002"
    return [
        e.ThreadStarted(at=at, thread=thread, line=1, version="0.169.0"),
        e.TurnStarted(at=at, thread=thread, line=2),
    ]


def test_a_crash_is_shown_at_once_and_past_an_hour_later_without_any_look() -> None:
    fleet = reduce(Fleet(), [*dead(NOW - 60), e.ProcessesCounted(at=NOW)])
    snapshot = build_snapshot(fleet, NOW)
    assert [worker.needs_you for worker in snapshot.workers] == [True]
    assert snapshot.due is not None
    assert build_snapshot(fleet, snapshot.due).workers[0].group is Group.PAST


# ---------------------------------------------------------------- the file


def test_acknowledgements_and_looks_survive_a_restart(tmp_path: Path) -> None:
    one, two = AttentionFile(tmp_path, Path("/a")), AttentionFile(tmp_path, Path("/b"))
    first = Acknowledgement("x", State.WAITING_INPUT, NOW)
    second = Acknowledgement("y", State.EXITED, NOW)
    one.change(lambda known: known.add(first))
    AttentionFile(tmp_path, Path("/a")).change(lambda known: known.add(second))
    two.change(lambda known: replace(known, looked_at=NOW))
    assert AttentionFile(tmp_path, Path("/a")).read() == Attention(None, (first, second))
    assert one.change(lambda known: known.remove("x")).acknowledged == (second,)
    assert two.read() == Attention(NOW)
    assert one.path.stat().st_mode & 0o777 == 0o600


def test_old_acknowledgements_are_dropped(tmp_path: Path) -> None:
    file = AttentionFile(tmp_path, Path("/a"))

    def acknowledge(worker: str, at: float) -> int:
        new = Acknowledgement(worker, State.EXITED, at)
        return len(file.change(lambda known: known.add(new)).acknowledged)

    assert [acknowledge(str(number), NOW + number) for number in range(510)][-1] == 500
    assert acknowledge("z", NOW + 40 * 24 * HOUR) == 1


def test_where_nothing_can_be_written_the_hub_knows_and_a_message_says_so(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    (tmp_path / "attention.json").write_text("{")
    hub = Hub([], clock)
    (worker,) = hub.take([*dead(NOW - 60), e.ProcessesCounted(at=NOW)]).workers
    problem = UserAttention(hub, clock, AttentionFile(tmp_path, Path("/a")).change).acknowledge(worker)
    assert problem is not None
    assert "not kept" in problem
