"""Journals: what was recorded is read back as events and as a fleet, in parts, and bounded."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.home import CodexHome
from agentdash.cli.past_sessions import export, playable
from agentdash.config import Config
from agentdash.engine.hub import LatestValue
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.worker import Worker
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import Family
from agentdash.replay.index import Mark
from agentdash.replay.journal import find_overlapping, journal_streams
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.replay.player import Player
from agentdash.replay.streams import family_stream
from agentdash.report.exports import build_report
from agentdash.store.journal import Recorder
from tests.unit.rollout_files import BORN, THREAD, line
from tests.unit.test_library import META

NOW = 1_795_204_800.0
KEY = PaneKey("default", "%1")
PANE = Pane(KEY, "main", "1:codex", 100, "codex", width=80, height=5)
SHELL = Process(ProcessKey(100, NOW - 1), 1, "bash", ("bash",))
CODEX = Process(ProcessKey(101, NOW), 100, "codex", ("codex",), env={"CODEX_HOME": "/h"}, agent="codex")


def drawn(at: float, *lines: str) -> e.PaneDrawn:
    return e.PaneDrawn(at=at, key=KEY, screen=lines)


STORY: tuple[e.Event, ...] = (
    e.SourceSeen(at=NOW, name="tmux", ok=True, detail="1 pane"),
    e.HostSeen(at=NOW, platform="linux"),
    e.PaneSeen(at=NOW + 1, pane=PANE),
    drawn(NOW + 1, "a", "b", "c", "d", "e"),
    e.ProcessSeen(at=NOW + 1, process=SHELL),
    e.ProcessSeen(at=NOW + 1, process=CODEX),
    e.LocksSeen(at=NOW + 1, holders={"t": 101}),
    e.ProcessesCounted(at=NOW + 1),
    drawn(NOW + 2, "a", "b", "changed", "d", "e"),
    e.MessageLogged(at=NOW + 2, thread="t", role="user", text="in a rollout"),
    drawn(NOW + 3, "a", "b", "changed", "d"),
    e.ScreenRead(at=NOW + 3, key=KEY, agent="codex", state="running", rule="codex.working"),
    e.StatusPushed(at=NOW + 3, thread="t", status="active", flags=("waitingOnApproval",)),
    e.ProcessSeen(at=NOW + 4, process=replace(CODEX, cpu=2.0)),
    e.LocksSeen(at=NOW + 4, holders={"t": 101}),
    e.ProcessesCounted(at=NOW + 4),
    drawn(NOW + 5, "all", "of", "it", "is", "new"),
    e.ProcessGone(at=NOW + 6, key=CODEX.key),
    e.LocksSeen(at=NOW + 6, holders={}),
    e.ProcessesCounted(at=NOW + 6),
)


class Bench:
    """A recorder, the events that it is given, and the files that it writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, VirtualClock(NOW)
        self.clock.set(paused=True, now=NOW)
        self.health: list[e.SourceSeen] = []

    async def record(self, *batches: Iterable[e.Event]) -> None:
        fleet = Fleet()
        recorder = Recorder(self.folder, self.clock)
        started = asyncio.Event()

        def emit(events: Iterable[e.Event]) -> None:
            self.health += [event for event in events if isinstance(event, e.SourceSeen)]
            started.set()

        running = asyncio.create_task(recorder.stream(emit, LatestValue(fleet)))
        await started.wait()
        for batch in batches:
            news = list(batch)
            fleet = reduce(fleet, news)
            recorder.record(news)
            recorder._write(recorder._pending, fleet)
            recorder._pending = []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def read(self, since: float = 0.0, until: float = NOW + 1e6, now: float = NOW + 1e6) -> list[e.Event]:
        return [
            event
            for stream in find_overlapping(self.folder, since, until, now)
            for event in stream.reader.read(lines(stream.path))
        ]


def lines(path: Path) -> list[bytes]:
    whole, newline, _ = path.read_bytes().rpartition(b"\n")
    return whole.split(b"\n") if newline else []


async def test_no_rollout_content_and_no_repetition_is_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY)
    raw = b"\n".join(lines(next(tmp_path.iterdir())))
    assert b"in a rollout" not in raw
    tags = (b'"locks-seen"', b'"process-seen"', b'"process-worked"')
    assert [raw.count(tag) for tag in tags] == [2, 2, 1]


