"""Files that grow, shrink and vanish while they are read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.live.terminal import Terminal
from tests.torture.faults import GOOD
from tests.torture.scenes import scene
from tests.torture.soak import usage
from tests.torture.stage import Stage, becomes, quits, whole

_FLOOD: Final = """
import sys, time
with open(sys.argv[1], "ab", buffering=0) as log:
    end = time.monotonic() + 15
    while time.monotonic() < end:
        log.write(b"{}\\n" * 20_000)
        time.sleep(0.02)
"""
"""A million lines of three bytes a second, as far as the disk takes them."""
_MAX_RSS_MB: Final = 400.0
_ROTATE: Final = """
import os, sys, time
path = sys.argv[1]
content = open(path, "rb").read()
end = time.monotonic() + 20
while time.monotonic() < end:
    for step in range(4):
        if step == 0:
            os.truncate(path, len(content) // 2)
        elif step == 1:
            os.truncate(path, 0)
        elif step == 2:
            os.rename(path, path + ".old")
        with open(path + ".new", "wb") as new:
            new.write(content)
        os.replace(path + ".new", path)
        time.sleep(0.01)
os.unlink(path + ".old")
"""
"""Ends with the file as it was at the beginning."""


def answers(terminal: Terminal, key: bytes) -> bool:
    """Return whether something is drawn after a key."""
    drawn = len(terminal.output)
    terminal.press(key)

    def reacts() -> bool:
        terminal.read()
        return len(terminal.output) > drawn

    return becomes(reacts)


@scene("a million tiny lines a second")
def flood(stage: Stage) -> Iterator[str]:
    terminal = stage.open_screen("--no-tmux")
    rollout = next(stage.place.day.iterdir())
    writer = stage.start([sys.executable, "-c", _FLOOD, str(rollout)])
    while writer.poll() is None:
        if not answers(terminal, b"?"):
            yield "does not react"
        terminal.output = terminal.output[-1_000:]
        time.sleep(0.5)
    if (rss := usage(terminal.process.pid).rss_mb) > _MAX_RSS_MB:
        yield f"takes {rss:.0f} MB"
    yield from quits(terminal)
    done = stage.run("check", "--json", limit=120)
    yield from whole(done, (0, 1, 2))


@scene("a rollout is cut, replaced and rotated under its readers")
def rotated(stage: Stage) -> Iterator[str]:
    terminal = stage.open_screen("--no-tmux")
    rollout = next(stage.place.day.iterdir())
    writer = stage.start([sys.executable, "-c", _ROTATE, str(rollout)])
    while writer.poll() is None:
        for command in (("check", "--json"), ("status", "--json", "--no-tmux")):
            yield from whole(stage.run(*command), (0, 1, 2), good=False)
        terminal.read()
        terminal.output = terminal.output[-1_000:]
    yield from quits(terminal)
    with_digests, anew = stage.run("check", "--json"), stage.run("check", "--json", "--no-cache")
    if with_digests.out != anew.out or GOOD not in anew.out:
        yield "digests of another file are believed"
