"""The terminal from the program's first line until an app reads keys: what is typed meanwhile is kept.

Imported before everything else, so it imports only what is built in. Without it the terminal would edit lines
of keys, and take ctrl+s and ctrl+q to stop and continue output.
"""

from __future__ import annotations

import os
import signal
import sys
import termios

SCREENS = ("demo", "replay")
"""Commands that open a screen, besides none."""
_PRINTS_ONLY = ("-h", "--help", "--version")
_CTRL_Q = b"\x11"
_SIGNAL_CODE = 128
"""Added to the number of a signal: the exit code, as shells report it."""


class _State:
    before: list[object] | None = None
    """Settings of the terminal before the program changed them; None while it has not."""


def begin_early(arguments: list[str]) -> None:
    """Prepare the terminal if the command may open a screen; what opens none calls `restore`.

    A signal then ends the program with a restored terminal, until other handlers are installed.
    """
    first = arguments[0] if arguments else "-"
    if not (first.startswith("-") or first in SCREENS) or any(each in _PRINTS_ONLY for each in arguments):
        return
    streams = (sys.__stdin__, sys.__stdout__)
    if os.environ.get("TERM") == "dumb" or not all(each is not None and each.isatty() for each in streams):
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    try:
        begin()
    except termios.error:  # the terminal has vanished
        return


def begin() -> list[object]:
    """Let ctrl+q end the program, and keep other keys for the app; return the settings before.

    Raises:
        termios.error: standard input is no terminal.
    """
    descriptor = _input()
    if _State.before is None:
        _State.before = termios.tcgetattr(descriptor)
    set_terminal(_settings(_State.before))
    return _State.before


def restore() -> None:
    """Restore the terminal as it was before `begin`, if that was called."""
    if _State.before is not None:
        set_terminal(_State.before)


def settings_before() -> list[object] | None:
    """Return the settings of the terminal before the program changed them; None while it has not."""
    return _State.before


def set_terminal(settings: list[object]) -> None:
    """Change the settings; a process in the background would be stopped by the attempt, and leaves them."""
    descriptor = _input()
    try:
        if os.tcgetpgrp(descriptor) == os.getpgrp():
            termios.tcsetattr(descriptor, termios.TCSANOW, settings)  # type: ignore[arg-type]
    except (termios.error, OSError):
        pass


def _input() -> int:
    return sys.__stdin__.fileno()  # type: ignore[union-attr]


def _settings(before: list[object]) -> list[object]:
    """Return settings by which keys are kept as they are typed, and ctrl+c, ctrl+z and ctrl+q are signals."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, characters = before
    characters = list(characters)  # type: ignore[call-overload]
    characters[termios.VQUIT] = _CTRL_Q
    characters[termios.VMIN] = 1
    characters[termios.VTIME] = 0
    iflag &= ~(termios.IXON | termios.ICRNL)  # type: ignore[operator]
    lflag &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)  # type: ignore[operator]
    return [iflag, oflag, cflag, lflag, ispeed, ospeed, characters]


def _end(number: int, frame: object) -> None:
    """End the program by a signal, before anything else has been begun."""
    del frame
    restore()
    os._exit(_SIGNAL_CODE + number)
