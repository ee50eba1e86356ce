"""The process sensor over real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.model.events import HostSeen, ProcessGone, ProcessSeen
from agentdash.model.process import Process, ProcessKey

THREAD = {"CODEX_THREAD_ID": "0199-live", "CODEX_SANDBOX_NETWORK_DISABLED": "1"}
PYTHON = (sys.executable, "-IS", "-c")


class Looking:
    """Looks until what is waited for has been seen; that it never is, is what the tests' timeout is for."""

    def __init__(self) -> None:
        self.sensor = ProcessSensor()
        self.known: dict[int, Process] = {}
        self.gone: list[ProcessKey] = []
        self.host: HostSeen | None = None

    def poll(self, panes: tuple[int, ...] = ()) -> None:
        for event in self.sensor.poll(time.time(), panes):
            match event:
                case ProcessSeen(process=process):
                    self.known[process.pid] = process
                case ProcessGone(key=key):
                    del self.known[key.pid]
                    self.gone.append(key)
                case HostSeen():
                    self.host = event

    def until(self, there: Callable[[], bool], panes: tuple[int, ...] = ()) -> None:
        self.poll(panes)
        while not there():
            time.sleep(0.01)
            self.poll(panes)


@pytest.fixture
def eyes() -> Looking:
    return Looking()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, env: dict[str, str] | None = None, **options: object) -> subprocess.Popen[bytes]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CODEX_", "TMUX"))}
        running.append(
            subprocess.Popen(
                argv, env=clean | (env or {}), stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
            )
        )
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            pipe.close()


Start = Callable[..., "subprocess.Popen[bytes]"]


def test_a_marked_process_with_its_facts(eyes: Looking, start: Start, tmp_path: Path) -> None:
    before = time.time()
    pid = start("sleep", "1000", env=THREAD | {"CODEX_API_KEY": "secret", "OTHER": "x"}, cwd=tmp_path).pid
    eyes.until(lambda: pid in eyes.known and eyes.known[pid].name == "sleep")
    process = eyes.known[pid]
    after = time.time()
    assert process.pid == pid
    assert (
        before - 0.1 < process.key.started < after
    )  # psutil's answer may be a second off: it counts from a whole one
    assert (process.argv, process.ppid, process.cwd) == (("sleep", "1000"), os.getpid(), str(tmp_path))
    assert process.env is not None
    assert process.env.items() >= THREAD.items()
    assert process.env.keys().isdisjoint(("CODEX_API_KEY", "OTHER", "PATH"))
    assert os.getpid() in eyes.known  # its ancestors come along
    if sys.platform == "linux":
        assert eyes.host is not None
        assert eyes.host.kernel is not None
        assert process.kernel is not None
        assert (process.kernel.net, process.kernel.seccomp) == (
            eyes.host.kernel.net,
            eyes.host.kernel.seccomp,
        )


def test_a_pane_and_the_codex_below_it_but_nobody_else(eyes: Looking, start: Start) -> None:
    shell = start("sh", "-c", "sleep 1000 & env CODEX_THREAD_ID=t sleep 2000")
    eyes.until(
        lambda: any(p.ppid == shell.pid and p.argv == ("sleep", "2000") for p in eyes.known.values()),
        (shell.pid,),
    )
    assert eyes.known[shell.pid].argv[0] == "sh"
    (child,) = (p for p in eyes.known.values() if p.ppid == shell.pid)
    for each in psutil.Process(shell.pid).children():
        each.kill()
    gone = {child.key, eyes.known[shell.pid].key}
    shell.kill()
    shell.wait()
    eyes.until(lambda: gone <= set(eyes.gone), (shell.pid,))


def test_an_exec_changes_argv_and_environment(eyes: Looking, start: Start) -> None:
    process = start("sh", "-c", "read go; exec env CODEX_TOOL_CALL_ID=call-1 sleep 1000")
    eyes.until(lambda: process.pid in eyes.known and eyes.known[process.pid].name == "sh", (process.pid,))
    key = eyes.known[process.pid].key
    process.stdin.write(b"go\n")
    process.stdin.flush()
    eyes.until(lambda: eyes.known[process.pid].name == "sleep", (process.pid,))
    after = eyes.known[process.pid]
    assert (after.key, after.argv) == (key, ("sleep", "1000"))
    assert after.env is not None
    assert after.env["CODEX_TOOL_CALL_ID"] == "call-1"


def test_a_late_exec_of_a_process_nobody_followed(eyes: Looking, start: Start) -> None:
    process = start("sh", "-c", "read go; exec env CODEX_TOOL_CALL_ID=call-2 sleep 1000")
    eyes.poll()
    assert process.pid not in eyes.known
    process.stdin.write(b"go\n")
    process.stdin.flush()
    eyes.until(lambda: process.pid in eyes.known)
    assert eyes.known[process.pid].argv == ("sleep", "1000")


def test_an_unreaped_child_is_a_zombie_with_its_past(eyes: Looking, start: Start) -> None:
    process = start(*PYTHON, "input()", env=THREAD)
    eyes.until(lambda: process.pid in eyes.known)
    before = eyes.known[process.pid]
    process.stdin.write(b"\n")
    process.stdin.flush()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    eyes.until(lambda: eyes.known[process.pid].zombie)
    assert (eyes.known[process.pid].argv, eyes.known[process.pid].env) == (before.argv, before.env)
    process.wait()
    eyes.until(lambda: before.key in eyes.gone)


def test_codex_and_the_rollouts_it_holds_open(eyes: Looking, start: Start, tmp_path: Path) -> None:
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.symlink_to(sys.executable)
    rollout = tmp_path / "rollout-2026-11-20T20-00-00-019aa5a0-0000-7000-8000-000000000001.jsonl"
    code = f"input(); f = open({str(rollout)!r}, 'w'); g = open({str(tmp_path / 'other')!r}, 'w'); print('open', flush=True); input()"
    process = start(str(codex), "-IS", "-c", code)
    eyes.until(lambda: process.pid in eyes.known)
    assert (eyes.known[process.pid].agent, eyes.known[process.pid].rollouts) == ("codex", ())
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"open\n"
    eyes.until(lambda: eyes.known[process.pid].rollouts == (str(rollout),))


def test_many_that_come_and_go_leave_nothing_behind(eyes: Looking, start: Start) -> None:
    storm = start("sh", "-c", "for i in $(seq 200); do /bin/true; done; echo done; read x", env=THREAD)
    os.set_blocking(storm.stdout.fileno(), False)
    while not storm.stdout.read():
        eyes.poll()
    eyes.until(lambda: storm.pid in eyes.known)
    eyes.poll()
    assert [p.argv for p in eyes.known.values() if p.ppid == storm.pid] == []
