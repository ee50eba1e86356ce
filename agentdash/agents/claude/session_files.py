"""Claude Code's own word on what it is doing: `~/.claude/sessions/<pid>.json` (2.1.197), which is better than its screen.

The file says `status`: `busy`, `idle`, or `waiting` (with `waitingFor`: "permission prompt" for questions as well); `claude -p` writes one
without a status. It is removed when the program ends, but not when it is killed: `procStart` (field 22 of `/proc/PID/stat`) tells whether
the process of that number is still the one that wrote it. Elsewhere the time of its start must do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from agentdash.model.events import Event, SessionSeen
from agentdash.model.process import Process, ProcessKey
from agentdash.model.sanitize import clean_line

_AGENT: Final = "claude"
_CAP: Final = 1 << 16
"""Bytes of a file that are read; it has 400."""
_EARLY: Final = 2.0
"""Seconds by which it may say to have started before its process did: clocks and rounding."""


class _File(msgspec.Struct, rename="camel"):
    pid: int
    started_at: float = 0.0
    proc_start: str | None = None
    status: Literal["busy", "idle", "waiting"] | None = None
    waiting_for: str | None = None
    status_updated_at: float | None = None


_decoder: Final = msgspec.json.Decoder(_File)


class ClaudeSensor:
    """Reports what the session files of running Claude Codes say, when that changes.

    Args:
        proc: where `PID/stat` lies.
    """

    def __init__(self, *, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._told: dict[ProcessKey, SessionSeen] = {}

    @staticmethod
    def concerns(processes: Iterable[Process]) -> bool:
        """Whether one of these may have such a file."""
        return any(process.agent == _AGENT for process in processes)

    def poll(self, at: float, processes: Iterable[Process]) -> list[Event]:
        """What has changed since the last look.

        Args:
            at: now, unix seconds.
            processes: those that are tracked; only Claude Code's are looked at.
        """
        found = {
            p.key: seen for p in processes if p.agent == _AGENT and (seen := self._read(p, at)) is not None
        }
        changed: list[Event] = [seen for key, seen in found.items() if not _alike(self._told.get(key), seen)]
        self._told = {
            key: self._told[key] if _alike(self._told.get(key), seen) else seen for key, seen in found.items()
        }
        return changed

    def _read(self, process: Process, at: float) -> SessionSeen | None:
        home = (process.env or {}).get("HOME") or str(Path.home())
        try:
            said = _decoder.decode(_read(Path(home, ".claude", "sessions", f"{process.pid}.json")))
        except (OSError, msgspec.DecodeError):
            return None
        if said.pid != process.pid or not self._wrote(said, process):
            return None
        return SessionSeen(
            at=at,
            key=process.key,
            agent=_AGENT,
            status=said.status,
            waiting_for=clean_line(said.waiting_for, 80) if said.waiting_for else None,
            since=said.status_updated_at / 1000 if said.status_updated_at else at,
        )

    def _wrote(self, said: _File, process: Process) -> bool:
        """Whether this very process wrote the file."""
        try:
            start = (self._proc / str(process.pid) / "stat").read_bytes().rpartition(b")")[2].split()[19]
        except (OSError, IndexError):
            return said.started_at / 1000 >= process.key.started - _EARLY
        return said.proc_start is None or said.proc_start.encode() == start


def _read(path: Path) -> bytes:
    """A plain file; of anything else, such as a pipe that would keep us waiting, nothing."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _CAP) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def _alike(old: SessionSeen | None, new: SessionSeen) -> bool:
    return old is not None and (old.status, old.waiting_for, old.since) == (
        new.status,
        new.waiting_for,
        new.since,
    )
