"""The descent of processes: from a command up to its Codex, its pane, its tmux server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from agentdash.model.fleet import Fleet, ThreadOwner
from agentdash.model.observation import Applied
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import TMPDIR, Policy
from agentdash.model.process import THREAD_AGENTS, THREAD_VARIABLES, Process, ProcessKey
from agentdash.model.thread import Thread
from agentdash.sandbox.home_paths import home_of


class ProcessTree:
    """The tracked processes by pid, for walking upwards, and the panes that they live in.

    Panes are those of servers outside every sandbox: no other server is asked for any.

    Args:
        processes: all tracked processes.
        panes: all panes, dead ones too.
    """

    def __init__(self, processes: Iterable[Process], panes: Mapping[PaneKey, Pane]) -> None:
        self._by_pid = {process.pid: process for process in processes}
        self._panes: dict[int, PaneKey | None] = {
            pane.pid: key for key, pane in panes.items() if pane.pid and not pane.dead
        }
        """The pane of each pid that was looked up, and of the first processes."""

    def get(self, pid: int) -> Process | None:
        """Return the tracked process with this number."""
        return self._by_pid.get(pid)

    def above(self, process: Process) -> Iterator[Process]:
        """Yield the ancestors of `process`, nearest first.

        Ends at one that is not tracked, and at a parent that is younger than its child: its pid was reused.
        """
        visited = {process.pid}
        while (parent := self._by_pid.get(process.ppid)) is not None:
            # one second of tolerance: start times of two processes are rounded differently
            if parent.pid in visited or parent.key.started > process.key.started + 1:
                return
            yield parent
            visited.add(parent.pid)
            process = parent

    def pane(self, process: Process) -> PaneKey | None:
        """Return the pane that `process` descends from, or is the first process of."""
        walked, found = [], None
        for ancestor in (process, *self.above(process)):
            if ancestor.pid in self._panes:
                found = self._panes[ancestor.pid]
                break
            walked.append(ancestor.pid)
        self._panes |= dict.fromkeys(walked, found)
        return found


def is_multiplexer(process: Process) -> bool:
    """Return whether this is a tmux server: its children belong to panes, not to the thread in their
    environment."""
    return process.name.startswith("tmux")


def is_codex(process: Process) -> bool:
    """Return whether this process runs Codex's turns: the Codex of one terminal, or the shared server."""
    return process.agent in THREAD_AGENTS or is_daemon(process)


def is_daemon(process: Process) -> bool:
    """Return whether this is Codex's shared background server (0.160+) rather than the Codex of one
    terminal."""
    return "app-server" in process.argv[:4]


# ------------------------------------------------------------
# Recognize the processes that are commands of a thread, their home directory and their sandbox launcher


_SERVED_FOR: Final = "CLAUDE_PROJECT_DIR"
"""Claude Code gives it to hooks and MCP servers, which run in no sandbox, and not to commands (2.1.197 to
2.1.330)."""
_CODEX_VARIABLE: Final = THREAD_VARIABLES["codex"]
_ALL_VARIABLES: Final = frozenset(THREAD_VARIABLES.values())


def thread_of(process: Process, tree: ProcessTree) -> str | None:
    """Return the thread that the process's environment names, by the variable of the CLI above it.

    CLIs start each other, and environments are inherited: a command of Claude Code may have the variables of
    Codex as well. Without a CLI above it, the only variable that it has counts.
    """
    env = process.env or {}
    named = [value for name in THREAD_VARIABLES.values() if (value := env.get(name))]
    if not named:
        return None
    for parent in tree.above(process):
        variable = _CODEX_VARIABLE if is_daemon(parent) else THREAD_VARIABLES.get(parent.agent or "")
        if variable is not None:
            return env.get(variable)
        if is_multiplexer(parent):
            break
    return named[0] if len(named) == 1 else env.get(_CODEX_VARIABLE)


