"""Live processes as commands of Codex threads: which of them are, and what sandbox they show."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from agentdash.facts.events import HostSeen
from agentdash.facts.fleet import UNSET, Sighting, Thread
from agentdash.facts.process import Kernel, Process, ProcessKey
from agentdash.judge.ancestry import Tree, is_daemon, is_multiplexer
from agentdash.judge.printed import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.judge.thread import policy_at, see

_HELPERS = frozenset(("codex-linux-sandbox", "bwrap", "sandbox-exec", "codex-execve-wrapper"))
"""What Codex puts between itself and a command: it carries the command's environment, but not yet its sandbox."""


def thread_of(process: Process) -> str | None:
    """The thread that the process's environment names (0.98+)."""
    return process.env.get("CODEX_THREAD_ID") if process.env else None


def is_helper(process: Process) -> bool:
    """Whether this is Codex's sandbox launcher rather than the command in it."""
    return process.name in _HELPERS or (bool(process.argv) and posixpath.basename(process.argv[0]) in _HELPERS)


def is_command(process: Process, tree: Tree) -> bool:
    """Whether this process is (part of) a command that the thread in its environment ran.

    Agents, sandbox launchers and tmux servers are not, nor is what has merely inherited the variables: panes of a tmux server that a
    command started, and the servers and hooks of a Codex that was itself started by a command.
    """
    if process.agent or is_daemon(process) or is_helper(process) or is_multiplexer(process):
        return False
    for parent in tree.above(process):
        if is_multiplexer(parent):
            return False
        if parent.agent == "codex":
            return thread_of(parent) != thread_of(process)
    return True


def see_commands(threads: dict[str, Thread], tree: Tree, new: Iterable[Process], host: HostSeen | None, at: float) -> frozenset[ProcessKey]:
    """Adds what `new` processes have to the sightings of their threads (in `threads`, in place); returns those that were added."""
    added = set()
    for process in new:
        thread = threads.get(thread_of(process) or "")
        if thread is not None and is_command(process, tree):
            threads[thread.id] = see(thread, _sighting(thread, process, _yardstick(process, tree, host), at))
            added.add(process.key)
    return frozenset(added)


def _yardstick(process: Process, tree: Tree, host: HostSeen | None) -> int | None:
    """The network namespace a command has unless it was given one of its own: its Codex's, or else agentdash's."""
    codex = next((p.kernel for p in tree.above(process) if p.agent == "codex" and p.kernel and p.kernel.net), None)
    return (codex or (host.kernel if host else None) or Kernel()).net


def _sighting(thread: Thread, process: Process, own: int | None, at: float) -> Sighting:
    env, kernel = process.env or {}, process.kernel
    call = env.get("CODEX_TOOL_CALL_ID")
    known = next((c for c in (*thread.open_calls, *reversed(thread.calls)) if c.id == call), None)
    return Sighting(
        source="environment",
        policy=policy_at(thread, process.key.started),
        network_flag=env.get(NETWORK_FLAG) or UNSET,
        sandbox_flag=env.get(SANDBOX_FLAG) or UNSET,
        escalated=known is not None and known.escalation is not None,
        by_user=known is not None and known.by_user,
        seccomp=kernel.seccomp if kernel else None,
        own_network=None if own is None or kernel is None or kernel.net is None else kernel.net != own,
        first=at,
        last=at,
        calls=(call,) if call else (),
        pids=(process.pid,),
        quote=" ".join(f"{name}={env[name]}" if env.get(name) else f"{name} unset" for name in (NETWORK_FLAG, SANDBOX_FLAG)),
    )
