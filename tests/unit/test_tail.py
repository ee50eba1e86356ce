"""Following log files: growth, skimming, truncation, replacement, renames, compression, and file events."""

import asyncio
import errno
import os
import random
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
import zstandard

from agentdash.collect.tail import follower as follower_module
from agentdash.collect.tail import fs_events as watch_module
from agentdash.collect.tail.follower import Change, FileGrown, FileUnreadable
from tests.unit.replayed import Replayed, complete_lines, log_follower

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


def test_partial_line_waits_for_its_newline(tmp_path: Path) -> None:
    follower = log_follower([tmp_path])
    path = write(tmp_path / "2026" / "11" / "a.jsonl", b'{"n":1}\n\xff\xfe torn')
    (first,) = follower.sweep()
    assert first == FileGrown(path, (b'{"n":1}',), 1, 15, path.stat().st_mtime)
    append(path, b" \xe2\x82")
    (still,) = follower.sweep()
    assert (still.lines, still.first) == ((), 2)
    append(path, b"\xac\n\nend\n")
    (then,) = follower.sweep()
    assert (then.lines, then.first) == ((b"\xff\xfe torn \xe2\x82\xac", b"", b"end"), 2)
    assert list(follower.sweep()) == []


def test_newest_files_first(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.jsonl", b"%d\n" % n) for n in range(4)]
    for age, path in enumerate(paths):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert [c.path for c in log_follower([tmp_path]).sweep()] == paths
    recent = log_follower([tmp_path], newest=1, since=999_998.0)
    assert [c.path for c in recent.sweep()] == paths[:3]
    follower = log_follower([tmp_path], newest=1)
    assert [c.path for c in follower.sweep()] == paths[:1]
    paths[2].unlink()
    (tmp_path / "archived").mkdir()
    moved = paths[3].rename(tmp_path / "archived" / "3.jsonl")
    assert list(follower.sweep()) == []  # nothing was emitted of these
    append(moved, b"news\n")
    (late,) = follower.sweep()
    assert (late.path, late.lines, late.reset) == (moved, (b"3", b"news"), False)


def test_oversized_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"one\n" + b"x" * 5_000 + b"\nthree\n" + b"y" * 5_000)
    follower = log_follower([tmp_path], max_line=100, batch=1_000)
    assert [(c.first, c.lines, c.oversized) for c in follower.sweep() if c.lines or c.oversized] == [
        (1, (b"one",), 0),
        (3, (b"three",), 1),
    ]
    append(path, b"y\nfive\n" + b"z" * 101 + b"\n" + b"z" * 100 + b"\n")
    grown = list(follower.sweep())
    assert [(c.first, c.lines, c.oversized) for c in grown] == [(5, (b"five",), 1), (7, (b"z" * 100,), 1)]


# ---------------------------------------------------------------- skimming


def test_large_file_is_skimmed_and_filled(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(b"%06d %s\n" % (n, b"." * 92) for n in range(10_000)))
    follower, replayed = log_follower([tmp_path], skim_above=500 * KIB), Replayed()
    head, end = replayed.apply(follower.sweep())
    assert (head.first, end.first, head.skimmed, end.skimmed) == (1, 0, True, True)
    assert head.lines == tuple(complete_lines(path)[: len(head.lines)])
    assert end.lines == tuple(complete_lines(path)[-len(end.lines) :])
    assert (len(head.lines), len(end.lines)) == (491, 491)  # 48 KiB of lines of 100 bytes
    append(path, b"live\n")
    (live,) = replayed.apply(follower.sweep())
    assert (live.lines, live.first, live.skimmed) == ((b"live",), 0, True)
    whole = replayed.apply(follower.fill(path.name))
    assert whole[0].reset
    assert replayed.files[path] == complete_lines(path)
    append(path, b"more\n")
    replayed.apply(follower.sweep())
    assert replayed.files[path] == complete_lines(path)
    assert list(follower.fill(path.name)) == []


def test_skim_reads_one_whole_line_at_each_end(tmp_path: Path) -> None:
    last = b"e" * 400 * KIB
    write(tmp_path / "a.jsonl", b"first\n" + b"middle\n" * 40_000 + last + b"\nhalf a line")
    head, tail = log_follower([tmp_path], skim_above=0).sweep()
    assert (len(head.lines[0]), tail.lines[-1], tail.first) == (5, last, 0)


