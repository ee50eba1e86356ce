"""Notifications: when they are due, and the bytes and commands that send them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentdash.config import Config, NotificationSettings
from agentdash.model.states import NEEDS_YOU, State
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.tui.notifier import (
    Notification,
    NotificationState,
    Notifier,
    desktop_command,
    merge_notifications,
    next_notifications,
    osc_sequences,
    tmux_passthrough,
)

WAITING = State.WAITING_APPROVAL


def worker(state: State, since: float, name: str = "deploy", why: str = "wants to push") -> Worker:
    return Worker(f"id-{name}", "pane", name, Agent("codex"), Assessment(state, since, why))


def titles(
    *snapshots: tuple[float, Sequence[Worker]], wanted: Sequence[State] = NEEDS_YOU, pause: float = 30.0
) -> list[list[str]]:
    state, out = NotificationState(), []
    for at, workers in snapshots:
        state, found = next_notifications(state, Snapshot(at, tuple(workers)), wanted, pause)
        out.append([notification.title for notification in found])
    return out


def test_entering_a_state_is_notified_once() -> None:
    waiting = worker(WAITING, 105)
    assert titles((100, [worker(State.RUNNING, 90)]), (105, [waiting]), (106, [waiting])) == [
        [],
        ["deploy: waiting approval"],
        [],
    ]


def test_states_from_before_the_first_snapshot_are_not_notified() -> None:
    assert titles((100, []), (101, [worker(WAITING, 50)])) == [[], []]


def test_new_worker_in_a_wanted_state_is_notified() -> None:
    assert titles((100, []), (105, [worker(WAITING, 104)])) == [[], ["deploy: waiting approval"]]


def test_other_states_are_not_notified() -> None:
    story = ((100.0, [worker(State.RUNNING, 90)]), (105.0, [worker(State.FAILED_PROVIDER, 105)]))
    assert titles(*story, wanted=[WAITING]) == [[], []]


def test_alternating_states_are_notified_once_per_pause() -> None:
    story = [(100.0 + n, [worker(WAITING if n % 2 else State.RUNNING, 100.0 + n)]) for n in range(60)]
    assert [n for n, found in enumerate(titles(*story)) if found] == [1, 31]


def test_notifications_are_merged() -> None:
    found = [
        Notification("1", WAITING, "a: waiting approval", "x"),
        Notification("2", WAITING, "b: waiting approval", "y"),
    ]
    assert merge_notifications(found) == Notification("", WAITING, "2 workers need you", "a, b")
    assert merge_notifications(found[:1]) == found[0]
    assert merge_notifications([]) is None


# ---------------------------------------------------------------- sending


class FakeTerminal:
    def __init__(self, settings: NotificationSettings, **environ: str) -> None:
        self.written: list[str] = []
        self.started: list[Sequence[str]] = []
        self._notifier = Notifier(settings, self.written.append, environ, self.started.append)

    def show(self, *workers: Worker, at: float = 100.0) -> None:
        self._notifier.on_snapshot(Snapshot(at, workers))


def test_no_notifications_by_default() -> None:
    assert not Config().notices.wanted
    terminal = FakeTerminal(NotificationSettings())
    terminal.show()
    terminal.show(worker(WAITING, 101), at=101)
    assert (terminal.written, terminal.started) == ([], [])


def test_bell_and_terminal_have_their_own_states() -> None:
    terminal = FakeTerminal(NotificationSettings(bell=(WAITING,), terminal=(State.FAILED_PROVIDER,)))
    terminal.show()
    terminal.show(worker(WAITING, 101), at=101)
    assert terminal.written == ["\a"]
    terminal.show(worker(State.FAILED_PROVIDER, 102, "build", "quota"), at=102)
    assert terminal.written[1:] == [
        "\x1b]9;build: failed provider: quota\x1b\\\x1b]777;notify;build: failed provider;quota\x1b\\"
    ]


def test_sequences_are_wrapped_inside_tmux() -> None:
    terminal = FakeTerminal(NotificationSettings(terminal=(WAITING,)), TMUX="/tmp/tmux-0/default,1,0")
    terminal.show()
    terminal.show(worker(WAITING, 101), at=101)
    nine, seven = osc_sequences(Notification("", WAITING, "deploy: waiting approval", "wants to push"))
    assert terminal.written == [tmux_passthrough(nine) + tmux_passthrough(seven)]
    assert (
        tmux_passthrough(nine)
        == "\x1bPtmux;\x1b\x1b]9;deploy: waiting approval: wants to push\x1b\x1b\\\x1b\\"
    )


def test_foreign_text_cannot_end_a_sequence_or_become_an_option() -> None:
    hostile = worker(WAITING, 101, "--help;\x1b]0;owned\a", "x;y\x9d0;z\x1b\\")
    _, found = next_notifications(NotificationState(100.0), Snapshot(101, (hostile,)), [WAITING], 30)
    for sequence in osc_sequences(found[0]):
        body = sequence[2:-2]
        assert all(c.isprintable() for c in body)
        assert body.count(";") == (1 if body.startswith("9") else 3)
    command = desktop_command(found[0], "linux", lambda name: f"/usr/bin/{name}")
    assert command is not None
    assert command[command.index("--") + 1 :] == [found[0].title, found[0].text]


@pytest.mark.parametrize(("platform", "program"), [("linux", "notify-send"), ("darwin", "osascript")])
def test_desktop_command_by_platform(platform: str, program: str) -> None:
    notification = Notification("1", WAITING, "title", "text")
    command = desktop_command(notification, platform, lambda name: f"/usr/bin/{name}")
    assert command is not None
    assert (command[0], command[-2:]) == (program, ["title", "text"])
    assert desktop_command(notification, platform, lambda name: None) is None


def test_markup_in_desktop_notices_is_escaped() -> None:
    notification = Notification("1", WAITING, "<b>a</b>", "<img src=x> & more")
    command = desktop_command(notification, "linux", lambda name: f"/usr/bin/{name}")
    assert command is not None
    assert command[-2:] == ["‹b›a‹/b›", "&lt;img src=x&gt; &amp; more"]
