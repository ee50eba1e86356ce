"""Observe the sandbox that live commands of Codex threads have."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import dropwhile, takewhile
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.engine.detect import allowances
from agentdash.engine.judge.findings.tmux_boundary import detect_escapes
from agentdash.engine.link.process_tree import (
    ProcessTree,
    find_launcher,
    is_below,
    is_codex,
    is_command,
    runners,
    thread_of,
    with_tmpdir,
)
from agentdash.engine.reduce.calls import add_observation
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import Fleet
from agentdash.model.observation import (
    NETWORK_FLAG,
    SANDBOX_FLAG,
    UNSET,
    ProvisionalObservation,
    SandboxObservation,
)
from agentdash.model.policy import Filesystem, Policy
from agentdash.model.process import THREAD_VARIABLES, Kernel, Process
from agentdash.model.state_paths import MountTable
from agentdash.model.thread import Call, Thread

_PROXY_FLAG: Final = "CODEX_NETWORK_PROXY_ACTIVE"
"""`1` in the environment of commands whose network goes through Codex's own proxy."""
_PROXY_PORT: Final = "CLAUDE_CODE_HOST_HTTP_PROXY_PORT"
"""In the environment of commands whose network goes through the proxy of Anthropic's sandbox runtime."""
_RESTRAINTS: Final = ("seccomp", "no_new_privs", "user", "mnt", "pid")
"""Facts of the kernel by which a sandbox differs from what is around it."""
_FLAGS: Final = (NETWORK_FLAG, SANDBOX_FLAG)
_CALL_VARIABLE: Final = "CODEX_TOOL_CALL_ID"
"""In the environment of commands (0.163+): the id of their call in the rollout."""
_LOG_DELAY_S: Final = 10.0
"""How long a log may be behind the processes of its calls."""
_SHELL_WORDS: Final = str.maketrans("", "", "'\"\\ \t\n")
"""Removes quotes and blanks: a script is quoted once per shell that it passes."""
_SCRIPT_CHARS: Final = 200
"""Characters of the start of a script by which a process is recognized as its shell."""


class ProcessContext(msgspec.Struct, frozen=True):
    """What the facts of a command's process are compared with."""

    tree: ProcessTree
    tables: Callable[[int | None], MountTable | None]
    """The mounts of a namespace, by its inode; None: they are agentdash's own, or have not been read."""
    host: Kernel | None
    """agentdash's own kernel facts."""


def observe_processes(draft: Fleet, tree: ProcessTree, at: float) -> None:
    """Add what processes show of the sandboxes of their threads: escapes through tmux, and the new commands'
    own."""
    for thread in [thread for thread in draft.threads.values() if thread.tmux]:
        detected = detect_escapes(thread, tree, draft.panes.values(), draft.kernel)
        if detected is not thread:
            draft.threads[thread.id] = detected
    _settle_ended(draft, at)
    mounts = draft.mounts
    tables = cache(lambda namespace: MountTable(mounts[namespace]) if namespace in mounts else None)
    context = ProcessContext(tree=tree, tables=tables, host=draft.kernel)
    proven = {process.key for commands in draft.links.commands.values() for process in commands}
    for process in draft.processes.values():
        if process.key in draft.observed and process.key not in draft.provisional:
            continue
        owner = _owner_of(draft, process, tree)
        if owner is None or not is_command(process, tree):
            continue
        runs = draft.links.owners.get(owner.id)
        is_proven = process.key in proven or is_below(process, owner.id, runs, tree)
        if owner.agent == "codex":
            _observe_command_of_codex(draft, owner, process, context, at, is_proven=is_proven)
        elif is_proven and (found := _call_by_script(draft, owner, process, tree)) is not None:
            thread, call = found
            observed = _observe(thread, process, call, context, at)
            # this CLI sets no flags of Codex: those that are there are inherited
            observed = replace(observed, network_flag=None, sandbox_flag=None, quote="")
            draft.threads[thread.id] = add_observation(thread, observed)
            draft.observed[process.key] = at
        # else the log is behind; its call may be known in the next pass


def _owner_of(draft: Fleet, process: Process, tree: ProcessTree) -> Thread | None:
    """Return the thread of a process. A Codex thread may not have been read yet."""
    thread = thread_of(process, tree)
    if thread is None or thread in draft.threads:
        return draft.threads.get(thread or "")
    is_codex_thread = thread == (process.env or {}).get(THREAD_VARIABLES["codex"])
    return Thread(thread) if is_codex_thread else None


