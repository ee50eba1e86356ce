"""The process sensor over a made-up machine, where forks, execs and reused pids happen when they are told to."""

from __future__ import annotations

import os

import msgspec
import pytest

from agentdash.collect.processes import sensor as processes
from agentdash.collect.processes.linux import Stat
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.model.events import (
    Event,
    HostSeen,
    MountsSeen,
    ProcessesCounted,
    ProcessGone,
    ProcessSeen,
    SourceSeen,
    StatePathsSeen,
)
from agentdash.model.mounts import WriteAccess, Mount
from agentdash.model.process import Kernel, Process

BOOT = 1_000.0
CODEX = "/opt/codex/bin/codex"
MARK = {"CODEX_THREAD_ID": "t1"}
ROLLOUT = "/h/rollout-2026-11-20T20-00-00-019aa5a0-0000-7000-8000-000000000001.jsonl"


class Running(msgspec.Struct):
    """A process of the made-up machine."""

    ppid: int
    argv: list[str]
    env: dict[str, str] | None
    started: float
    image: int
    files: list[str] = []
    cwd: str = "/ws"
    cpu: float = 0.0
    zombie: bool = False
    kernel: Kernel = Kernel(seccomp=0, mnt=1)


class Machine:
    """Stands in for `linux`."""

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self.now = 100.0
        self.images = 0
        self.tables: dict[int | None, tuple[Mount, ...]] = {}
        self.tables_read = 0

    def start(self, pid: int, ppid: int, *argv: str, env: dict[str, str] | None = None) -> Running:
        self.now += 0.01
        self.running[pid] = Running(ppid, [], env, self.now, 0)
        self.exec(pid, *argv, env=env)
        return self.running[pid]

    def fork(self, pid: int, ppid: int) -> None:
        self.now += 0.01
        self.running[pid] = msgspec.structs.replace(self.running[ppid], ppid=ppid, started=self.now, cpu=0.0)

    def exec(self, pid: int, *argv: str, env: dict[str, str] | None = None) -> None:
        self.images += 1
        self.running[pid].argv, self.running[pid].env, self.running[pid].image = (
            list(argv),
            env or {},
            self.images,
        )

    def pids(self) -> list[int]:
        return list(self.running)

    def booted(self) -> float:
        return BOOT

    def stat(self, pid: int) -> Stat | None:
        if (p := self.running.get(pid)) is None:
            return None
        name = p.argv[0].rpartition("/")[2] if p.argv else "?"
        return Stat(name, p.zombie, p.ppid, p.started, p.cpu, 0 if p.zombie else p.image)

    def argv(self, pid: int) -> list[str]:
        return self.running[pid].argv

    def environment(self, pid: int) -> dict[str, str] | None:
        return self.running[pid].env

    def exe(self, pid: int) -> str | None:
        return next(iter(self.running[pid].argv), None)

    def cwd(self, pid: int) -> str | None:
        return self.running[pid].cwd

    def open_files(self, pid: int) -> list[str]:
        return self.running[pid].files

    def io(self, pid: int) -> int:
        return 0

    def kernel(self, pid: int) -> Kernel | None:
        return self.running[pid].kernel if pid in self.running else Kernel(seccomp=0, mnt=1)

    def ns_pid(self, pid: int) -> int:
        return self.running[pid].kernel.ns_pids[-1] if self.running[pid].kernel.ns_pids else pid

    def mounts(self, pid: int) -> tuple[Mount, ...] | None:
        self.tables_read += 1
        return self.tables.get(self.running[pid].kernel.mnt)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(processes, "system", made)
    made.start(1, 0, "/sbin/init")
    made.start(10, 1, "bash")
    return made


