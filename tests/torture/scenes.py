"""Scenes: faults of what runs beside agentdash, for `python -m tests.torture`."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.bench.meter import usage
from tests.live.patience import scaled
from tests.live.programs import write_program
from tests.live.terminal import READY, Terminal
from tests.live.tmux import panes
from tests.torture.stage import GOOD, Row, Stage, becomes, quits, source, whole

Play = Callable[[Stage], Iterator[str]]


SCENES: Final[list[Row]] = []


def scene(name: str, *, needs_root: bool = False) -> Callable[[Play], Play]:
    """Return a decorator that adds a function to the scenes."""

    def add(play: Play) -> Play:
        SCENES.append(Row(name, play, needs_root=needs_root))
        return play

    return add


# ---------------------------------------------------------------- files

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


# ---------------------------------------------------------------- disks


@scene("a full disk for state, journal and exports", needs_root=True)
def full_disk(stage: Stage) -> Iterator[str]:
    folder = stage.place.root / "full"
    folder.mkdir()
    options = f"size=64k,uid={stage.uid},gid={stage.uid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
    try:
        yield from _without_space(stage, folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _without_space(stage: Stage, folder: Path) -> Iterator[str]:
    """Fill a folder, which then is the state directory, and yield what is wrong."""
    reason = "No space left"
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
    left = [path.name for path in folder.rglob("*") if path.is_file() and path != filler]
    if any(name.startswith(("status-", ".")) for name in left):
        yield f"left: {left}"


# ---------------------------------------------------------------- outputs

_COMMANDS: Final = (
    "line",
    "status --no-tmux",
    "check --format=sarif",
    "doctor --json",
    "status --watch --no-tmux",
    "status --follow --no-tmux",
)
_FULL: Final = {"stdout is full": ">/dev/full", "stdout and stderr are full": ">/dev/full 2>&1"}
_STREAMS: Final = ("status --watch --no-tmux", "status --follow --no-tmux", "sessions --json")
_START_S: Final = 2.0
"""After which a command writes, on a quiet machine."""


@scene("no disk takes the output")
def full(stage: Stage) -> Iterator[str]:
    for name, redirection in _FULL.items():
        for command in _COMMANDS:
            shell = ["sh", "-c", f'"$@" {redirection}', "sh", *stage.command(*command.split())]
            done = stage.to_its_end(shell)
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


# ---------------------------------------------------------------- processes

_PROCESSES: Final = 10_000
_SLEEPERS: Final = (
    f"i=0; while [ $i -lt {_PROCESSES} ]; do sleep 1000 </dev/null >/dev/null 2>&1 & i=$((i+1)); done"
)
"""In a pid namespace: they end with its first process."""


_OF_PROC: Final = {
    "/proc hides the processes of others": ("mount -t proc -o hidepid=2 proc /proc", None),
    "in a pid namespace, /proc of the host": ("true", False),
    "no /proc": ("mount -t tmpfs none /proc", False),
    f"{_PROCESSES:,} processes": (f"mount -t proc proc /proc && {_SLEEPERS}", True),
}
"""What is set up, and whether processes are then read; None: either."""


@scene("/proc", needs_root=True)
def proc(stage: Stage) -> Iterator[str]:
    for name, (setup, is_read) in _OF_PROC.items():
        done = stage.run("status", "--json", setup=setup, limit=240)
        found = source(done.document, "processes")
        yield from (f"{name}: {problem}" for problem in whole(done))
        if is_read not in (None, found[0]):
            yield f"{name}: processes: {found}"


# ---------------------------------------------------------------- tmux


@scene("another tmux is first on PATH")
def other_version(stage: Stage) -> Iterator[str]:
    """A server is asked by its own program, which speaks its protocol."""
    stage.cleanup.enter_context(panes(3, stage.env, ["sleep", "1000"], stage.as_user))
    mismatch = "echo 'protocol version mismatch (client 8, server 7)' >&2\nexit 1"
    fake = write_program(stage.place.root / "bin" / "tmux", mismatch)
    stage.env["PATH"] = f"{fake.parent}:{stage.env['PATH']}"
    done = stage.run("status", "--json")
    yield from whole(done)
    if (found := source(done.document, "tmux")) != (True, "3 panes"):
        yield f"tmux: {found}"


# ---------------------------------------------------------------- terminals

_GARBAGE: Final = (
    b"\x1b[<0;-1;5M",
    b"\x1b[<999;99999;99999M",
    b"\x1b[<0;;M",
    b"\x1b[<0;99999999999999999999999;1M",
    b"\x1b[M\xff\xff\xff",
    b"\xff\xfe\xc3(",
    b"\x1b[<64;1;1M" * 200,
    b"\x1b[<35;10;10M" * 500,
    b"\x1b[I\x1b[O" * 50,
    b"\x1b[1;99999999999999999999u",
    b"\x1b[1114112u",
    b"\x1b[55296u",
    b"\x1b[57344;5:3u",
    b"\x1b[27;5;99999999~",
    b"\x1b[99;99;99;99;99~",
    b"\x1b[48;99999;99999;0;0t",
    b"\x1b[24;80R\x1b[?1;2c\x1b[?2026;2$y",
    b"\x1b]11;rgb:zz/zz\x07\x1bP1+r\x1b\\\x1b_Gi=1;OK\x1b\\",
)
"""Mouse, keys and late answers that no terminal should send; some of these ended the screen."""
_PASTE: Final = b"a\tb\n\x1b[31m x' \" ( : ! " * 5_000
_ENVIRONMENTS: Final = (
    {"TERM": "linux", "NO_COLOR": "1"},
    {"TERM": "xterm-mono"},
    {"TERM": "no-such-terminal"},
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"COLUMNS": "-5", "LINES": "x"},
)


def _send(terminal: Terminal, data: bytes) -> None:
    """Send more than a terminal takes at once, and read meanwhile."""
    while data and terminal.process.poll() is None:
        terminal.read()
        if select.select((), (terminal.master,), (), 0.1)[1]:
            data = data[os.write(terminal.master, data[:1_024]) :]


def _is_well(terminal: Terminal) -> Iterator[str]:
    if not answers(terminal, b"?"):
        yield "does not react"
    terminal.press(b"\x1b")
    yield from quits(terminal)
    terminal.close()


@scene("the terminal sends garbage")
def garbage(stage: Stage) -> Iterator[str]:
    for arguments in (("demo",), ("replay",)):
        terminal = stage.open_screen(*arguments)
        for piece in _GARBAGE:
            _send(terminal, piece)
        _send(terminal, b"\x1b")
        yield from _is_well(terminal)


@scene("a large paste into the filter")
def pasted(stage: Stage) -> Iterator[str]:
    for arguments in (("demo",), ("replay",)):
        terminal = stage.open_screen(*arguments)
        for key in (b"/", b"\x1b[200~" + _PASTE + b"\x1b[201~", "é🙂\u202e\u0300".encode() * 2_000):
            _send(terminal, key)
        if not answers(terminal, b"z"):
            yield "does not react"
        yield from quits(terminal)


@scene("odd values of TERM, LANG and COLUMNS")
def environments(stage: Stage) -> Iterator[str]:
    usual = dict(stage.env)
    for environment in _ENVIRONMENTS:
        stage.env = usual | environment
        terminal = stage.screen("--no-tmux")

        def is_open(terminal: Terminal = terminal) -> bool:
            terminal.read()
            return READY in terminal.output or terminal.process.poll() is not None

        if not becomes(is_open) or terminal.process.poll() is not None:
            yield f"{environment}: {terminal.process.poll()} {terminal.output[-200:]!r}"
        else:
            yield from (f"{environment}: {problem}" for problem in _is_well(terminal))
