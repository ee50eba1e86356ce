"""Read journals: recordings of what rollouts do not contain, as streams of events."""

from __future__ import annotations

import time
from calendar import timegm
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agentdash.agents.session_logs import log_begun_at
from agentdash.agents.session_rows import written_at
from agentdash.engine.reduce.fleet import reduce
from agentdash.files import open_stream
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, RecordingEnded, known_of
from agentdash.model.limits import READ_BLOCK_BYTES
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.times import possible_time
from agentdash.replay.family import Family
from agentdash.replay.streams import OVERHANG_S, FileStream
from agentdash.store.journal import HEADER_DECODER, LINE_DECODER, PART_NAME, JournalUnpacker

JOURNAL_SOURCE: Final = "journal"
"""The name of the source under which the health of a journal is shown."""
_MAX_WRITE_PAUSE_S: Final = 30.0
"""Time without a write after which a journal, or a rollout, counts as ended."""


# ---------------------------------------------------------------- parts


class JournalPart(NamedTuple):
    """A file of a recording."""

    path: Path
    number: int
    """From 1."""
    until: float
    """When it was last written to (unix seconds)."""


class Recording(NamedTuple):
    """The files that one agentdash wrote."""

    name: str
    """What the names of its parts begin with."""
    begun: float
    """When it was begun, by its name (unix seconds)."""
    parts: Sequence[JournalPart]
    """In their order; at least one."""

    @property
    def until(self) -> float:
        """When it was last written to (unix seconds)."""
        return max(part.until for part in self.parts)


def recordings(folder: Path) -> Iterator[Recording]:
    """Yield the recordings in a folder, the oldest first. Files that cannot be read are left out."""
    parts: dict[str, list[JournalPart]] = {}
    begun: dict[str, float] = {}
    with suppress(OSError):
        for path in folder.iterdir():
            if (match := PART_NAME.fullmatch(path.name)) is None:
                continue
            with suppress(OSError, ValueError, OverflowError):  # it is gone, or no time is so
                part = JournalPart(path, int(match[3]), path.stat().st_mtime)
                parts.setdefault(match[1], []).append(part)
                begun[match[1]] = float(timegm(time.strptime(match[2], "%Y%m%dT%H%M%SZ")))
    for name in sorted(parts):
        yield Recording(name, begun[name], sorted(parts[name], key=lambda part: part.number))


def find_recording(folder: Path, target: str) -> Recording | None:
    """Return a recording: by its name in the folder, or by the path of a part."""
    path = Path(target)
    named = PART_NAME.fullmatch(path.name)
    if named is not None and path.is_file():
        folder, target = path.parent, named[1]
    return next((recording for recording in recordings(folder) if recording.name == target), None)


def find_overlapping(folder: Path, since: float, until: float, now: float) -> list[FileStream]:
    """Return the streams of the journals of a time span, in their order.

    Of two recordings at the same time the one that began first is read for as long as it went on. A recording
    is read to its end, and the one that continues it: what outlived the span ends there.

    Args:
        folder: of the journals; it need not exist.
        since: start of the span (unix seconds): what was known before is restored then.
        until: end of the span (unix seconds).
        now: unix seconds; a journal that was written to lately may still be growing.
    """
    begun, chosen = since, list[FileStream]()
    for recording in recordings(folder):
        end = recording.until
        if end < since or recording.begun > until:
            continue
        parts = [part for part in recording.parts if part.until >= since]
        chosen += _streams(parts, since, now, begun)
        since = max(since, end)
        until = max(until, end + OVERHANG_S)
    return chosen


def recording_streams(recording: Recording, now: float) -> list[FileStream]:
    """Return the streams of a whole recording."""
    return _streams(recording.parts, 0.0, now, recording.begun)


def journal_streams(folder: Path, family: Family, now: float) -> list[FileStream]:
    """Return the streams of what was recorded while a family was working, and after that."""
    written = written_at(family.paths)
    begun = min(filter(None, map(log_begun_at, family.paths)), default=0.0)
    return find_overlapping(folder, begun, written + OVERHANG_S, now)


def _streams(parts: Sequence[JournalPart], since: float, now: float, begun: float) -> list[FileStream]:
    """Return the streams of consecutive parts of a recording; the last one knows where it ends, unless it was
    written to lately."""
    found: list[FileStream] = []
    has_ended = now - max(part.until for part in parts) > _MAX_WRITE_PAUSE_S
    for index, part in enumerate(parts):
        is_last = has_ended and part is parts[-1]
        last_line, is_torn = _count_lines(part.path) if is_last else (None, False)
        follows = index > 0 and parts[index - 1].number == part.number - 1
        reader = JournalReader(since, follows=follows, last_line=last_line, torn=is_torn)
        found.append(FileStream(part.path, reader, begun=begun))
    return found


