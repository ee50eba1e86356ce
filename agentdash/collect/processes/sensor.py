"""Processes that matter: agents, what carries the marks of Codex, and everything below or above these.

One pass per look. Who is new is a difference of pid sets; who is known gives only its vital signs (`/proc/PID/stat` on Linux), and is read
in full again after an exec.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.launcher_policy import read_launcher
from agentdash.agents.identify import Identity, identify
from agentdash.agents.registry import adapters
from agentdash.agents.state_paths import installed, paths_of
from agentdash.collect.processes.env_filter import arguments
from agentdash.collect.processes.linux import Stat
from agentdash.collect.processes.write_access import Reach
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
from agentdash.model.mounts import Mount
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import PathAccess

if sys.platform == "linux":
    from agentdash.collect.processes import linux as system
else:
    from agentdash.collect.processes import portable as system

_CPU: Final = 0.05
"""Seconds of CPU time that are worth an event."""
_IO: Final = 4_096
"""Bytes read and written that are."""
_SLOWLY: Final = 4
"""Looks between two readings of what shows in no vital sign: open rollouts, working directories, I/O."""
_SELDOM: Final = 64
"""Looks between two readings of whether a worker may write its state."""
_YOUNG: Final = 3.0
"""Seconds for which a process that does not matter is looked at each time: it may yet exec something that does."""
_SLICE: Final = 16
"""Older processes that do not matter looked at again in each look, in turn: for a late exec, and for pids used again."""
_EVERYWHERE: Final = frozenset(("CODEX_HOME", "CODEX_SQLITE_HOME"))
"""Variables that people export in their profiles: no mark of anything."""


class _Seen:
    """One process of this machine, whether it matters or not."""

    __slots__ = ("agent", "argv", "env", "exe", "followed", "held", "process", "reread", "stat", "state")

    def __init__(self, stat: Stat) -> None:
        self.stat = stat
        self.argv: list[str] = []
        self.exe: str | None = None
        self.env: dict[str, str] | None = None
        self.agent: Identity | None = None
        self.process: Process | None = None
        """As it was told last."""
        self.followed = False
        """Whether it matters."""
        self.held = False
        """Whether telling of it waits for the next look."""
        self.reread = False
        """Whether it has become another program since it was told."""
        self.state: tuple[PathAccess, ...] = ()
        """What was told last of its state paths."""

    def read(self, pid: int) -> None:
        """Reads what an exec changes."""
        self.argv, self.exe, self.env = system.argv(pid), system.exe(pid), system.environment(pid)
        self.agent = identify(self.argv, self.exe)
        self.reread = True

    def runs(self, program: str) -> bool:
        """Whether this is that program, by the first argument."""
        return bool(self.argv) and self.argv[0].rpartition("/")[2] == program

    @property
    def marked(self) -> bool:
        """Whether it matters by itself."""
        return self.agent is not None or bool(
            self.env and any(n.startswith("CODEX_") for n in self.env.keys() - _EVERYWHERE)
        )


class ProcessSensor:
    """Reports processes as they come, change and go.

    Reported are: known agents, processes that carry `CODEX_*` in their environment, all descendants of these, their ancestors, so that
    kinship can be walked, and the processes in `pane_pids`. What else runs in panes is nobody's business. Once reported, a process stays
    so until it is gone. With panes come their tmux servers, also those inside of a sandbox, which number processes in their own way. A fork
    that has not called exec yet, or is about to, is held back for one look: it shows its parent's arguments, or none.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._booted = system.booted()
        self._looks = 0
        self._turn = 0
        self._panes: frozenset[int] = frozenset()
        self._servers: frozenset[int] = frozenset()
        self._own = Kernel()
        self._mounts: dict[int, tuple[Mount, ...]] = {}
        """The foreign mount tables, by namespace, as they were told last."""
        self._moved = False
        """Whether somebody came, changed parents, or became another program in this look."""

    def poll(
        self, at: float, pane_pids: Collection[int] = (), server_pids: Collection[int] = ()
    ) -> list[Event]:
        """What has changed since the last look.

        The first answer begins with `HostSeen`. Each ends with `ProcessesCounted` and `SourceSeen`: somebody looked. A change of CPU time
        alone is told once it has come to 0.05 s.

        Args:
            at: now, unix seconds; the time of all events.
            pane_pids: first processes of tmux panes, as their servers number them.
            server_pids: these servers, likewise.
        """
        events: list[Event] = [] if self._looks else [self._host(at)]
        pids = frozenset(system.pids())
        roots = (frozenset(pane_pids), frozenset(server_pids))
        self._moved = (self._panes, self._servers) != roots
        self._panes, self._servers = roots
        lost = [self._drop(pid) for pid in self._seen.keys() - pids]
        lost += [
            self._look_at(pid) for pid in sorted((pids - self._seen.keys()) | self._due(at - self._booted))
        ]
        events += [ProcessGone(at=at, key=key) for key in lost if key is not None]
        if self._moved:
            self._follow()
        slowly = self._looks % _SLOWLY == 0
        self._looks += 1
        fresh: set[int] = set()
        for pid, seen in self._seen.items():
            if not seen.followed:
                continue
            read = seen.reread or seen.process is None
            if (process := self._changed(pid, seen, slowly)) is not None:
                seen.process = process
                if read:
                    events += self._mounted(process, fresh, at)
                events.append(ProcessSeen(at=at, process=process))
            if seen.process is not None and (read or (self._looks + pid) % _SELDOM == 0):
                events += self._state(seen, seen.process, at)
        if self._mounts and slowly:
            self._forget()
        return [*events, ProcessesCounted(at=at), self._health(at)]

    def _due(self, now: float) -> set[int]:
        """Known pids whose vital signs are to be read: all that matter, the young, and a few of the others."""
        others = [pid for pid, seen in self._seen.items() if not seen.followed]
        start, self._turn = self._turn, (self._turn + _SLICE) % max(len(others), 1)
        young = {pid for pid in others if now - self._seen[pid].stat.started < _YOUNG}
        return (
            {pid for pid, seen in self._seen.items() if seen.followed}
            | young
            | set(others[start : start + _SLICE])
        )

    def _look_at(self, pid: int) -> ProcessKey | None:
        """Reads a process's vital signs; returns the key of another one that had this pid before, or of this one if it is gone."""
        stat, seen = system.stat(pid), self._seen.get(pid)
        if stat is None or seen is None or stat.started != seen.stat.started:
            lost = self._drop(pid)
            if stat is not None:
                self._meet(pid, stat)
            return lost
        was, seen.stat = seen.stat, stat
        if not stat.zombie and (
            stat.image != was.image or stat.name != was.name or (stat.image and not seen.argv)
        ):
            before = seen.argv
            seen.read(pid)
            seen.held = bool(before) and not seen.argv  # in the midst of an exec
            self._moved = True
        self._moved |= stat.ppid != was.ppid
        return None

    def _meet(self, pid: int, stat: Stat) -> None:
        self._seen[pid] = seen = _Seen(stat)
        self._moved = True
        if not stat.zombie:
            seen.read(pid)
        parent = self._seen.get(stat.ppid)
        forked = parent is not None and stat.image == parent.stat.image != 0
        seen.held = forked or not (seen.argv or stat.zombie)

    def _drop(self, pid: int) -> ProcessKey | None:
        seen = self._seen.pop(pid, None)
        return seen.process.key if seen is not None and seen.process is not None else None

    def _follow(self) -> None:
        """Marks everybody who matters."""
        children: dict[int, list[int]] = {}
        for pid, seen in self._seen.items():
            children.setdefault(seen.stat.ppid, []).append(pid)
        matter: set[int] = set()
        below = [pid for pid, seen in self._seen.items() if seen.marked]
        while below:
            if (pid := below.pop()) not in matter:
                matter.add(pid)
                below += children.get(pid, ())
        matter |= self._in_panes(children)
        for pid in list(matter):
            above = self._seen[pid].stat.ppid
            while above in self._seen and above not in matter:
                matter.add(above)
                above = self._seen[above].stat.ppid
        for pid in matter:
            seen = self._seen[pid]
            seen.followed = seen.followed or not (
                seen.stat.ppid == os.getpid() and seen.runs("tmux")
            )  # our own calls of tmux

    def _in_panes(self, children: dict[int, list[int]]) -> set[int]:
        """The first processes of panes, and their tmux servers. (No pane's: kernel threads, which have the small numbers.)"""
        found = {pid for pid in self._panes & self._seen.keys() if 2 not in (pid, self._seen[pid].stat.ppid)}
        for pid, seen in self._seen.items():
            if seen.stat.name.startswith("tmux") and (number := system.ns_pid(pid)) in self._servers:
                found.add(pid)
                if number != pid:
                    found |= {child for child in children.get(pid, ()) if system.ns_pid(child) in self._panes}
        return found

    def _changed(self, pid: int, seen: _Seen, slowly: bool) -> Process | None:
        """The process as it is now, where that is worth telling."""
        if seen.held:
            seen.held = False
            return None
        stat, old = seen.stat, seen.process
        if old is None or seen.reread:
            seen.reread = False
            new = self._read(pid, seen)
            return None if old is not None and replace(new, cpu=old.cpu) == old else new
        changed = stat.ppid != old.ppid or stat.zombie != old.zombie or stat.cpu - old.cpu >= _CPU
        if not (changed or slowly):
            return None
        cwd, rollouts = _clean(system.cwd(pid)) or old.cwd, self._rollouts(pid, seen)
        io = system.io(pid) if slowly and seen.agent is None else old.io
        changed |= cwd != old.cwd or rollouts != old.rollouts or io - old.io >= _IO
        return (
            replace(
                old,
                ppid=stat.ppid,
                zombie=stat.zombie,
                exit_code=_code(stat),
                cpu=stat.cpu,
                io=io,
                cwd=cwd,
                rollouts=rollouts,
            )
            if changed
            else None
        )

    def _read(self, pid: int, seen: _Seen) -> Process:
        stat, agent = seen.stat, seen.agent
        return Process(
            key=ProcessKey(pid, self._booted + stat.started),
            ppid=stat.ppid,
            name=clean_line(stat.name),
            argv=(argv := arguments(seen.argv)),
            launcher=read_launcher(stat.name, argv),
            exe=_clean(seen.exe),
            cwd=_clean(system.cwd(pid)),
            env=seen.env,
            kernel=system.kernel(pid),
            agent=agent.agent if agent is not None and agent.role == "worker" else None,
            once=agent is not None and agent.once,
            rollouts=self._rollouts(pid, seen),
            zombie=stat.zombie,
            cpu=stat.cpu,
        )

    def _mounted(self, process: Process, fresh: set[int], at: float) -> list[Event]:
        """The mounts of the namespace that a process lives in, where they are news: while a sandbox is built, more come."""
        namespace = process.kernel.mnt if process.kernel else None
        if namespace is None or namespace == self._own.mnt or namespace in fresh:
            return []
        if (mounts := system.mounts(process.pid)) is None:
            return []
        fresh.add(namespace)
        if mounts == self._mounts.get(namespace):
            return []
        self._mounts[namespace] = mounts
        return [MountsSeen(at=at, namespace=namespace, mounts=mounts)]

    def _forget(self) -> None:
        """Drops the mounts of namespaces that nobody lives in any more."""
        occupied = {
            s.process.kernel.mnt for s in self._seen.values() if s.process is not None and s.process.kernel
        }
        self._mounts = {
            namespace: mounts for namespace, mounts in self._mounts.items() if namespace in occupied
        }

    def _state(self, seen: _Seen, process: Process, at: float) -> list[Event]:
        """Whether a worker in a sandbox may write its state, where that is news."""
        kernel, paths = process.kernel or Kernel(), seen.state
        if process.agent is None or not (kernel.seccomp or "mnt" in kernel.apart_from(self._own)):
            paths = ()
        elif not process.zombie:
            paths = paths_of(process, Reach(process.pid, self._mounts.get(kernel.mnt or 0)).may_write)
        if paths == seen.state:
            return []
        seen.state = paths
        return [StatePathsSeen(at=at, key=process.key, paths=paths)]

    def _rollouts(self, pid: int, seen: _Seen) -> tuple[str, ...]:
        if seen.agent is None or seen.stat.zombie:
            return ()
        adapter = adapters()[seen.agent.agent]
        if not adapter.keeps_session_logs:
            return ()
        logs = {clean_line(path) for path in system.open_files(pid) if adapter.is_session_log(path)}
        return tuple(sorted(logs))

    def _host(self, at: float) -> HostSeen:
        kernel = system.kernel(os.getpid())
        self._own = kernel or Kernel()
        home = clean_line(str(Path.home()))
        return HostSeen(
            at=at, platform=sys.platform, kernel=kernel, uid=os.getuid(), home=home, installed=installed()
        )

    def _health(self, at: float) -> SourceSeen:
        followed = [seen.process for seen in self._seen.values() if seen.process is not None]
        hidden = sum(process.env is None and not process.zombie for process in followed)
        detail = f"{len(followed)} followed" + (f", {hidden} not readable" if hidden else "")
        return SourceSeen(at=at, name="processes", ok=True, detail=detail)


def _code(stat: Stat) -> int | None:
    """How a zombie ended, where it was not by a signal."""
    return None if stat.status is None or stat.status & 0x7F else stat.status >> 8


def _clean(path: str | None) -> str | None:
    return clean_line(path) if path else None
