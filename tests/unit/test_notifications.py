"""Who is told what, when, and in which bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentdash.config import Config, NotificationSettings
from agentdash.engine.notifications import Notification, NotificationState, next_notifications, together
from agentdash.model.states import NEEDS_YOU, State
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.tui.notifier import Notifier, desktop_command, osc_sequences, tmux_passthrough

ASKS = State.WAITING_APPROVAL


def one(state: State, since: float, name: str = "deploy", why: str = "wants to push") -> Worker:
    return Worker(f"id-{name}", "pane", name, Agent("codex"), Assessment(state, since, why))


def said(
    *snapshots: tuple[float, Sequence[Worker]], wanted: Sequence[State] = NEEDS_YOU, pause: float = 30.0
) -> list[list[str]]:
    told, out = NotificationState(), []
    for at, workers in snapshots:
        told, found = next_notifications(told, Snapshot(at, tuple(workers)), wanted, pause)
        out.append([notice.title for notice in found])
    return out


def test_entering_a_state_is_news_and_being_in_it_is_none() -> None:
    asks = one(ASKS, 105)
    assert said((100, [one(State.RUNNING, 90)]), (105, [asks]), (106, [asks])) == [
        [],
        ["deploy: waiting approval"],
        [],
    ]


def test_what_was_so_before_is_no_news_however_late_it_is_read() -> None:
    assert said((100, []), (101, [one(ASKS, 50)])) == [[], []]


def test_a_worker_that_comes_and_asks_is_news() -> None:
    assert said((100, []), (105, [one(ASKS, 104)])) == [[], ["deploy: waiting approval"]]


def test_only_wanted_states() -> None:
    story = ((100.0, [one(State.RUNNING, 90)]), (105.0, [one(State.FAILED_PROVIDER, 105)]))
    assert said(*story, wanted=[ASKS]) == [[], []]


def test_to_and_fro_is_told_once_in_a_while() -> None:
    story = [(100.0 + n, [one(ASKS if n % 2 else State.RUNNING, 100.0 + n)]) for n in range(60)]
    assert [n for n, titles in enumerate(said(*story)) if titles] == [1, 31]


def test_several_at_once_are_one() -> None:
    found = [
        Notification("1", ASKS, "a: waiting approval", "x"),
        Notification("2", ASKS, "b: waiting approval", "y"),
    ]
    assert together(found) == Notification("", ASKS, "2 workers need you", "a, b")
    assert together(found[:1]) == found[0]
    assert together([]) is None


# ---------------------------------------------------------------- the edge


class Edge:
    def __init__(self, settings: NotificationSettings, **environ: str) -> None:
        self.written: list[str] = []
        self.started: list[Sequence[str]] = []
        self._notifier = Notifier(settings, self.written.append, environ, self.started.append)

    def sees(self, *workers: Worker, at: float = 100.0) -> None:
        self._notifier.on_snapshot(Snapshot(at, workers))


def test_nothing_is_said_by_default() -> None:
    assert not Config().notices.wanted
    edge = Edge(NotificationSettings())
    edge.sees()
    edge.sees(one(ASKS, 101), at=101)
    assert (edge.written, edge.started) == ([], [])


def test_each_way_has_its_own_states() -> None:
    edge = Edge(NotificationSettings(bell=(ASKS,), terminal=(State.FAILED_PROVIDER,)))
    edge.sees()
    edge.sees(one(ASKS, 101), at=101)
    assert edge.written == ["\a"]
    edge.sees(one(State.FAILED_PROVIDER, 102, "build", "quota"), at=102)
    assert edge.written[1:] == [
        "\x1b]9;build: failed provider: quota\x1b\\\x1b]777;notify;build: failed provider;quota\x1b\\"
    ]


def test_through_tmux_every_sequence_is_wrapped() -> None:
    edge = Edge(NotificationSettings(terminal=(ASKS,)), TMUX="/tmp/tmux-0/default,1,0")
    edge.sees()
    edge.sees(one(ASKS, 101), at=101)
    nine, seven = osc_sequences(Notification("", ASKS, "deploy: waiting approval", "wants to push"))
    assert edge.written == [tmux_passthrough(nine) + tmux_passthrough(seven)]
    assert (
        tmux_passthrough(nine) == "\x1bPtmux;\x1b\x1b]9;deploy: waiting approval: wants to push\x1b\x1b\\\x1b\\"
    )


def test_nothing_foreign_ends_a_sequence_or_becomes_an_option() -> None:
    hostile = one(ASKS, 101, "--help;\x1b]0;owned\a", "x;y\x9d0;z\x1b\\")
    _, found = next_notifications(NotificationState(100.0), Snapshot(101, (hostile,)), [ASKS], 30)
    for sequence in osc_sequences(found[0]):
        body = sequence[2:-2]
        assert all(c.isprintable() for c in body)
        assert body.count(";") == (1 if body.startswith("9") else 3)
    command = desktop_command(found[0], "linux", lambda name: f"/usr/bin/{name}")
    assert command is not None
    assert command[command.index("--") + 1 :] == [found[0].title, found[0].text]


@pytest.mark.parametrize(("platform", "program"), [("linux", "notify-send"), ("darwin", "osascript")])
def test_the_desktop_of_each_platform(platform: str, program: str) -> None:
    notice = Notification("1", ASKS, "title", "text")
    command = desktop_command(notice, platform, lambda name: f"/usr/bin/{name}")
    assert command is not None
    assert (command[0], command[-2:]) == (program, ["title", "text"])
    assert desktop_command(notice, platform, lambda name: None) is None
