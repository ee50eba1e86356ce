"""Notifications for a user away from the screen: terminal bell, terminal sequence, desktop.

Only the live dashboard sends them, as configured (`config.NotificationSettings`); by default, none.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Final

import msgspec

from agentdash.config import NotificationSettings
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.programs import environment, find_program, is_installed

_ICON: Final = "utilities-terminal"
_WITHOUT_TAGS: Final = str.maketrans("<>", "‹›")
_OSC_DELIMITERS: Final = re.compile(r"[;\x00-\x1f\x7f-\x9f]")
"""Characters that end or divide an OSC sequence."""


class Notifier:
    """Sends a notification for each change of state that is configured.

    Args:
        environ: where `TMUX` shows that the terminal is a tmux pane.
        run: starts a program without waiting for it.
    """

    def __init__(
        self,
        settings: NotificationSettings,
        write: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        run: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._settings = settings
        self._write = write
        self._run = run or spawn
        self._in_tmux = bool(environ.get("TMUX"))
        self._state = NotificationState()

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Send notifications for what is new in this snapshot."""
        settings = self._settings
        wanted = {*settings.bell, *settings.terminal, *settings.desktop}
        self._state, found = next_notifications(self._state, snapshot, wanted, settings.pause)
        if any(notification.state in settings.bell for notification in found):
            self._write("\a")
        if (
            merged := merge_notifications(each for each in found if each.state in settings.terminal)
        ) is not None:
            sequences = osc_sequences(merged)
            self._write("".join(tmux_passthrough(each) if self._in_tmux else each for each in sequences))
        if (
            merged := merge_notifications(each for each in found if each.state in settings.desktop)
        ) is not None and (command := desktop_command(merged)):
            self._run(command)


def osc_sequences(notification: Notification) -> tuple[str, str]:
    """Return the notification as OSC 9 and as OSC 777; a terminal supports one and ignores the other.

    OSC 9: iTerm2, Ghostty, WezTerm, Windows Terminal. OSC 777: rxvt, foot, VTE.
    """
    title, text = (_OSC_DELIMITERS.sub(" ", part) for part in (notification.title, notification.text))
    return f"\x1b]9;{title}: {text}\x1b\\", f"\x1b]777;notify;{title};{text}\x1b\\"


def tmux_passthrough(sequence: str) -> str:
    """Return a sequence wrapped for the terminal outside tmux (3.3+: only with `allow-passthrough on`)."""
    escaped = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{escaped}\x1b\\"


def desktop_command(
    notification: Notification,
    platform: str = sys.platform,
    is_there: Callable[[str], bool] = is_installed,
) -> list[str] | None:
    """Return the command for a desktop notification; None where there is no program for it."""
    title, text = notification.title, notification.text
    if platform == "darwin":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return ["osascript", "-e", script, "--", title, text] if is_there("osascript") else None
    if not is_there("notify-send"):
        return None
    # the body is markup (Desktop Notifications 1.2); the summary is plain text, which some servers parse too
    summary = title.translate(_WITHOUT_TAGS)
    body = escape(text, quote=False)
    return ["notify-send", "--app-name=agentdash", f"--icon={_ICON}", "--", summary, body]


def spawn(command: Sequence[str]) -> None:
    """Start a program, detached from this terminal; ignore errors, which the user could not act on."""
    null = subprocess.DEVNULL
    try:
        subprocess.Popen(
            [find_program(command[0]), *command[1:]],
            env=environment(command[0]),
            stdin=null,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
    except OSError:
        return


# ------------------------------------------------------------
# Which changes of a snapshot deserve a notification. Pure: `agentdash.tui.notifier` sends them


_MAX_TEXT_CHARS: Final = 160
"""Characters of a title or text: desktops show no more."""


class Notification(msgspec.Struct, frozen=True):
    """One notification."""

    worker: str
    """The worker's id; empty for several workers."""
    state: State
    title: str
    text: str


class NotificationState(msgspec.Struct, frozen=True):
    """What has been notified so far."""

    since: float | None = None
    """Time of the first snapshot (unix seconds): earlier states are not notified."""
    states: dict[str, State] = {}
    """The newest known state of each worker."""
    notified: dict[str, float] = {}
    """When each worker was last notified (unix seconds), within the pause."""


def next_notifications(
    state: NotificationState, snapshot: Snapshot, wanted: Collection[State], pause: float
) -> tuple[NotificationState, tuple[Notification, ...]]:
    """Return the state after a snapshot, and the notifications that it makes due.

    A worker is notified when it enters a wanted state after the first snapshot, at most once per pause.

    Args:
        state: after the snapshot before.
        wanted: the states to notify.
        pause: seconds between two notifications of one worker.
    """
    since = snapshot.at if state.since is None else state.since
    notified = {worker: at for worker, at in state.notified.items() if snapshot.at - at < pause}
    due = [
        worker
        for worker in snapshot.workers
        if worker.state in wanted
        and _is_present(worker)
        and worker.id not in notified
        and _has_entered(worker, state, since)
    ]
    notified |= {worker.id: snapshot.at for worker in due}
    states = {worker.id: worker.state for worker in snapshot.workers}
    return NotificationState(since=since, states=states, notified=notified), tuple(map(_notification, due))


def _is_present(worker: Worker) -> bool:
    """Return whether a state that would need the user does so: it is not acknowledged, nor past."""
    return worker.needs_you or not worker.state.needs_you


def _has_entered(worker: Worker, state: NotificationState, since: float) -> bool:
    """Return whether a worker has entered its state since the snapshot before, and since the first one."""
    return state.states.get(worker.id) != worker.state and (worker.assessment.since or 0.0) >= since


def _notification(worker: Worker) -> Notification:
    return Notification(
        worker=worker.id,
        state=worker.state,
        title=clean_line(f"{worker.name}: {worker.state.replace('-', ' ')}", _MAX_TEXT_CHARS),
        text=clean_line(worker.fact.text, _MAX_TEXT_CHARS),
    )


def merge_notifications(found: Iterable[Notification]) -> Notification | None:
    """Return several notifications as one; None for none."""
    found = tuple(found)
    if len(found) < 2:
        return found[0] if found else None
    names = ", ".join(notification.title.partition(":")[0] for notification in found)
    return Notification(
        worker="",
        state=found[0].state,
        title=f"{len(found)} workers need you",
        text=clean_line(names, _MAX_TEXT_CHARS),
    )
