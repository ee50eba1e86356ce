"""The format of journals: files with what only a live agentdash sees.

That is: panes and their screens, processes, locks, Codex's status feed, the health of sources. The contents
of rollouts are not in a journal: they stay where they are. A journal is JSON lines, `model.events.encode`
behind a header. A recording is one or more parts; each begins with what was known (`FleetKnown`), so that any
of them can be read alone. Of a screen that changes only the lines that differ are written, of a process that
works only its counters.
"""

from __future__ import annotations

import re
from typing import Final, Literal, Union

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.decoders import JsonDecoder
from agentdash.model.fleet import FleetKnown
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey

PART_NAME: Final = re.compile(r"(journal-(\d{8}T\d{6}Z)-\d+)-(\d{4,})\.jsonl", re.ASCII)
"""The name of a part: its recording (when it began, and the pid of its agentdash), the time in that, the
part's number."""


class JournalHeader(msgspec.Struct, kw_only=True):
    """The first line of a part."""

    schema: Literal["agentdash.journal/1"] = "agentdash.journal/1"
    agentdash: str
    """The version that wrote it."""
    host: str
    at: float
    """When the part began (unix seconds)."""
    known: int = 0
    """The number of lines behind this one that repeat what was known by then: one `FleetKnown`; in journals
    of 0.1.0, events of all kinds."""


class ScreenChanged(e.Event, frozen=True, kw_only=True, tag="screen-changed"):
    """In journals alone: a `PaneDrawn`, as the difference to the screen before."""

    key: PaneKey
    height: int
    rows: dict[int, str]
    """The lines that differ, by their number from the top."""


class ProcessWorked(e.Event, frozen=True, kw_only=True, tag="process-worked"):
    """In journals alone: a `ProcessSeen` of which only the counters differ from the one before."""

    key: ProcessKey
    cpu: float
    io: int


HEADER_DECODER: Final = JsonDecoder(JournalHeader)
LINE_DECODER: Final[JsonDecoder[e.Event]] = JsonDecoder(
    Union[(*e.EVENTS, FleetKnown, ScreenChanged, ProcessWorked)]
)


class JournalPacker:
    """Leaves out what the lines before contain already. It is the inverse of `JournalUnpacker`."""

    def __init__(self) -> None:
        self._screens: dict[PaneKey, tuple[str, ...]] = {}
        self._processes: dict[ProcessKey, Process] = {}
        self._locks: e.LocksSeen | None = None

    def pack(self, event: e.Event) -> e.Event | None:
        """Return the event as it is to be written; None where it adds nothing."""
        match event:
            case FleetKnown():
                self._screens = {key: pane.screen for key, pane in event.panes}
                self._processes = dict(event.processes)
            case e.PaneDrawn():
                before = self._screens.get(event.key)
                self._screens[event.key] = event.screen
                if before is None or event.since is not None:
                    return event
                return _pack_screen(event, before)
            case e.PaneGone():
                self._screens.pop(event.key, None)
            case e.ProcessSeen():
                return self._pack_process(event)
            case e.ProcessGone():
                self._processes.pop(event.key, None)
            case e.LocksSeen():
                before_locks, self._locks = self._locks, event
                if before_locks is not None and replace(before_locks, at=event.at) == event:
                    return None
        return event

    def _pack_process(self, event: e.ProcessSeen) -> e.Event:
        process = event.process
        before = self._processes.get(process.key)
        self._processes[process.key] = process
        if before is not None and replace(before, cpu=process.cpu, io=process.io) == process:
            return ProcessWorked(at=event.at, key=process.key, cpu=process.cpu, io=process.io)
        return event


def _pack_screen(event: e.PaneDrawn, before: tuple[str, ...]) -> e.Event:
    rows = {y: text for y, text in enumerate(event.screen) if y >= len(before) or text != before[y]}
    if 2 * len(rows) > len(event.screen):
        return event
    return ScreenChanged(at=event.at, key=event.key, height=len(event.screen), rows=rows)


class JournalUnpacker:
    """Adds what `JournalPacker` left out, as far as the lines before contain it."""

    _MAX_HEIGHT: Final = 10_000
    """Lines of the tallest screen that is unpacked: a damaged height must not exhaust memory."""

    def __init__(self) -> None:
        self._screens: dict[PaneKey, tuple[str, ...]] = {}
        self._processes: dict[ProcessKey, Process] = {}

    def unpack(self, event: e.Event) -> e.Event | None:
        """Return the event as it was before packing; None where the lines before have not what it changes."""
        match event:
            case ScreenChanged():
                event = self._unpack_screen(event)
            case ProcessWorked():
                process = self._processes.get(event.key)
                if process is None:
                    return None
                process = replace(process, cpu=event.cpu, io=event.io)
                event = e.ProcessSeen(at=event.at, process=process)
        self._remember(event)
        return event

    def _unpack_screen(self, event: ScreenChanged) -> e.PaneDrawn:
        height = max(0, min(event.height, self._MAX_HEIGHT))
        screen = list(self._screens.get(event.key, ()))[:height]
        screen += [""] * (height - len(screen))
        for y, text in event.rows.items():
            if 0 <= y < height:
                screen[y] = text
        return e.PaneDrawn(at=event.at, key=event.key, screen=tuple(screen))

    def _remember(self, event: e.Event) -> None:
        match event:
            case FleetKnown():
                self._screens |= {key: pane.screen for key, pane in event.panes}
                self._processes |= dict(event.processes)
            case e.PaneDrawn():
                self._screens[event.key] = event.screen
            case e.PaneGone():
                self._screens.pop(event.key, None)
            case e.ProcessSeen():
                self._processes[event.process.key] = event.process
            case e.ProcessGone():
                self._processes.pop(event.key, None)
