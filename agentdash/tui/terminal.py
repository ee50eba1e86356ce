"""The terminal of the full-screen commands: required, watched, and restored however they end.

Without Textual, whose import takes longer than the check: the driver of the app is in `terminal_driver`.
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

_ORPHAN_CHECK_INTERVAL_S: Final = 1.0
"""Between two checks whether the shell is gone: of one that has ended, or whose end is not reported."""
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
    the app reads keys itself, and the process receives SIGHUP when the terminal vanishes.

    Raises:
        NoTerminalError: standard input or output is not a terminal, or it can only print lines.
    """
    _require_terminal()
    try:
        start_up.begin()
        _watch(sys.__stdin__.fileno())  # type: ignore[union-attr]
        yield _restore
    finally:
        start_up.restore()


def _require_terminal() -> None:
    for name, stream in (("input", sys.__stdin__), ("output", sys.__stdout__)):
        try:
            if stream is not None and stream.isatty():
                continue
        except ValueError:  # it is closed
            pass
        raise NoTerminalError(f"standard {name} is not a terminal")
    if os.environ.get("TERM") == "dumb":
        raise NoTerminalError("TERM is dumb")


def _restore() -> None:
    start_up.restore()
    descriptor = sys.__stdout__.fileno()  # type: ignore[union-attr]
    if application_mode.is_set() and select.select([], [descriptor], [], _WRITABLE_WITHIN_S)[1]:
        os.write(descriptor, _RESTORE + (RESTORE_TITLE.encode() if title_saved.is_set() else b""))


# ---------------------------------------------------------------- a terminal that vanishes


def _watch(descriptor: int) -> None:
    """Send SIGHUP to this process when its terminal has vanished; once for a process."""
    name = "terminal"
    if all(thread.name != name for thread in threading.enumerate()):
        threading.Thread(target=_wait_for_hangup, args=(descriptor,), name=name, daemon=True).start()


def _wait_for_hangup(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hangups are always reported
    parent = os.getppid()
    ending = _end_of(parent)
    if ending is not None:
        poll.register(ending, select.POLLIN)
    while True:
        ready = [
            file for file, _ in poll.poll(None if ending is not None else _ORPHAN_CHECK_INTERVAL_S * 1_000)
        ]
        if ending in ready:
            poll.unregister(ending)
            os.close(ending)
            ending = None
        is_orphan = os.getppid() != parent and not _in_foreground(descriptor)
        if descriptor in ready or is_orphan:  # reading fails in an orphaned background process
            break
    hang_up()


def _end_of(parent: int) -> int | None:
    """Return a file that becomes readable when the parent ends (Linux 5.3); None where there is none."""
    try:
        ending = os.pidfd_open(parent)
    except (AttributeError, OSError):
        return None
    if os.getppid() == parent:
        return ending
    os.close(ending)  # it had ended, and its number may be another process's
    return None


def _in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


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
