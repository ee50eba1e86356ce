"""State history, settling and stalling: functions of events and times."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentdash.engine.judge.states.state_history import STARTUP_GRACE_S
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.process import ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import (
    CWD,
    PANE,
    T,
    begun,
    called,
    done,
    ended,
    fleet,
    held,
    in_pane,
    pane,
    polled,
    process,
)

ENV = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}
Part = e.Event | Sequence[e.Event]


def at(now: float, *parts: Part, after: float = 120.0) -> Worker:
    return next(
        w for w in build_snapshot(fleet(*parts), now, stalled_after=after).workers if w.id in (T, str(PANE))
    )


def states(found: Worker) -> list[tuple[str, float, float | None]]:
    return [(s.state, s.since, s.until) for s in found.history]


def shown(now: float, *parts: Part) -> list[tuple[str, str]]:
    return [(w.kind, str(w.state)) for w in build_snapshot(fleet(*parts), now).workers]


def read(state: str | None, when: float, rule: str = "opencode.rule", **more: bool) -> e.Event:
    return e.ScreenRead(at=when, key=PANE, agent="opencode", state=state, rule=rule, text="words", **more)


def opencode() -> list[e.Event]:
    return [*in_pane("opencode"), *polled(100)]


# ---------------------------------------------------------------- history


def test_reset_file_states_its_history_again() -> None:
    """Large files are read at head and tail first, and then whole."""
    tail = [*begun(at=500.0), done(at=510)]
    whole = [*begun(at=100.0), done(at=110), *begun(at=500.0)[1:], done(at=510)]
    found = at(900, tail, held(600), e.FileReset(thread=T, at=600), whole, held(602))
    assert states(found) == [
        ("running", 100, 110),
        ("completed", 110, 500),
        ("running", 500, 510),
        ("completed", 510, None),
    ]


def test_thread_is_shown_from_its_first_turn() -> None:
    """Its header is read some milliseconds before its turn: until then the pane is the worker."""
    tui = [*in_pane("codex", started=95.0, cwd=CWD), *polled(99)]
    header, *turn = begun(at=100)
    assert shown(100.2, tui, header) == [("pane", "unknown")]
    assert build_snapshot(fleet(tui, header), 100.2).due == 100 + STARTUP_GRACE_S
    assert shown(100.2, tui, header, turn) == [("codex-thread", "running")]
    assert shown(100.2, tui, header, held(100.1, 11)) == [("pane", "unknown")]  # within the grace
    assert shown(104, tui, header, held(100.1, 11)) == [("codex-thread", "waiting-input")]
    assert states(at(102, tui, header, polled(100.1), turn)) == [("running", 100, None)]


LIFE: list[e.Event] = [
    *opencode(),
    read("waiting-input", 100.2),
    read("running", 101),
    read(None, 103),
    *begun(at=103.1),
    read("running", 103.2),
    called(at=103.5, ask=True),
    *held(105),
    read("waiting-approval", 106),
    ended(at=107),
    read("running", 107.5),
    done(at=108),
    e.StatusPushed(at=108.1, thread=T, status="idle"),
    read("completed", 109),
    e.TurnStarted(thread=T, at=108.4, line=10),
    *held(109.2),
    e.ProcessGone(at=110, key=ProcessKey(11, 85.0)),
    *polled(113),
]


@given(st.sets(st.integers(1, len(LIFE) - 1)))
def test_history_is_independent_of_snapshot_times(cuts: set[int]) -> None:
    """Live, in demos and in replays snapshots are built at different times: of the same events all show the
    same."""
    live, cache = Fleet(), WorkerCache()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(LIFE)], strict=True):
        live = reduce(live, LIFE[start:end])
        build_snapshot(live, LIFE[end - 1].at + 0.01, cache)
    assert live == reduce(Fleet(), LIFE)
    assert build_snapshot(live, 115, cache) == build_snapshot(reduce(Fleet(), LIFE), 115)


# ---------------------------------------------------------------- settling


def test_next_turn_within_settling_time_is_the_same_period() -> None:
    first = [*begun(), done(at=103), *held(103.2)]
    now = at(103.5, first)
    assert (now.state, now.assessment.since, states(now)) == (State.RUNNING, 100, [("running", 100, None)])
    assert [x.agrees for x in now.assessment.evidence] == [True, False]
    second = e.TurnStarted(thread=T, at=103.6, line=10)
    assert states(at(150, first, second, held(149))) == [("running", 100, None)]


def test_blank_screen_within_grace_is_no_change() -> None:
    story = [*opencode(), read("waiting-input", 101), read(None, 105)]
    assert at(106.9, story).state is State.WAITING_INPUT
    assert states(at(120, story, read("waiting-input", 106)))[-1] == ("waiting-input", 101, None)
    assert states(at(120, story, read("running", 106)))[-2:] == [
        ("waiting-input", 101, 106),
        ("running", 106, None),
    ]
    assert at(120, story).state is State.UNKNOWN


def test_a_menu_that_is_still_drawn_after_its_answer_is_no_period() -> None:
    story = [*opencode(), read("waiting-approval", 101), read("running", 105)]
    still_drawn = [*story, read("waiting-approval", 105.5)]
    assert at(105.6, still_drawn).state is State.WAITING_APPROVAL
    before = [("waiting-approval", 101, 105)]
    assert states(at(110, still_drawn, read("running", 106)))[-2:] == [*before, ("running", 105, None)]
    assert states(at(110, still_drawn, read("running", 107)))[-3:] == [
        ("running", 105, 105.5),
        ("waiting-approval", 105.5, 107),
        ("running", 107, None),
    ]


# ---------------------------------------------------------------- stalled


def running() -> list[e.Event]:
    processes = (process(50, agent="codex"), process(77, 50, started=101.5, env=ENV, cpu=1.0))
    return [*begun(), called(text="make"), *processes, *held(110)]


def test_stalled_without_output_cpu_and_io() -> None:
    assert at(150, running()).stalled is None
    found = at(101.5 + 120, running())
    assert (found.state, found.stalled) == (State.RUNNING, 101.5)
    assert found.line == "$ make"
    assert at(150, running(), after=30).stalled == 101.5
    assert build_snapshot(fleet(running()), 150).due == 101.5 + 120


def test_waiting_worker_has_not_stalled() -> None:
    assert at(9000, running(), ended(), done(at=103)).stalled is None
    assert at(9000, begun(), called(kind="question"), held(110)).stalled is None
    assert at(9000, begun(), called(kind="wait"), held(110)).stalled is None


def drawn(when: float, *lines: str) -> e.Event:
    return e.PaneDrawn(at=when, key=PANE, screen=lines)


def test_cpu_of_a_tool_is_a_sign_of_life_that_of_the_worker_is_not() -> None:
    story = [*opencode(), read("running", 101), drawn(101, "esc interrupt")]
    spins = e.ProcessSeen(at=290, process=process(11, 10, started=85.0, agent="opencode", cpu=99.0).process)
    assert at(300, story, spins, polled(291)).stalled == 101
    tool = process(12, 11, started=102.0, cpu=1.0)
    busy = e.ProcessSeen(at=290, process=process(12, 11, started=102.0, cpu=5.0).process)
    assert at(300, story, tool, busy, polled(291)).stalled is None


def test_static_spinner_is_stalled() -> None:
    tui = [*in_pane("codex", started=95.0, cwd=CWD), pane(title="⠋ project")]
    assert at(100.5, tui, begun(), held(99.9, 11)).stalled is None
    assert at(112, tui, begun(), held(111, 11)).stalled is not None
    turning = e.PaneSeen(at=110.5, pane=pane(title="⠙ project").pane)
    assert at(112, tui, begun(), turning, held(111, 11)).stalled is None
