"""The process sensor over a fake machine, where forks, execs and reused pids happen on demand."""

import os

import msgspec
import pytest

from agentdash.collect.processes import sensor as processes
from agentdash.collect.processes.linux import Stat
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.model import events as e
from agentdash.model.process import Kernel, Process
from agentdash.model.state_paths import Mount, WriteAccess

BOOT = 1_000.0
CODEX = "/opt/codex/bin/codex"
MARK = {"CODEX_THREAD_ID": "t1"}
ROLLOUT = "/h/rollout-2026-11-20T20-00-00-019aa5a0-0000-7000-8000-000000000001.jsonl"


class Running(msgspec.Struct):
    """A process of the fake machine."""

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
    """Substitute for the module `linux`."""

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self.now = 100.0
        self.trouble: str | None = None
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
        process = self.running[pid]
        process.argv, process.env, process.image = list(argv), env or {}, self.images

    def problem(self) -> str | None:
        return self.trouble

    def pids(self) -> list[int]:
        return list(self.running)

    def boot_time(self) -> float:
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


class Watcher:
    """A sensor, and the processes known from its events."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sensor = ProcessSensor()
        self.known: dict[int, Process] = {}

    def poll(self, *panes: int, servers: tuple[int, ...] = (), later: float = 0.5) -> list[str]:
        """Return the events in short: `+pid` seen, `-pid` gone, `/namespace` mounts, `!pid` state paths."""
        self.machine.now += later
        events = self.sensor.poll(BOOT + self.machine.now, panes, servers)
        assert [type(event) for event in events[-2:]] == [e.ProcessesCounted, e.SourceSeen]
        return [short for event in events if (short := self.apply(event))]

    def apply(self, event: e.Event) -> str:
        match event:
            case e.ProcessSeen(process=process):
                self.known[process.pid] = process
                return f"+{process.pid}"
            case e.MountsSeen(namespace=namespace):
                return f"/{namespace}"
            case e.StatePathsSeen(key=key):
                return f"!{key.pid}"
            case e.ProcessGone(key=key):
                assert self.known.pop(key.pid).key == key
                return f"-{key.pid}"
        return ""


def test_followed_processes(machine: Machine) -> None:
    machine.start(20, 10, "cc1")
    machine.start(30, 10, "node", "/usr/bin/codex")
    machine.start(31, 30, CODEX)
    machine.start(32, 31, "bash", "-c", "make")
    machine.start(33, 32, "make")
    machine.start(40, 1, "sh", env=MARK)
    machine.start(50, 1, "zsh", env={"CODEX_HOME": "/x", "TMUX_TMPDIR": "/y"})  # exported in a profile
    machine.start(60, 1, "fish")
    watcher = Watcher(machine)
    assert set(watcher.poll(60)) == {"+1", "+10", "+30", "+31", "+32", "+33", "+40", "+60"}
    assert {pid: p.agent for pid, p in watcher.known.items() if p.agent} == {30: "codex", 31: "codex"}
    assert watcher.poll(60) == []
    assert set(watcher.poll(60, 20)) == {"+20"}
    machine.start(21, 20, "as")
    assert set(watcher.poll()) == set()  # of no pane any more, but reported before
    assert 20 in watcher.known


def test_fork_is_reported_after_its_exec(machine: Machine) -> None:
    machine.start(30, 10, CODEX)
    watcher = Watcher(machine)
    watcher.poll()
    machine.fork(31, 30)
    assert watcher.poll() == []  # it still looks like Codex
    machine.exec(31, "bash", "-c", "true", env=MARK)
    assert watcher.poll() == ["+31"]
    assert (watcher.known[31].agent, watcher.known[31].env) == (None, MARK)
    machine.fork(32, 31)
    assert watcher.poll() == []
    assert watcher.poll() == ["+32"]  # without an exec it is reported one poll later


def test_exec_is_noticed(machine: Machine) -> None:
    watcher = Watcher(machine)
    for pid in range(100, 160):
        machine.start(pid, 10, "bash", "-i")
    assert watcher.poll() == []
    for _ in range(3):
        assert watcher.poll(later=60) == []
    machine.exec(150, "codex")  # `exec codex` in a long-running shell
    events = [event for _ in range(4) for event in watcher.poll(later=60)]
    assert sorted(events) == ["+1", "+10", "+150"]
    machine.exec(150, "bash", "-c", "rest")
    assert watcher.poll() == ["+150"]
    assert watcher.known[150].agent is None
    machine.exec(150, "bash", "-c", "rest")
    assert watcher.poll() == []  # the same program again
    machine.exec(150)
    assert watcher.poll() == []  # in the middle of an exec there are no arguments
    machine.exec(150, "codex")
    assert watcher.poll() == ["+150"]
    machine.exec(150)
    assert [*watcher.poll(), *watcher.poll()] == ["+150"]  # some programs clear their arguments


def test_reused_pid_is_another_process(machine: Machine) -> None:
    machine.start(30, 10, CODEX)
    watcher = Watcher(machine)
    watcher.poll()
    first = watcher.known[30].key
    machine.start(30, 10, CODEX)
    assert watcher.poll() == ["-30", "+30"]
    assert watcher.known[30].key != first
    del machine.running[30]
    assert watcher.poll() == ["-30"]


def test_zombie_keeps_its_facts(machine: Machine) -> None:
    codex = machine.start(30, 10, CODEX, "exec", "hi", env=MARK)
    codex.files = [ROLLOUT]
    watcher = Watcher(machine)
    watcher.poll()
    alive = watcher.known[30]
    codex.zombie, codex.argv, codex.files = True, [CODEX], []
    assert watcher.poll() == ["+30"]
    assert watcher.known[30] == msgspec.structs.replace(alive, zombie=True, rollouts=())


def test_own_tmux_calls_are_not_reported(machine: Machine) -> None:
    machine.start(os.getpid(), 10, "python", "-m", "agentdash", env={"CODEX_THREAD_ID": "x"})
    machine.start(901, os.getpid(), "tmux", "-u", "list-panes", env={"CODEX_THREAD_ID": "x"})
    watcher = Watcher(machine)
    watcher.poll()
    assert os.getpid() in watcher.known
    assert 901 not in watcher.known


# ---------------------------------------------------------------- sandboxes

SANDBOXED = Kernel(seccomp=2, mnt=7)
BARE, BUILT = (Mount(1, 0, "/"),), (Mount(1, 0, "/"), Mount(2, 1, "/ws"))


def test_mounts_are_reported_once_per_namespace(machine: Machine) -> None:
    machine.tables[7] = BARE
    machine.start(30, 10, CODEX)
    machine.start(31, 30, "codex-linux-sandbox", "--", "make").kernel = SANDBOXED
    machine.start(32, 31, "make").kernel = SANDBOXED
    machine.start(33, 30, "make")
    watcher = Watcher(machine)
    assert [event for event in watcher.poll() if event in ("/1", "/7", "+31", "+32")] == ["/7", "+31", "+32"]
    assert machine.tables_read == 1  # agentdash's own are not read
    machine.start(34, 32, "cc").kernel = SANDBOXED
    assert watcher.poll() == ["+34"]
    machine.tables[7] = BUILT  # the sandbox was still being built
    machine.exec(31, "bash")
    assert watcher.poll() == ["/7", "+31"]
    for pid in (31, 32, 34):
        del machine.running[pid]
    while "-34" not in watcher.poll():
        pass
    for _ in range(8):
        watcher.poll()
    machine.start(35, 30, "make").kernel = SANDBOXED  # the inode is reused
    assert watcher.poll() == ["/7", "+35"]
    del machine.tables[7]
    machine.start(36, 35, "cc").kernel = SANDBOXED  # has ended before its mounts were read
    assert watcher.poll() == ["/7", "+36"]
    assert watcher.poll() == []


def test_state_paths_of_a_sandboxed_worker(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    access = WriteAccess("read-only-mount")
    checked: list[tuple[int, str]] = []

    class FakeRights:
        def __init__(self, pid: int, mounts: object) -> None:
            assert mounts == BUILT
            self.pid = pid

        def can_write(self, path: str) -> WriteAccess:
            checked.append((self.pid, path))
            return access

    monkeypatch.setattr(processes, "PathRights", FakeRights)
    machine.tables[7] = BUILT
    machine.start(30, 10, "opencode", env={"HOME": "/home/dev"}).kernel = SANDBOXED
    machine.start(31, 10, "opencode", env={"HOME": "/home/dev"})
    watcher = Watcher(machine)
    events = watcher.poll()
    assert [event for event in events if event in ("/7", "+30", "!30", "!31")] == ["/7", "+30", "!30"]
    assert (30, "/home/dev/.local/share/opencode") in checked
    assert [event for _ in range(8) for event in watcher.poll()] == []
    access = WriteAccess("allowed")
    assert [event for _ in range(64) for event in watcher.poll()] == ["!30"]
    machine.exec(30, "bash")
    assert watcher.poll() == ["+30", "!30"]  # not a worker any more


def test_panes_of_a_tmux_server_in_a_pid_namespace(machine: Machine) -> None:
    machine.start(2, 0, "kthreadd")
    machine.start(8, 2, "kworker")  # happens to have the inner pid of the pane
    machine.start(40, 1, "tmux: server").kernel = Kernel(seccomp=2, ns_pids=(40, 5))
    machine.start(41, 40, "opencode-shell").kernel = Kernel(seccomp=2, ns_pids=(41, 8))
    machine.start(42, 40, "fish").kernel = Kernel(seccomp=2, ns_pids=(42, 9))
    machine.start(50, 1, "tmux: server")
    machine.start(51, 50, "zsh")
    watcher = Watcher(machine)
    assert set(watcher.poll(8, 51, servers=(5, 50))) == {"+1", "+40", "+41", "+50", "+51"}


def test_without_a_list_of_processes_nothing_is_gone(machine: Machine) -> None:
    sensor = ProcessSensor()
    machine.start(20, 10, "codex")
    assert any(isinstance(event, e.ProcessSeen) for event in sensor.poll(1.0))
    machine.trouble = "/proc is not mounted"
    machine.running.clear()
    lost = e.SourceSeen(at=2.0, name="processes", ok=False, detail="/proc is not mounted")
    assert sensor.poll(2.0) == [lost]
    machine.trouble = None
    assert {type(event) for event in sensor.poll(3.0)} == {e.ProcessGone, e.ProcessesCounted, e.SourceSeen}
