"""Look at what runs in tmux panes before anything else is imported.

A worker may live for half a second, and `agentdash wait %3` takes as long on a busy machine to import what it
looks with. Read from /proc alone (Linux), without a tmux client: the first process of a pane is a child of
its server, which has put the pane's id into its environment. Only what is built in is imported here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from agentdash import procfs

_SERVER: Final = "tmux: server"
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Glimpse(NamedTuple):
    """A pane, and the arguments of the processes in it."""

    socket: str
    server_pid: int
    pane: str
    pid: int
    """Of its first process."""
    started: float
    """When that started (unix seconds)."""
    cwd: str | None
    at: float
    commands: tuple[tuple[str, ...], ...]


_taken: list[Glimpse] = []


def look() -> None:
    """Keep what runs in the panes of all tmux servers; nothing where there is no /proc."""
    with suppress(OSError):
        _taken.extend(_glimpses())


def taken() -> tuple[Glimpse, ...]:
    """Return what was seen first."""
    return tuple(_taken)


def _glimpses() -> Iterator[Glimpse]:
    names: dict[int, str] = {}
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for pid in procfs.pids():
        with suppress(OSError):
            found = procfs.stat(pid)
            names[pid] = found.name
            ticks[pid] = int(found.started)
            children.setdefault(int(found.fields[1]), []).append(pid)
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for server in [pid for pid, name in names.items() if name == _SERVER]:
        for pid in children.get(server, ()):
            variables = dict(
                line.partition(b"=")[::2] for line in procfs.peek(f"/proc/{pid}/environ").split(b"\0")
            )
            socket, stated, _ = (variables.get(b"TMUX", b"") + b",,").split(b",")[:3]
            pane = variables.get(b"TMUX_PANE", b"")
            if pane.startswith(b"%") and stated == b"%d" % server:
                yield Glimpse(
                    socket=os.fsdecode(socket),
                    server_pid=server,
                    pane=os.fsdecode(pane),
                    pid=pid,
                    started=boot + ticks[pid] / _TICKS_PER_S,
                    cwd=procfs.link(f"/proc/{pid}/cwd"),
                    at=time.time(),
                    commands=tuple(_commands(pid, children)),
                )


def _commands(pid: int, children: dict[int, list[int]]) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of a process, and of those below it."""
    yield tuple(os.fsdecode(each) for each in procfs.peek(f"/proc/{pid}/cmdline").split(b"\0")[:-1])
    for child in children.get(pid, ()):
        yield from _commands(child, children)