def runners(process: Process, thread: str, tree: ProcessTree) -> Iterator[Process]:
    """Yield the processes above one that names a thread, nearest first: one of them may run the thread.

    Ends at one that names another thread: a CLI gives its commands their variables, and what these start may
    have any others. So with a daemon, the command of one thread does not count as another's. Ends at a tmux
    server.
    """
    names = [name for name in THREAD_VARIABLES.values() if (process.env or {}).get(name) == thread]
    for parent in tree.above(process):
        inherited = parent.env or {}
        is_another = any(inherited.get(name, thread) != thread for name in names)
        if is_multiplexer(parent) or (is_another and not is_codex(parent)):
            return
        yield parent


def is_below(process: Process, thread: str, owner: ThreadOwner | None, tree: ProcessTree) -> bool:
    """Return whether a process that names a thread descends from the one that runs it."""
    return owner is not None and any(each.key == owner.key for each in runners(process, thread, tree))


def is_command(process: Process, tree: ProcessTree) -> bool:
    """Return whether this process is (part of) a command that the thread in its environment ran.

    Agents, sandbox launchers and tmux servers are not, nor are processes that merely inherited the variables:
    panes of a tmux server that a command started, the servers and hooks of a CLI that was itself started by a
    command, and what Codex tries before a command.
    """
    if process.agent or is_daemon(process) or process.launcher or is_multiplexer(process):
        return False
    for parent in tree.above(process):
        if is_multiplexer(parent) or _is_trial(parent):
            return False
        if (variable := THREAD_VARIABLES.get(parent.agent or "")) is not None:
            own, inherited = process.env or {}, parent.env or {}
            is_served = parent.agent == "claude" and _SERVED_FOR in own
            return not is_served and own.get(variable) != inherited.get(variable)
    return _SERVED_FOR not in (process.env or {})


def _is_trial(launcher: Process) -> bool:
    """Return whether a process is the bubblewrap by which Codex tries whether /proc can be mounted, around
    `true` and with mounts of its own (0.169, 0.171). The one of a command runs Codex's helper."""
    *options, divider, program = ("", "", *launcher.argv)
    is_bwrap = launcher.launcher is not None and launcher.launcher.name == "bwrap"
    return is_bwrap and divider == "--" and "--" not in options and program.rpartition("/")[2] == "true"


_CODEX_HOME = "/.codex/"
"""The usual place of Codex's own files in a home directory."""


def home_directory(fleet: Fleet, thread: Thread) -> str | None:
    """Return the home directory of a thread's commands, by the best evidence, or None.

    That is `HOME` of its processes; else the home that its working directory lies in by custom; else the
    directory that has its `.codex`; else the one that its commands have printed; else that of this machine's
    user, where its rollout lies in it.
    """
    owner = fleet.links.owners.get(thread.id)
    runner = fleet.processes.get(owner.key) if owner and owner.key else None
    for process in (*fleet.links.commands.get(thread.id, ()), *([runner] if runner else [])):
        home = (process.env or {}).get("HOME", "")
        if home.startswith("/"):
            return home.rstrip("/") or None
    if customary := home_of(thread.cwd):
        return customary
    rollout = thread.file.path if thread.file else ""
    if rollout.startswith("/") and _CODEX_HOME in rollout:
        return rollout.partition(_CODEX_HOME)[0] or None
    if thread.home is not None:
        return thread.home
    own = fleet.host.home if fleet.host else None
    return own if own and rollout.startswith(own.rstrip("/") + "/") else None


_CLAUDE_TMP: Final = re.compile(r"/.*/claude-\d+")
_HELPER: Final = "codex-linux-sandbox"
"""Launcher whose arguments contain the policy itself; a `bwrap` below it has what the helper derived from
it."""


def find_launcher(process: Process, tree: ProcessTree) -> Applied | None:
    """Return what stands between a command and its Codex, or None if no Codex is above the command."""
    found: Applied | None = None
    for parent in tree.above(process):
        if is_codex(parent):
            return found or Applied("nothing")
        launcher = parent.launcher
        if launcher is None or (found and found.policy):
            continue
        if found is None or (launcher.policy and found.by != _HELPER):
            found = Applied(launcher.name, launcher.policy)
    return found