async def test_end_of_recording_removes_processes_and_keeps_panes(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY[:12])
    fleet = reduce(Fleet(), bench.read())
    assert (fleet.processes, fleet.locks.holders) == ({}, {})
    assert list(fleet.panes) == [KEY]
    assert (fleet.sources["tmux"].ok, fleet.sources["journal"].detail) == (False, "the recording ends here")


async def test_prune_removes_old_parts_and_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentdash.store.journal._PART_BYTES", 1000)
    monkeypatch.setattr("agentdash.store.journal._TOTAL_BYTES", 1250)
    old, foreign = tmp_path / "journal-20200101T000000Z-1-0001.jsonl", tmp_path / "letter.jsonl"
    for path in (old, foreign):
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW - 1e7, NOW - 1e7))
    for n in range(4):
        path = tmp_path / f"journal-20261101T00000{n}Z-1-0001.jsonl"
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW - 100 + n, NOW - 100 + n))
    await Bench(tmp_path).record(STORY[:1])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in left if name.startswith("journal-202611")][:2] == [
        f"journal-20261101T00000{n}Z-1-0001.jsonl" for n in (2, 3)
    ]
    assert not old.exists()
    assert foreign.exists()


async def test_events_beyond_the_limit_are_counted_as_lost(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, VirtualClock(NOW))
    recorder.record([e.ProcessesCounted(at=NOW)] * 20_000)
    recorder.record([e.ProcessesCounted(at=NOW)] * 7)
    assert recorder._lost == 7


# ---------------------------------------------------------------- the end


def pass_at(at: float, holders: dict[str, int]) -> list[e.Event]:
    """Return the events of a pass over processes and locks."""
    return [e.LocksSeen(at=at, holders=holders), e.ProcessesCounted(at=at)]


OTHER = PaneKey("default", "%2")
LIVES = [
    e.SourceSeen(at=BORN, name="tmux", ok=True, detail="2 panes"),
    e.PaneSeen(at=BORN, pane=PANE),
    e.PaneSeen(at=BORN, pane=replace(PANE, key=OTHER, pid=200)),
    e.ProcessSeen(at=BORN, process=SHELL),
    e.ProcessSeen(at=BORN, process=CODEX),
    e.ProcessSeen(
        at=BORN, process=Process(ProcessKey(200, BORN - 9), 1, "claude", ("claude",), agent="claude")
    ),
    *pass_at(BORN, {THREAD: CODEX.key.pid}),
]


def others(until: float) -> list[e.Event]:
    """Return what goes on in the other pane, once a second."""
    return [
        e.PaneDrawn(at=BORN + second, key=OTHER, screen=(f"line {second}",))
        for second in range(1, int(until) + 1)
    ]


def rollout(folder: Path, *lines: bytes, last: float) -> Family:
    path = folder / f"rollout-2026-11-20T19-59-47-{THREAD}.jsonl"
    path.write_bytes(b"\n".join((META, *lines)) + b"\n")
    os.utime(path, (BORN + last, BORN + last))
    return Family(THREAD, (path,))


def asked(second: float, *more: bytes) -> tuple[bytes, ...]:
    return (line("event_msg", {"type": "task_started", "turn_id": "t"}, second=second), *more)


async def recorded_player(folder: Path, family: Family, events: Iterable[e.Event]) -> Player:
    """Return a player of a family with a recording, whose index is complete."""
    bench = Bench(folder / "journal")
    bench.clock.set(now=BORN)
    await bench.record(sorted(events, key=lambda event: event.at))
    player = Player(family, VirtualClock(0), extra=journal_streams(bench.folder, family, NOW + 1e6))
    player.index.read()
    return player


async def ends_of(player: Player) -> tuple[float, dict[str, Worker]]:
    """Return the time of the end, and the workers there."""
    player.seek(1)
    assert not player.playing
    snapshot = build_snapshot(player.read().fleet, player._clock.now())
    return player.end, {worker.id: worker for worker in snapshot.workers}


@pytest.mark.parametrize("after", [20.0, 1_000.0])
async def test_killed_worker_is_dead_at_its_time(tmp_path: Path, after: float) -> None:
    """It waited long after its last line; what others do later is not part of its replay."""
    family = rollout(tmp_path, *asked(2), last=2)
    gone = e.ProcessGone(at=BORN + after, key=CODEX.key)
    events = [*LIVES, *others(after + 60), gone, *pass_at(BORN + after, {})]
    end, workers = await ends_of(await recorded_player(tmp_path, family, events))
    assert (workers[THREAD].state, workers[THREAD].assessment.since) == ("exited", BORN + after)
    assert after <= end - BORN <= after + 6


