"""Files that others may have replaced: opened only if regular, without blocking, up to a limit."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from agentdash import files
from agentdash.agents.codex.home import CodexHome, open_lines
from agentdash.model.times import iso, moment, possible_time, time_of_day


@pytest.mark.parametrize(
    "arrange",
    [
        os.mkfifo,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.write_bytes(b"x" * 101),
        lambda path: os.truncate(path, 3 << 30) if path.touch() is None else None,
    ],
    ids=["fifo", "directory", "device", "loop", "dangling", "large", "sparse"],
)
def test_refused_files(arrange: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    arrange(path)
    with pytest.raises(OSError):  # noqa: PT011 - each has another reason
        files.read_bytes(path, 100)


def test_links_are_followed_unless_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert files.read_bytes(link, 7) == b"content"
    with pytest.raises(OSError, match="not a regular file"):
        files.read_bytes(link, 7, follow=False)


def test_torn_archives_are_errors(tmp_path: Path) -> None:
    packed = zstandard.compress(b"line\n" * 10_000)
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(packed)
    assert len(list(open_lines(path))) == 10_000
    path.write_bytes(packed[:-10])
    with pytest.raises(OSError, match="not complete"):
        list(open_lines(path))
    assert b"".join(files.unpacked(io.BytesIO(packed * 3), 1000)) == b"line\n" * 30_000


def test_private_directories(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        files.create_private_directory(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(old)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_entries_that_cannot_be_listed_are_reported(tmp_path: Path) -> None:
    year = tmp_path / "sessions" / "2026"
    year.mkdir(parents=True)
    (year / "11").symlink_to("11")
    (tmp_path / "archived_sessions").write_bytes(b"")
    errors: list[OSError] = []
    assert list(CodexHome(tmp_path).rollouts(errors.append)) == []
    assert sorted(Path(error.filename).name for error in errors) == ["11", "archived_sessions"]


@pytest.mark.parametrize("at", [1e300, 1e18, -1.0, 0.0, float("inf"), float("nan"), 4_102_444_801.0])
def test_impossible_times(at: float) -> None:
    assert possible_time(at) is None
    assert iso(at) is None
    assert (moment(at), time_of_day(at)) == ("1970-01-01 00:00:00", "00:00:00")
