"""Processes in pseudo-terminals of their own."""

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.live.patience import scaled, wait_until
from tests.live.programs import restore_defaults

READY: Final = b"\x1b[?2004h"
"""Written last when an app has set up its terminal."""
PRIVATE_MODES: Final = (b"1049", b"1000", b"1003", b"1006", b"1004", b"2004")
"""Alternate screen, mouse, focus and paste reports."""
END_LIMIT_S: Final = 10.0
"""On a quiet machine, for an end that takes less than 2 s there."""


class Terminal:
    """A process that controls a pseudo-terminal of its own, as in a terminal emulator.

    Args:
        command: the program and its arguments.
        env: its environment.
        columns: of the terminal.
        lines: of the terminal.
        ignored: signals that the process ignores from its start.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 100,
        lines: int = 30,
        ignored: Sequence[int] = (),
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.settings = termios.tcgetattr(self.master)
        self.output = b""

        def prepare() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            restore_defaults()
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            preexec_fn=prepare,  # noqa: PLW1509 - the tests have no threads
        )
        os.close(slave)

    def read(self) -> None:
        """Collect what has been written."""
        while self.master >= 0 and select.select([self.master], [], [], 0.02)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError as error:  # EIO: no process has it open any more
                if error.errno != errno.EIO:
                    raise
                return
            if not data:
                return
            self.output += data

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait, and read meanwhile: a full terminal blocks its writer."""

        def reached() -> object:
            self.read()
            return condition()

        wait_until(reached, what)

    def until_ready(self) -> None:
        """Wait until an app reads keys, and has painted."""
        self.until(lambda: READY in self.output and len(self.output) > 2_000, f"the app in {self.output!r}")

    def keeps_keys(self) -> bool:
        """Return whether the process has prepared the terminal: before, ctrl+q and ctrl+s never reach it."""
        return not termios.tcgetattr(self.master)[0] & termios.IXON

    def until_written(self, size: int, what: str) -> None:
        """Wait until the output has grown by `size` bytes."""
        before = len(self.output)
        self.until(lambda: len(self.output) >= before + size, what)

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, as the window of a terminal emulator does."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def exit_code(self) -> int:
        """Wait for the end; return the exit code, negative where a signal has killed the process."""
        began = time.monotonic()
        while self.process.poll() is None:
            assert time.monotonic() < began + scaled(END_LIMIT_S), "it does not end"
            if self.master >= 0:
                self.read()
            else:
                time.sleep(0.02)
        self.read()
        return self.process.returncode

    def assert_restored(self) -> None:
        """Assert that settings and modes are as before."""
        assert termios.tcgetattr(self.master) == self.settings
        left = [mode for mode in PRIVATE_MODES if self._is_on(mode)]
        assert not left, f"modes left on: {left}"

    def _is_on(self, mode: bytes) -> bool:
        return self.output.rfind(b"\x1b[?" + mode + b"h") > self.output.rfind(b"\x1b[?" + mode + b"l")

    def vanish(self) -> None:
        """Close the terminal."""
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        """End the process and the terminal."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.master >= 0:
            self.vanish()