def with_tmpdir(applied: Applied | None, policy: Policy, temporary: str | None) -> Applied | None:
    """Return a launcher's policy in which the temporary directory is named as in the policy in force.

    Claude Code makes a directory `claude-UID` below /tmp, and another below `CLAUDE_CODE_TMPDIR` (2.1.332).
    bubblewrap gets the target of a symbolic link: where the directory is not among its arguments, the only
    one that the policy does not name is taken for it, unless a root of the policy lies in it.

    Args:
        temporary: the directory, or None where it is not known.
    """
    if applied is None or applied.policy is None or TMPDIR not in policy.writable_roots:
        return applied
    gained = policy.grants_less_than(applied.policy)
    found = [root for root in gained if root == temporary or _CLAUDE_TMP.fullmatch(root)]
    if not found and temporary is not None and len(gained) == 1 and not policy.may_write(temporary):
        below = f"{gained[0].rstrip('/')}/"
        found = [] if any(root.startswith(below) for root in policy.writable_roots) else list(gained)
    rules = tuple(replace(rule, path=TMPDIR) if rule.path in found else rule for rule in applied.policy.rules)
    return replace(applied, policy=replace(applied.policy, rules=rules)) if found else applied


# ------------------------------------------------------------
# Recognize the worker CLIs that a command of a thread has started, and that have no pane of their own


def link_nested(
    fleet: Fleet, tree: ProcessTree, owners: dict[str, ThreadOwner]
) -> tuple[dict[ProcessKey, str], dict[str, str]]:
    """Return the thread whose command started each worker CLI that runs no thread of its own and has no pane,
    and the one whose command started the Codex of each thread.

    One that waits for its standard input is among the first wherever it was started, with an empty thread.
    """
    runs: dict[ProcessKey, list[str]] = {}
    for thread, owner in owners.items():
        if owner.key is not None:
            runs.setdefault(owner.key, []).append(thread)
    elsewhere = {each.key for each in fleet.occupants.values() if each.gone_at is None}
    for key in runs:
        elsewhere |= {wrapper.key for wrapper in _wrappers(fleet.processes.get(key), tree)}
    workers: dict[ProcessKey, str] = {}
    threads: dict[str, str] = {}
    for process in fleet.processes.values():
        is_worker = process.agent and not process.zombie and process.key not in elsewhere
        if not (process.key in runs or is_worker) or _ALL_VARIABLES.isdisjoint(process.env or ()):
            continue
        outer = thread_of(process, tree)
        if outer is None or not is_below(process, outer, owners.get(outer), tree):
            continue
        if process.key in runs:
            threads |= dict.fromkeys((each for each in runs[process.key] if each != outer), outer)
        elif outer in fleet.threads and not _is_started_by_another(process, outer, tree):
            workers[process.key] = outer
    for process in fleet.processes.values():
        if process.awaited_input is not None and not process.zombie:
            whole = [process.key, *(wrapper.key for wrapper in _wrappers(process, tree))]
            if all(known.isdisjoint(whole) for known in (elsewhere, runs.keys(), workers.keys())):
                workers[whole[-1]] = ""
    return workers, threads


def _wrappers(process: Process | None, tree: ProcessTree) -> Iterator[Process]:
    """Yield the processes of the same worker CLI above one: Node runs Codex' program."""
    if process is not None:
        yield from takewhile(lambda parent: parent.agent == process.agent, tree.above(process))


def _is_started_by_another(process: Process, thread: str, tree: ProcessTree) -> bool:
    """Return whether the nearest worker CLI above one is of the same command: its wrapper, or another."""
    above = next((each for each in tree.above(process) if each.agent or is_codex(each)), None)
    return above is not None and thread_of(above, tree) == thread
