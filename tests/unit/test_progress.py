"""The progress line of long operations, and `check` in several processes."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from agentdash.cli.output import Progress
from agentdash.report import audit as audit_module
from agentdash.report.audit import audit
from agentdash.report.file_audit import read_file

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "recordings").glob("*/*/*.jsonl"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(out: io.StringIO, times: list[float], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seconds = iter([0.0, *times])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    monkeypatch.setattr("sys.stderr", out)
    with Progress(100_000_000 * len(times)) as progress:
        for _ in times:
            progress.add(100_000_000)
    return out.getvalue().split("\r\x1b[K")


def test_progress_shows_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), [0.1, 1.0, 1.05, 2.0], monkeypatch) == [
        "",
        "2 files, 200 of 400 MB, 1 s left",
        "4 files, 400 of 400 MB, 0 s left",
        "",
    ]


def test_no_progress_without_a_terminal_or_for_fast_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), [1.0, 2.0], monkeypatch) == [""]
    assert shown(Terminal(), [0.1, 0.2], monkeypatch) == [""]


def test_check_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sandbox without a writable `/dev/shm` there are no semaphores."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    alone = audit(RECORDINGS[:3])
    monkeypatch.setattr(audit_module, "_MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refused)
    assert audit(RECORDINGS[:3]) == alone


@pytest.mark.slow
def test_interrupt_of_check(tmp_path: Path) -> None:
    """Ctrl-c ends all worker processes, with exit code 130 and no output."""
    big = max(RECORDINGS, key=lambda path: path.stat().st_size)
    lines = big.read_bytes()
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for number in range(40):
        name = big.name.replace(big.stem[-2:], f"{number:02d}")
        (day / name).write_bytes(lines * (1_000_000 // len(lines) + 1))
    # shells let what they run in the background, as may be these tests, ignore the signal
    default = ["env", "--default-signal=INT"]
    command = [*default, sys.executable, "-m", "agentdash", "check", "--codex-home", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        while len(psutil.Process(running.pid).children()) < 2:  # until there is a pool
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
        # click ends the line that ^C is on, unless the workers take too long to end
        assert (running.returncode, out, err.strip()) == (130, b"", b"")


def _die_at_the_third(path, memory):
    """Read a file; end a worker process as the kernel does when memory is short."""
    if path == RECORDINGS[2] and multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return read_file(path, memory)


def test_several_processes_report_the_same_also_where_one_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    alone, done = audit(RECORDINGS), list[Path]()
    monkeypatch.setattr(audit_module, "_MIN_PARALLEL_BYTES", 0)
    assert msgspec.json.encode(audit(RECORDINGS, done.append)) == msgspec.json.encode(alone)
    assert done == RECORDINGS
    monkeypatch.setattr("agentdash.report.file_audit.read_file", _die_at_the_third)
    assert msgspec.json.encode(audit(RECORDINGS)) == msgspec.json.encode(alone)
