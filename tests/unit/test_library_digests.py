"""The library from digests: the same entries, and only changed files are read again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.collect.clock import SystemClock
from agentdash.replay.library import library as library_module
from agentdash.replay.library.entry import Entry
from agentdash.replay.library.library import Library, Owners
from agentdash.store.digests import DigestStore
from tests.unit.test_digests import paths_given_to, settle
from tests.unit.test_library import RECORDINGS, filled, home_of

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def store(tmp_path: Path) -> DigestStore:
    return DigestStore(tmp_path / "state")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodexHome:
    """Return a home with two families and one thread alone, which no process has loaded."""
    monkeypatch.setattr(Owners, "look", classmethod(lambda cls, _, at: cls(at, {})))
    paths = [*RECORDINGS.glob("0.114.0/spawn*/*.jsonl"), *RECORDINGS.glob("0.169.0/kanban-board/*.jsonl")]
    made = home_of(tmp_path / "home", *paths)
    settle()
    return made


@pytest.fixture
def read_paths(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the files that are judged."""
    return paths_given_to(library_module, "_read_log", monkeypatch)


def entries(home: CodexHome, store: DigestStore | None, claude: ClaudeHome | None = None) -> list[Entry]:
    return filled(Library(home, SystemClock(), claude, digests=store))


def test_a_second_reading_reads_nothing(home: CodexHome, store: DigestStore, read_paths: list[Path]) -> None:
    plain = entries(home, None)
    assert (entries(home, store), store.trouble) == (plain, None)
    read_paths.clear()
    assert (entries(home, store), read_paths) == (plain, [])
    assert len(plain) > 5


def test_transcripts_too(home: CodexHome, tmp_path: Path, store: DigestStore, read_paths: list[Path]) -> None:
    claude = ClaudeHome(tmp_path / "claude")
    for scenario in (DATA / "claude" / "2.1.197").iterdir():
        shutil.copytree(scenario, claude.root, dirs_exist_ok=True)
    settle()
    assert len(list(claude.transcripts())) > 3
    plain = entries(home, None, claude)
    entries(home, store, claude)
    read_paths.clear()
    assert entries(home, store, claude) == plain
    assert len(read_paths) < len(plain) / 3


def _append(home: CodexHome, path: Path) -> None:
    with path.open("a") as file:
        file.write('{"timestamp":"2026-11-20T20:30:00.000Z","type":"event_msg","payload":')
        file.write('{"type":"user_message","message":"once more"}}\n')


def _name(home: CodexHome, path: Path) -> None:
    named = {"id": path.stem[-36:], "thread_name": "another name", "updated_at": "2026-11-21T00:00:00Z"}
    (home.root / "session_index.jsonl").write_text(json.dumps(named) + "\n")


def _touch(home: CodexHome, path: Path) -> None:
    os.utime(path)


@pytest.mark.parametrize("change", [_append, _name, _touch])
def test_what_has_changed_is_read_again(
    home: CodexHome, store: DigestStore, read_paths: list[Path], change: Callable[[CodexHome, Path], None]
) -> None:
    before = entries(home, store)
    path = next(entry.path for entry in before if not entry.parent and not entry.children)
    change(home, path)
    settle()
    read_paths.clear()
    after = entries(home, store)
    assert set(read_paths) == {path}
    assert after == entries(home, None)


def test_children_are_judged_again_with_their_parent(
    home: CodexHome, store: DigestStore, read_paths: list[Path]
) -> None:
    before = entries(home, store)
    parent = next(entry for entry in before if entry.children)
    text = parent.path.read_text()
    parent.path.write_text(text.replace('"danger-full-access"', '"read-only"'))
    settle()
    after = {entry.id: entry for entry in entries(home, store)}
    assert list(after.values()) == entries(home, None)
    changed = [entry.id for entry in before if after[entry.id].findings != entry.findings]
    assert set(changed) & set(parent.children)


def test_a_thread_with_an_owner_is_read_and_not_kept(
    home: CodexHome, store: DigestStore, read_paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = next(entry.id for entry in entries(home, None) if not entry.parent)
    monkeypatch.setattr(Owners, "look", classmethod(lambda cls, _, at: cls(at, {thread: 1})))
    for _ in range(2):
        read_paths.clear()
        owned = {entry.id: entry for entry in entries(home, store)}[thread]
        assert owned.path in read_paths
    monkeypatch.setattr(Owners, "look", classmethod(lambda cls, _, at: cls(at, {})))
    assert entries(home, store) == entries(home, None)


def test_secrets_are_not_written(home: CodexHome, store: DigestStore) -> None:
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    for entry in entries(home, None):
        entry.path.write_text(entry.path.read_text().replace("/home/dev", f"/home/dev/{secret}"))
    settle()
    assert any(secret in (entry.cwd or "") for entry in entries(home, store))
    assert not store.path.exists() or secret.encode() not in store.path.read_bytes()
