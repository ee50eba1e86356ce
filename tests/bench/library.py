"""The library of a home with ten thousand sessions: first rows, reading, filtering, searching."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import termios
import time
from fcntl import ioctl
from pathlib import Path

from agentdash.agents.codex.home import CodexHome
from agentdash.collect.clock import SystemClock
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.replay.library.search import Hit, search
from agentdash.tui.library.model import LibraryModel
from tests.bench.figures import AGENTDASH, spread
from tests.bench.home import make_home

_FILES, _MEGABYTES = 10_000, 1_000
_WORDS = ("nowhere-to-be-found", "CODEX_SANDBOX_NETWORK_DISABLED", "nirgends-zu-finden-ü")


def measure(home: Path) -> None:
    """Measure on a home of its own, written once beside the other one."""
    folder = home.parent / f"{_FILES}-{_MEGABYTES}"
    if not folder.exists():
        make_home(folder, _FILES, _MEGABYTES)
    print("first rows on the screen:", spread(sorted(_first_rows(folder) for _ in range(7))))
    library = Library(CodexHome(folder), SystemClock())
    began = time.perf_counter()
    entries = list(library.entries())
    print(f"listed {len(entries):,} in {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    for entry in entries[:1_000]:
        library.read(entry)
    print(f"read and judged: {1_000 / (time.perf_counter() - began):,.0f}/s")
    model = LibraryModel()
    model.put(entries)
    model.arrange()
    began = time.perf_counter()
    model.query = Query.parse("dir:project recorded", time.time())
    model.arrange()
    print(f"a key typed into the filter: {(time.perf_counter() - began) * 1000:.0f} ms")
    for words in _WORDS:
        began, first, hits = time.perf_counter(), None, 0
        for step in search([entry.path for entry in entries], words):
            if isinstance(step, Hit):
                hits += 1
                first = first or time.perf_counter() - began
        taken = time.perf_counter() - began
        first_hit = f", the first after {first * 1000:.0f} ms" if first else ""
        size = sum(entry.path.stat().st_size for entry in entries)
        rate = f"{size / 1e6:,.0f} MB in {taken:.1f} s, {size / 1e6 / taken:,.0f} MB/s"
        print(f"search {words!r}: {rate}, {hits:,} hits{first_hit}")


def _first_rows(folder: Path) -> float:
    """Return the milliseconds from the start of the process to the first row in its terminal."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe(
            AGENTDASH[0],
            [*AGENTDASH, "replay", "--codex-home", str(folder)],
            {**os.environ, "TERM": "xterm-256color"},
        )
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    seen = b""
    while b"recorded" not in seen:
        if select.select([terminal], [], [], 10)[0]:
            seen += os.read(terminal, 1 << 16)
    taken = (time.perf_counter() - began) * 1000
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return taken