async def test_skimmed_files_are_read_whole_while_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "_FILL_AFTER_S", 0.0)
    monkeypatch.setattr(follower_module, "_MAX_PORTION_S", 0.0)
    paths = [
        write(tmp_path / f"{name}.jsonl", b"".join(b"%06d\n" % n for n in range(60_000))) for name in "ab"
    ]
    follower, replayed = log_follower([tmp_path], skim_above=0, batch=32 * KIB), Replayed()
    live = write(tmp_path / "live.jsonl", b"")
    async with aclosing(follower.follow()) as changes:
        while any(replayed.files.get(path) != complete_lines(path) for path in paths):
            append(live, b"line\n")
            replayed.apply(await anext(changes))
        await apply_until(replayed, changes, live, b"line")


# ---------------------------------------------------------------- truncated, replaced, moved, compressed


@pytest.mark.parametrize(
    "text",
    [packed(b"one\ntwo\n" * 500)[:-4], b"no such magic", packed(b"one\nhalf")],
    ids=["cut", "foreign", "torn"],
)
def test_damaged_compressed_file_is_reported_once(tmp_path: Path, text: bytes) -> None:
    path = write(tmp_path / "a.jsonl.zst", text)
    follower, replayed = log_follower([tmp_path]), Replayed()
    replayed.apply(follower.sweep())
    assert path in replayed.failures
    assert list(follower.sweep()) == []
    write(path, packed(b"whole\n"))
    replayed.apply(follower.sweep())
    assert (replayed.files, replayed.failures) == ({path: [b"whole"]}, {})


