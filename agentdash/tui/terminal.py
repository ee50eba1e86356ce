"""The terminal of the full-screen commands: required, and restored however they end.

Without Textual, whose import takes longer than the check: the driver of the app is in `textual_internals`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from agentdash.tui import start_up

_WRITABLE_WITHIN_S: Final = 0.2
"""A terminal that takes no output for so long (ctrl+s, a dead link) is not restored."""
_RESTORE: Final = (
    b"\x18"  # CAN: cancels a sequence that was cut off in its middle
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l"  # no bracketed paste, wrapped lines, no reports of the size
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l"  # no mouse, no focus
    b"\x1b[<u\x1b[0m\x1b[?1049l\x1b[?25h"  # usual keys and colours, main screen, cursor
)
SAVE_TITLE: Final = "\x1b[22;2t"
RESTORE_TITLE: Final = "\x1b[23;2t"
"""Push the title to the terminal's stack, and pop it (xterm, and tmux, VTE, kitty, iTerm2 likewise)."""

application_mode: Final = threading.Event()
"""Set while an app has the terminal in its own mode: alternate screen, mouse, raw keys."""


title_saved: Final = threading.Event()
"""Set while the terminal has another title than before the app."""


class NoTerminalError(Exception):
    """There is no terminal to draw on. The message is the reason."""


@contextmanager
def own_terminal() -> Iterator[Callable[[], None]]:
    """Prepare the terminal of this process for the block, and restore it after.

    Yields a function that restores it at once, for an exit by force. In the block ctrl+q sends SIGQUIT until
    the app reads keys itself.

    Raises:
        NoTerminalError: standard input or output is not a terminal, or it can only print lines.
    """
    _require_terminal()
    try:
        start_up.begin()
        yield _restore
    finally:
        start_up.restore()


def _require_terminal() -> None:
    for name, stream in (("input", sys.__stdin__), ("output", sys.__stdout__)):
        if stream is None or stream.closed or not stream.isatty():
            raise NoTerminalError(f"standard {name} is not a terminal")
    if os.environ.get("TERM") == "dumb":
        raise NoTerminalError("TERM is dumb")


def _restore() -> None:
    start_up.restore()
    descriptor = sys.__stdout__.fileno()  # type: ignore[union-attr]
    if application_mode.is_set() and select.select([], [descriptor], [], _WRITABLE_WITHIN_S)[1]:
        os.write(descriptor, _RESTORE + (RESTORE_TITLE.encode() if title_saved.is_set() else b""))


def has_job_control() -> bool:
    """Return whether a shell can continue this process once it is stopped; a tmux pane's program has none."""
    try:
        parent = os.getppid()
        return os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != os.getpgrp()
    except OSError:
        return False


def hang_up() -> None:
    """End this process, as the kernel does when the terminal of a session vanishes."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGHUP)
