from __future__ import annotations

import asyncio
import errno
import os
import resource
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import zstandard

from agentdash.collect.tail import follower as follower_module
from agentdash.collect.tail import fs_events as watch_module
from agentdash.collect.tail import log_file as log_module
from agentdash.collect.tail.follower import (
    Change,
    FileGrown,
    FileMoved,
    FileUnreadable,
    FileVanished,
    LogFollower,
)
from tests.unit.replayed import Replayed, complete

KIB = 1 << 10


def write(path: Path, text: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def packed(text: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(text)


# ---------------------------------------------------------------- growth


def test_a_partial_line_is_held_back_until_its_newline(tmp_path: Path) -> None:
    tail = LogFollower([tmp_path])
    path = write(tmp_path / "2026" / "11" / "a.jsonl", b'{"n":1}\n\xff\xfe torn')
    (first,) = tail.sweep()
    assert first == FileGrown(path, (b'{"n":1}',), 1, 15, path.stat().st_mtime)
    append(path, b" \xe2\x82")
    (still,) = tail.sweep()
    assert isinstance(still, FileGrown)
    assert (still.lines, still.first) == ((), 2)
    append(path, b"\xac\n\nend\n")
    (then,) = tail.sweep()
    assert isinstance(then, FileGrown)
    assert (then.lines, then.first) == ((b"\xff\xfe torn \xe2\x82\xac", b"", b"end"), 2)
    assert list(tail.sweep()) == []


def test_a_big_file_comes_in_bounded_batches(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(b"%d\n" % n * 50 for n in range(4_000)))
    tail = LogFollower([tmp_path], batch=8 * KIB)
    told = Replayed()
    changes = told.hear(tail.sweep())
    assert len(changes) > 10
    assert max(sum(map(len, c.lines)) for c in changes if isinstance(c, FileGrown)) < 9 * KIB
    assert told.files[path] == complete(path)


def test_the_newest_files_come_first_and_the_others_can_wait(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.jsonl", b"%d\n" % n) for n in range(4)]
    for age, path in enumerate(paths):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert [c.path for c in LogFollower([tmp_path]).sweep() if isinstance(c, FileGrown)] == paths
    assert [
        c.path for c in LogFollower([tmp_path], newest=1, since=999_998.0).sweep() if isinstance(c, FileGrown)
    ] == paths[:3]
    tail = LogFollower([tmp_path], newest=1)
    assert [c.path for c in tail.sweep() if isinstance(c, FileGrown)] == paths[:1]
    paths[2].unlink()
    moved = paths[3].rename(tmp_path / "moved.jsonl")
    assert list(tail.sweep()) == []  # nobody has heard of these
    append(moved, b"news\n")
    (late,) = tail.sweep()
    assert isinstance(late, FileGrown)
    assert (late.path, late.lines, late.reset) == (moved, (b"3", b"news"), False)


def test_lines_too_long_are_skipped_counted_and_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"one\n" + b"x" * 5_000 + b"\nthree\n" + b"y" * 5_000)
    tail = LogFollower([tmp_path], max_line=100, batch=1_000)
    assert [
        (c.first, c.lines, c.oversized)
        for c in tail.sweep()
        if isinstance(c, FileGrown) and (c.lines or c.oversized)
    ] == [
        (1, (b"one",), 0),
        (3, (b"three",), 1),
    ]
    append(path, b"y\nfive\n" + b"z" * 101 + b"\n" + b"z" * 100 + b"\n")
    grown = [c for c in tail.sweep() if isinstance(c, FileGrown)]
    assert [(c.first, c.lines, c.oversized) for c in grown] == [(5, (b"five",), 1), (7, (b"z" * 100,), 1)]


# ---------------------------------------------------------------- skimming


def test_a_large_file_is_skimmed_at_first_and_filled_on_demand(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(b"%06d %s\n" % (n, b"." * 92) for n in range(10_000)))
    tail, told = LogFollower([tmp_path], skim_above=500 * KIB), Replayed()
    head, end = told.hear(tail.sweep())
    assert isinstance(head, FileGrown)
    assert isinstance(end, FileGrown)
    assert (head.first, end.first, head.skimmed, end.skimmed) == (1, 0, True, True)
    assert head.lines == tuple(complete(path)[: len(head.lines)])
    assert end.lines == tuple(complete(path)[-len(end.lines) :])
    assert (len(head.lines), len(end.lines)) == (491, 491)  # 48 KiB of lines of 100 bytes
    append(path, b"live\n")
    (live,) = told.hear(tail.sweep())
    assert isinstance(live, FileGrown)
    assert (live.lines, live.first, live.skimmed) == ((b"live",), 0, True)
    whole = told.hear(tail.fill(path))
    assert isinstance(whole[0], FileGrown)
    assert whole[0].reset
    assert told.files[path] == complete(path)
    append(path, b"more\n")
    told.hear(tail.sweep())
    assert told.files[path] == complete(path)
    assert list(tail.fill(path)) == []


@pytest.mark.parametrize(
    ("begin", "end", "first", "last"),
    [
        (b"h" * 200 * KIB + b"\n", b"last\n" * 40_000, 200 * KIB, b"last"),
        (b"first\n", b"e" * 400 * KIB + b"\n", 5, b"e" * 400 * KIB),
        (b"first\n", b"e" * 400 * KIB + b"\nhalf a line", 5, b"e" * 400 * KIB),
    ],
    ids=["long-head", "long-tail", "long-tail-and-a-torn-one"],
)
def test_a_skim_reaches_far_enough_for_one_whole_line_at_each_end(
    tmp_path: Path, begin: bytes, end: bytes, first: int, last: bytes
) -> None:
    write(tmp_path / "a.jsonl", begin + b"middle\n" * 40_000 + end)
    head, tail = [c for c in LogFollower([tmp_path], skim_above=0).sweep() if isinstance(c, FileGrown)]
    assert len(head.lines[0]) == first
    assert tail.lines[-1] == last
    assert tail.first == 0


def test_a_skim_into_a_line_too_long_waits_for_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"first\n" + b"middle\n" * 40_000 + b"x" * 400 * KIB)
    tail = LogFollower([tmp_path], skim_above=0, max_line=100 * KIB)
    assert [c.lines[0] for c in tail.sweep() if isinstance(c, FileGrown)] == [b"first"]
    append(path, b"x\nafter\n")
    (then,) = [c for c in tail.sweep() if isinstance(c, FileGrown)]
    assert (then.lines, then.oversized, then.skimmed) == ((b"after",), 1, True)


def test_filling_and_following_share_the_work(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(b"%06d\n" % n for n in range(60_000)))
    tail, told = LogFollower([tmp_path], skim_above=0, batch=32 * KIB), Replayed()
    told.hear(tail.sweep())
    filling = tail.fill(path)
    told.hear([next(filling)])
    append(path, b"meanwhile\n")
    told.hear(tail.sweep())  # takes over what the filling has left
    assert told.files[path] == complete(path)
    assert told.hear(filling) == []


# ---------------------------------------------------------------- what happens to files


def test_a_file_that_shrinks_or_is_replaced_is_void(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"one\ntwo\nthree\n")
    tail, told = LogFollower([tmp_path]), Replayed()
    told.hear(tail.sweep())
    os.truncate(path, 4)
    (shrunk,) = told.hear(tail.sweep())
    assert isinstance(shrunk, FileGrown)
    assert (shrunk.lines, shrunk.reset) == ((b"one",), True)
    append(path, b"zwei\nthree\n")
    told.hear(tail.sweep())
    os.truncate(path, 4)
    append(path, b"2\n3\n4\n5\n6\n7\n8\n")  # longer than it was when we looked
    (regrown,) = told.hear(tail.sweep())
    assert isinstance(regrown, FileGrown)
    assert regrown.reset
    write(tmp_path / "new.tmp", b"another\none\n").replace(path)
    told.hear(tail.sweep())
    os.truncate(path, 0)
    (emptied,) = told.hear(tail.sweep())
    assert isinstance(emptied, FileGrown)
    assert (emptied.lines, emptied.reset, emptied.first) == ((), True, 1)


def test_a_renamed_file_goes_on_where_it_was(tmp_path: Path) -> None:
    live, archive = tmp_path / "sessions", tmp_path / "archived"
    path = write(live / "2026" / "a.jsonl", b"one\nhal")
    archive.mkdir()
    tail, told = LogFollower([live, archive]), Replayed()
    told.hear(tail.sweep())
    moved = path.rename(archive / "a.jsonl")
    append(moved, b"f\n")
    changes = told.hear(tail.sweep())
    assert changes[0] == FileMoved(path, moved)
    assert isinstance(changes[1], FileGrown)
    assert (changes[1].path, changes[1].lines, changes[1].reset) == (moved, (b"half",), False)
    write(path, b"one\n")  # a new file where the old one was
    moved.rename(archive / "b.jsonl")
    told.hear(tail.sweep())
    assert {p.name: lines for p, lines in told.files.items()} == {
        "a.jsonl": [b"one"],
        "b.jsonl": [b"one", b"half"],
    }


def test_an_inode_used_again_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", b"one\n")
    tail, told = LogFollower([tmp_path]), Replayed()
    told.hear(tail.sweep())
    path.unlink()
    new = write(tmp_path / "b.jsonl", b"two\nlines\n")
    monkeypatch.setattr(
        follower_module, "identity", lambda stat: (0, 0)
    )  # as on file systems that hand inodes out again at once
    monkeypatch.setattr(log_module, "identity", lambda stat: (0, 0))
    for log in tail._logs.values():
        log._id = (0, 0)
    assert [type(c) for c in told.hear(tail.sweep())] == [FileVanished, FileGrown]
    assert told.files == {new: [b"two", b"lines"]}


def test_compressed_and_unpacked_are_one_log(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.jsonl", b"one\ntwo\n")
    tail, told = LogFollower([tmp_path], batch=5), Replayed()
    told.hear(tail.sweep())
    small = write(tmp_path / "a.jsonl.zst", packed(b"one\n") + packed(b"two\n"))
    assert list(tail.sweep()) == []  # the plain one counts
    plain.unlink()
    changes = told.hear(tail.sweep())
    assert changes[0] == FileMoved(plain, small)
    assert isinstance(changes[1], FileGrown)
    assert changes[1].reset
    assert told.files == {small: [b"one", b"two"]}
    assert list(tail.sweep()) == []
    write(plain, b"one\ntwo\nthree\n")
    small.unlink()
    assert told.hear(tail.sweep())[0] == FileMoved(small, plain)
    assert told.files == {plain: [b"one", b"two", b"three"]}


@pytest.mark.parametrize(
    "text",
    [packed(b"one\ntwo\n" * 500)[:-4], b"no such magic", packed(b"one\nhalf")],
    ids=["cut", "foreign", "torn"],
)
def test_what_cannot_be_unpacked_is_said_once(tmp_path: Path, text: bytes) -> None:
    path = write(tmp_path / "a.jsonl.zst", text)
    tail, told = LogFollower([tmp_path]), Replayed()
    told.hear(tail.sweep())
    assert path in told.trouble
    assert list(tail.sweep()) == []
    write(path, packed(b"whole\n"))
    told.hear(tail.sweep())
    assert (told.files, told.trouble) == ({path: [b"whole"]}, {})


def test_a_reader_that_leaves_half_way_loses_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.zst", packed(b"".join(b"%d\n" % n for n in range(5_000))))
    tail, told = LogFollower([tmp_path], batch=1_000), Replayed()
    changes = tail.sweep()
    told.hear([next(changes)])
    changes.close()
    told.hear(tail.sweep())
    assert told.files[path] == [b"%d" % n for n in range(5_000)]


def test_what_may_not_be_read_is_said_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", b"one\n")
    tail = LogFollower([tmp_path])

    def refuse(*args: object, **kwargs: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:  # root may read everything, so no mode would do
        patch.setattr(os, "open", refuse)
        assert list(tail.sweep()) == [FileUnreadable(path, "Permission denied")]
        assert list(tail.sweep()) == []
    (grown,) = tail.sweep()
    assert isinstance(grown, FileGrown)
    assert (grown.lines, grown.reset) == ((b"one",), False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert list(tail.sweep()) == [FileUnreadable(tmp_path, "Permission denied")]
        assert list(tail.sweep()) == []  # and the file in it is not gone
    assert list(tail.sweep()) == []


def test_only_logs_are_read(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", b"no\n")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    path = write(tmp_path / "a.jsonl", b"one\n")
    assert [
        c.path for c in LogFollower([tmp_path, tmp_path / "missing"]).sweep() if isinstance(c, FileGrown)
    ] == [path]


def test_no_file_stays_open(tmp_path: Path) -> None:
    for n in range(50):
        write(tmp_path / f"{n}.jsonl", b"one\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 8, hard))
    try:
        assert len(list(LogFollower([tmp_path]).sweep())) == 50
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---------------------------------------------------------------- following


async def hear_until(told: Replayed, changes: AsyncIterator[list[Change]], path: Path, line: bytes) -> None:
    """Listens until that line has come. A line that never comes is what the tests' timeout is for."""
    while line not in told.files.get(path, ()):
        told.hear(await anext(changes))


@pytest.fixture(params=["events", "silence", "no-inotify"])
def hearing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How this machine reports file events: well, never, or not at all."""

    async def silence(*args: object, **kwargs: object) -> AsyncIterator[set[tuple[int, str]]]:
        await asyncio.Event().wait()
        yield set()

    async def exhausted(*args: object, **kwargs: object) -> AsyncIterator[set[tuple[int, str]]]:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield set()

    if request.param != "events":
        monkeypatch.setattr(watch_module, "awatch", silence if request.param == "silence" else exhausted)
        monkeypatch.setattr(follower_module, "_SWEEP", 0.1)
        monkeypatch.setattr(follower_module, "_POLL", 0.1)
    return str(request.param)


async def test_following_a_life(tmp_path: Path, hearing: str) -> None:
    root = tmp_path / "home" / "sessions"
    tail, told = LogFollower([root]), Replayed()
    async with aclosing(tail.follow()) as changes:
        listening = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)  # the directory is not there yet
        path = write(root / "2026" / "11" / "20" / "a.jsonl", b"")
        append(path, b"born\n")
        told.hear(await listening)
        await hear_until(told, changes, path, b"born")
        append(path, b"grown\n")
        await hear_until(told, changes, path, b"grown")
        write(root / "b.tmp", b"replaced\n").replace(path)
        await hear_until(told, changes, path, b"replaced")
        moved = path.rename(root / "c.jsonl")
        while moved not in told.files:
            told.hear(await anext(changes))
        append(moved, b"moved\n")
        await hear_until(told, changes, moved, b"moved")
        assert told.files == {moved: [b"replaced", b"moved"]}
        moved.unlink()
        while told.files:
            told.hear(await anext(changes))
        assert tail.watching == ("polling: no inotify watches left" if hearing == "no-inotify" else "events")


async def test_a_root_that_is_deleted_and_made_again_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    old = write(root / "a.jsonl", b"old\n")
    tail, told = LogFollower([root]), Replayed()
    async with aclosing(tail.follow()) as changes:
        await hear_until(told, changes, old, b"old")
        old.unlink()
        root.rmdir()
        new = write(root / "b.jsonl", b"new\n")
        await hear_until(told, changes, new, b"new")
        append(new, b"more\n")
        await hear_until(told, changes, new, b"more")
        assert old not in told.files


async def test_following_lets_others_run(tmp_path: Path) -> None:
    for n in range(30):
        write(tmp_path / f"{n}.jsonl", b"x" * 100 * KIB + b"\n")
    portions, turns = 0, 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    tail, told = LogFollower([tmp_path]), Replayed()
    task = asyncio.create_task(other())
    async with aclosing(tail.follow()) as changes:
        async for portion in changes:
            portions += 1
            told.hear(portion)
            if len(told.files) == 30:
                break
    task.cancel()
    assert turns >= portions - 1


async def test_who_is_cancelled_while_the_watch_closes_is_cancelled(tmp_path: Path) -> None:
    """A directory that appears renews the watch; a dashboard that is quit at that moment must end."""
    watch = watch_module.FileWatcher([str(tmp_path)])
    await watch.renew()
    await asyncio.sleep(0)
    closing = asyncio.create_task(watch.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
