"""Digests of `agentdash sessions`: a second listing reads only what changed, and says the same."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentdash.report import sessions
from agentdash.report.sessions import SessionsReport, read_sessions
from agentdash.store.digests import DigestStore

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
_LONG_AGO_S = 60
_SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a Codex home with recordings of three versions, long unchanged."""
    day = tmp_path / "codex" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for recording in ("0.58.0/workspace-write", "0.130.0/workspace-write", "0.169.0/spawn-leaked-flags"):
        for path in (RECORDINGS / recording).glob("rollout-*.jsonl"):
            shutil.copy(path, day)
    time.sleep(0.12)  # a file that changed just now gets no digest
    return tmp_path / "codex"


@pytest.fixture
def listed(home: Path, tmp_path: Path) -> Callable[[], SessionsReport]:
    """Return a function that lists the sessions with digests."""
    store = DigestStore(tmp_path / "state")
    return lambda: read_sessions(home, None, tmp_path / "no-claude", store)


@pytest.fixture
def read_paths(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the files that are read."""
    found: list[Path] = []
    original = sessions._read

    def read(codex_home: object, path: Path) -> object:
        found.append(path)
        return original(codex_home, path)

    monkeypatch.setattr(sessions, "_read", read)
    return found


def test_a_second_listing_reads_nothing_and_says_the_same(
    home: Path, tmp_path: Path, listed: Callable[[], SessionsReport], read_paths: list[Path]
) -> None:
    whole = read_sessions(home, None, tmp_path / "no-claude")
    assert len(whole.sessions) >= 4
    assert listed() == whole
    read_paths.clear()
    assert listed() == whole
    assert read_paths == []


def test_an_archived_file_is_listed_as_archived(home: Path, listed: Callable[[], SessionsReport]) -> None:
    listed()
    moved = max(home.rglob("rollout-*.jsonl"))
    archive = home / "archived_sessions"
    archive.mkdir()
    moved.rename(archive / moved.name)
    time.sleep(0.12)
    for _ in range(2):
        assert [each.file for each in listed().sessions if each.archived] == [str(archive / moved.name)]


def test_sessions_with_secrets_get_no_digest(
    home: Path, tmp_path: Path, listed: Callable[[], SessionsReport], read_paths: list[Path]
) -> None:
    spoken = max((home / "sessions").rglob("rollout-*.jsonl"), key=lambda path: path.stat().st_size)
    prompt = next(each.prompt for each in listed().sessions if each.file == str(spoken))
    assert prompt
    text = spoken.read_text()
    assert prompt in text
    spoken.write_text(text.replace(prompt, f"use {_SECRET} {prompt}"))
    long_ago = time.time() - _LONG_AGO_S
    os.utime(spoken, (long_ago, long_ago))
    time.sleep(0.12)
    listed()
    read_paths.clear()
    listed()
    assert read_paths == [spoken]
    assert _SECRET.encode() not in (tmp_path / "state" / "digests.sqlite").read_bytes()
