"""Reducing: independent of batches, bounded, and without changing any fleet that was returned."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.process import ProcessKey
from tests.unit.story import CHILD, PANE, T, begun, called, done, ended, fleet, held, pane, polled, process

STORY: list[e.Event] = [
    *begun(),
    pane(),
    process(10, started=80.0),
    process(11, 10, started=85.0, agent="codex"),
    called(),
    process(77, 11, started=101.5, env={"CODEX_THREAD_ID": T, "CODEX_SANDBOX_NETWORK_DISABLED": "1"}),
    *held(102, 11),
    ended(),
    *begun(CHILD, at=104, parent=T),
    e.PaneDrawn(at=105, key=PANE, screen=("a", "b")),
    e.ProcessGone(at=106, key=ProcessKey(77, 101.5)),
    done(at=107),
    *polled(108),
    e.SourceSeen(at=109, name="tmux", ok=True, detail="1 pane"),
]


@given(st.lists(st.integers(0, len(STORY)), max_size=6).map(sorted))
def test_reduce_is_independent_of_batches(cuts: list[int]) -> None:
    pieces = Fleet()
    for start, end in zip([0, *cuts], [*cuts, len(STORY)], strict=True):
        pieces = reduce(pieces, STORY[start:end])
    assert pieces == reduce(Fleet(), STORY)


@given(st.integers(0, len(STORY)))
def test_returned_fleet_never_changes(cut: int) -> None:
    before = reduce(Fleet(), STORY[:cut])
    kept = pickle.dumps(before)
    reduce(before, STORY[cut:])
    assert pickle.dumps(before) == kept


def test_unchanged_mappings_are_shared() -> None:
    """A batch copies only what it changes."""
    before = reduce(Fleet(), STORY)
    after = reduce(before, [e.PaneDrawn(at=110, key=PANE, screen=("c",))])
    changed = [name for name in Fleet.__struct_fields__ if getattr(after, name) is not getattr(before, name)]
    assert changed == ["panes"]


def test_end_of_turn_aborts_open_calls() -> None:
    thread = fleet(begun(), called(), done()).threads[T]
    assert (thread.open_calls, thread.calls[-1].outcome) == ((), "aborted")


def test_background_command_ends_a_second_time() -> None:
    story = (
        begun(),
        called(),
        ended(outcome="running", exit_code=None),
        done(),
        ended(at=150.0, exit_code=3),
    )
    (call,) = fleet(*story).threads[T].calls
    assert (call.outcome, call.exit_code, call.ended_at) == ("ended", 3, 150.0)