def _observe_command_of_codex(
    draft: Fleet, thread: Thread, process: Process, context: ProcessContext, at: float, *, is_proven: bool
) -> None:
    """Add what a process shows to its thread, or keep it until the log and its owner are known.

    A session that has just been found, or is large, is read while its processes already run: the call or the
    policy of a command may come with its next lines. So may the proof that the Codex above it runs the thread
    that it names. Until then it is observed again whenever more of the log has been read.
    """
    before = draft.provisional.get(process.key)
    codex = next((each for each in runners(process, thread.id, context.tree) if is_codex(each)), None)
    if not is_proven and codex is None:
        return  # a claim that nothing can prove any more
    below = codex.key if codex and not is_proven else None
    if before is not None and (before.lines, before.below) == (thread.lines, below):
        return
    first = before.observation.first if before else at
    call_id = (process.env or {}).get(_CALL_VARIABLE)
    call = _call_of(thread, call_id, first)
    observed = _observe(thread, process, call, context, first)
    is_guess = call_id is not None and (call is None or call.id != call_id)
    if is_guess or observed.policy < 0 or not is_proven:
        observed = replace(observed, provisional=True)
        draft.provisional[process.key] = ProvisionalObservation(thread.id, observed, thread.lines, below)
    else:
        draft.provisional.pop(process.key, None)
        draft.threads[thread.id] = add_observation(thread, observed)
    draft.observed[process.key] = at


def with_provisional(fleet: Fleet) -> Mapping[str, Thread]:
    """Return the threads with what live commands show whose call or policy is still to be read."""
    threads = dict(fleet.threads)
    for known in fleet.provisional.values():
        if known.below is None and (thread := threads.get(known.thread)) is not None:
            threads[thread.id] = add_observation(thread, known.observation)
    return threads


def _settle_ended(draft: Fleet, at: float) -> None:
    """Settle what processes showed that have ended: under the call that the log has stated since, or as it
    is; and only if the Codex above them has turned out to run the thread that they named."""
    ended = [(key, known) for key, known in draft.provisional.items() if key not in draft.processes]
    for key, known in ended:
        thread, observed = draft.threads.get(known.thread), known.observation
        call = thread.find_call(next(iter(observed.calls), None)) if thread else None
        owner = draft.links.owners.get(known.thread)
        is_proven = known.below is None or (owner is not None and owner.key == known.below)
        if (call is None or not is_proven) and at - observed.first < _LOG_DELAY_S:
            continue
        draft.provisional.pop(key, None)
        if thread is not None and is_proven:
            settled = replace(_attribute(observed, thread, call) if call else observed, provisional=False)
            draft.threads[thread.id] = add_observation(thread, settled)


def _attribute(observed: SandboxObservation, thread: Thread, call: Call) -> SandboxObservation:
    """Return an observation under the call that it belongs to; what was compared with another policy is left
    out."""
    policy = thread.policy_index_of(call)
    compared = {} if policy == observed.policy else {"unwritable": (), "exposed": (), "lost": ()}
    return replace(observed, policy=policy, called=True, **allowances(thread, call), **compared)


def _call_by_script(
    draft: Fleet, session: Thread, process: Process, tree: ProcessTree
) -> tuple[Thread, Call] | None:
    """Return the call that a process of a session belongs to, and its thread: the session, or a sub-agent.

    Their commands have the same variables; but Claude Code runs `bash -c "... eval SCRIPT ..."`, and a shell
    above a process shows the script. None if that fits no call, or several.
    """
    shells = [process, *takewhile(lambda parent: not parent.agent, tree.above(process))]
    text = "\n".join(" ".join(shell.argv) for shell in shells).translate(_SHELL_WORDS)
    members = [session, *(t for t in draft.threads.values() if t.parent == session.id)]
    found = [
        (thread, call)
        for thread in members
        for call in (*thread.open_calls, *(c for c in thread.calls if c.outcome == "running"))
        if call.kind == "command"
        and call.script.strip()
        and f"eval{call.script.translate(_SHELL_WORDS)[:_SCRIPT_CHARS]}" in text
    ]
    return found[0] if len(found) == 1 else None


