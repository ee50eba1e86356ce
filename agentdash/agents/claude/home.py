"""The layout of Claude Code's configuration directory (`$CLAUDE_CONFIG_DIR`, `~/.claude`), for reading only.

`projects/DIRECTORY/SESSION.jsonl` is the transcript of a session, `projects/DIRECTORY/SESSION/subagents/
agent-ID.jsonl` that of a sub-agent (`projects/DIRECTORY/agent-ID.jsonl` before 2.1). DIRECTORY is the working
directory with `-` in place of other characters than letters and digits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Final

import msgspec

from agentdash.files import OnError, open_regular, read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.line_marks import LineMarks
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso

_SESSION_NAME: Final = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl")
_SUBAGENT_NAME: Final = re.compile(r"(agent-[0-9a-zA-Z_-]{1,80})\.jsonl")
LINE_MARKS: Final = LineMarks(turn=(b'"permissionMode":"',))
"""The prompts of a transcript, which state the permission mode (2.1)."""
_MAX_METADATA_BYTES: Final = 1 << 16
"""Size above which the metadata of a sub-agent is malformed; those of 2.1.330 have 300 bytes."""
_TAIL_BYTES: Final = (1 << 12, 1 << 17)
"""Of the end of a transcript, in which its last record with a time is looked for: as a rule one of the last
three lines; of some a picture."""
_MAX_DEPTH: Final = 3
"""Levels of directories below `projects`: the project, the session, `subagents`."""


class Metadata(msgspec.Struct, rename="camel"):
    """`agent-ID.meta.json`, beside the transcript of a sub-agent."""

    agent_type: str | None = None
    """Its role."""
    parent_agent_id: str | None = None
    """The sub-agent that spawned it; missing where the session did (2.1.330)."""


class _Record(msgspec.Struct):
    """A line of a transcript, as far as its time."""

    timestamp: str | None = None


_metadata: Final = JsonDecoder(Metadata)
_record: Final = JsonDecoder(_Record)


class ClaudeHome:
    """The directory in which Claude Code keeps transcripts and settings.

    Args:
        root: its place; None: `$CLAUDE_CONFIG_DIR`, or `~/.claude`.
    """

    def __init__(self, root: Path | None = None) -> None:
        place = root or os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
        self.root = Path(os.path.expanduser(place))  # noqa: PTH111 - it has no error without HOME
        self.projects = self.root / "projects"

    def transcripts(self, on_error: OnError = lambda _: None) -> Iterator[tuple[float, Path]]:
        """Yield when each transcript was changed (unix seconds), and its path."""
        return logs_below(
            str(self.projects), _MAX_DEPTH, lambda path: thread_id(PurePath(path)) is not None, on_error
        )


def logs_below(
    directory: str, depth: int, is_log: Callable[[str], bool], on_error: OnError
) -> Iterator[tuple[float, Path]]:
    """Yield when each log below a directory was changed (unix seconds), and its path.

    Args:
        depth: levels of directories below it.
        is_log: returns whether a file is one, by its path.
    """
    try:
        with os.scandir(directory) as listing:
            for entry in listing:
                if is_log(entry.path):
                    yield entry.stat().st_mtime, Path(entry.path)
                elif depth and entry.is_dir(follow_symlinks=False):
                    yield from logs_below(entry.path, depth - 1, is_log, on_error)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        on_error(error)


def last_record_at(path: str) -> float | None:
    """Return when the last record of a transcript was written, by the end of the file; None where that shows
    no time."""
    for length in _TAIL_BYTES:
        try:
            with open_regular(path) as descriptor:
                start = max(0, os.fstat(descriptor).st_size - length)
                lines = os.pread(descriptor, length, start).split(b"\n")
        except OSError:
            return None
        times = map(_time_of, reversed(lines[1:] if start else lines))
        if (at := next((at for at in times if at is not None), None)) is not None or not start:
            return at
    return None


def _time_of(line: bytes) -> float | None:
    try:
        return parse_iso(_record.decode(line).timestamp)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def thread_id(path: PurePath) -> str | None:
    """Return the thread's id in a transcript's name, or None.

    A session's is its uuid, a sub-agent's `agent-ID`.
    """
    match = _SESSION_NAME.fullmatch(path.name) or _SUBAGENT_NAME.fullmatch(path.name)
    return match.group(1) if match else None


def subagent_thread(agent_id: str) -> str:
    """Return the thread's id of a sub-agent (`agentId` of its records)."""
    return f"agent-{agent_id}"


def metadata_of(transcript: Path) -> Metadata:
    """Return what stands beside the transcript of a sub-agent; nothing where that cannot be read."""
    try:
        return _metadata.decode(read_bytes(transcript.with_suffix(".meta.json"), _MAX_METADATA_BYTES))
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):  # ValueError: a NUL in the path
        return Metadata()


def spawning_subagent(transcript: Path) -> str | None:
    """Return the thread of the sub-agent that spawned that of a transcript; None where its session did, or
    nothing states it."""
    named = subagent_thread(metadata_of(transcript).parent_agent_id or "")
    return named if _SUBAGENT_NAME.fullmatch(f"{named}.jsonl") else None


def problem(home: ClaudeHome) -> str | None:
    """Return why a home has no readable transcripts, in one line; None where it has."""
    where = clean_line(str(home.projects))
    if not home.projects.is_dir():
        return f"{where} does not exist"
    if not os.access(home.projects, os.R_OK | os.X_OK):
        return f"{where} cannot be read: permission denied"
    return None
