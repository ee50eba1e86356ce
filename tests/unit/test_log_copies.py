"""Copies of rollouts, links to them, and copies that go on and vanish: each thread is read from one file."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from agentdash.agents.codex.home import CodexHome
from agentdash.collect.clock import SystemClock
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.session_logs import SessionLogSource, rollouts_of
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet

(RECORDING,) = (Path(__file__).parents[1] / "data" / "recordings" / "0.169.0" / "killed-mid-command").glob(
    "*.jsonl"
)
THREAD = RECORDING.stem[-36:]
LINES = RECORDING.read_bytes().splitlines(keepends=True)


class Home:
    """A Codex home with copies of one rollout, and a writer whose clock never stands still."""

    def __init__(self, root: Path) -> None:
        self.home = CodexHome(root)
        self.places = [
            root / "sessions/2026/11/20" / RECORDING.name,
            root / "sessions/2026/11/21" / f"rollout-2026-11-21T00-00-00-{THREAD}.jsonl",
            root / "archived_sessions" / RECORDING.name,
        ]
        for place in self.places:
            place.parent.mkdir(parents=True)
        self.now = itertools.count(1_800_000_000)
        self.write(self.places[0], 20)

    def write(self, place: Path, count: int) -> None:
        place.write_bytes(b"".join(LINES[:count]))
        self.touch(place)

    def touch(self, place: Path) -> None:
        os.utime(place, (now := next(self.now), now))

    def append(self, place: Path) -> None:
        with place.open("ab") as file:
            file.write(LINES[-1])
        self.touch(place)

    def source(self) -> SessionLogSource:
        clock = SystemClock()
        return SessionLogSource(rollouts_of(self.home), None, clock, PollScheduler(clock))

    async def read(self, source: SessionLogSource, fleet: Fleet) -> Fleet:
        return reduce(fleet, await source.poll(fleet))


def shown(fleet: Fleet) -> list[object]:
    return [(t.lines, t.tokens, t.turn, t.calls, t.skipped, t.file is None) for t in fleet.threads.values()]


async def test_thread_of_two_files_is_counted_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    alone = await home.read(home.source(), Fleet())
    shutil.copy2(home.places[0], home.places[2])
    assert shown(await home.read(home.source(), Fleet())) == shown(alone)


async def test_thread_lives_on_when_its_copy_vanishes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    source = home.source()
    fleet = await home.read(source, Fleet())
    before = shown(fleet)
    home.write(home.places[2], 10)  # newer, shorter
    fleet = await home.read(source, fleet)
    assert shown(fleet) != before
    home.places[2].unlink()
    assert shown(await home.read(source, fleet)) == before


@pytest.mark.parametrize("seed", range(30))
async def test_any_order_of_copies_is_read_as_anew(tmp_path: Path, seed: int) -> None:
    home, chance = Home(tmp_path), random.Random(seed)
    source, fleet = home.source(), Fleet()
    for _ in range(12):
        place, other = chance.sample(home.places, 2)
        match chance.choice(("write", "append", "copy", "link", "move", "delete")):
            case "write":
                home.write(place, chance.randrange(1, len(LINES)))
            case "append" if place.exists():
                home.append(place)
            case "copy" if place.exists() and not (other.exists() and place.samefile(other)):
                shutil.copy(place, other)
                home.touch(other)
            case "link" if place.exists() and not other.exists():
                os.link(place, other)
            case "move" if place.exists():
                place.rename(other)
            case "delete":
                place.unlink(missing_ok=True)
        if chance.random() < 0.7:
            fleet = await home.read(source, fleet)
            anew = await home.read(home.source(), Fleet())
            assert shown(fleet) == shown(anew)