def _observe(
    thread: Thread, process: Process, call: Call | None, context: ProcessContext, at: float
) -> SandboxObservation:
    env, kernel = process.env or {}, process.kernel or Kernel()
    # what it has unless something restricts it: the facts of its Codex, or else of agentdash
    above = list(context.tree.above(process))
    codex = next((p.kernel for p in above if is_codex(p) and p.kernel), None)
    baseline = codex or context.host or Kernel()
    in_force = thread.policy_index_of(call) if call else thread.policy_index_at(process.key.started)
    period = thread.policies[in_force] if in_force >= 0 else None
    policy = period.policy if period else Policy()
    # what `$TMPDIR` in a policy stands for: a CLI fills in its own
    cli = next((p for p in above if p.agent or is_codex(p)), None)
    tmpdir = ((cli.env if cli else None) or env).get("TMPDIR", "")
    temporary = posixpath.normpath(tmpdir) if tmpdir.startswith("/") else None
    # mounts that its Codex has, too, were not made for this command
    mounts = kernel.mnt if kernel.mnt != baseline.mnt else None
    probes = ("/", env.get("HOME"), posixpath.dirname(thread.cwd) if thread.cwd else None)
    # the id of its call: Codex states it in the environment
    call_id = env.get(_CALL_VARIABLE) if thread.agent == "codex" else call.id if call else None
    table, codexs = context.tables(mounts), context.tables(baseline.mnt)
    exposed, lost = _exposed_paths(policy, table, codexs, probes)
    return SandboxObservation(
        source=EvidenceSource.ENVIRONMENT,
        policy=in_force,
        network_flag=env.get(NETWORK_FLAG) or UNSET,
        sandbox_flag=env.get(SANDBOX_FLAG) or UNSET,
        **allowances(thread, call),
        called=call is not None,
        seccomp=kernel.seccomp,
        no_new_privs=kernel.no_new_privs,
        own_network=None if None in (kernel.net, baseline.net) else kernel.net != baseline.net,
        mediated=env.get(_PROXY_FLAG) == "1" or _PROXY_PORT in env,
        sandboxed=_is_sandboxed(kernel, baseline),
        # a launcher stands above the Codex that runs this command
        nested=any(p.launcher is not None for p in dropwhile(lambda p: not is_codex(p), above)),
        applied=with_tmpdir(find_launcher(process, context.tree), policy, temporary),
        unwritable=_unwritable_roots(period.stated if period else policy, table),
        exposed=exposed,
        lost=lost,
        first=at,
        last=at,
        calls=(call_id,) if call_id else (),
        pids=(process.pid,),
        quote=" ".join(f"{name}={env[name]}" if env.get(name) else f"{name} unset" for name in _FLAGS),
    )


def _unwritable_roots(policy: Policy, table: MountTable | None) -> tuple[str, ...]:
    """Return roots that are writable under the policy, and not by the mounts of a command.

    A root may be a symlink, which a mount table does not show: a root is left out if a writable mount has the
    same last name.
    """
    if table is None:
        return ()
    possible_targets = {posixpath.basename(mount.point) for mount in table.mounts if not mount.read_only}
    roots = [root for root in policy.writable_roots if table.may_write(root) is False]
    return tuple(root for root in roots if root == "/" or posixpath.basename(root) not in possible_targets)


def _exposed_paths(
    policy: Policy, table: MountTable | None, host: MountTable | None, probes: Iterable[str | None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which paths only the mounts of a command make writable: those of the user, and those in a
    filesystem that the sandbox has for itself, where what is written is lost with it.

    Args:
        host: the mounts of its CLI.
        probes: absolute paths; None in the place of an unknown one.
    """
    if table is None or policy.filesystem is Filesystem.UNKNOWN:
        return (), ()
    open_paths = dict.fromkeys(p for p in probes if p and policy.may_write(p) is False and table.may_write(p))
    lost = tuple(path for path in open_paths if table.is_lost(path, host))
    return tuple(path for path in open_paths if path not in lost), lost


def _call_of(thread: Thread, call_id: str | None, at: float) -> Call | None:
    """Return the call that a command belongs to: the one with its id (0.163+), else the only one that was
    open when it was seen first.

    Commands of a code-mode script have ids of their own, which the rollout has only once they end: until then
    they belong to the script's call.
    """
    if (call := thread.find_call(call_id)) is not None:
        return call
    running = [
        call
        for call in (*thread.open_calls, *thread.calls)
        if call.kind == "command"
        and (call_id is None or call.tool == "exec")
        and call.at <= at <= (at if call.ended_at is None else call.ended_at)
    ]
    return running[0] if len(running) == 1 else None


def _is_sandboxed(kernel: Kernel, baseline: Kernel) -> bool | None:
    """Return whether a process is restricted where its Codex is not; None: not known.

    A container around both restricts both, and is not Codex's sandbox.
    """
    if kernel.sandboxed is not None:  # macOS has this fact, and no others
        return kernel.sandboxed and not baseline.sandboxed
    pairs = [(getattr(kernel, name), getattr(baseline, name)) for name in _RESTRAINTS]
    differing = [own != other for own, other in pairs if own is not None and other is not None]
    return any(differing) if differing else None