class Looking:
    """A sensor, and what it has said so far."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sensor = ProcessSensor()
        self.known: dict[int, Process] = {}

    def poll(self, *panes: int, servers: tuple[int, ...] = (), later: float = 0.5) -> list[str]:
        """What is told, in short: `+pid` seen, `-pid` gone, `/namespace` mounts, `!pid` state paths."""
        self.machine.now += later
        events = self.sensor.poll(BOOT + self.machine.now, panes, servers)
        assert [type(event) for event in events[-2:]] == [ProcessesCounted, SourceSeen]
        return [said for event in events if (said := self.hear(event))]

    def hear(self, event: Event) -> str:
        match event:
            case ProcessSeen(process=process):
                self.known[process.pid] = process
                return f"+{process.pid}"
            case MountsSeen(namespace=namespace):
                return f"/{namespace}"
            case StatePathsSeen(key=key):
                return f"!{key.pid}"
            case ProcessGone(key=key):
                assert self.known.pop(key.pid).key == key
                return f"-{key.pid}"
        return ""


def test_who_matters(machine: Machine) -> None:
    machine.start(20, 10, "cc1")
    machine.start(30, 10, "node", "/usr/bin/codex")
    machine.start(31, 30, CODEX)
    machine.start(32, 31, "bash", "-c", "make")
    machine.start(33, 32, "make")
    machine.start(40, 1, "sh", env=MARK)
    machine.start(50, 1, "zsh", env={"CODEX_HOME": "/x", "TMUX_TMPDIR": "/y"})  # exported in a profile
    machine.start(60, 1, "fish")
    eyes = Looking(machine)
    assert set(eyes.poll(60)) == {"+1", "+10", "+30", "+31", "+32", "+33", "+40", "+60"}
    assert {pid: p.agent for pid, p in eyes.known.items() if p.agent} == {30: "codex", 31: "codex"}
    assert eyes.poll(60) == []
    assert set(eyes.poll(60, 20)) == {"+20"}
    machine.start(21, 20, "as")
    assert set(eyes.poll()) == set()  # no pane's any more; but who was told stays
    assert 20 in eyes.known


def test_the_first_look_tells_the_yardstick(machine: Machine) -> None:
    sensor = ProcessSensor()
    (host,) = [event for event in sensor.poll(2_000.0) if isinstance(event, HostSeen)]
    assert (host.kernel, host.uid, host.at) == (Kernel(seccomp=0, mnt=1), os.getuid(), 2_000.0)
    assert not [event for event in sensor.poll(2_001.0) if isinstance(event, HostSeen)]


def test_servers_and_helpers_are_no_workers(machine: Machine) -> None:
    machine.start(30, 1, CODEX, "app-server", "--listen", "unix://").files = [ROLLOUT, "/h/state.sqlite"]
    machine.start(31, 30, "codex-linux-sandbox", "--", "ls")
    machine.start(32, 1, CODEX, "sandbox", "--", "ls").files = [ROLLOUT]
    eyes = Looking(machine)
    eyes.poll()
    assert [eyes.known[pid].agent for pid in (30, 31, 32)] == [None, None, None]
    assert eyes.known[30].rollouts == (ROLLOUT,)
    assert eyes.known[31].rollouts == ()


def test_a_fork_is_told_after_its_exec(machine: Machine) -> None:
    machine.start(30, 10, CODEX)
    eyes = Looking(machine)
    eyes.poll()
    machine.fork(31, 30)
    assert eyes.poll() == []  # it still looks like Codex
    machine.exec(31, "bash", "-c", "true", env=MARK)
    assert eyes.poll() == ["+31"]
    assert (eyes.known[31].agent, eyes.known[31].env) == (None, MARK)
    machine.fork(32, 31)
    assert eyes.poll() == []
    assert eyes.poll() == ["+32"]  # it stays what it is


def test_an_exec_is_noticed_whenever_it_comes(machine: Machine) -> None:
    eyes = Looking(machine)
    for pid in range(100, 160):
        machine.start(pid, 10, "bash", "-i")
    assert eyes.poll() == []
    for _ in range(3):
        assert eyes.poll(later=60) == []
    machine.exec(150, "codex")  # `exec codex` in a shell of old
    told = [said for _ in range(4) for said in eyes.poll(later=60)]
    assert sorted(told) == ["+1", "+10", "+150"]
    machine.exec(150, "bash", "-c", "rest")
    assert eyes.poll() == ["+150"]
    assert eyes.known[150].agent is None
    machine.exec(150, "bash", "-c", "rest")
    assert eyes.poll() == []  # the same again
    machine.exec(150)
    assert eyes.poll() == []  # in the midst of an exec there are no arguments
    machine.exec(150, "codex")
    assert eyes.poll() == ["+150"]
    machine.exec(150)
    assert [*eyes.poll(), *eyes.poll()] == ["+150"]  # some wipe theirs out


def test_a_pid_used_again_is_another_process(machine: Machine) -> None:
    machine.start(30, 10, CODEX)
    eyes = Looking(machine)
    eyes.poll()
    first = eyes.known[30].key
    machine.start(30, 10, CODEX)
    assert eyes.poll() == ["-30", "+30"]
    assert eyes.known[30].key != first
    del machine.running[30]
    assert eyes.poll() == ["-30"]


def test_only_changes_that_matter_are_told(machine: Machine) -> None:
    codex = machine.start(30, 10, CODEX)
    eyes = Looking(machine)
    eyes.poll()
    codex.cpu = 0.04
    assert eyes.poll() == []
    codex.cpu = 0.06
    assert eyes.poll() == ["+30"]
    assert eyes.known[30].cpu == 0.06
    codex.ppid = 1
    assert eyes.poll() == ["+30"]
    codex.files, codex.cwd = [ROLLOUT], "/elsewhere"
    assert [said for _ in range(4) for said in eyes.poll()] == ["+30"]
    assert (eyes.known[30].rollouts, eyes.known[30].cwd) == ((ROLLOUT,), "/elsewhere")


def test_a_zombie_keeps_what_was_known(machine: Machine) -> None:
    codex = machine.start(30, 10, CODEX, "exec", "hi", env=MARK)
    codex.files = [ROLLOUT]
    eyes = Looking(machine)
    eyes.poll()
    alive = eyes.known[30]
    codex.zombie, codex.argv, codex.files = True, [CODEX], []
    assert eyes.poll() == ["+30"]
    assert eyes.known[30] == msgspec.structs.replace(alive, zombie=True, rollouts=())
    machine.start(31, 30, "?").zombie = True
    eyes.poll()
    assert (eyes.known[31].argv, eyes.known[31].agent) == ((), None)


def test_our_own_calls_of_tmux_are_left_out(machine: Machine) -> None:
    machine.start(os.getpid(), 10, "python", "-m", "agentdash", env={"CODEX_THREAD_ID": "x"})
    machine.start(901, os.getpid(), "tmux", "-u", "list-panes", env={"CODEX_THREAD_ID": "x"})
    eyes = Looking(machine)
    eyes.poll()
    assert os.getpid() in eyes.known
    assert 901 not in eyes.known


def test_what_cannot_be_read_is_counted(machine: Machine) -> None:
    machine.start(30, 10, CODEX)
    machine.running[30].env = None
    sensor = ProcessSensor()
    health = sensor.poll(2_000.0)[-1]
    assert isinstance(health, SourceSeen)
    assert (health.name, health.ok, health.detail) == ("processes", True, "3 followed, 1 not readable")


# ---------------------------------------------------------------- sandboxes

SANDBOXED = Kernel(seccomp=2, mnt=7)
BARE, BUILT = (Mount(1, 0, "/"),), (Mount(1, 0, "/"), Mount(2, 1, "/ws"))


def test_mounts_are_told_once_for_a_namespace_and_before_who_lives_there(machine: Machine) -> None:
    machine.tables[7] = BARE
    machine.start(30, 10, CODEX)
    machine.start(31, 30, "codex-linux-sandbox", "--", "make").kernel = SANDBOXED
    machine.start(32, 31, "make").kernel = SANDBOXED
    machine.start(33, 30, "make")
    eyes = Looking(machine)
    assert [said for said in eyes.poll() if said in ("/1", "/7", "+31", "+32")] == ["/7", "+31", "+32"]
    assert machine.tables_read == 1  # agentdash's own are nobody's news
    machine.start(34, 32, "cc").kernel = SANDBOXED
    assert eyes.poll() == ["+34"]
    machine.tables[7] = BUILT  # a sandbox that was still being built
    machine.exec(31, "bash")
    assert eyes.poll() == ["/7", "+31"]
    for pid in (31, 32, 34):
        del machine.running[pid]
    while "-34" not in eyes.poll():
        pass
    for _ in range(8):
        eyes.poll()
    machine.start(35, 30, "make").kernel = SANDBOXED  # the number is used again
    assert eyes.poll() == ["/7", "+35"]


def test_mounts_that_may_not_be_read(machine: Machine) -> None:
    machine.start(30, 10, CODEX).kernel = SANDBOXED
    assert "+30" in (told := Looking(machine).poll())
    assert not [said for said in told if said.startswith("/")]


def test_a_worker_in_a_sandbox_tells_of_its_state_when_that_changes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = WriteAccess("read-only-mount")
    asked: list[tuple[int, str]] = []

    class Reach:
        def __init__(self, pid: int, mounts: object) -> None:
            assert mounts == BUILT
            self.pid = pid

        def may_write(self, path: str) -> WriteAccess:
            asked.append((self.pid, path))
            return answer

    monkeypatch.setattr(processes, "Reach", Reach)
    machine.tables[7] = BUILT
    machine.start(30, 10, "opencode", env={"HOME": "/home/dev"}).kernel = SANDBOXED
    machine.start(31, 10, "opencode", env={"HOME": "/home/dev"})
    eyes = Looking(machine)
    told = eyes.poll()
    assert [said for said in told if said in ("/7", "+30", "!30", "!31")] == ["/7", "+30", "!30"]
    assert (30, "/home/dev/.local/share/opencode") in asked
    assert [said for _ in range(8) for said in eyes.poll()] == []
    answer = WriteAccess("allowed")
    assert [said for _ in range(64) for said in eyes.poll()] == ["!30"]
    machine.exec(30, "bash")
    assert eyes.poll() == ["+30", "!30"]  # no worker any more


def test_panes_of_a_server_in_a_sandbox_have_inner_numbers(machine: Machine) -> None:
    machine.start(2, 0, "kthreadd")
    machine.start(8, 2, "kworker")  # has by chance the number that the pane has inside
    machine.start(40, 1, "tmux: server").kernel = Kernel(seccomp=2, ns_pids=(40, 5))
    machine.start(41, 40, "opencode-shell").kernel = Kernel(seccomp=2, ns_pids=(41, 8))
    machine.start(42, 40, "fish").kernel = Kernel(seccomp=2, ns_pids=(42, 9))
    machine.start(50, 1, "tmux: server")
    machine.start(51, 50, "zsh")
    eyes = Looking(machine)
    assert set(eyes.poll(8, 51, servers=(5, 50))) == {"+1", "+40", "+41", "+50", "+51"}
