"""Read journals: recordings of what rollouts do not hold, as streams of events."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.home import begun_at
from agentdash.agents.codex.launcher_policy import read_launcher
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.replay.family import Family
from agentdash.replay.streams import FileStream
from agentdash.store.journal import HEADER, LINE, NAME, RECORDED, ProcessWorked, ScreenChanged, known

_STEERS: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[bfrtu]")
"""Escapes that are in no text of ours: all that enters agentdash is cleaned, so a line with these was written by somebody else."""
_BLOCK: Final = 1 << 20
_LIVELY: Final = 30.0
"""Seconds after which a journal that is not written to counts as ended."""
_AFTERWARDS: Final = 5.0
"""Seconds behind the last line of a family's rollouts for which it is still looked at."""
_TALLEST: Final = 10_000
"""Lines of the tallest screen that is believed."""
SOURCE: Final = "journal"
"""The source's name in what a journal is read as."""


# ---------------------------------------------------------------- reading


class Part(NamedTuple):
    """A journal file."""

    path: Path
    recording: str
    number: int
    begun: float
    until: float
    """When it was written to last; as `begun` in unix seconds."""


def parts(folder: Path) -> Iterator[Part]:
    """The journals in a folder, oldest recording first. What cannot be read is left out."""
    try:
        found = sorted(
            (m[1], int(m[3]), m[2], path) for path in folder.iterdir() if (m := NAME.fullmatch(path.name))
        )
    except OSError:
        return
    for recording, number, stamp, path in found:
        try:
            until = path.stat().st_mtime
            with path.open("rb") as file:
                begun = HEADER.decode(file.readline(_BLOCK)).at
        except OSError:
            continue
        except (msgspec.DecodeError, UnicodeDecodeError):  # its reader will say so
            begun = min(until, timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ")))
        yield Part(path, recording, number, begun, until)


def overlapping(folder: Path, since: float, until: float, now: float) -> list[tuple[Path, JournalReader]]:
    """The journals of a time, in its order, each with what reads it.

    Where two agentdashes recorded at once, the one that began first is taken for as long as it went on.

    Args:
        since: what was known before is told at this time (unix seconds).
        until: nothing is told of what came later.
        now: a journal that was written to lately may still be.
    """
    chosen: list[tuple[Path, JournalReader]] = []
    for _, group in groupby(parts(folder), key=lambda part: part.recording):
        recording = list(group)
        end = max(part.until for part in recording)
        if end < since or recording[0].begun > until:
            continue
        wanted = [part for part in recording if part.until >= since and part.begun <= until]
        for part in wanted:
            ends = part is recording[-1] and now - end > _LIVELY
            before = part.number - 1 if part is not wanted[0] else None
            follows = any(other.number == before for other in wanted)
            lines, torn = _measure(part.path) if ends else (None, False)
            chosen.append(
                (part.path, JournalReader(since, until, follows=follows, last_line=lines, torn=torn))
            )
        since = max(since, end)
    return chosen


def journal_streams(folder: Path, family: Family, now: float) -> Callable[[], list[FileStream]]:
    """Makes what was recorded while a family was at work, as strands of its tape.

    Args:
        folder: where the journals are; it need not exist.
        now: unix seconds; a family that was written to lately may still be at work.
    """
    written = max((path.stat().st_mtime for path in family.paths if path.exists()), default=0.0)
    begun = min(filter(None, map(begun_at, family.paths)), default=0.0)
    chosen = overlapping(folder, begun, inf if now - written < _LIVELY else written + _AFTERWARDS, now)
    return lambda: [FileStream(path, deepcopy(reader), begun=begun) for path, reader in chosen]


def _measure(path: Path) -> tuple[int, bool]:
    """How many whole lines a file has, and whether anything comes behind these."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            lines, last = lines + block.count(b"\n"), block
    return lines, not last.endswith(b"\n")


class JournalReader:
    """Turns the lines of one part into events. It can be pickled between any two lines.

    Args:
        since: what was told before this time is summed up, and told then.
        until: what comes later is not told.
        follows: whether the part before it is read as well: then what was known is no news.
        last_line: number of the line with which the recording ends; None where it goes on.
        torn: whether something that is no whole line comes behind that.
    """

    def __init__(
        self,
        since: float,
        until: float,
        *,
        follows: bool = False,
        last_line: int | None = None,
        torn: bool = False,
    ) -> None:
        self._since, self._until, self._follows = since, until, follows
        self._last_line, self._torn = last_line, torn
        self._before: Fleet | None = None if follows else Fleet()
        """All that is known at `since`, until that has come."""
        self._known = 0
        """The line up to which a part repeats what was known."""
        self._screens: dict[PaneKey, tuple[str, ...]] = {}
        self._processes: dict[ProcessKey, Process] = {}
        self._there: dict[PaneKey | ProcessKey | str, None] = {}
        """Panes, processes and sources that are there."""
        self._foreign = 0
        """Lines that were not understood."""
        self.at = 0.0
        """The time of the newest event (unix seconds)."""

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[e.Event]:
        """The events of these lines, the first of which has this number. Nothing raises."""
        events: list[e.Event] = []
        for number, line in enumerate(lines, first):
            if (event := self._decode(line, number)) is not None:
                self.at = max(self.at, event.at)
                self._note(event)
                events += self._told(event, number)
            if number == self._last_line:
                events += self._told_all(self._ending())
        return events

    def _decode(self, line: bytes, number: int) -> e.Event | None:
        try:
            if number == 1:
                header = HEADER.decode(line)
                self._known, self.at = 1 + header.known, header.at
                detail = clean_line(f"recorded by agentdash {header.agentdash} on {header.host}", 200)
                return e.SourceSeen(at=header.at, name=SOURCE, ok=True, detail=detail)
            if _STEERS.search(text := line.decode()) or clean_block(text, len(text)) != text:
                raise msgspec.DecodeError("not clean")
            event = LINE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._foreign += 1
            return e.SourceSeen(at=self.at, name=SOURCE, ok=False, detail=self._not_understood())
        if isinstance(event, ScreenChanged):
            screen = list(self._screens.get(event.key, ()))[: max(0, event.height)]
            screen += [""] * (min(event.height, _TALLEST) - len(screen))
            for y, text in event.rows.items():
                if 0 <= y < len(screen):
                    screen[y] = text
            return e.PaneDrawn(at=event.at, key=event.key, screen=tuple(screen))
        if isinstance(event, ProcessWorked):
            process = self._processes.get(event.key)
            return (
                e.ProcessSeen(at=event.at, process=replace(process, cpu=event.cpu, io=event.io))
                if process
                else None
            )
        if (
            isinstance(event, e.ProcessSeen) and event.process.launcher is None
        ):  # 0.1.0 recorded arguments alone
            launcher = read_launcher(event.process.name, event.process.argv)
            return replace(event, process=replace(event.process, launcher=launcher)) if launcher else event
        return event if isinstance(event, RECORDED) else None

    def _note(self, event: e.Event) -> None:
        match event:
            case e.PaneDrawn():
                self._screens[event.key] = event.screen
            case e.PaneSeen():
                self._there[event.pane.key] = None
            case e.ProcessSeen():
                self._processes[event.process.key] = event.process
                self._there[event.process.key] = None
            case e.PaneGone(key=pane):
                self._there.pop(pane, None)
                self._screens.pop(pane, None)
            case e.ProcessGone(key=process):
                self._there.pop(process, None)
                self._processes.pop(process, None)
            case e.SourceSeen():
                self._there[event.name] = None

    def _told(self, event: e.Event, number: int) -> list[e.Event]:
        if self._follows and number <= self._known:
            return []
        if self._before is not None and (event.at < self._since or number <= self._known):
            self._before = reduce(self._before, (event,))
            return []
        return self._told_all([event])

    def _told_all(self, events: list[e.Event]) -> list[e.Event]:
        if self._before is not None:
            before, self._before = self._before, None
            events = [*known(before), *events]
        return [event for event in events if event.at <= self._until]

    def _ending(self) -> list[e.Event]:
        """From here on nobody knows of panes and processes any more."""
        at, why = self.at, "the recording ends here"
        if self._torn:
            why = "its last record is torn; " + why
        if self._foreign:
            why = f"{self._not_understood()}; {why}"
        ended: list[e.Event] = []
        for there in self._there:
            if isinstance(there, PaneKey):
                ended.append(e.PaneGone(at=at, key=there))
            elif isinstance(there, ProcessKey):
                ended.append(e.ProcessGone(at=at, key=there))
            elif there != SOURCE:
                ended.append(e.SourceSeen(at=at, name=there, ok=False, detail="not recorded any more"))
        return [
            *ended,
            e.LocksSeen(at=at, holders={}, readable=False),
            e.SourceSeen(at=at, name=SOURCE, ok=False, detail=why),
        ]

    def _not_understood(self) -> str:
        return (
            f"{self._foreign} lines of it are not understood"
            if self._foreign != 1
            else "a line of it is not understood"
        )
