"""What only a live agentdash sees, as files: panes and their screens, processes, locks, Codex's feed, and how the sources did.

What the rollouts tell is not in it: they are there themselves. A journal is JSON lines, `facts.events.encode` behind a header. A recording
is one or more parts; each begins with what was known, so that any of them can be read alone. Of a screen that changes only the lines that
differ are written, of a process that works only how much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey

NAME: Final = re.compile(r"(journal-(\d{8}T\d{6}Z)-\d+)-(\d{4,})\.jsonl", re.ASCII)
"""A part's file: the recording (when it began, and whose process it was), and its number."""
RECORDED: Final = (
    e.LocksSeen,
    e.PaneSeen,
    e.PaneDrawn,
    e.PaneGone,
    e.ScreenRead,
    e.StatusPushed,
    e.ProcessSeen,
    e.ProcessGone,
    e.ProcessesCounted,
    e.HostSeen,
    e.SourceSeen,
    e.SessionSeen,
    e.MountsSeen,
    e.StatePathsSeen,
    e.ViolationLogged,
    e.TroubleLogged,
)
"""What is worth recording: all that no rollout tells."""


class Header(msgspec.Struct, kw_only=True):
    """The first line of a part."""

    schema: Literal["agentdash.journal/1"] = "agentdash.journal/1"
    agentdash: str
    """The version that wrote it."""
    host: str
    at: float
    """When the part began (unix seconds)."""
    known: int = 0
    """So many lines behind this one repeat what was known by then."""


class ScreenChanged(e.Event, frozen=True, kw_only=True, tag="screen-changed"):
    """In journals alone: a `PaneDrawn`, told by what differs from the screen before."""

    key: PaneKey
    height: int
    rows: dict[int, str]


class ProcessWorked(e.Event, frozen=True, kw_only=True, tag="process-worked"):
    """In journals alone: a `ProcessSeen` of which only the work is news."""

    key: ProcessKey
    cpu: float
    io: int


HEADER: Final = msgspec.json.Decoder(Header)
LINE: Final = msgspec.json.Decoder(e.AnyEvent | ScreenChanged | ProcessWorked)


# ---------------------------------------------------------------- writing


class Packer:
    """Leaves out what a journal tells already."""

    def __init__(self) -> None:
        self._screens: dict[PaneKey, tuple[str, ...]] = {}
        self._processes: dict[ProcessKey, Process] = {}
        self._locks: e.LocksSeen | None = None

    def pack(self, event: e.Event) -> e.Event | None:
        """The event as it is to be written; None where it adds nothing."""
        match event:
            case e.PaneDrawn():
                before = self._screens.get(event.key)
                self._screens[event.key] = event.screen
                return event if before is None else _changed(event, before)
            case e.PaneGone():
                self._screens.pop(event.key, None)
            case e.ProcessSeen():
                now = event.process
                was, self._processes[now.key] = self._processes.get(now.key), now
                if was is not None and replace(was, cpu=now.cpu, io=now.io) == now:
                    return ProcessWorked(at=event.at, key=now.key, cpu=now.cpu, io=now.io)
            case e.ProcessGone():
                self._processes.pop(event.key, None)
            case e.LocksSeen():
                locks, self._locks = self._locks, event
                return (
                    None
                    if locks and (locks.holders, locks.readable) == (event.holders, event.readable)
                    else event
                )
        return event


def _changed(event: e.PaneDrawn, before: tuple[str, ...]) -> e.Event:
    rows = {y: text for y, text in enumerate(event.screen) if y >= len(before) or text != before[y]}
    if 2 * len(rows) > len(event.screen):
        return event
    return ScreenChanged(at=event.at, key=event.key, height=len(event.screen), rows=rows)


def known(fleet: Fleet) -> list[e.Event]:
    """Events that make of an empty fleet what this one knows beside its threads; each with the time at which it was found out."""
    polled = fleet.processes_at
    events: list[e.Event] = [fleet.host] if fleet.host else []
    events += [e.SourceSeen(at=s.at, name=s.name, ok=s.ok, detail=s.detail) for s in fleet.sources.values()]
    for key, pane in fleet.panes.items():
        events.append(e.PaneSeen(at=pane.titled_at or 0.0, pane=replace(pane, screen=(), drawn_at=None)))
        if pane.drawn_at is not None:
            events.append(e.PaneDrawn(at=pane.drawn_at, key=key, screen=pane.screen))
    if polled is not None:
        events += _known_processes(fleet, polled)
    for key in fleet.panes:
        if (trouble := fleet.troubles.get(str(key))) is not None and (
            occupant := fleet.occupants.get(key)
        ) is not None:
            events.append(
                e.ScreenRead(
                    at=trouble.at, key=key, agent=occupant.agent, state="failed-provider", text=trouble.text
                )
            )
    events += fleet.readings.values()
    events += fleet.pushed.values()
    if fleet.locks:
        events.append(
            e.LocksSeen(at=fleet.locks.at, holders=fleet.locks.holders, readable=fleet.locks.readable)
        )
    return events


def _known_processes(fleet: Fleet, polled: float) -> Iterator[e.Event]:
    """Who is there, who has left a pane, who has worked lately."""
    gone = [
        (key, occupant)
        for key, occupant in fleet.occupants.items()
        if occupant.gone_at is not None and key in fleet.panes
    ]
    for namespace, mounts in fleet.mounts.items():
        yield e.MountsSeen(at=polled, namespace=namespace, mounts=mounts)
    for key, occupant in gone:  # who has left a pane was there before
        left = occupant.process or Process(
            occupant.key, fleet.panes[key].pid, occupant.agent, agent=occupant.agent
        )
        yield e.ProcessSeen(at=polled, process=left)
        if occupant.paths:
            yield e.StatePathsSeen(at=polled, key=occupant.key, paths=occupant.paths)
    for process in fleet.processes.values():
        if (worked := fleet.busy.get(process.key)) is not None:
            yield e.ProcessSeen(at=worked, process=replace(process, cpu=0.0, io=0))
        yield e.ProcessSeen(at=polled if worked is None else worked, process=process)
    for owner, paths in fleet.state_paths.items():
        yield e.StatePathsSeen(at=polled, key=owner, paths=paths)
    yield from fleet.sessions.values()
    yield e.ProcessesCounted(at=polled)
    yield from (e.ProcessGone(at=occupant.gone_at or polled, key=occupant.key) for _, occupant in gone)
