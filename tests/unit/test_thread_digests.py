"""Digests of threads: a second pass of a one-shot command reads only what changed, and knows the same."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.fleet import Fleet
from agentdash.store.digests import NAME, DigestStore, ThreadDigests

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "codex"


@pytest.fixture
def read_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the threads whose files are read."""
    found: list[str] = []
    original = RolloutReader.__init__

    def begin(self: RolloutReader, thread: str, **options: Any) -> None:
        found.append(thread)
        original(self, thread, **options)

    monkeypatch.setattr(RolloutReader, "__init__", begin)
    return found


@pytest.fixture
def look(home: Path, tmp_path: Path) -> Callable[[], Fleet]:
    """Return a function that reads the home once, with digests."""

    def once() -> Fleet:
        known = ThreadDigests(DigestStore(tmp_path / "state"), SystemClock())
        fleet = read(home, known)
        known.save()
        return fleet

    return once


def read(home: Path, known: ThreadDigests | None = None) -> Fleet:
    """Read all sessions of a home."""
    clock = SystemClock()
    rollouts = live_sources(Config(codex_home=home, sessions=None), clock, known)[0]
    hub = Hub([rollouts] if known is None else [rollouts, known], clock)
    asyncio.run(hub.once(settles=False))
    return hub.fleet


def add(home: Path, pattern: str) -> list[Path]:
    """Add recordings, long unchanged."""
    day = home / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True, exist_ok=True)
    added = [Path(shutil.copy(path, day)) for path in sorted(RECORDINGS.glob(pattern))]
    assert added
    time.sleep(0.12)  # a file that changed just now gets no digest
    return added


def renamed(home: Path, thread: str, name: str) -> None:
    """Give a thread a name in the index of names."""
    line = {"id": thread, "thread_name": name, "updated_at": "2026-11-20T20:00:00Z"}
    (home / "session_index.jsonl").write_text(json.dumps(line) + "\n")


def threads_of(paths: Iterable[Path]) -> list[str]:
    return sorted(path.stem[-36:] for path in paths)


def test_all_recordings_are_restored_as_they_were_read(
    home: Path, look: Callable[[], Fleet], read_threads: list[str]
) -> None:
    add(home, "*/*/rollout-*.jsonl")
    whole = read(home)
    assert len(whole.threads) > 150
    assert (look().threads, look().histories) == (whole.threads, whole.histories)
    read_threads.clear()
    again = look()
    assert read_threads == []
    assert (again.threads, again.histories) == (whole.threads, whole.histories)
    assert again.sources["codex"].detail == whole.sources["codex"].detail


def test_only_what_changed_is_read_again(
    home: Path, look: Callable[[], Fleet], read_threads: list[str]
) -> None:
    first, *others = add(home, "0.169.0/spawn-leaked-flags/rollout-*.jsonl")
    assert others
    look()
    assert threads_of([first, *others]) == sorted(read_threads)
    read_threads.clear()
    with first.open("ab") as file:
        file.write(first.read_bytes().splitlines(keepends=True)[-1])
    assert look().threads == read(home).threads
    assert read_threads.count(first.stem[-36:]) == 2  # by `look` and by `read`
    assert {read_threads.count(thread) for thread in threads_of(others)} == {1}


def test_a_name_counts_as_of_now(home: Path, look: Callable[[], Fleet]) -> None:
    """Names stand in a file of their own; one that was taken away is gone."""
    (path,) = add(home, "0.169.0/killed-mid-command/rollout-*.jsonl")
    thread = path.stem[-36:]
    for name in ("first", "second"):
        renamed(home, thread, name)
        assert [look().threads[thread].name for _ in range(2)] == [name, name]
    (home / "session_index.jsonl").unlink()
    assert look().threads == read(home).threads


def test_nothing_with_a_secret_is_written(
    home: Path, tmp_path: Path, look: Callable[[], Fleet], read_threads: list[str]
) -> None:
    (path,) = add(home, "0.169.0/killed-mid-command/rollout-*.jsonl")
    path.write_text(path.read_text().replace("/home/dev/project", f"/home/dev/{SECRET}"))
    time.sleep(0.12)
    assert SECRET in (look().threads[path.stem[-36:]].cwd or "")
    assert SECRET in (look().threads[path.stem[-36:]].cwd or "")
    assert len(read_threads) == 2
    assert SECRET.encode() not in (tmp_path / "state" / NAME).read_bytes()
