"""What agentdash writes: on full, read-only and failing disks, with other writers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.torture.faults import GOOD
from tests.torture.scenes import scene
from tests.torture.stage import Stage, quits, whole

_WRITERS: Final = 8
_KILLS: Final = 10
_CHECK: Final = [sys.executable, "-m", "agentdash", "check", "--json"]


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a tmpfs for the block."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@scene("a full disk for state, journal and exports", needs_root=True)
def full(stage: Stage) -> Iterator[str]:
    folder = stage.place.root / "full"
    with mounted(folder, f"size=64k,uid={stage.uid},gid={stage.uid},mode=700"):
        yield from _without_space(stage, folder, "No space left")


def _without_space(stage: Stage, folder: Path, reason: str) -> Iterator[str]:
    """Fill a folder, which then is the state directory, and yield what is wrong.

    Args:
        reason: a part of the system's message for a write that is refused.
    """
    filler = folder / "filler"
    for size in (65_536, 512, 512):  # what is reserved for a block is free after `fsync`
        with suppress(OSError), filler.open("ab", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
            os.fsync(file.fileno())
    stage.env["XDG_STATE_HOME"] = str(folder)
    plain = stage.run("check", "--json", "--no-cache")
    for _ in range(2):
        cached = stage.run("check", "--json")
        if (cached.code, cached.out) != (plain.code, plain.out):
            yield f"check: {cached.code} {cached.err[-200:]}"
    yield from whole(stage.run("status", "--json", "--no-tmux"))
    published = stage.run("publish", "--no-tmux")
    if published.code != 2 or reason not in published.err:
        yield f"publish: {published.code} {published.err[-200:]}"
    for suffix in ("md", "html"):
        file_name = folder / f"out.{suffix}"
        done = stage.run("replay", GOOD, "--export", str(file_name))
        if done.code != 2 or reason not in done.err:
            yield f"export: {done.code} {done.err[-200:]}"
        if file_name.exists():
            yield f"a part of {file_name.name} was left"
    yield from _record(stage, folder / "journal", reason)
    left = [path.name for path in folder.rglob("*") if path.is_file() and path != filler]
    if any(name.startswith(("status-", ".")) for name in left):
        yield f"left: {left}"


def _record(stage: Stage, journal: Path, reason: str) -> Iterator[str]:
    """Record onto a disk that takes nothing; it is stated, or the command refuses."""
    terminal = stage.screen("--no-tmux", "--record", str(journal))
    said = reason.encode()
    terminal.until(lambda: terminal.process.poll() is not None or said in terminal.output, "an error")
    if terminal.process.poll() is None:
        yield from quits(terminal)


@scene("read-only home and state", needs_root=True)
def read_only(stage: Stage) -> Iterator[str]:
    folder = stage.place.root / "ro"
    owner = f"uid={stage.uid},gid={stage.uid},mode=700"
    with mounted(folder, f"ro,{owner}"):
        stage.env |= {"XDG_STATE_HOME": str(folder), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        plain, cached = stage.run("check", "--json", "--no-cache"), stage.run("check", "--json")
        if (cached.code, cached.out) != (plain.code, plain.out) or not plain.document:
            yield f"check: {cached.code} {cached.err[-200:]}"
        yield from whole(stage.run("status", "--json", "--no-tmux"))
        terminal = stage.open_screen("--no-tmux")
        yield from quits(terminal)


@scene("several writers of digests at once, and killed ones")
def writers(stage: Stage) -> Iterator[str]:
    plain = stage.run("check", "--json", "--no-cache")
    for round_ in range(_KILLS):
        running = [
            stage.start(_CHECK, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)
        ]
        time.sleep(0.1 * round_)
        for process in running:
            process.kill()
            process.wait()
    at_once = [stage.start(_CHECK, stdout=subprocess.PIPE) for _ in range(_WRITERS)]
    for process in at_once:
        out = process.communicate()[0].decode()
        if (process.returncode, out) != (plain.code, plain.out):
            yield f"another answer: {process.returncode}"
    done = stage.run("check", "--json")
    if (done.code, done.out) != (plain.code, plain.out):
        yield f"another answer at the end: {done.code}"
