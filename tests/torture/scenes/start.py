"""Keys at any time after the program was executed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from typing import Final

from tests.live.patience import scaled
from tests.live.terminal import Terminal
from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes

_STARTS: Final = 20
_LAST_S: Final = 0.8
"""Time after the execution at which the last keys are pressed, on a quiet machine: the screen is open."""
_HELP: Final = b"no key acts on a worker"
"""Shown by the help alone."""
_ENDED: Final = (0, 128 + signal.SIGQUIT, 128 + signal.SIGINT, -signal.SIGINT)


@scene("ctrl+c, ctrl+q, ctrl+s and keys at random times after the execution")
def early_keys(stage: Stage) -> Iterator[str]:
    """The keys that the terminal takes for itself before Python runs our first line are pressed again."""
    chance = random.Random(0)
    for number in range(_STARTS):
        after_s = scaled(_LAST_S) * chance.random()
        keys = (b"\x03", b"\x11", b"\x13?", b"?")[number % 4]
        for problem in _typed_ahead(stage.screen("--no-tmux"), keys, after_s):
            yield f"{keys!r} after {after_s:.2f} s: {problem}"


def _typed_ahead(terminal: Terminal, keys: bytes, after_s: float) -> Iterator[str]:
    pressed_at = time.monotonic() + after_s
    while time.monotonic() < pressed_at:
        terminal.read()
    was_ours = terminal.keeps_keys()
    terminal.press(keys)
    if keys == b"\x11" and not was_ours:
        terminal.until(terminal.keeps_keys, "its start")
        terminal.press(keys)
    ends = keys in (b"\x03", b"\x11")

    def is_effective() -> bool:
        terminal.read()
        return terminal.process.poll() is not None if ends else _HELP in terminal.output

    if not becomes(is_effective):
        yield "has no effect"
    if not ends:
        terminal.press(b"\x11")
    try:
        code = terminal.exit_code()
        terminal.assert_restored()
    except AssertionError as error:
        yield str(error)
    else:
        if code not in _ENDED and not (keys == b"\x03" and not was_ours):  # Python's own start: 1
            yield f"exits with {code}"
    terminal.close()
