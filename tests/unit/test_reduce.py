"""Folding is the same however the stream is cut, bounded, and changes nothing that was handed out."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agentdash.engine.reduce.fleet import reduce
from agentdash.model.limits import MAX_CALLS, MAX_MOMENTS
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
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
    e.ProcessGone(at=106, key=e.ProcessKey(77, 101.5)),
    done(at=107),
    *polled(108),
    e.SourceSeen(at=109, name="tmux", ok=True, detail="1 pane"),
]


@given(st.lists(st.integers(0, len(STORY)), max_size=6).map(sorted))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    pieces = Fleet()
    for start, end in zip([0, *cuts], [*cuts, len(STORY)], strict=True):
        pieces = reduce(pieces, STORY[start:end])
    assert pieces == reduce(Fleet(), STORY)


@given(st.integers(0, len(STORY)))
def test_a_fleet_that_was_handed_out_stays(cut: int) -> None:
    before = reduce(Fleet(), STORY[:cut])
    kept = msgspec.msgpack.encode(
        [list(before.threads.values()), list(before.panes.values()), list(before.processes.values())]
    )
    reduce(before, STORY[cut:])
    assert (
        msgspec.msgpack.encode(
            [list(before.threads.values()), list(before.panes.values()), list(before.processes.values())]
        )
        == kept
    )


def test_every_event_can_be_written_and_read_again() -> None:
    assert [e.decode(e.encode(event)) for event in STORY] == STORY


def test_a_long_thread_stays_bounded() -> None:
    many = [x for i in range(500) for x in (called(f"c{i}"), ended(f"c{i}"))]
    thread = fleet(begun(), many).threads[T]
    assert (len(thread.calls), len(thread.moments)) == (MAX_CALLS, MAX_MOMENTS)


def test_a_reset_file_is_read_anew() -> None:
    seen = e.FileSeen(thread=T, at=100, path="/x", size=9, modified=100)
    again = fleet(seen, begun(), called(), e.FileReset(thread=T, at=110), begun(at=111))
    assert again.threads[T] == fleet(seen, begun(at=111)).threads[T]


def test_a_deleted_file_takes_its_thread_along() -> None:
    assert fleet(begun(), e.FileGone(thread=T, at=110)).threads == {}


def test_skipped_lines_are_counted_by_what_they_were() -> None:
    skipped = [e.LineSkipped(thread=T, at=100, what="unknown", detail="world_state2") for _ in range(3)]
    torn = e.LineSkipped(thread=T, at=100, what="malformed", detail="unexpected end")
    assert fleet(begun(), skipped, torn).threads[T].skipped == (("unknown world_state2", 3), ("malformed", 1))


def test_a_turn_that_ends_closes_what_it_left_open() -> None:
    thread = fleet(begun(), called(), done()).threads[T]
    assert (thread.open_calls, thread.calls[-1].outcome) == ((), "aborted")


def test_a_background_command_ends_later() -> None:
    story = (
        begun(),
        called(),
        ended(outcome="running", exit_code=None),
        done(),
        ended(at=150.0, exit_code=3),
    )
    (call,) = fleet(*story).threads[T].calls
    assert (call.outcome, call.exit_code, call.ended_at) == ("ended", 3, 150.0)


def test_the_newest_title_time_is_kept() -> None:
    story = fleet(
        pane(title="a"),
        e.PaneSeen(at=95.0, pane=pane(title="a").pane),
        e.PaneSeen(at=99.0, pane=pane(title="b").pane),
    )  # type: ignore[attr-defined]
    assert story.panes[PANE].titled_at == 99.0
