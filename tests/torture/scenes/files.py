"""Files that grow, shrink and vanish while they are read, and families of thousands."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.live.terminal import Terminal
from tests.torture.faults import GOOD, chain
from tests.torture.scenes import scene
from tests.torture.soak import usage
from tests.torture.stage import Stage, becomes, quits, whole

_MEMBERS: Final = 10_000
_HEAD: Final = "01a1fafc-c823-7e21-b4b7-000000000000"
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


@scene(f"a chain of {_MEMBERS:,} parents")
def deep(stage: Stage) -> Iterator[str]:
    yield from _family(stage, circle=False)


@scene(f"a circle of {_MEMBERS:,} parents")
def circle(stage: Stage) -> Iterator[str]:
    yield from _family(stage, circle=True)


def _family(stage: Stage, *, circle: bool) -> Iterator[str]:
    chain(stage.place, _MEMBERS, circle=circle)
    for path in stage.place.day.iterdir():
        os.chown(path, stage.uid, stage.uid)
    for command in (
        ("status", "--json", "--all", "--no-tmux"),
        ("sessions", "--json", "--limit", "0"),
        ("check", "--json"),
    ):
        for problem in whole(stage.run(*command, limit=120), (0, 1, 2)):
            yield f"{' '.join(command)}: {problem}"
    for suffix in ("md", "html"):
        file = stage.place.cwd / f"out.{suffix}"
        done = stage.run("replay", _HEAD, "--export", str(file), limit=120)
        if done.code != 0 or file.stat().st_size < 1_000_000:
            yield f"export to {suffix}: {done.code} {done.err[-200:]}"
    for arguments in (("--all", "--no-tmux"), ("replay",), ("replay", _HEAD)):
        terminal = stage.open_screen(*arguments)
        for key in (b"j", b"G", b"g"):
            terminal.press(key)
        if not answers(terminal, b"?"):
            yield f"{' '.join(arguments)}: does not react"
        terminal.press(b"\x1b")
        for problem in quits(terminal):
            yield f"{' '.join(arguments)}: {problem}"
        terminal.close()
