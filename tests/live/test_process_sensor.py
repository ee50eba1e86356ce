"""The process sensor over real processes."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.model.events import HostSeen, ProcessGone, ProcessSeen
from agentdash.model.process import Process, ProcessKey
from tests.live.patience import wait_until
from tests.live.tmux import outer_environment

THREAD = {"CODEX_THREAD_ID": "0199-live", "CODEX_SANDBOX_NETWORK_DISABLED": "1"}


class Observer:
    """Polls the sensor, and keeps the known processes."""

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

    def until(self, condition: Callable[[], bool], panes: tuple[int, ...] = ()) -> None:
        def met() -> bool:
            self.poll(panes)
            return condition()

        wait_until(met, f"processes; known: {[p.argv for p in self.known.values()]}")

    def below(self, pid: int) -> list[Process]:
        return [process for process in self.known.values() if process.ppid == pid]


@pytest.fixture
def observer() -> Observer:
    return Observer()


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, env: dict[str, str] | None = None, **options: object) -> subprocess.Popen[bytes]:
        given = outer_environment() | (env or {})
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        running.append(subprocess.Popen(argv, env=given, **pipes, **options))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_marked_process(observer: Observer, start: Start, tmp_path: Path) -> None:
    before = time.time()
    pid = start("sleep", "1000", env=THREAD | {"CODEX_API_KEY": "secret", "OTHER": "x"}, cwd=tmp_path).pid
    observer.until(lambda: pid in observer.known and observer.known[pid].name == "sleep")
    process = observer.known[pid]
    # psutil's answer may be a second off: it counts from a whole one
    assert before - 0.1 < process.key.started < time.time()
    assert (process.argv, process.ppid, process.cwd) == (("sleep", "1000"), os.getpid(), str(tmp_path))
    assert process.env is not None
    assert process.env.items() >= THREAD.items()
    assert process.env.keys().isdisjoint(("CODEX_API_KEY", "OTHER", "PATH"))
    assert os.getpid() in observer.known  # its ancestors come along
    assert observer.host is not None
    own, host = process.kernel, observer.host.kernel
    assert own is not None
    assert host is not None
    assert (own.net, own.seccomp) == (host.net, host.seccomp)


def test_pane_and_the_codex_below_it_only(observer: Observer, start: Start) -> None:
    shell = start("sh", "-c", "sleep 1000 & env CODEX_THREAD_ID=t sleep 2000")
    panes = (shell.pid,)
    observer.until(lambda: [each.argv for each in observer.below(shell.pid)] == [("sleep", "2000")], panes)
    assert observer.known[shell.pid].argv[0] == "sh"
    gone = {observer.below(shell.pid)[0].key, observer.known[shell.pid].key}
    for each in psutil.Process(shell.pid).children():
        each.kill()
    shell.kill()
    shell.wait()
    observer.until(lambda: gone <= set(observer.gone), panes)


def test_short_processes_leave_nothing_behind(observer: Observer, start: Start) -> None:
    storm = start("sh", "-c", "for i in $(seq 200); do /bin/true; done; echo done; read x", env=THREAD)
    os.set_blocking(storm.stdout.fileno(), False)
    observer.until(lambda: bool(storm.stdout.read()) and storm.pid in observer.known)
    observer.poll()
    assert observer.below(storm.pid) == []
