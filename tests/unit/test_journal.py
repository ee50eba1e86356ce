"""What was recorded comes back: as events, as a fleet, in parts, and from files that something has happened to."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from agentdash.demo.play import demo_hub
from agentdash.engine.latest import LatestValue
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.links import FleetLinks
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import Family
from agentdash.replay.journal import JournalReader, journal_streams, overlapping, parts
from agentdash.replay.player import Player
from agentdash.store.journal import RECORDED, Packer, ScreenChanged, known
from agentdash.store.recorder import Limits, Recorder
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
    e.LocksSeen(at=NOW + 1, holders={"t": 101}, readable=True),
    e.ProcessesCounted(at=NOW + 1),
    drawn(NOW + 2, "a", "b", "changed", "d", "e"),
    e.MessageLogged(at=NOW + 2, thread="t", role="user", text="never in a journal"),
    drawn(NOW + 3, "a", "b", "changed", "d"),
    e.ScreenRead(at=NOW + 3, key=KEY, agent="codex", state="running", rule="codex.working"),
    e.StatusPushed(at=NOW + 3, thread="t", status="active", flags=("waitingOnApproval",)),
    e.ProcessSeen(at=NOW + 4, process=replace(CODEX, cpu=2.0)),
    e.LocksSeen(at=NOW + 4, holders={"t": 101}, readable=True),
    e.ProcessesCounted(at=NOW + 4),
    drawn(NOW + 5, "all", "of", "it", "is", "new"),
    e.ProcessGone(at=NOW + 6, key=CODEX.key),
    e.LocksSeen(at=NOW + 6, holders={}, readable=True),
    e.ProcessesCounted(at=NOW + 6),
)


class Bench:
    """A recorder that is given a story, and what it leaves behind."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self.folder, self.clock = folder, VirtualClock(NOW)
        self.clock.set(paused=True, now=NOW)
        self.limits = limits or Limits()
        self.said: list[e.SourceSeen] = []

    async def record(self, *batches: Iterable[e.Event]) -> None:
        fleet = Fleet()
        recorder = Recorder(self.folder, self.clock, version="1.2.3", host="box", limits=self.limits)
        told = asyncio.Event()

        def emit(events: Iterable[e.Event]) -> None:
            self.said += [event for event in events if isinstance(event, e.SourceSeen)]
            told.set()

        running = asyncio.create_task(recorder.stream(emit, LatestValue(fleet)))
        await told.wait()
        for batch in batches:
            news = list(batch)
            fleet = reduce(fleet, news)
            recorder.take(news)
            recorder._write(recorder._pending, fleet)
            recorder._pending = []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def read(self, since: float = 0.0, until: float = NOW + 1e6, now: float = NOW + 1e6) -> list[e.Event]:
        return [
            event
            for path, reader in overlapping(self.folder, since, until, now)
            for event in reader.read(lines(path))
        ]


def lines(path: Path) -> list[bytes]:
    whole, newline, _ = path.read_bytes().rpartition(b"\n")
    return whole.split(b"\n") if newline else []


def own(events: Iterable[e.Event]) -> list[e.Event]:
    """Without what is said of the journal itself, and of the end of the recording."""
    events = list(events)
    end = next(
        (
            i
            for i, x in enumerate(events)
            if isinstance(x, e.SourceSeen) and x.detail == "not recorded any more"
        ),
        len(events),
    )
    return [x for x in events[:end] if not (isinstance(x, e.SourceSeen) and x.name == "journal")]


def essence(fleet: Fleet) -> Fleet:
    """Without what a journal leaves out, and what follows from the rest."""
    sources = {n: s for n, s in fleet.sources.items() if n != "journal"}
    return replace(fleet, threads={}, sources=sources, locks=None, links=FleetLinks(), histories={})


