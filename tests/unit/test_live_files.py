"""Live sources over a Codex home: the snapshot follows every change of its files."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import zstandard

from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.states import State
from agentdash.model.worker import Snapshot
from tests.unit.rollout_files import files, line

(RECORDING,) = files("0.169.0", "killed-mid-command")
THREAD = RECORDING.stem[-36:]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "codex"


def day(home: Path) -> Path:
    folder = home / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@asynccontextmanager
async def watched(home: Path) -> AsyncIterator[Callable[[Callable[[Snapshot], bool]], object]]:
    clock = SystemClock()
    hub = Hub(live_sources(Config(codex_home=home, tmux=False), clock), clock)
    running = asyncio.create_task(hub.run())

    async def until(wanted: Callable[[Snapshot], bool]) -> Snapshot:
        async with asyncio.timeout(20):
            async for snapshot in hub.snapshots():
                if wanted(snapshot):
                    return snapshot
        raise AssertionError("the hub ended")

    try:
        yield until
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def message_line(text: str) -> bytes:
    payload = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return line("response_item", payload, second=43.0, ordinal=99) + b"\n"


def shows(text: str) -> Callable[[Snapshot], bool]:
    return lambda s: any(m.text == text for w in s.workers for m in w.moments)


async def test_session_created_appended_replaced_archived_deleted(home: Path) -> None:
    async with watched(home) as until:
        await until(lambda s: any(not x.ok and "does not exist" in x.detail for x in s.sources))
        path = Path(shutil.copy(RECORDING, day(home)))  # created with all its directories
        await until(lambda s: [w.id for w in s.workers] == [THREAD])
        with path.open("ab") as file:  # appended, in two halves of a line
            file.write(message_line("first")[:40])
            file.flush()
            await asyncio.sleep(0)
            file.write(message_line("first")[40:])
        await until(shows("first"))
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.index(b"\n", 3000) + 1])  # truncated
        await until(lambda s: bool(s.workers) and not shows("first")(s))
        replacement = path.with_suffix(".tmp")
        replacement.write_bytes(whole + message_line("second"))
        replacement.replace(path)  # replaced
        await until(shows("second"))
        archive = home / "archived_sessions"
        archive.mkdir()
        path = path.rename(archive / path.name)  # archived, and appended
        with path.open("ab") as file:
            file.write(message_line("third"))
        shown = await until(shows("third"))
        assert shown.workers[0].file == str(path)
        packed = path.with_suffix(".jsonl.zst")
        packed.write_bytes(zstandard.compress(path.read_bytes()))  # compressed
        path.unlink()
        await until(lambda s: [w.file for w in s.workers] == [str(packed)])
        packed.unlink()  # deleted
        await until(lambda s: s.workers == ())


async def test_open_calls_end_at_a_gap(home: Path) -> None:
    """The recording ends in an open call; the turn that follows it in a big file is another one."""
    turn = {"turn_id": "t2", "last_agent_message": "done"}
    started, ended = (
        line("event_msg", {"type": f"task_{what}", **turn}, second=44.0) for what in ("started", "complete")
    )
    filler = message_line("x" * 400) * 1_000
    whole = b"\n".join((RECORDING.read_bytes() + started, filler + ended, b""))
    (day(home) / RECORDING.name).write_bytes(whole)
    clock = SystemClock()
    (worker,) = (await Hub(live_sources(Config(codex_home=home, tmux=False), clock), clock).once()).workers
    assert worker.notes == ("only head and tail of 585 kB read",)
    assert (worker.state, [c.outcome for c in worker.calls if c.ended_at is None]) == (State.COMPLETED, [])


async def test_session_names_are_followed(home: Path) -> None:
    shutil.copy(RECORDING, day(home))
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD, "thread_name": "nightly build"}) + "\n"
    )
    async with watched(home) as until:
        shown = await until(lambda s: bool(s.workers) and s.workers[0].name == "nightly build")
        assert shown.workers[0].state in (State.EXITED, State.RUNNING)
