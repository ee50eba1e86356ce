"""Tells somebody away from the screen that a worker needs him: by the terminal's bell, by the terminal itself, by the desktop.

Only the live dashboard is given one of these. Nothing is said unless the configuration asks for it (`config.Notices`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentdash.config import NotificationSettings
from agentdash.engine.notifications import Notification, NotificationState, next_notifications, together
from agentdash.model.worker import Snapshot

_ICON: Final = "utilities-terminal"
_SPECIAL: Final = re.compile(r"[;\x00-\x1f\x7f-\x9f]")
"""What would end or divide an OSC sequence."""


class Notifier:
    """Watches snapshots for what deserves a notice, and gives it.

    Args:
        settings: which states, and how.
        write: sends text to the terminal.
        environ: where it is looked up whether that terminal is a tmux.
        run: starts a program and does not wait for it.
    """

    def __init__(
        self,
        settings: NotificationSettings,
        write: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        run: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._settings, self._write, self._run = settings, write, run or start
        self._in_tmux = bool(environ.get("TMUX"))
        self._told = NotificationState()

    def see(self, snapshot: Snapshot) -> None:
        """Says what is new in this snapshot."""
        settings = self._settings
        wanted = {*settings.bell, *settings.terminal, *settings.desktop}
        self._told, found = next_notifications(self._told, snapshot, wanted, settings.pause)
        if any(notice.state in settings.bell for notice in found):
            self._write("\a")
        if (notice := together(x for x in found if x.state in settings.terminal)) is not None:
            self._write("".join(through_tmux(each) if self._in_tmux else each for each in sequences(notice)))
        if (notice := together(x for x in found if x.state in settings.desktop)) is not None and (
            command := desktop(notice)
        ):
            self._run(command)


def sequences(notice: Notification) -> tuple[str, str]:
    """OSC 9 (iTerm2, Ghostty, WezTerm, Windows Terminal) and OSC 777 (rxvt, foot, VTE): each terminal heeds one, and ignores the other."""
    title, text = _SPECIAL.sub(" ", notice.title), _SPECIAL.sub(" ", notice.text)
    return f"\x1b]9;{title}: {text}\x1b\\", f"\x1b]777;notify;{title};{text}\x1b\\"


def through_tmux(sequence: str) -> str:
    """Wrapped so that tmux hands it on to the terminal it runs in (3.3+: where `allow-passthrough` is on)."""
    escaped = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{escaped}\x1b\\"


def desktop(
    notice: Notification, platform: str = sys.platform, which: Callable[[str], str | None] = shutil.which
) -> list[str] | None:
    """The command that makes a desktop notification; None where there is no such program."""
    if platform == "darwin":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return ["osascript", "-e", script, "--", notice.title, notice.text] if which("osascript") else None
    if which("notify-send") is None:
        return None
    return ["notify-send", "--app-name=agentdash", f"--icon={_ICON}", "--", notice.title, notice.text]


def start(command: Sequence[str]) -> None:
    """Starts a program, away from this terminal. One that cannot be started is no reason to disturb anybody."""
    quiet = subprocess.DEVNULL
    try:
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    except OSError:
        return
