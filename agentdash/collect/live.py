"""The live sources: introduces Codex's files, the sensors and the hub to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.agents.claude.session_files import ClaudeSensor
from agentdash.agents.codex.home import CodexHome, default_home, locks, names, problem, thread_id
from agentdash.agents.codex.log_database import CodexLog
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.codex.status_feed import ControlFeed
from agentdash.agents.screen_reader import Reading, read_screen
from agentdash.agents.screen_rules import Rules, RulesProblem, load_rules, package_rules
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.collect.scheduler import QUIET, PollScheduler
from agentdash.collect.tail.follower import Change, FileMoved, FileVanished, LogFollower
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable
from agentdash.collect.tmux.sensor import TmuxSensor, current_pane, servers
from agentdash.config import Config
from agentdash.model.clock import Clock
from agentdash.model.events import (
    CallStarted,
    Event,
    FileGapSkipped,
    FileGone,
    FileReset,
    FileSeen,
    LineSkipped,
    PaneDrawn,
    PaneGone,
    PaneSeen,
    ProcessGone,
    ScreenRead,
    SourceSeen,
    ThreadEvent,
    ThreadNamed,
)
from agentdash.model.fleet import Fleet
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Emit, FleetChannel, Source

_NEWS: Final = (ProcessGone, PaneGone, PaneDrawn)
"""Events that show that something is going on. (A process that only used some CPU does not.)"""
_SKIM_ABOVE: Final = 1 << 17
"""Bytes above which a rollout is at first read at its head and tail only; the rest is read in the background."""
_BATCH: Final = 1 << 18
"""Bytes that are read and judged before the screen gets its turn again."""
_DAY: Final = 86_400.0
_GLANCE: Final = 0.1
"""Seconds between two glances at the files of worker CLIs that write any."""
_EARLY: Final = 200
"""Notes in Codex's log that wait for their thread to be known."""
_NAMES_EVERY: Final = 10.0
"""Seconds between two readings of the session index."""


def live_sources(config: Config, clock: Clock) -> list[Source]:
    """All sources that the configuration asks for, in the order in which one look should go through them.

    Files come first: who holds them is asked afterwards, so that a thread whose owner is not found has really been left.
    """
    scheduler = PollScheduler(clock)
    home = CodexHome(config.codex_home or default_home())
    sources: list[Source] = [RolloutSource(home, config.sessions, clock, scheduler)]
    if config.tmux:
        wanted = servers(config.socket_names, config.socket_paths, default=True)
        asked = bool(config.socket_names or config.socket_paths)
        sources.append(TmuxSource(TmuxSensor(wanted, skip=current_pane()), clock, scheduler, asked=asked))
    sources += [
        ProcessSource(home, clock, scheduler),
        StatusFeedSource(home, clock, scheduler),
        CodexLogSource(home, clock, scheduler),
    ]
    return (
        [*sources, ScreenSource(clock, config.agents), SessionFileSource(clock)] if config.tmux else sources
    )