def _count_lines(path: Path) -> tuple[int, bool]:
    """Return the number of complete lines, and whether an incomplete one follows."""
    lines, block_end = 0, b"\n"
    with open_stream(path) as file:
        while block := file.read(READ_BLOCK_BYTES):
            lines += block.count(b"\n")
            block_end = block[-1:]
    return lines, block_end != b"\n"


# ---------------------------------------------------------------- lines


class JournalReader:
    """Parses the lines of one part into events. Its state between two lines can be pickled.

    Args:
        since: events before this time (unix seconds) are summed up in one `FleetKnown`.
        follows: whether the part before it is read as well: then what it repeats is left out.
        last_line: number of the line with which the recording ends, or None if it goes on.
        torn: whether an incomplete line follows that one.
    """

    def __init__(
        self,
        since: float,
        *,
        follows: bool = False,
        last_line: int | None = None,
        torn: bool = False,
    ) -> None:
        self._since = since
        self._follows = follows
        self._last_line = last_line
        self._torn = torn
        self._before: Fleet | None = None if follows else Fleet()
        """Everything known at `since`, as long as no event after that has been read."""
        self._known_line = 0
        """Number of the last line that repeats what was known."""
        self._unpacker = JournalUnpacker()
        self._damaged = 0
        """Number of lines that could not be parsed."""
        self.at = 0.0
        """The time of the newest event (unix seconds)."""

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[e.Event]:
        """Parse lines; `first` is the line number of the first one. Damaged lines are counted, and raise
        nothing."""
        events: list[e.Event] = []
        for number, line in enumerate(lines, first):
            event = self._parse(line, number)
            if event is not None:
                self.at = max(self.at, event.at)
                events += self._emit(event, number)
            if number == self._last_line:
                events += self._emit_with_known(self._end_of_recording())
        return events

    def _parse(self, line: bytes, number: int) -> e.Event | None:
        try:
            if number == 1:
                return self._parse_header(line)
            if not is_clean_json(line):
                raise msgspec.DecodeError("not clean")
            event = LINE_DECODER.decode(line)
            if possible_time(event.at) is None:
                raise msgspec.DecodeError("impossible time")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._damaged += 1
            return self._health(self._damage(), ok=False)
        if isinstance(event, e.ThreadEvent) and not isinstance(event, e.RECORDED):
            return None
        return self._unpacker.unpack(event)

    def _parse_header(self, line: bytes) -> e.SourceSeen:
        header = HEADER_DECODER.decode(line)
        if possible_time(header.at) is None:
            raise msgspec.DecodeError("impossible time")
        self._known_line = 1 + header.known
        self.at = header.at
        detail = f"recorded by agentdash {header.agentdash} on {header.host}"
        return self._health(clean_line(detail, 200), ok=True)

    def _emit(self, event: e.Event, number: int) -> list[e.Event]:
        """Return the event if it is new and later than `since`."""
        is_repeated = number <= self._known_line
        if self._follows and is_repeated:
            return []
        if self._before is not None and (event.at < self._since or is_repeated):
            self._before = reduce(self._before, (event,))
            return []
        return self._emit_with_known([event])

    def _emit_with_known(self, events: list[e.Event]) -> list[e.Event]:
        """Return events, the first time behind one that restores what was known before."""
        if self._before is not None:
            known = known_of(self._before, self._before.processes_at or self._since)
            self._before = None
            events = [known, *events]
        return events

    def _end_of_recording(self) -> list[e.Event]:
        """Return the events of the end: nothing is known of panes and processes from here on."""
        reasons = []
        if self._damaged:
            reasons.append(self._damage())
        if self._torn:
            reasons.append("its last record is torn")
        reasons.append("the recording ends here")
        return [RecordingEnded(at=self.at), self._health("; ".join(reasons), ok=False)]

    def _health(self, detail: str, *, ok: bool) -> e.SourceSeen:
        return e.SourceSeen(at=self.at, name=JOURNAL_SOURCE, ok=ok, detail=detail)

    def _damage(self) -> str:
        if self._damaged == 1:
            return "a line of it is not understood"
        return f"{self._damaged} lines of it are not understood"
