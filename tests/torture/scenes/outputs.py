"""Outputs that nobody reads, or that no disk takes, of all commands without a screen."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Final

from tests.live.patience import scaled
from tests.torture.faults import GOOD
from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes

_COMMANDS: Final = (
    "--version",
    "line",
    "status --no-tmux",
    "status --json --no-tmux",
    "check",
    "check --format=sarif",
    "sessions --json",
    f"explain {GOOD}",
    "metrics",
    "doctor --json",
    "since 1h",
    "schema status",
    "status --watch --no-tmux",
    "status --follow --no-tmux",
)
_FULL: Final = {
    "stdout is full": ">/dev/full",
    "stdout and stderr are full": ">/dev/full 2>&1",
}
_STREAMS: Final = ("status --watch --no-tmux", "status --follow --no-tmux", "sessions --json")
_START_S: Final = 2.0
"""After which a command writes, on a quiet machine."""


@scene("no disk takes the output")
def full(stage: Stage) -> Iterator[str]:
    for name, redirection in _FULL.items():
        for command in _COMMANDS:
            shell = ["sh", "-c", f'"$@" {redirection}', "sh", *stage.command(*command.split())]
            done = stage.to_its_end(shell, 60.0)
            if done.code != 2 or done.err.count("\n") > 1:
                yield f"{name}: {command} exits with {done.code}: {done.err[-200:]}"


@scene("the reader of the output is stopped")
def unread(stage: Stage) -> Iterator[str]:
    """Its pipe is full from the beginning."""
    for command in _STREAMS:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        while _takes(writer):
            pass
        os.set_blocking(writer, True)
        process = stage.start(
            stage.command(*command.split()), stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        os.close(writer)
        time.sleep(scaled(_START_S))
        process.terminate()
        if not becomes(lambda process=process: process.poll() is not None):
            yield f"{command}: SIGTERM does not end it"
        os.close(reader)


def _takes(pipe: int) -> bool:
    """Write to a pipe; return whether it has taken anything."""
    try:
        return os.write(pipe, b"x" * 4_096) > 0
    except BlockingIOError:
        return False