class RolloutSource:
    """Rollouts, as they are found, grow, move and go."""

    name = "codex"

    def __init__(self, home: CodexHome, newest: int | None, clock: Clock, scheduler: PollScheduler) -> None:
        self._home, self._clock, self._scheduler = home, clock, scheduler
        since = clock.now() - _DAY
        self._follower = LogFollower(
            [home.sessions, home.archived], skim_above=_SKIM_ABOVE, newest=newest, since=since, batch=_BATCH
        )
        self._readers: dict[str, RolloutReader] = {}
        self._gaps: dict[str, Path] = {}
        """Files whose tail has been reached over a gap, to be read whole."""
        self._names: dict[str, ThreadNamed] = {}
        self._trouble: str | None = None
        """Why a directory cannot be read."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Every session, big ones by head and tail."""
        del fleet
        self._names = {named.thread: named for named in names(self._home)}
        events = [event for change in self._follower.sweep() for event in self._events(change)]
        return [*events, self._health()]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Newest sessions first, then whatever happens, and meanwhile the rest of the big ones."""
        del channel
        emit([self._health()])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(emit))
            group.create_task(self._fill(emit))
            group.create_task(self._name(emit))

    async def _follow(self, emit: Emit) -> None:
        async for changes in self._follower.follow():
            self._scheduler.mark_activity()
            events = [event for change in changes for event in self._events(change)]
            if any(isinstance(event, CallStarted) and event.kind == "command" for event in events):
                self._scheduler.burst()
            emit([*events, self._health()])

    async def _fill(self, emit: Emit) -> None:
        while True:
            await asyncio.sleep(QUIET)
            while self._gaps:
                for change in self._follower.fill(self._gaps.pop(next(reversed(self._gaps)))):
                    emit(self._events(change))
                    await asyncio.sleep(0)

    async def _name(self, emit: Emit) -> None:
        while True:
            news = {n.thread: n for n in names(self._home) if self._names.get(n.thread) != n}
            self._names |= news
            emit([*(n for n in news.values() if n.thread in self._readers), self._health()])
            await asyncio.sleep(_NAMES_EVERY)

    def _events(self, change: Change) -> list[Event]:
        now = self._clock.now()
        path = change.new if isinstance(change, FileMoved) else change.path
        thread = thread_id(path)
        if isinstance(change, FileUnreadable) and thread is None:
            self._trouble = clean_line(f"{path}: {change.why}")
            return [self._health()]
        if thread is None:
            return []
        match change:
            case FileGrown():
                return self._grown(change, thread, now)
            case FileVanished():
                self._readers.pop(thread, None)
                self._gaps.pop(thread, None)
                return [FileGone(at=now, thread=thread)]
            case FileUnreadable():
                return [self._file(path, thread, now, unreadable=change.why)]
            case FileMoved():
                return [self._file(path, thread, now)]

    def _grown(self, change: FileGrown, thread: str, now: float) -> list[Event]:
        events: list[Event] = []
        if change.reset or thread not in self._readers:
            events += [FileReset(at=now, thread=thread)] if thread in self._readers else []
            self._readers[thread] = RolloutReader(thread)
            events += [self._names[thread]] if thread in self._names else []
        events.append(self._file(change.path, thread, now, change))
        if change.skimmed and change.first == 0 and thread not in self._gaps:
            self._gaps[thread] = change.path
            events.append(FileGapSkipped(at=now, thread=thread))
        events += [
            LineSkipped(at=now, thread=thread, what="oversized", detail="longer than is read")
        ] * change.oversized
        return [*events, *self._readers[thread].read(change.lines, change.first)]

    def _file(
        self,
        path: Path,
        thread: str,
        now: float,
        grown: FileGrown | None = None,
        unreadable: str | None = None,
    ) -> FileSeen:
        if grown is None:
            try:
                stat = path.stat()
                size, modified = stat.st_size, stat.st_mtime
            except OSError:
                size, modified = 0, now
        else:
            size, modified = grown.size, grown.modified
        return FileSeen(
            at=now,
            thread=thread,
            path=clean_line(str(path)),
            size=size,
            modified=modified,
            archived=path.is_relative_to(self._home.archived),
            compressed=path.suffix == ".zst",
            skimmed=grown is not None and grown.skimmed,
            unreadable=unreadable,
        )

    def _health(self) -> SourceSeen:
        trouble = problem(self._home) or self._trouble
        detail = trouble or f"{len(self._readers)} sessions of {clean_line(str(self._home.root))}"
        return SourceSeen(at=self._clock.now(), name=self.name, ok=trouble is None, detail=detail)


class TmuxSource:
    """tmux panes, looked at again and again."""

    name = "tmux"

    def __init__(self, sensor: TmuxSensor, clock: Clock, scheduler: PollScheduler, *, asked: bool) -> None:
        self._sensor, self._clock, self._scheduler, self._asked = sensor, clock, scheduler, asked

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """All panes of all servers. What runs in a new one is looked for at once: some CLIs end within a second."""
        events = [
            event
            for event in await self._sensor.poll(self._clock.now())
            if not self._is_missed_by_nobody(event)
        ]
        if any(isinstance(event, PaneSeen) and event.pane.key not in fleet.panes for event in events):
            self._scheduler.burst()
        return events

    def _is_missed_by_nobody(self, event: Event) -> bool:
        """Who asks for certain servers does not miss the default one, unless it was there."""
        if not isinstance(event, SourceSeen) or event.name != self.name:
            return False
        self._asked = self._asked and not event.ok
        return self._asked

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """What changes among them."""
        await _again(self, emit, channel, self._scheduler)


class ScreenSource:
    """What the screens of worker CLIs are read as, as soon as a screen, a title or its tenant is another one."""

    name = "screens"

    def __init__(self, clock: Clock, folder: Path) -> None:
        self._clock, self._folder = clock, folder
        self._rules: Rules | None = None
        self._read: dict[PaneKey, tuple[Pane, str, Reading]] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Readings that have changed."""
        if not fleet.occupants:
            return []
        now = self._clock.now()
        changed: list[Event] = []
        if self._rules is None:
            self._rules, trouble = self._load(now)
            changed += trouble
        self._read = {key: read for key, read in self._read.items() if key in fleet.panes}
        for key, occupant in fleet.occupants.items():
            pane, known = fleet.panes.get(key), self._read.get(key)
            if (
                pane is None
                or occupant.gone_at is not None
                or (known and known[0] is pane and known[1] == occupant.agent)
            ):
                continue
            reading = read_screen(
                occupant.agent,
                pane.screen,
                title=pane.title,
                cursor_visible=pane.cursor_visible,
                width=pane.width,
                height=pane.height,
                rules=self._rules,
            )
            self._read[key] = (pane, occupant.agent, reading)
            if known is None or known[1:] != (occupant.agent, reading):
                changed.append(
                    ScreenRead(at=now, key=key, agent=occupant.agent, **msgspec.structs.asdict(reading))
                )
        return changed

    def _load(self, now: float) -> tuple[Rules, list[SourceSeen]]:
        """The rules, with the user's own where these can be used; what is wrong with them is shown, and ours still hold."""
        try:
            return load_rules(self._folder), []
        except RulesProblem as problem:
            return package_rules(), [SourceSeen(at=now, name=self.name, ok=False, detail=str(problem))]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Readings as they change."""
        fleet = channel.value
        while True:
            emit(await self.poll(fleet))
            fleet = await channel.wait_for_change(fleet)


class SessionFileSource:
    """What worker CLIs say of themselves in files of their own."""

    name = "session files"

    def __init__(self, clock: Clock) -> None:
        self._sensor, self._clock = ClaudeSensor(), clock

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """What has changed in them."""
        return self._sensor.poll(self._clock.now(), fleet.processes.values())

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """What changes in them, while anybody runs who writes any."""
        while True:
            fleet = channel.value
            emit(await self.poll(fleet))
            await (
                asyncio.sleep(_GLANCE)
                if self._sensor.concerns(fleet.processes.values())
                else channel.wait_for_change(fleet)
            )


class StatusFeedSource:
    """Codex's own status feed, where a server of this home is running."""

    name = "codex feed"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._feed, self._clock, self._scheduler = ControlFeed(home.root, clock), clock, scheduler

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """What it says of all threads that are loaded."""
        del fleet
        return await self._feed.poll(self._clock.now())

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """What it pushes."""
        del channel

        def pushed(events: Sequence[Event]) -> None:
            self._scheduler.mark_activity()
            emit(events)

        await self._feed.stream(pushed, self._scheduler.is_idle)


