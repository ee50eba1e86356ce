"""The adapter of Claude Code: its processes record their status in session files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from agentdash import procfs
from agentdash.agents.adapter import Adapter, UnreadableSessionError
from agentdash.agents.claude.settings import ClaudeRequests
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import SessionSeen
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.times import possible_time

_MAX_FILE_BYTES: Final = 1 << 16
"""Size above which a file is malformed; a file of 2.1.197 has 400 bytes."""
_MAX_WAITING_FOR_CHARS: Final = 80
_MAX_SESSION_ID_CHARS: Final = 40
_START_TOLERANCE_S: Final = 2.0
"""How much earlier than its process a file may claim to have started: clocks and rounding differ."""


class _SessionFile(msgspec.Struct, rename="camel"):
    pid: int
    session_id: str | None = None
    started_at: float = 0.0
    proc_start: str | None = None
    status: str | None = None
    waiting_for: str | None = None
    status_updated_at: float | None = None
    updated_at: float | None = None
    """Of 2.1.120, which has no `statusUpdatedAt`: the last change of the file."""


_Status = Literal["busy", "idle", "waiting"]
_STATUSES: Final[Mapping[str, _Status]] = {
    "busy": "busy",
    "idle": "idle",
    "waiting": "waiting",
    "shell": "idle",
}
"""What each status means for the turn. An unknown one means nothing, and leaves the session known."""
_decoder: Final = JsonDecoder(_SessionFile)


class ClaudeSessionFiles:
    """Reads the session files of running Claude Codes.

    Args:
        proc: the directory that holds `PID/stat`.
    """

    def __init__(self, *, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        """Return the content of a worker's session file; None where it is missing, malformed, or of another
        process.

        Raises:
            UnreadableSessionError: it is there, and cannot be opened.
        """
        del is_alone  # the file names its process
        env = process.env or {}
        home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - never fails
        config = env.get("CLAUDE_CONFIG_DIR") or Path(home, ".claude")
        try:
            path = Path(config, "sessions", f"{process.pid}.json")
            content = _decoder.decode(read_bytes(path, _MAX_FILE_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnreadableSessionError(f"{error.filename}: {error.strerror}") from error
        except (ValueError, msgspec.DecodeError, RecursionError):  # ValueError: a NUL in the path
            return None
        if content.pid != process.pid or not self._is_written_by(process, content):
            return None
        waiting_for = content.waiting_for
        return SessionSeen(
            at=at,
            key=process.key,
            agent="claude",
            status=_STATUSES.get(content.status or ""),
            waiting_for=clean_line(waiting_for, _MAX_WAITING_FOR_CHARS) if waiting_for else None,
            since=possible_time((content.status_updated_at or content.updated_at or 0.0) / 1000) or at,
            session=clean_line(content.session_id, _MAX_SESSION_ID_CHARS) if content.session_id else None,
        )

    def _is_written_by(self, process: Process, content: _SessionFile) -> bool:
        try:
            start = procfs.stat(process.pid, self._proc).started
        except OSError:
            return content.started_at / 1000 >= process.key.started - _START_TOLERANCE_S
        return content.proc_start is None or content.proc_start == start


ADAPTER: Final = partial(Adapter, session_files=ClaudeSessionFiles(), request_reader=ClaudeRequests())
