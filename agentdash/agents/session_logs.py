"""Session logs of all worker CLIs by their file names: which thread, which reader, when it began."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Final, Protocol

from agentdash.agents.claude import home as claude
from agentdash.agents.codex import home as codex
from agentdash.agents.codex.rollout.lineage import parse_time
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.files import open_stream
from agentdash.model.events import Event

_TIMESTAMP: Final = re.compile(rb'"timestamp":"([0-9T:.Z+-]{10,40})"')
_HEAD_BYTES: Final = 1 << 14
"""Of a transcript: its first records have times."""


class LogReader(Protocol):
    """Parses the lines of one session log."""

    @property
    def at(self) -> float:
        """Time of the newest line (unix seconds)."""
        ...

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[Event]:
        """Return the events of lines; `first` is the number of the first one, 0 where it is unknown."""
        ...


def thread_of_log(path: PurePath) -> str | None:
    """Return the thread whose log a file is, by its name; None for other names."""
    return codex.thread_id(path) or claude.thread_id(path)


def is_transcript(path: PurePath) -> bool:
    """Return whether a file is a transcript of Claude Code, by its name."""
    return claude.thread_id(path) is not None


def reader_of_log(path: PurePath, thread: str) -> LogReader:
    """Return a reader for a log; files of any other name are read as rollouts."""
    if not is_transcript(path):
        return RolloutReader(thread)
    # its decoders take a few milliseconds, which homes of Codex alone do not need
    from agentdash.agents.claude.transcript.reader import TranscriptReader  # noqa: PLC0415

    return TranscriptReader(thread)


def log_begun_at(path: Path) -> float | None:
    """Return when a thread began (unix seconds): by the name of a rollout, by the first lines of a
    transcript."""
    if not is_transcript(path):
        return codex.begun_at(path)
    try:
        with open_stream(path) as file:
            found = _TIMESTAMP.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    return parse_time(found[1].decode()) if found else None