def test_every_event_is_in_a_rollout_or_in_a_journal() -> None:
    """Who adds one has to say which."""
    from_files = {
        e.ThreadStarted,
        e.TurnStarted,
        e.TurnEnded,
        e.PolicySet,
        e.CallStarted,
        e.CallEnded,
        e.ChildSpawned,
        e.MessageLogged,
        e.TokensCounted,
    }
    from_files |= {e.ThreadNamed, e.LineSkipped, e.FileSeen, e.FileGapSkipped, e.FileReset, e.FileGone}
    assert set(get_args(e.AnyEvent)) == from_files | set(RECORDED)


async def test_what_was_folded_comes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "journal")
    await bench.record(STORY)
    told = reduce(Fleet(), [x for x in STORY if isinstance(x, RECORDED)])
    assert essence(reduce(Fleet(), own(bench.read()))) == essence(told)


async def test_screens_are_told_by_what_differs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY)
    raw = b"\n".join(lines(next(tmp_path.iterdir())))
    assert raw.count(b'"screen-changed"') == 2
    assert [x.screen for x in own(bench.read()) if isinstance(x, e.PaneDrawn)] == [
        x.screen for x in STORY if isinstance(x, e.PaneDrawn)
    ]


async def test_nothing_of_a_rollout_and_nothing_twice_is_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY)
    raw = b"\n".join(lines(next(tmp_path.iterdir())))
    assert b"never in a journal" not in raw
    assert (raw.count(b'"locks-seen"'), raw.count(b'"process-seen"'), raw.count(b'"process-worked"')) == (
        2,
        2,
        1,
    )


async def test_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "journal"
    await Bench(folder).record(STORY)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("at", range(8))
async def test_what_was_known_before_is_told_first(tmp_path: Path, at: int) -> None:
    """A family that begins in the middle of a recording sees the panes and processes that were there."""
    bench = Bench(tmp_path)
    await bench.record(STORY)
    since = NOW + at - 0.5
    later = [x for x in STORY if isinstance(x, RECORDED) and x.at >= since]
    if not later:
        return
    upto = later[0].at
    back = reduce(Fleet(), [x for x in own(bench.read(since=since)) if x.at <= upto])
    told = reduce(Fleet(), [x for x in STORY if isinstance(x, RECORDED) and x.at <= upto])
    assert essence(back) == essence(told)


async def test_every_part_can_be_read_alone_and_all_are_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Limits(part=1))
    await bench.record(*[[event] for event in STORY])
    assert [part.number for part in parts(tmp_path)] == list(range(1, len(list(tmp_path.iterdir())) + 1))
    assert len(list(parts(tmp_path))) > 5
    whole = own(bench.read())
    assert [type(x) for x in whole if isinstance(x, e.PaneDrawn)] == [
        type(x) for x in STORY if isinstance(x, e.PaneDrawn)
    ]
    assert essence(reduce(Fleet(), whole)) == essence(
        reduce(Fleet(), [x for x in STORY if isinstance(x, RECORDED)])
    )
    for path in sorted(tmp_path.iterdir())[:-3]:
        path.unlink()
    assert essence(reduce(Fleet(), own(bench.read()))) == essence(
        reduce(Fleet(), [x for x in STORY if isinstance(x, RECORDED)])
    )


async def test_after_its_end_nobody_knows(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY[:9])
    fleet = reduce(Fleet(), bench.read())
    assert (fleet.panes, fleet.processes, fleet.locks.holders, fleet.locks.readable) == ({}, {}, {}, False)
    assert (fleet.sources["tmux"].ok, fleet.sources["journal"].detail) == (False, "the recording ends here")


async def test_one_that_is_still_written_has_no_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY[:9])
    modified = next(tmp_path.iterdir()).stat().st_mtime
    assert reduce(Fleet(), bench.read(now=modified + 1)).panes


