"""Live processes as commands of Codex threads: which of them are, and what sandbox they show."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentdash.engine.detect.env_output import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.engine.detect.escalation import granted
from agentdash.engine.judge.findings.write_access import MountTables, exposed, unwritable
from agentdash.engine.link.launchers import applied
from agentdash.engine.link.process_tree import Tree, is_codex, is_daemon, is_multiplexer
from agentdash.engine.reduce.thread import policy_at, see
from agentdash.model.events import HostSeen
from agentdash.model.fleet import UNSET, Call, SandboxObservation, Thread
from agentdash.model.policy import Policy
from agentdash.model.process import Kernel, Process, ProcessKey


def thread_of(process: Process) -> str | None:
    """The thread that the process's environment names (0.98+)."""
    return process.env.get("CODEX_THREAD_ID") if process.env else None


def is_command(process: Process, tree: Tree) -> bool:
    """Whether this process is (part of) a command that the thread in its environment ran.

    Agents, sandbox launchers and tmux servers are not, nor is what has merely inherited the variables: panes of a tmux server that a
    command started, and the servers and hooks of a Codex that was itself started by a command.
    """
    if process.agent or is_daemon(process) or process.launcher or is_multiplexer(process):
        return False
    for parent in tree.above(process):
        if is_multiplexer(parent):
            return False
        if parent.agent == "codex":
            return thread_of(parent) != thread_of(process)
    return True


class ProcessContext(msgspec.Struct, frozen=True):
    """What a command is seen against."""

    tree: Tree
    tables: MountTables
    host: HostSeen | None


def observe_commands(
    threads: dict[str, Thread], around: ProcessContext, new: Iterable[Process], at: float
) -> frozenset[ProcessKey]:
    """Adds what `new` processes have to the sightings of their threads (in `threads`, in place); returns those that were added."""
    added = set()
    for process in new:
        thread = threads.get(thread_of(process) or "")
        if thread is not None and is_command(process, around.tree):
            threads[thread.id] = see(thread, _observe(thread, process, around, at))
            added.add(process.key)
    return frozenset(added)


def _baseline(process: Process, tree: Tree, host: HostSeen | None) -> Kernel:
    """What a command has unless something restricts it: what its Codex has, or else agentdash."""
    codex = next((p.kernel for p in tree.above(process) if is_codex(p) and p.kernel), None)
    return codex or (host.kernel if host else None) or Kernel()


def _is_nested(process: Process, tree: Tree) -> bool:
    """Whether a sandbox launcher stands above the Codex that runs this command."""
    above = list(tree.above(process))
    own = next((at for at, parent in enumerate(above) if is_codex(parent)), len(above))
    return any(parent.launcher is not None for parent in above[own:])


def _is_sandboxed(kernel: Kernel | None, own: Kernel) -> bool | None:
    """Whether a process is restricted where its Codex is not. A container around both restricts both, and is no sandbox of Codex."""
    if kernel is None:
        return None
    if kernel.sandboxed is not None:  # macOS answers for itself
        return kernel.sandboxed and not own.sandboxed
    marks = [
        (kernel.seccomp, own.seccomp),
        (kernel.no_new_privs, own.no_new_privs),
        (kernel.user, own.user),
        (kernel.mnt, own.mnt),
        (kernel.pid, own.pid),
    ]
    known = [ours != theirs for ours, theirs in marks if ours is not None and theirs is not None]
    return any(known) if known else None


def _call(thread: Thread, call: str | None) -> Call | None:
    """The call that a command belongs to: the one with its id (0.163+), else the only one that is open.

    Commands of a code-mode script have ids of their own, which the file tells when they end: until then they are the script's.
    """
    if hit := next((c for c in (*thread.open_calls, *reversed(thread.calls)) if c.id == call), None):
        return hit
    running = [c for c in thread.open_calls if c.kind == "command" and (call is None or c.tool == "exec")]
    return running[0] if len(running) == 1 else None


def _observe(thread: Thread, process: Process, around: ProcessContext, at: float) -> SandboxObservation:
    env, kernel, own = process.env or {}, process.kernel, _baseline(process, around.tree, around.host)
    call, known = env.get("CODEX_TOOL_CALL_ID"), _call(thread, env.get("CODEX_TOOL_CALL_ID"))
    in_force = policy_at(thread, process.key.started)
    policy = thread.policies[in_force].policy if in_force >= 0 else Policy()
    mounts = (
        kernel.mnt if kernel and kernel.mnt != own.mnt else None
    )  # those that its Codex has too are no sandbox of its making
    return SandboxObservation(
        source="environment",
        policy=in_force,
        network_flag=env.get(NETWORK_FLAG) or UNSET,
        sandbox_flag=env.get(SANDBOX_FLAG) or UNSET,
        granted=granted(thread, known) if known else None,
        by_user=known is not None and known.by_user,
        called=known is not None,
        seccomp=kernel.seccomp if kernel else None,
        no_new_privs=kernel.no_new_privs if kernel else None,
        own_network=None
        if own.net is None or kernel is None or kernel.net is None
        else kernel.net != own.net,
        mediated=env.get("CODEX_NETWORK_PROXY_ACTIVE") == "1",
        sandboxed=_is_sandboxed(kernel, own),
        nested=_is_nested(process, around.tree),
        applied=applied(process, around.tree),
        unwritable=unwritable(policy, around.tables, mounts),
        exposed=exposed(policy, around.tables, mounts, env.get("HOME"), thread.cwd),
        first=at,
        last=at,
        calls=(call,) if call else (),
        pids=(process.pid,),
        quote=" ".join(
            f"{name}={env[name]}" if env.get(name) else f"{name} unset"
            for name in (NETWORK_FLAG, SANDBOX_FLAG)
        ),
    )
