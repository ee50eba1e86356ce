"""Replay: stepping and seeking reach the same fleet, and the end is what `status` reports."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.agents.codex.home import CodexHome
from agentdash.engine.hub import Hub
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import MessageLogged, TokensCounted, encode
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.clock import VirtualClock, parse_time
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import Family, find_family
from agentdash.replay.index import MAX_GAP_S, Mark, StreamIndex
from agentdash.replay.player import Player
from agentdash.replay.streams import FileStream, LineReader, family_stream
from screenshots.make import EventLineReader
from tests.bench.realistic import make_realistic_home
from tests.unit.rollout_files import DATA, RECORDINGS

NO_HOME = CodexHome(Path("/nonexistent"))
ALL_FOLDERS = sorted({path.parent for path in DATA.glob("r*/*/*/rollout-*.jsonl*")})
assert ALL_FOLDERS


def family_of(folder: Path):
    return find_family(NO_HOME, str(min(folder.glob("rollout-*"))))


def index_of(family) -> StreamIndex:
    """Return an index with a checkpoint at every step, as far as these are kept."""
    index = StreamIndex(family_stream(family), 1, lambda _: False)
    index.checkpoint_steps = 1
    index.read()
    return index


def workers(cursor: Cursor):
    return build_snapshot(cursor.fleet, cursor.at).workers


@lru_cache(maxsize=1)
def stepped_through(folder: Path) -> tuple[StreamIndex, list[tuple[float, tuple[Worker, ...]]]]:
    """Return the index of a family, and the time and the workers of each step."""
    family = family_of(folder)
    stepped, seen = Cursor(family_stream(family)), []
    while stepped.advance():
        seen.append((stepped.at, workers(stepped)))
    return index_of(family), seen


@pytest.mark.parametrize("folder", ALL_FOLDERS, ids=lambda p: f"{p.parent.name}/{p.name}")
@settings(max_examples=8)
@given(data=st.data())
def test_seek_equals_stepping(folder: Path, data: st.DataObject) -> None:
    index, seen = stepped_through(folder)
    assert len(seen) == len(index.times)
    # a replayed process is known to be gone only at the end, also in a session that was killed
    assert "exited" not in {worker.state for _, present in seen for worker in present}
    for number in data.draw(st.lists(st.integers(1, len(seen)), min_size=1, max_size=4)):
        sought = index.cursor(number)
        assert (sought.at, workers(sought)) == seen[number - 1]
        for after in seen[number : number + 3]:
            sought.advance()
            assert (sought.at, workers(sought)) == after


# ---------------------------------------------------------------- the player


class RunningPlayer:
    """A player in a running hub."""

    def __init__(self, player: Player, clock: VirtualClock) -> None:
        self.player, self.clock = player, clock
        self.hub = Hub([player], clock)

    async def __aenter__(self) -> RunningPlayer:
        self._running = asyncio.create_task(self.hub.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    async def snapshot_with(self, wanted) -> Snapshot:
        async for snapshot in self.hub.snapshots():
            if wanted(snapshot):
                return snapshot
        raise AssertionError

    async def wait_for(self, wanted) -> None:
        while not wanted():  # noqa: ASYNC110 - the player has no event for this
            await asyncio.sleep(0)


async def test_play_to_end_and_restart() -> None:
    clock = VirtualClock(0)
    player = Player(family_of(RECORDINGS / "0.114.0" / "spawn"), clock, speed=64.0)
    async with RunningPlayer(player, clock) as running:
        end = await running.snapshot_with(
            lambda s: len(s.workers) == 3 and all(w.state == "completed" for w in s.workers)
        )
        await running.wait_for(lambda: not player.playing)
        assert player.share == 1
        assert clock.now() > player.end
        player.toggle()
        player.toggle()
        await running.snapshot_with(lambda s: len(s.workers) == 1)
        player.seek(1)
        assert (await running.snapshot_with(lambda s: len(s.workers) == 3)).workers == end.workers


def test_long_pauses_are_shortened(tmp_path: Path) -> None:
    """An hour between two messages, with invisible steps in between, is one pause."""
    first, hour = 1_700_000_000.0, 3600
    events = [MessageLogged(at=first, thread="t", role="user", text="go", line=1)]
    events += [TokensCounted(at=first + n, thread="t", total=n, line=2) for n in range(1, hour, 60)]
    events += [MessageLogged(at=first + hour, thread="t", role="agent", text="done", line=3)]
    (tmp_path / "diary.jsonl").write_bytes(b"".join(encode(event) + b"\n" for event in events))
    diary = FileStream(tmp_path / "diary.jsonl", EventLineReader())
    index = StreamIndex(family_stream(Family("", ()), [diary]), 1, lambda _: False)
    index.read()
    assert (list(index.elapsed)[-1], index.times[-1]) == (MAX_GAP_S, first + hour)


def begun(folder: Path, scenario: str, clock: VirtualClock, left: int) -> tuple[Player, Path, bytes]:
    """Return a player of a recording without its last lines, its file, and these lines."""
    (source,) = (RECORDINGS / "0.169.0" / scenario).iterdir()
    lines = source.read_bytes().splitlines(keepends=True)
    growing = folder / source.name
    growing.write_bytes(b"".join(lines[:-left]))
    player = Player(find_family(NO_HOME, str(growing)), clock, speed=64.0)
    return player, growing, b"".join(lines[-left:])


async def test_growing_session_goes_live(tmp_path: Path) -> None:
    clock = VirtualClock(0)
    player, growing, last = begun(tmp_path, "full-access", clock, 1)
    player.index._is_open = lambda at: True
    async with RunningPlayer(player, clock) as running:
        await running.wait_for(lambda: player.live)
        assert clock.now() == pytest.approx(time.time(), abs=60)
        await running.snapshot_with(lambda s: s.workers[0].state == "running")
        with growing.open("ab") as file:
            file.write(last[:20])
            file.flush()
            file.write(last[20:])
        await running.snapshot_with(lambda s: s.workers[0].state == "completed")
        assert player.live
        player.seek_mark(Mark.VISIBLE, -1)
        assert (player.live, player.playing) == (False, False)


async def test_closed_session_is_resumed(tmp_path: Path) -> None:
    clock = VirtualClock(0)
    player, growing, rest = begun(tmp_path, "killed-mid-command", clock, 2)
    async with RunningPlayer(player, clock) as running:
        await running.snapshot_with(lambda s: bool(s.workers) and s.workers[0].state == "exited")
        with growing.open("ab") as file:
            file.write(rest)
        await running.snapshot_with(lambda s: s.workers[0].state == "running")


# ---------------------------------------------------------------- big files


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("big")
    make_realistic_home(folder, 1, 6)
    return next(folder.rglob("rollout-*.jsonl"))


@pytest.mark.slow
def test_seeks_wait_for_the_index(big: Path) -> None:
    player = Player(find_family(NO_HOME, str(big)), VirtualClock(0))
    player.seek(0.8)
    assert player.is_waiting
    assert player.position == 1
    player.index.read()
    player._play_on()
    assert not player.is_waiting
    assert player.share == pytest.approx(0.8, abs=0.02)
    assert player.read().at == player.index.times[player.position - 1]
    assert build_snapshot(player.read().fleet, 0).workers[0].notes == ()


@pytest.mark.slow
def test_checkpoints_are_bounded(big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentdash.replay.index._MAX_CHECKPOINTS", 10)
    index = index_of(find_family(NO_HOME, str(big)))
    assert 5 <= len(index._checkpoints) <= 11
    cursor, walked = index.cursor(700), Cursor(family_stream(find_family(NO_HOME, str(big))))
    while walked.position < 700:
        walked.advance()
    assert workers(cursor) == workers(walked)


# ---------------------------------------------------------------- lines, families, times


@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=30),
    st.integers(1, 50),
    st.booleans(),
)
@settings(max_examples=60)
def test_line_reader_from_any_offset(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], block: int, packed: bool
) -> None:
    text = b"".join(line + b"\n" for line in lines)
    path = tmp_path_factory.mktemp("lines") / ("x.zst" if packed else "x")
    path.write_bytes(zstandard.compress(text) if packed else text + b"not yet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentdash.replay.streams._BLOCK_BYTES", block)
        offset = 0
        for number in range(len(lines) + 1):
            read = LineReader(path, offset)
            assert list(iter(read.next, None)) == lines[number:]
            if number < len(lines):
                offset += len(lines[number]) + 1
                assert read.offset == len(text)


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
def test_damaged_file_is_unreachable(tmp_path: Path, damage: str) -> None:
    source = next((RECORDINGS / "0.169.0" / "full-access").iterdir())
    path = tmp_path / f"{source.name}.zst"
    packed = zstandard.compress(source.read_bytes())
    path.write_bytes(packed[: len(packed) // 2] if damage == "cut" else b"nonsense")
    family = find_family(NO_HOME, str(path))
    if damage == "gone":
        path.unlink()
    player = Player(family, VirtualClock(0))
    player.index.read()
    player.seek(1)
    (worker,) = build_snapshot(player.read().fleet, 0).workers
    assert worker.state == "unreachable"


@pytest.mark.parametrize("folder", ALL_FOLDERS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_family_is_the_same_from_any_member(folder: Path) -> None:
    found = {find_family(NO_HOME, str(path)).paths for path in folder.iterdir()}
    if folder.parent.parent == RECORDINGS:
        assert found == {tuple(sorted(folder.iterdir()))}
    assert all(set(paths) <= set(folder.iterdir()) for paths in found)


def test_invalid_targets(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "notes.txt").touch()
    for target in ("", "abc", "0" * 36, str(tmp_path), str(tmp_path / "notes.txt"), "a\x1b[31m\nb"):
        with pytest.raises(LookupError) as problem:
            find_family(CodexHome(tmp_path), target)
        assert str(problem.value).isprintable()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (" 20:14:07 ", "2026-03-11T20:14:07"),
        ("0:30", "2026-03-12T00:30:00"),
        ("2026-03-12 01:00", "2026-03-12T01:00:00"),
        ("25:00", None),
        ("", None),
        ("99999999999", None),
    ],
)
def test_parse_time(text: str, at: str | None) -> None:
    begin, end = (
        datetime.fromisoformat(t).timestamp() for t in ("2026-03-11T20:00:00", "2026-03-12T02:00:00")
    )
    assert parse_time(text, begin, end) == (datetime.fromisoformat(at).timestamp() if at else None)