async def test_of_two_at_once_one_is_taken_and_then_the_other(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.record(STORY[:9])
    (first,) = tmp_path.iterdir()
    os.utime(first, (NOW + 3, NOW + 3))
    first.rename(tmp_path / "journal-20261120T200000Z-1-0001.jsonl")
    await bench.record(STORY)
    os.utime(next(tmp_path.glob(f"*-{os.getpid()}-0001.jsonl")), (NOW + 9, NOW + 9))
    events = bench.read(now=NOW + 100)
    ended = next(i for i, x in enumerate(events) if isinstance(x, e.PaneGone))
    assert all(x.at <= NOW + 3 for x in events[:ended])
    assert [x.screen[0] for x in events[ended:] if isinstance(x, e.PaneDrawn)] == ["a", "a", "all"]


async def test_old_ones_go_and_others_stay(tmp_path: Path) -> None:
    old, foreign = tmp_path / "journal-20200101T000000Z-1-0001.jsonl", tmp_path / "letter.jsonl"
    for path in (old, foreign):
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW - 1e7, NOW - 1e7))
    for n in range(4):
        path = tmp_path / f"journal-20261101T00000{n}Z-1-0001.jsonl"
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW - 100 + n, NOW - 100 + n))
    await Bench(tmp_path, Limits(part=1000, total=1250)).record(STORY[:1])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in left if name.startswith("journal-202611")][:2] == [
        f"journal-20261101T00000{n}Z-1-0001.jsonl" for n in (2, 3)
    ]
    assert not old.exists()
    assert foreign.exists()


async def test_too_much_at_once_is_counted(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, VirtualClock(NOW), version="1", host="box")
    recorder.take([e.ProcessesCounted(at=NOW)] * 20_000)
    recorder.take([e.ProcessesCounted(at=NOW)] * 7)
    assert recorder._lost == 7


def test_a_fleet_is_known_again() -> None:
    """On the demo's whole day: what `known` tells makes the same panes, processes, tenants and readings."""
    hub, _ = demo_hub(at=60.0)
    fleet = asyncio.run(_once(hub))
    again = reduce(Fleet(), known(fleet))
    assert essence(again) == essence(replace(fleet, observed=again.observed))


async def _once(hub: object) -> Fleet:
    await hub.once()  # type: ignore[attr-defined]
    return hub.fleet  # type: ignore[attr-defined,no-any-return]


def test_a_screen_that_shrinks_and_grows() -> None:
    packer, reader = Packer(), JournalReader(0.0, NOW + 9)
    screens = [("a",) * 9, ("a",) * 8, ("a",) * 8 + ("b",), (), ("c",)]
    packed = [packer.pack(drawn(NOW, *screen)) for screen in screens]
    assert isinstance(packed[1], ScreenChanged)
    back = reader.read([b"{}", *(e.encode(event) for event in packed if event)])
    assert [x.screen for x in back if isinstance(x, e.PaneDrawn)] == screens


async def test_a_player_shows_panes_as_they_were(tmp_path: Path) -> None:
    """Also after going back, and as if the pane had never been once the recording is over."""
    await Bench(tmp_path / "journal").record(STORY)
    path = tmp_path / f"rollout-2026-11-20T19-59-47-{THREAD}.jsonl"
    path.write_bytes(
        META + b"\n" + line("event_msg", {"type": "user_message", "message": "go"}, second=10) + b"\n"
    )
    with path.open("ab") as file:
        file.write(line("event_msg", {"type": "agent_message", "message": "done"}, second=30) + b"\n")
    os.utime(path, (BORN + 30, BORN + 30))
    family = Family(THREAD, (path,))
    player = Player(family, VirtualClock(0), open_extra=journal_streams(tmp_path / "journal", family, NOW + 1e6))
    player.index.read()
    shown = []
    for at in (NOW + 1.5, NOW + 3.5, NOW + 1.5, NOW + 5.5, BORN + 25):
        player.seek_time(at)
        (known,) = await player.poll(Fleet())
        assert isinstance(known, FleetReplaced)
        shown.append([pane.screen[2] if len(pane.screen) > 2 else "" for pane in known.fleet.panes.values()])
    assert shown == [["c"], ["changed"], ["c"], ["it"], []]
