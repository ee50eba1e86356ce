"""The layout of a Codex home: rollouts, lines, names, locks, problems."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

import pytest
import zstandard

from agentdash.agents.codex import home as codex_home
from agentdash.agents.codex.home import CodexHome, NameIndex, begun_at, locks, open_lines, problem, read_names
from tests.unit.rollout_files import files

V7 = "01a1fa8b-2cba-7501-a214-dc60155cd481"
V4 = "0a0e9b39-b2d1-43cd-a274-624e38239614"


def rollout(root: Path, when: str, thread: str, suffix: str = ".jsonl") -> Path:
    """Create a rollout where Codex does, with the local time in its name."""
    path = root / "sessions" / when[:10].replace("-", "/") / f"rollout-{when}-{thread}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_rollouts_are_listed_newest_first(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    oldest = rollout(tmp_path, "2025-08-30T10-00-00", V4)
    middle = tmp_path / "archived_sessions" / f"rollout-2026-03-02T10-00-00-{V4}.jsonl"
    middle.parent.mkdir()
    middle.touch()
    early, late = (rollout(tmp_path, f"2026-11-20T{hour}-00-00", V7) for hour in ("09", "20"))
    rollout(tmp_path, "2026-11-20T21-00-00", "not-a-thread")
    (late.parent / "notes.txt").touch()
    assert list(home.rollouts()) == [late, early, middle, oldest]
    assert home.roots == [home.sessions, home.archived]


def test_rollouts_are_listed_lazily(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = rollout(tmp_path, "2026-11-20T20-00-00", V7)
    rollout(tmp_path, "2026-11-20T19-00-00", V7)
    rollout(tmp_path, "2025-01-01T20-00-00", V4)
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(codex_home.os, "scandir", lambda path: listed.append(str(path)) or scandir(path))
    assert next(CodexHome(tmp_path).rollouts()) == newest
    assert not any("2025" in path for path in listed)


def test_begin_of_a_thread_from_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        local, precise = (begun_at(Path(f"rollout-2026-11-20T15-00-00-{id_}.jsonl")) for id_ in (V4, V7))
        assert (local, precise) == (1795204800, 1795204787.386)  # 20:00 UTC, and the time in the id
        assert begun_at(Path(f"rollout-2026-99-20T15-00-00-{V4}.jsonl")) is None
        assert begun_at(Path("history.jsonl")) is None
    finally:
        monkeypatch.undo()
        time.tzset()


# ---------------------------------------------------------------- lines


def test_compressed_file(tmp_path: Path) -> None:
    (plain,) = files("0.169.0", "workspace-write")
    compressed = tmp_path / f"{plain.name}.zst"
    half = len(plain.read_bytes()) // 2
    frames = (plain.read_bytes()[:half], plain.read_bytes()[half:])
    compressed.write_bytes(b"".join(zstandard.compress(frame) for frame in frames))
    lines = list(open_lines(compressed))
    assert lines == list(open_lines(plain)) == plain.read_bytes().splitlines()


def test_unreadable_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(open_lines(tmp_path / "gone.jsonl"))
    broken = tmp_path / "broken.jsonl.zst"
    broken.write_bytes(b"not zstd at all")
    with pytest.raises(OSError, match="zstd"):
        next(open_lines(broken))


# ---------------------------------------------------------------- names, locks, problems


def test_last_name_of_a_thread(tmp_path: Path) -> None:
    entries = [
        {"id": V7, "thread_name": "first", "updated_at": "2026-11-20T20:00:00Z"},
        {"id": V4, "thread_name": "other\x1b[31m", "updated_at": None},
        {"id": V7, "thread_name": "second", "updated_at": "2026-11-20T20:00:01Z"},
        {"id": V7, "renamed": True},
    ]
    (tmp_path / "session_index.jsonl").write_text("\n".join(map(json.dumps, entries)) + '\n{"id": "torn')
    index = read_names(CodexHome(tmp_path))
    assert {(named.thread, named.name, named.at) for named in index.names} == {
        (V7, "second", 1795204801.0),
        (V4, "other", 0.0),
    }
    assert index.problem == f"{tmp_path}/session_index.jsonl: 1 line not understood"
    assert read_names(CodexHome(tmp_path / "nowhere")) == NameIndex()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists locks")
def test_holders_of_locks(tmp_path: Path) -> None:
    directory = tmp_path / "thread-writer-locks"
    directory.mkdir()
    (directory / ".coordination.lock").touch()
    (directory / f"{V4}.lock").touch()
    with (
        (directory / f"{V7}.lock").open("w") as held,
        (directory / ".coordination.lock").open("w") as coordination,
    ):
        fcntl.flock(held, fcntl.LOCK_EX)
        fcntl.flock(coordination, fcntl.LOCK_EX)
        seen = locks(CodexHome(tmp_path), 5.0)
    assert (seen.at, seen.holders) == (5.0, {V7: os.getpid()})
    assert locks(CodexHome(tmp_path), 6.0).holders == {}
    assert locks(CodexHome(tmp_path / "nowhere"), 7.0).holders == {}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists locks")
def test_lock_on_another_device_number_is_found_by_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "thread-writer-locks"
    directory.mkdir()
    table = tmp_path / "locks"
    monkeypatch.setattr(codex_home, "_PROC_LOCKS", table)
    with (directory / f"{V7}.lock").open("w") as held:
        inode = os.fstat(held.fileno()).st_ino
        table.write_text(
            f"1: FLOCK  ADVISORY  WRITE {os.getpid()} ff:ff:{inode} 0 EOF\n"
            f"1: -> FLOCK  ADVISORY  WRITE 77 ff:ff:{inode} 0 EOF\n"
            f"2: POSIX  ADVISORY  READ 4 ff:ff:{inode} 0 EOF\n"
        )
        assert locks(CodexHome(tmp_path), 5.0).holders == {V7: os.getpid()}
    # the same inode, but not open in this process any more
    assert locks(CodexHome(tmp_path), 5.0).holders == {}


def test_problems_of_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not exist" in str(problem(CodexHome(tmp_path / "gone")))
    (tmp_path / "file").touch()
    assert "is not a directory" in str(problem(CodexHome(tmp_path / "file")))
    assert "no sessions yet" in str(problem(CodexHome(tmp_path)))
    rollout(tmp_path, "2026-11-20T20-00-00", V7)
    assert problem(CodexHome(tmp_path)) is None
    closed = tmp_path / "sessions"
    # permissions do not stop root
    monkeypatch.setattr(codex_home.os, "access", lambda path, mode: Path(path) != closed)
    assert problem(CodexHome(tmp_path)) == f"{closed} cannot be read: permission denied"