def test_unreadable_file_is_reported_once_and_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", b"one\n")
    follower = log_follower([tmp_path])

    def refuse(*args: object, **kwargs: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:  # permissions would not stop root
        patch.setattr(os, "open", refuse)
        assert list(follower.sweep()) == [FileUnreadable(path, "Permission denied")]
        assert list(follower.sweep()) == []
    (grown,) = follower.sweep()
    assert (grown.lines, grown.reset) == ((b"one",), False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert list(follower.sweep()) == [FileUnreadable(tmp_path, "Permission denied")]
        assert list(follower.sweep()) == []  # and the file in it has not vanished
    assert list(follower.sweep()) == []


def test_only_logs_are_read(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", b"no\n")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    path = write(tmp_path / "a.jsonl", b"one\n")
    changes = log_follower([tmp_path, tmp_path / "missing"]).sweep()
    assert [c.path for c in changes if isinstance(c, FileGrown)] == [path]


# ---------------------------------------------------------------- following


async def apply_until(
    replayed: Replayed, changes: AsyncIterator[list[Change]], path: Path, line: bytes
) -> None:
    """Apply changes until a line has arrived. If it never does, the timeout of the tests ends this."""
    while line not in replayed.files.get(path, ()):
        replayed.apply(await anext(changes))


@pytest.fixture(params=["watchfiles", "silence", "no-watches"])
def file_events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How this system delivers file events: by watchfiles, none, or an error."""

    class Silence:
        def watch(self, debounce: int, step: int, timeout: int, stop: threading.Event) -> str:
            stop.wait()
            return "stop"

    def notify(roots: Sequence[str]) -> Silence:
        if request.param == "no-watches":
            raise OSError("OS file watch limit reached.")
        return Silence()

    if request.param != "watchfiles":
        monkeypatch.setattr(watch_module, "_notify", notify)
        monkeypatch.setattr(follower_module, "_SWEEP_INTERVAL_S", 0.1)
    return str(request.param)


async def test_follow_create_grow_replace_move_delete(tmp_path: Path, file_events: str) -> None:
    root = tmp_path / "home" / "sessions"
    follower, replayed = log_follower([root]), Replayed()
    async with aclosing(follower.follow()) as changes:
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)  # the directory is not there yet
        path = write(root / "2026" / "11" / "20" / "a.jsonl", b"")
        append(path, b"created\n")
        replayed.apply(await first)
        await apply_until(replayed, changes, path, b"created")
        append(path, b"grown\n")
        await apply_until(replayed, changes, path, b"grown")
        write(root / "b.tmp", b"replaced\n").replace(path)
        await apply_until(replayed, changes, path, b"replaced")
        moved = path.rename(root / "c.jsonl")
        while moved not in replayed.files:
            replayed.apply(await anext(changes))
        append(moved, b"moved\n")
        await apply_until(replayed, changes, moved, b"moved")
        assert replayed.files == {moved: [b"replaced", b"moved"]}
        moved.unlink()
        while replayed.files:
            replayed.apply(await anext(changes))


@pytest.mark.slow
async def test_recreated_root_is_watched(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    old = write(root / "a.jsonl", b"old\n")
    follower, replayed = log_follower([root]), Replayed()
    async with aclosing(follower.follow()) as changes:
        await apply_until(replayed, changes, old, b"old")
        old.unlink()
        root.rmdir()
        new = write(root / "b.jsonl", b"new\n")
        await apply_until(replayed, changes, new, b"new")
        append(new, b"more\n")
        await apply_until(replayed, changes, new, b"more")
        assert old not in replayed.files


async def test_cancelled_close_of_the_watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is created renews the watcher; a dashboard that is quit at that moment must end."""
    watch = watch_module.FileWatcher([str(tmp_path)])
    await watch.renew()
    await asyncio.sleep(0)
    closing = asyncio.create_task(watch.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_events_alone_are_enough_on_a_local_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and directories that come, grow, move and go at random, without sweeps or polls."""
    for name in ("_SWEEP_INTERVAL_S", "_RECENT_POLL_INTERVAL_S"):
        monkeypatch.setattr(follower_module, name, 10_000.0)
    rng = random.Random(13)
    root = tmp_path / "sessions"
    root.mkdir()
    follower, replayed = log_follower([root]), Replayed()

    def change() -> None:
        files, folders = list(root.rglob("*.jsonl")), [root, *(p for p in root.rglob("*") if p.is_dir())]
        folder = rng.choice(folders)
        match rng.choice(("file", "file", "grow", "grow", "grow", "folder", "move", "move folder", "delete")):
            case "file":
                append(write(folder / f"{rng.random()}.jsonl", b"new\n"), b"more\n")
            case "grow" if files:
                append(rng.choice(files), b"%d\n" % rng.randrange(100))
            case "folder" if len(folders) < 12:
                write(folder / f"{rng.random()}" / "deep" / f"{rng.random()}.jsonl", b"deep\n")
            case "move" if files:
                rng.choice(files).rename(folder / f"{rng.random()}.jsonl")
            case "move folder" if folder != root:
                folder.rename(root / f"{rng.random()}")
            case "delete" if len(files) > 3:
                rng.choice(files).unlink()

    async with aclosing(follower.follow()) as changes:
        for _ in range(40):
            for _ in range(rng.randrange(1, 6)):
                change()
            await asyncio.sleep(rng.choice((0, 0.002, 0.02)))
            wanted = {path: complete_lines(path) for path in root.rglob("*.jsonl")}
            while {path: list(lines) for path, lines in replayed.files.items()} != wanted:
                replayed.apply(
                    await anext(changes)
                )  # the timeout of the tests ends a wait for what is missed
        assert len(replayed.files) > 10


def test_open_and_recent_files_are_read_at_first_and_others_when_they_change(tmp_path: Path) -> None:
    size = 400_000
    logs = [tmp_path / f"rollout-{number:04}.jsonl" for number in range(30)]
    for number, log in enumerate(logs):
        log.write_bytes(b"x" * (size - 1) + b"\n")
        os.utime(log, (1e6 + number % 7,) * 2)
    follower = log_follower([tmp_path], newest=3, since=1.0, is_open=logs[3].name.__eq__)
    read = {change.path.name for change in follower.sweep()}
    assert (len(read), logs[3].name in read) == (3 + 1 + 5, True)
    assert set(follower.unread_recent) == {log.name for log in logs} - read
    assert set(follower.unread_recent.values()) == {size}
    unread = next(log for log in logs if log.name not in read)
    append(unread, b"y\n")
    assert [change.path for change in follower.sweep()] == [unread]
    assert unread.name not in follower.unread_recent