class CodexLogSource:
    """What Codex notes in its own log of threads that are known here."""

    name = "codex log"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._log, self._clock, self._scheduler = CodexLog(home.root), clock, scheduler
        self._early: list[ThreadEvent] = []
        """What was noted of threads whose rollout has not been read: yet, or never, as those that Codex runs for itself have none."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """What is new in it. In a thread: it is somebody else's database."""
        news = [*self._early, *await asyncio.to_thread(self._log.poll, self._clock.now())]
        early = [
            event for event in news if isinstance(event, ThreadEvent) and event.thread not in fleet.threads
        ]
        self._early = early[-_EARLY:]
        return [event for event in news if event not in early]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """What is noted from now on, and lately."""
        await _again(self, emit, channel, self._scheduler)


class ProcessSource:
    """Processes and who holds which thread, looked at again and again."""

    name = "processes"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._home, self._clock, self._scheduler = home, clock, scheduler
        self._sensor = ProcessSensor(is_rollout=lambda path: thread_id(Path(path)) is not None)

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Locks first: a look at processes ends with the event that says that both are complete. In a thread: /proc can be slow."""
        panes = fleet.panes.values()
        servers = {pane.server_pid for pane in panes if pane.server_pid is not None}
        return await asyncio.to_thread(self._poll, {pane.pid for pane in panes}, servers)

    def _poll(self, panes: set[int], servers: set[int]) -> list[Event]:
        now = self._clock.now()
        return [locks(self._home, now), *self._sensor.poll(now, panes, servers)]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """What changes among them."""
        await _again(self, emit, channel, self._scheduler, self._scheduler.rest)


async def _again(
    source: Source,
    emit: Emit,
    channel: FleetChannel,
    scheduler: PollScheduler,
    rest: Callable[[Fleet], Awaitable[None]] | None = None,
) -> None:
    """Looks, and looks again after a pause that depends on how much is going on."""
    while True:
        events = await source.poll(channel.value)
        if any(isinstance(event, _NEWS) for event in events):
            scheduler.mark_activity()
        emit(events)
        await (rest(channel.value) if rest else asyncio.sleep(scheduler.pause(channel.value)))
