"""Facts of real processes read from /proc, and their filtering."""

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdash.collect.processes import linux, portable
from agentdash.collect.processes.env_filter import clean_arguments, filter_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a process and waits for its first line; all are ended afterwards."""
    running: list[subprocess.Popen[str]] = []

    def begin(*argv: str, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-IS", "-c", f"{code}; print('ready', flush=True); input()")


def test_stat_of_a_hostile_name(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "we) (i\nrd"
    shutil.copy(shutil.which("sh") or "", program)
    pid = start(str(program), "-c", "echo ready; read x", "an argument", "").pid
    stat = linux.stat(pid)
    assert (stat.name, stat.ppid, stat.zombie) == ("we) (i\nrd", os.getpid(), False)
    assert stat.image > 0
    assert linux.argv(pid) == [str(program), "-c", "echo ready; read x", "an argument", ""]
    program.unlink()
    assert linux.exe(pid) == str(program)


def test_environment_is_filtered(start: Start) -> None:
    env = {
        "CODEX_THREAD_ID": "0199",
        "CODEX_SANDBOX": "seat\x1b[31mbelt\n",
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN": "t",
        "CODEX_ACCESS_KEY": "k",
        "CODEX_PAT": "p",
        "CODEX_SQLITE_HOME": "http://me:secret@host/",
        "TMUX_PANE": "%4",
        "PWD": "/there",
        "PATH": os.environ["PATH"],
        "OPENAI_API_KEY": "sk",
        "MY_CODEX_": "x",
    }
    pid = start(*python("pass"), env=env).pid
    expected = {
        "CODEX_THREAD_ID": "0199",
        "CODEX_SANDBOX": "seatbelt",
        "CODEX_SQLITE_HOME": "http://me:…@host/",
        "TMUX_PANE": "%4",
        "PWD": "/there",
    }
    assert linux.environment(pid) == expected
    assert portable.environment(pid) == expected
    variables = [("HOME", "/home/dev"), ("TMUX", "/tmp/tmux-0/default,1,0"), ("HOMEBREW", "x")]
    assert filter_environment(variables).keys() == {"HOME", "TMUX"}


def test_directory_that_looks_like_a_token_is_known_exactly(tmp_path: Path) -> None:
    """Logs and settings are looked for in it."""
    home = tmp_path / "pypi-server-mirror"
    home.mkdir()
    for path in (str(home), "/srv/pypi-server-mirror"):
        assert filter_environment([("HOME", path)]) == {"HOME": path}
        arguments = ("codex", "--cd", path, f"--add-dir={path}")
        assert clean_arguments(arguments) == arguments
    unusual = "/gpfs/pypi-server-mirror-2"
    assert filter_environment([("HOME", unusual)]) == {"HOME": "/gpfs/pypi-…"}


def test_open_files_are_written_ones_and_deleted_ones(start: Start, tmp_path: Path) -> None:
    (tmp_path / "read.jsonl").touch()
    opened = (("kept.jsonl", "a"), ("gone.jsonl", "w"), ("both.jsonl", "w+"), ("read.jsonl", "r"))
    code = "files = [" + ", ".join(f"open({str(tmp_path / n)!r}, {m!r})" for n, m in opened) + "]"
    pid = start(*python(code)).pid
    (tmp_path / "gone.jsonl").unlink()
    assert {Path(path).name for path in linux.open_files(pid) if path.startswith(str(tmp_path))} == {
        "kept.jsonl",
        "gone.jsonl",
        "both.jsonl",
    }
    assert str(tmp_path / "kept.jsonl") in portable.open_files(pid)


def test_the_directory_of_a_process_that_removed_it(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "w"
    directory.mkdir()
    pid = start(*python("pass"), cwd=directory).pid
    directory.rmdir()
    assert linux.cwd(pid) == str(directory)


def test_linux_and_portable_agree(start: Start, tmp_path: Path) -> None:
    process = start(*python("pass"), cwd=tmp_path)
    pid = process.pid
    expected, found = linux.stat(pid), portable.stat(pid)
    assert (found.name, found.ppid, found.zombie) == (expected.name, expected.ppid, expected.zombie)
    assert found.started == pytest.approx(expected.started, abs=1)
    assert portable.argv(pid) == linux.argv(pid)
    assert portable.exe(pid) == linux.exe(pid)
    assert portable.cwd(pid) == linux.cwd(pid) == str(tmp_path)
    process.stdin.close()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    for system in (linux, portable):
        zombie = system.stat(pid)
        assert (zombie.zombie, system.argv(pid)) == (True, [])


@pytest.mark.slow
def test_arguments_are_sanitized_capped_and_masked() -> None:
    given = "aider --openai-api-key sk-1 --api-key=sk-2 --max-tokens 5"
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    assert clean_arguments([*given.split(), bypass, "hi\x1b[2J\nthere"]) == (
        *("aider", "--openai-api-key", "…", "--api-key=…", "--max-tokens", "5"),
        *(bypass, "hi there"),
    )
    assert clean_arguments(
        ["bash", "-c", "X_TOKEN=t curl -H 'Authorization: Bearer b' http://u:p@h/; monkey=1"]
    ) == (*("bash", "-c", "X_TOKEN=… curl -H 'Authorization: Bearer …' http://u:…@h/; monkey=1"),)
    long = clean_arguments(["x" * 20_000] * 1_100)
    assert (len(long), len(long[0])) == (1_000, 16_000)


def test_start_of_the_machine_is_exact_where_others_run_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would move the starts of all processes, and with them the policies they are compared with."""
    real, calls = time.time, itertools.count()

    def interrupted() -> float:
        now = real()
        time.sleep(0.05 if next(calls) < 2 else 0.0)
        return now

    monkeypatch.setattr(linux.time, "time", interrupted)
    known = linux.boot_time()
    assert abs(real() - time.clock_gettime(time.CLOCK_BOOTTIME) - known) < 0.02
