"""Damaged journals: torn at every byte, with foreign lines, on a full disk."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agentdash.collect.clock import SystemClock
from agentdash.engine.hub import Hub, LatestValue
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, RecordingEnded
from agentdash.store.journal import Recorder
from tests.live.patience import until
from tests.live.programs import run
from tests.unit.test_journal import KEY, NOW, STORY, Bench, drawn


async def recorded(folder: Path, *more: e.Event) -> tuple[Bench, Path]:
    bench = Bench(folder)
    await bench.record((*STORY[:9], *more))
    (path,) = folder.iterdir()
    return bench, path


def before_the_end(events: list[e.Event]) -> list[e.Event]:
    """Return the events before the end of the recording."""
    return events[: next(i for i, x in enumerate(events) if isinstance(x, RecordingEnded))]


async def test_truncation_at_every_byte_of_the_last_record(tmp_path: Path) -> None:
    last = e.PaneDrawn(at=NOW + 9, key=STORY[2].pane.key, screen=("Grüße", '"', "\\", "x" * 40))
    bench, path = await recorded(tmp_path, last)
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[:start])
    without = before_the_end(bench.read())
    for end in range(start + 1, len(whole)):
        path.write_bytes(whole[:end])
        events = bench.read()
        assert before_the_end(events) == without
        (detail,) = [
            x.detail for x in events if isinstance(x, e.SourceSeen) and x.name == "journal" and not x.ok
        ]
        assert detail == "its last record is torn; the recording ends here"
    path.write_bytes(whole)
    assert len(before_the_end(bench.read())) == len(without) + 1


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"{}",
        b"null",
        b"[" * 10_000,
        b"\xff\xfe",
        b'{"event":"rm","at":1}',
        b'{"event":"pane-drawn","at":"x"}',
        b"x" * 3_000_000,
        b'{"event":"screen-changed","at":1,"key":{"server":"s","id":"%9"},"height":-1,"rows":{"-1":"x"}}',
        b'{"event":"screen-changed","at":1,"key":{"server":"s","id":"%9"},"height":999999999999,"rows":{"0":"x"}}',
        b'{"event":"pane-drawn","at":1,"key":{"server":"s","id":"%1"},"screen":["\\u001b[2J"]}',
        '{"event":"pane-drawn","at":1,"key":{"server":"s","id":"%1"},"screen":["\u202egnp.exe"]}'.encode(),
    ],
)
async def test_foreign_lines_are_counted_and_change_nothing_else(tmp_path: Path, foreign: bytes) -> None:
    bench, path = await recorded(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    before = [x for x in before_the_end(bench.read()) if not isinstance(x, e.SourceSeen)]
    path.write_bytes(b"".join([*lines[:4], foreign + b"\n", *lines[4:]]))
    events = bench.read()
    own = [
        x
        for x in before_the_end(events)
        if not isinstance(x, e.SourceSeen) and getattr(getattr(x, "key", None), "id", "") != "%9"
    ]
    assert own == before
    details = [x.detail for x in events if isinstance(x, e.SourceSeen) and x.name == "journal" and not x.ok]
    assert any("not understood" in text for text in details) is (b"screen-changed" not in foreign)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{", b'{"schema":"agentdash.journal/9"}\n', b"\x00" * 500, b"x" * 3_000_000]
)
async def test_file_with_the_name_of_a_journal_only(tmp_path: Path, content: bytes) -> None:
    bench, _ = await recorded(tmp_path)
    before = bench.read()
    (tmp_path / "journal-20261120T200000Z-1-0001.jsonl").write_bytes(content)
    os.utime(tmp_path / "journal-20261120T200000Z-1-0001.jsonl", (NOW, NOW))
    assert [x for x in bench.read() if x.at > NOW] == [x for x in before if x.at > NOW]


# ---------------------------------------------------------------- a disk that is full

CHILD = """
import asyncio, resource, sys
from pathlib import Path
from tests.torture.test_journal_torture import full
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
print(asyncio.run(full(Path(sys.argv[1]))))
"""


class Busy:
    """A source that never stops emitting."""

    name = "busy"

    async def poll(self, fleet: object) -> list[e.Event]:
        return []

    async def stream(self, emit: object, channel: object) -> None:
        emit([*STORY[2:3], *STORY[4:8]])
        for n in range(10_000_000):
            emit([drawn(NOW + n / 100, *(f"line {n} {y}" for y in range(20)))])
            await asyncio.sleep(0.001)


async def full(folder: Path) -> str:
    """Return the health of the recording on a full disk, once the hub has gone on."""
    clock = SystemClock()
    recorder = Recorder(folder, clock)
    hub = Hub([Busy(), recorder], clock, observer=recorder.record)
    running = asyncio.create_task(hub.run())
    try:
        async with asyncio.timeout(60):
            async for _ in hub.snapshots():
                if (source := hub.fleet.sources.get("recording")) is not None and not source.ok:
                    break
            screen = hub.fleet.panes[KEY].screen
            async for _ in hub.snapshots():
                if hub.fleet.panes[KEY].screen != screen:
                    break
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return source.detail


def test_full_disk_stops_the_recording_alone(tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes a write fail in the middle of a record, like a full disk."""
    done = run([sys.executable, "-c", CHILD, tmp_path], check=True, cwd=Path(__file__).parents[2])
    assert "has stopped: File too large" in done.stdout
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == 6000
    events = Bench(tmp_path).read()
    assert any(isinstance(x, e.PaneDrawn) for x in events)
    assert "its last record is torn" in [x.detail for x in events if isinstance(x, e.SourceSeen)][-1]


async def test_removed_recording_is_reported(tmp_path: Path) -> None:
    """Else it is written into a file that has no name any more, and lost."""

    async def remove() -> None:
        await until(lambda: list(tmp_path.iterdir()), "the recording")
        for part in tmp_path.iterdir():
            part.unlink()

    removing = asyncio.create_task(remove())
    assert "has stopped: its file was removed" in await full(tmp_path)
    await removing


async def test_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    clock = SystemClock()
    recorder = Recorder(tmp_path / "file" / "journal", clock)
    emitted: list[e.Event] = []
    await recorder.stream(emitted.extend, LatestValue(Fleet()))
    assert "has stopped: Not a directory" in emitted[0].detail
