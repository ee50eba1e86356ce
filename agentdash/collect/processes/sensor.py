"""Follow processes of interest: agents, processes marked by Codex, and everything below or above these.

One pass per poll. New processes are the difference of two sets of pids; of known ones only `stat` is read
(`/proc/PID/stat` on Linux), and everything again after an exec.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.home import CodexHome, locks
from agentdash.agents.identify import Identity, identify
from agentdash.agents.launchers import read_launcher
from agentdash.agents.registry import adapters
from agentdash.agents.state_paths import paths_of
from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.collect.processes.linux import Stat
from agentdash.collect.processes.path_rights import PathRights
from agentdash.collect.scheduler import PollScheduler, poll_repeatedly
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
from agentdash.model.fleet import Fleet
from agentdash.model.process import THREAD_VARIABLES, AwaitedInput, Kernel, Process, ProcessKey
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.state_paths import Mount, PathAccess

if sys.platform == "linux":
    from agentdash.collect.processes import linux as system
else:
    from agentdash.collect.processes import portable as system

_MIN_CPU_CHANGE_S: Final = 0.05
"""CPU time used since the last event that is worth another one."""
_MIN_IO_CHANGE_BYTES: Final = 4_096
"""Bytes read and written since the last event that are."""
_SLOW_FACTS_EVERY_POLLS: Final = 4
"""Open rollouts, working directories and I/O are read every fourth time: they show in no field of `stat`. So
are older processes that are not followed: one may have become another program."""
_WRITE_ACCESS_EVERY_POLLS: Final = 64
"""How often it is determined again whether a worker may write its state."""
_YOUNG_S: Final = 3.0
"""A process that is not followed is read in every poll for so long: it may yet exec something of interest. A
worker that reads its input for so long waits for it."""
_FORK_S: Final = 1.0
"""Age up to which a process that runs its parent's program may be about to exec another one."""