async def test_recording_ends_with_the_last_turn(tmp_path: Path) -> None:
    """Also where its process waits for another prompt for hours, and others are busy meanwhile: an export
    too has the family alone, and its length."""
    done = line("event_msg", {"type": "task_complete", "turn_id": "t", "last_agent_message": "ok"}, second=8)
    family = rollout(tmp_path, *asked(2, done), last=8)
    player = await recorded_player(tmp_path, family, [*LIVES, *others(900)])
    end, workers = await ends_of(player)
    assert (workers[THREAD].state, end) == ("completed", BORN + 8)
    visible = [
        at for at, mark in zip(player.index.times, player.index.marks, strict=True) if mark & Mark.VISIBLE
    ]
    assert max(visible) == BORN + 8
    player.seek(0)
    player.speed = 1e6
    player.toggle()
    while player.playing:
        player._play_on()
    assert player.read().at == BORN + 8
    recorded = journal_streams(tmp_path / "journal", family, NOW + 1e6)
    report = build_report(THREAD, family_stream(family, recorded), ended=True)
    assert [(each.id, each.pane is not None) for each in report.workers] == [(THREAD, True)]
    assert report.ended == BORN + 8


# ---------------------------------------------------------------- recordings without a thread

CLAUDE = Process(ProcessKey(200, BORN - 9), 1, "claude", ("claude",), agent="claude", cwd="/home/dev/api")
CLAUDE_PANE = replace(PANE, key=OTHER, pid=200, window="1:claude")


def reads(at: float, state: str) -> e.ScreenRead:
    return e.ScreenRead(at=at, key=OTHER, agent="claude", state=state, rule=f"claude.{state}", text="touch x")


PANES_ALONE = [
    e.SourceSeen(at=BORN, name="tmux", ok=True, detail="2 panes"),
    e.PaneSeen(at=BORN, pane=CLAUDE_PANE),
    e.ProcessSeen(at=BORN, process=CLAUDE),
    e.ProcessesCounted(at=BORN),
    e.PaneDrawn(at=BORN + 1, key=OTHER, screen=("thinking",)),
    reads(BORN + 1, "running"),
    e.PaneDrawn(at=BORN + 9, key=OTHER, screen=("May I?",)),
    reads(BORN + 9, "waiting-approval"),
]
KILLED = [
    e.PaneGone(at=BORN + 60, key=OTHER),
    e.ProcessGone(at=BORN + 60, key=CLAUDE.key),
    e.ProcessesCounted(at=BORN + 60),
]
LAST = e.SourceSeen(at=BORN + 65, name="tmux", ok=True, detail="panes")


async def recording(folder: Path, events: Iterable[e.Event]) -> Path:
    """Record events, and return the part that was written, as one that has ended."""
    bench = Bench(folder)
    bench.clock.set(now=BORN)
    await bench.record(list(events))
    (part,) = folder.iterdir()
    os.utime(part, (BORN + 65, BORN + 65))
    return part


@pytest.mark.parametrize("ending", [(), KILLED], ids=["lives", "killed"])
async def test_recording_is_listed_played_and_exported(tmp_path: Path, ending: list[e.Event]) -> None:
    """By its name and by its file; every state at its time; the end says what became of the worker."""
    part = await recording(tmp_path / "journal", [*PANES_ALONE, *ending, LAST])
    library = Library(CodexHome(tmp_path), VirtualClock(NOW + 100), recordings=tmp_path / "journal")
    (entry,) = library.entries()
    assert list(library.fill([entry])) == []
    assert (entry.path, entry.begun, entry.took) == (part, int(BORN), BORN + 65 - int(BORN))
    assert Query.parse("recording", NOW).matches(entry)
    for target in (str(part), part.name.rsplit("-", 1)[0]):
        playable_ = playable(target, Config(), tmp_path / "journal", NOW + 1e6)
        player = Player(playable_.family, VirtualClock(0), extra=playable_.recorded)
        player.index.read()
        shown = []
        for at in (BORN + 5, BORN + 30):
            player.seek_time(at)
            (worker,) = build_snapshot(player.read().fleet, at).workers
            shown.append(str(worker.state))
        assert shown == ["running", "waiting-approval"]
        out = tmp_path / f"{len(target)}.md"
        code = export(target, Config(), out, journal=tmp_path / "journal")
        assert code == 0
        text = out.read_text()
        assert "waiting-approval" in text
        assert ("exited" in text, "unreachable" in text) == (bool(ending), not ending)
        assert ("its pane is gone" if ending else "not recorded any more") in text