class ProcessSensor:
    """Reports processes as they start, change and end.

    Followed are: known agents, processes with `CODEX_*` in their environment, all descendants of these, their
    ancestors (so that the process tree can be linked), the processes in `pane_pids`, and the tmux servers of
    panes, also inside sandboxes with their own numbering of processes. Other processes are not reported. Once
    reported, a process stays so until it ends.

    A fork that has not called exec yet, or is in the middle of it, is deferred for one poll: it shows its
    parent's arguments, or none.
    """

    def __init__(self) -> None:
        self._tracked: dict[int, TrackedProcess] = {}
        self._boot_time = system.boot_time()
        self._since_boot = 0.0
        """The time of this poll, as start times are counted (seconds)."""
        self._polls = 0
        self._files_at: float | None = None
        """When open files were read last."""
        self._panes: frozenset[int] = frozenset()
        self._servers: frozenset[int] = frozenset()
        self._own = Kernel()
        self._mounts: dict[int, tuple[Mount, ...]] = {}
        """Mount tables of other namespaces, as emitted last, by namespace."""
        self._tree_changed = False
        """Whether a process started, changed its parent, or became another program in this poll."""

    def poll(
        self, at: float, pane_pids: Collection[int] = (), server_pids: Collection[int] = ()
    ) -> list[Event]:
        """Return what has changed since the last poll.

        The first poll begins with `HostSeen`. Each ends with `ProcessesCounted` and `SourceSeen`: the pass is
        complete. Without a list of processes there is no pass: nothing is known to be gone.

        A change of CPU time alone is reported once it has reached 0.05 s.

        Args:
            at: now, unix seconds; the time of all events.
            pane_pids: first processes of tmux panes, as their servers number them.
            server_pids: the tmux servers, numbered alike.
        """
        problem = system.problem()
        events: list[Event] = [] if self._polls else [self._host_seen(at, is_readable=problem is None)]
        if problem is not None:
            self._polls += 1
            return [*events, SourceSeen(at=at, name="processes", ok=False, detail=problem)]
        self._since_boot = at - self._boot_time
        pids = frozenset(system.pids())
        roots = (frozenset(pane_pids), frozenset(server_pids))
        self._tree_changed = (self._panes, self._servers) != roots
        self._panes = roots[0]
        self._servers = roots[1]
        lost = [self._untrack(pid) for pid in self._tracked.keys() - pids]
        slow_due = self._polls % _SLOW_FACTS_EVERY_POLLS == 0
        known = self._tracked if slow_due else self._due_pids()
        due = (pids - self._tracked.keys()).union(known)
        lost += [self._update(pid) for pid in sorted(due)]
        events += [ProcessGone(at=at, key=key) for key in lost if key is not None]
        if self._tree_changed:
            self._mark_followed()
        self._files_at = at if slow_due else self._files_at
        self._polls += 1
        fresh: set[int] = set()
        for pid, tracked in self._tracked.items():
            if not tracked.followed:
                continue
            read = tracked.reread or tracked.process is None
            if (process := self._changed_process(pid, tracked, slow_due)) is not None:
                tracked.process = process
                if read:
                    events += self._new_mounts(process, fresh, at)
                events.append(ProcessSeen(at=at, process=process))
            if tracked.process is not None and (read or (self._polls + pid) % _WRITE_ACCESS_EVERY_POLLS == 0):
                events += self._state_paths(tracked, tracked.process, at)
        if self._mounts and slow_due:
            self._forget_mounts()
        return [*events, ProcessesCounted(at=at, files_at=self._files_at), self._health(at)]

    def _due_pids(self) -> set[int]:
        """Return the tracked pids to read in every poll: all that are followed, and the young."""
        return {
            pid
            for pid, tracked in self._tracked.items()
            if tracked.followed or self._since_boot - tracked.stat.started < _YOUNG_S
        }

    def _update(self, pid: int) -> ProcessKey | None:
        """Read the `stat` of a process.

        Returns:
            The key of the reported process that had this pid and has ended, or None.
        """
        stat, tracked = system.stat(pid), self._tracked.get(pid)
        if stat is None or tracked is None or stat.started != tracked.stat.started:
            lost = self._untrack(pid)
            if stat is not None:
                self._track(pid, stat)
            return lost
        last, tracked.stat = tracked.stat, stat
        renamed = stat.image != last.image or stat.name != last.name
        if not stat.zombie and (renamed or (stat.image and not tracked.argv)):
            before = tracked.argv
            tracked.read_program(pid)
            tracked.deferred = bool(before) and not tracked.argv  # in the middle of an exec
            self._tree_changed = True
        self._tree_changed |= stat.ppid != last.ppid
        return None

    def _track(self, pid: int, stat: Stat) -> None:
        self._tracked[pid] = tracked = TrackedProcess(stat)
        self._tree_changed = True
        if not stat.zombie:
            tracked.read_program(pid)
        parent = self._tracked.get(stat.ppid)
        forked = parent is not None and stat.image == parent.stat.image != 0
        has_just_forked = forked and self._since_boot - stat.started < _FORK_S
        tracked.deferred = has_just_forked or not (tracked.argv or stat.zombie)

    def _untrack(self, pid: int) -> ProcessKey | None:
        tracked = self._tracked.pop(pid, None)
        return tracked.process.key if tracked is not None and tracked.process is not None else None

    def _mark_followed(self) -> None:
        """Mark the processes to follow: those of interest, their descendants and ancestors, and those of
        panes."""
        children: dict[int, list[int]] = {}
        for pid, tracked in self._tracked.items():
            children.setdefault(tracked.stat.ppid, []).append(pid)
        followed: set[int] = set()
        pending = [pid for pid, tracked in self._tracked.items() if tracked.is_of_interest]
        while pending:
            if (pid := pending.pop()) not in followed:
                followed.add(pid)
                pending += children.get(pid, ())
        followed |= self._pane_pids(children)
        for pid in list(followed):
            ancestor = self._tracked[pid].stat.ppid
            while ancestor in self._tracked and ancestor not in followed:
                followed.add(ancestor)
                ancestor = self._tracked[ancestor].stat.ppid
        for pid in followed:
            tracked = self._tracked[pid]
            own_tmux_call = tracked.stat.ppid == os.getpid() and tracked.runs("tmux")
            tracked.followed = tracked.followed or not own_tmux_call

    def _pane_pids(self, children: dict[int, list[int]]) -> set[int]:
        """Return the first processes of panes, and their tmux servers."""
        # the pids of servers in other namespaces are small numbers, which here are kernel threads (children
        # of 2)
        found = {
            pid for pid in self._panes & self._tracked.keys() if 2 not in (pid, self._tracked[pid].stat.ppid)
        }
        for pid, tracked in self._tracked.items():
            if tracked.stat.name.startswith("tmux") and (number := system.ns_pid(pid)) in self._servers:
                found.add(pid)
                if number != pid:
                    found |= {child for child in children.get(pid, ()) if system.ns_pid(child) in self._panes}
        return found

    def _changed_process(self, pid: int, tracked: TrackedProcess, slow_due: bool) -> Process | None:
        """Return the process as it is now, where it has changed enough to be reported."""
        if tracked.deferred:
            tracked.deferred = False
            return None
        stat, old = tracked.stat, tracked.process
        if old is None or tracked.reread:
            tracked.reread = False
            new = self._read_process(pid, tracked)
            return None if old is not None and replace(new, cpu=old.cpu) == old else new
        has_worked = stat.cpu - old.cpu >= _MIN_CPU_CHANGE_S
        has_changed = stat.ppid != old.ppid or stat.zombie != old.zombie
        if not (has_worked or has_changed or slow_due):
            return None
        io = system.io(pid) if slow_due and tracked.agent is None else old.io
        rollouts = self._rollouts(pid, tracked)
        new = replace(
            old,
            ppid=stat.ppid,
            zombie=stat.zombie,
            exit_code=_exit_code(stat),
            cwd=_clean_path(system.cwd(pid)) or old.cwd,
            rollouts=rollouts,
            awaited_input=None if rollouts else self._awaited_input(pid, tracked),
        )
        if new == old and not has_worked and io - old.io < _MIN_IO_CHANGE_BYTES:
            return None
        return replace(new, cpu=stat.cpu, io=io)

    def _read_process(self, pid: int, tracked: TrackedProcess) -> Process:
        stat = tracked.stat
        agent = tracked.agent
        argv = clean_arguments(tracked.argv)
        rollouts = self._rollouts(pid, tracked)
        return Process(
            key=ProcessKey(pid, self._boot_time + stat.started),
            ppid=stat.ppid,
            name=clean_line(stat.name),
            argv=argv,
            launcher=read_launcher(stat.name, argv),
            cwd=_clean_path(system.cwd(pid)),
            env=tracked.env,
            kernel=system.kernel(pid),
            agent=agent.agent if agent is not None and agent.role == "worker" else None,
            once=agent is not None and agent.once,
            rollouts=rollouts,
            awaited_input=None if rollouts else self._awaited_input(pid, tracked),
            zombie=stat.zombie,
            cpu=stat.cpu,
        )

    def _new_mounts(self, process: Process, fresh: set[int], at: float) -> list[Event]:
        """Return the mounts of a process's namespace where they changed: while a sandbox is built, more are
        added.

        Of a process that has just ended none are known: those read before may be half of them, or those of an
        earlier sandbox whose namespace had the same number.
        """
        namespace = process.kernel.mnt if process.kernel else None
        if namespace is None or namespace == self._own.mnt or namespace in fresh:
            return []
        mounts = system.mounts(process.pid) or ()
        if mounts:
            fresh.add(namespace)
        if mounts == self._mounts.get(namespace, ()):
            return []
        self._mounts[namespace] = mounts
        return [MountsSeen(at=at, namespace=namespace, mounts=mounts)]

    def _forget_mounts(self) -> None:
        """Drop the mounts of namespaces without processes."""
        occupied = {
            s.process.kernel.mnt for s in self._tracked.values() if s.process is not None and s.process.kernel
        }
        self._mounts = {
            namespace: mounts for namespace, mounts in self._mounts.items() if namespace in occupied
        }

    def _state_paths(self, tracked: TrackedProcess, process: Process, at: float) -> list[Event]:
        """Return whether a worker in a sandbox may write its state paths, where that changed."""
        kernel = process.kernel or Kernel()
        paths = tracked.state
        if process.agent is None or not (kernel.seccomp or "mnt" in kernel.apart_from(self._own)):
            paths = ()
        elif not process.zombie:
            rights = PathRights(process.pid, self._mounts.get(kernel.mnt or 0) or None)
            paths = paths_of(process, rights.can_write)
        if paths == tracked.state:
            return []
        tracked.state = paths
        return [StatePathsSeen(at=at, key=process.key, paths=paths)]

    def _rollouts(self, pid: int, tracked: TrackedProcess) -> tuple[str, ...]:
        if tracked.agent is None or tracked.stat.zombie:
            return ()
        name = adapters()[tracked.agent.agent].session_log_name
        if name is None:
            return ()
        logs = {path for path in system.open_files(pid) if name.fullmatch(os.path.basename(path))}  # noqa: PTH119
        return tuple(sorted(map(clean_line, logs)))

    def _awaited_input(self, pid: int, tracked: TrackedProcess) -> AwaitedInput | None:
        """Return what a `codex exec` waits to read to its end before it begins."""
        agent, stat = tracked.agent, tracked.stat
        if agent is None or agent.agent != "codex" or not agent.once or stat.zombie:
            return None
        return system.awaited_input(pid) if self._since_boot - stat.started >= _YOUNG_S else None

    def _host_seen(self, at: float, *, is_readable: bool) -> HostSeen:
        kernel = system.kernel(os.getpid()) if is_readable else None
        self._own = kernel or Kernel()
        home = clean_line(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` fails without a passwd entry
        return HostSeen(at=at, platform=sys.platform, kernel=kernel, home=home)

    def _health(self, at: float) -> SourceSeen:
        followed = [tracked.process for tracked in self._tracked.values() if tracked.process is not None]
        hidden = sum(process.env is None and not process.zombie for process in followed)
        detail = f"{len(followed)} followed" + (f", {hidden} not readable" if hidden else "")
        return SourceSeen(at=at, name="processes", ok=True, detail=detail)


def _exit_code(stat: Stat) -> int | None:
    """Return the exit code of a zombie that was not ended by a signal."""
    return None if stat.status is None or stat.status & 0x7F else stat.status >> 8


def _clean_path(path: str | None) -> str | None:
    return clean_line(path) if path else None


# ------------------------------------------------------------
# A process of this machine, as the sensor has read it last


_COMMON_VARIABLES: Final = frozenset(("CODEX_HOME", "CODEX_SQLITE_HOME"))
"""Variables that users export in their profiles: no sign of Codex."""
_MARKS: Final = frozenset(THREAD_VARIABLES.values())


class TrackedProcess(msgspec.Struct):
    """One process of this machine, whether followed or not."""

    stat: Stat
    argv: list[str] = []
    exe: str | None = None
    env: dict[str, str] | None = None
    agent: Identity | None = None
    process: Process | None = None
    """As emitted last."""
    followed: bool = False
    """Whether it is reported."""
    deferred: bool = False
    """Whether its next event waits for the next poll."""
    reread: bool = False
    """Whether it has become another program since it was emitted."""
    state: tuple[PathAccess, ...] = ()
    """Its state paths as emitted last."""

    def read_program(self, pid: int) -> None:
        """Read what an exec changes."""
        self.argv, self.exe, self.env = system.argv(pid), system.exe(pid), system.environment(pid)
        self.agent = identify(self.argv, self.exe)
        self.reread = True

    def runs(self, program: str) -> bool:
        """Return whether the first argument is a program of this name."""
        return bool(self.argv) and self.argv[0].rpartition("/")[2] == program

    @property
    def is_of_interest(self) -> bool:
        """Whether it is followed for its own sake: a known agent, or marked as a command of one."""
        names = self.env.keys() - _COMMON_VARIABLES if self.env else ()
        return self.agent is not None or any(name.startswith("CODEX_") or name in _MARKS for name in names)


class ProcessSource:
    """Polls processes and the writer locks of a Codex home.

    Args:
        scheduler: sets the pauses between polls, short ones while a command starts.
    """

    name = "processes"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._home = home
        self._clock = clock
        self._scheduler = scheduler
        self._sensor = ProcessSensor()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the locks, and the processes that changed. Runs in a thread: /proc can be slow."""
        panes = fleet.panes.values()
        servers = {pane.server_pid for pane in panes if pane.server_pid is not None}
        return await asyncio.to_thread(self._poll, {pane.pid for pane in panes}, servers)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        await poll_repeatedly(self, emit, channel, self._scheduler, rest=self._scheduler.rest)

    def _poll(self, panes: set[int], servers: set[int]) -> list[Event]:
        # locks first: the sensor's last event marks both, locks and processes, as complete
        now = self._clock.now()
        return [locks(self._home, now), *self._sensor.poll(now, panes, servers)]
