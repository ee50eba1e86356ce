"""Link threads, the processes that run them, their commands, and panes. Each link names its evidence.

- thread and owner: the flock on its writer lock (0.148+), or the rollout that a Codex process holds open (all
  versions);
- thread and owner, of Claude Code: the session file of the process; a sub-agent's owner is its session's;
- thread and command: `CODEX_THREAD_ID` (0.98+) or `CLAUDE_CODE_SESSION_ID` in the environment of a process
  that descends from the thread's owner, or was seen to; `CODEX_TOOL_CALL_ID` (0.163+) is the call. Without
  the descent it is a claim, which any process can make;
- thread and pane: its owner runs below the pane; or, where a daemon runs it, the pane's Codex shows its
  prompt, has its id in the arguments, or is the only candidate; a pane that merely prints its id claims it;
- pane and process: descent from the pane's first process;
- thread and parent: the child's rollout, or the parent's spawn call;
- thread and nested worker: `CODEX_THREAD_ID` of a worker CLI that descends from the thread's Codex.

Since 0.169 a shared daemon runs the turns of all TUIs of a home: owner and commands are then *not* below the
pane.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from agentdash.engine.link.candidates import Loaded, Tui, link_by_candidates, printed_id
from agentdash.engine.link.process_tree import (
    ProcessTree,
    is_below,
    is_command,
    is_daemon,
    is_multiplexer,
    link_nested,
    thread_of,
)
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import Fleet, FleetLinks, ThreadOwner, ThreadPane
from agentdash.model.pane import PaneKey
from agentdash.model.process import AGENT_NAMES, Process
from agentdash.model.thread import Thread

_TUI_ORIGINATORS: Final = ("codex-tui", "codex_cli_rs")
"""`originator` of threads that a TUI started, before and since 0.98."""
_START_TOLERANCE_S: Final = 5.0
"""Time by which the stated start of a thread may precede that of its TUI: clocks and rounding."""
SESSION_LINE: Final = "session id: "
"""`codex exec` prints it with its thread's id before its first turn (seen in 0.98 to 0.169)."""
SESSION_LINE_RULE: Final = "session-line"
"""The rule by which a past worker is known that this line shows."""


def link_fleet(fleet: Fleet, tree: ProcessTree | None = None) -> FleetLinks:
    """Return the links of a fleet.

    Args:
        fleet: with its links before, from which follows what has ended since.
        tree: its processes and panes, where these have been put together already.
    """
    tree = tree or ProcessTree(fleet.processes.values(), fleet.panes)
    owners = _link_owners(fleet, tree)
    commands, claims = _link_commands(fleet, tree, owners)
    nested, outer = link_nested(fleet, tree, owners)
    below: dict[PaneKey, list[Process]] = {}
    for process in fleet.processes.values():
        if (key := tree.pane(process)) is not None:
            below.setdefault(key, []).append(process)
    return FleetLinks(
        owners=owners,
        orphans=_find_orphans(fleet, owners),
        commands=commands,
        claims=claims,
        panes=_link_panes(fleet, owners, tree),
        below={key: _sorted(processes) for key, processes in below.items()},
        nested=nested,
        outer=outer,
        servers={
            key: server
            for key, process in fleet.processes.items()
            if process.agent and (server := next(filter(is_multiplexer, tree.above(process)), None))
        },
    )


def parents_of(threads: Iterable[Thread]) -> dict[str, str]:
    """Return the parent of each thread that has one; the child's own statement outranks the parent's."""
    stated: dict[str, str] = {}
    spawned: dict[str, str] = {}
    for thread in threads:
        spawned |= dict.fromkeys(thread.children, thread.id)
        if thread.parent:
            stated[thread.id] = thread.parent
    return spawned | stated


# ---------------------------------------------------------------- owners and commands


def _link_owners(fleet: Fleet, tree: ProcessTree) -> dict[str, ThreadOwner]:
    owners: dict[str, ThreadOwner] = {}
    threads_by_path = {thread.file.path: thread.id for thread in fleet.threads.values() if thread.file}
    for process in fleet.processes.values():
        for path in process.rollouts:
            thread = threads_by_path.get(path)
            if thread and not process.zombie:
                by = f"pid {process.pid} holds its rollout open"
                owners[thread] = ThreadOwner(
                    pid=process.pid, by=by, source=EvidenceSource.PROCESS, key=process.key
                )
    holders = fleet.locks.holders if fleet.locks else {}
    for thread, pid in holders.items():
        owner = tree.get(pid)
        owners[thread] = ThreadOwner(
            pid=pid,
            by=f"pid {pid} holds its writer lock",
            source=EvidenceSource.LOCK,
            key=owner.key if owner else None,
        )
    return owners | _owners_by_session_file(fleet, tree)


def _owners_by_session_file(fleet: Fleet, tree: ProcessTree) -> dict[str, ThreadOwner]:
    """Return the processes whose session files name a thread, also as the owners of its sub-agents."""
    found: dict[str, ThreadOwner] = {}
    for key, seen in fleet.sessions.items():
        process, thread = tree.get(key.pid), fleet.threads.get(seen.session or "")
        if thread is not None and process is not None and not process.zombie and _may_keep(process, thread):
            found[seen.session or ""] = ThreadOwner(
                pid=key.pid,
                by=f"the session file of pid {key.pid} names it",
                source=EvidenceSource.SESSION_FILE,
                key=key,
            )
    if not found:
        return found
    children = {
        thread.id: replace(owner, by=f"its session runs in pid {owner.pid}")
        for thread in fleet.threads.values()
        if (owner := found.get(thread.parent or "")) is not None
    }
    return children | found


def _may_keep(process: Process, thread: Thread) -> bool:
    """Return whether a thread's log lies in the directory of a Claude Code: one that was given a directory of
    its own may have any session file there."""
    env = process.env
    if env is None or thread.file is None:
        return True
    home = env.get("CLAUDE_CONFIG_DIR") or posixpath.join(env.get("HOME", ""), ".claude")
    return thread.file.path.startswith(posixpath.normpath(home) + "/")


def _find_orphans(fleet: Fleet, owners: dict[str, ThreadOwner]) -> dict[str, float]:
    """Return the threads whose owner has ended, and since when.

    The end of an owner is known at once. The absence of one takes several passes, since open files are not
    read in each.
    """
    at = fleet.processes_at or 0.0
    ended = {
        thread: at
        for thread, owner in fleet.links.owners.items()
        if owner.key is not None and ((process := fleet.processes.get(owner.key)) is None or process.zombie)
    }
    orphans = ended | fleet.links.orphans
    return {thread: since for thread, since in orphans.items() if thread not in owners}


def _link_commands(
    fleet: Fleet, tree: ProcessTree, owners: dict[str, ThreadOwner]
) -> tuple[dict[str, tuple[Process, ...]], dict[str, tuple[Process, ...]]]:
    """Return the commands of threads, and the processes that merely name one."""
    commands: dict[str, list[Process]] = {}
    claims: dict[str, list[Process]] = {}
    known = {(thread, p.key) for thread, found in fleet.links.commands.items() for p in found}
    for process in fleet.processes.values():
        thread = thread_of(process, tree)
        if thread is None or thread not in fleet.threads or process.zombie or not is_command(process, tree):
            continue
        is_proven = (thread, process.key) in known or is_below(process, thread, owners.get(thread), tree)
        found = commands if is_proven else claims
        found.setdefault(thread, []).append(process)
    return (
        {thread: _sorted(processes) for thread, processes in commands.items()},
        {thread: _sorted(processes) for thread, processes in claims.items()},
    )


def _sorted(processes: Iterable[Process]) -> tuple[Process, ...]:
    return tuple(sorted(processes, key=lambda process: process.key))


# ---------------------------------------------------------------- thread and pane


def _link_panes(fleet: Fleet, owners: dict[str, ThreadOwner], tree: ProcessTree) -> dict[str, ThreadPane]:
    """Link root threads to panes, by the strongest evidence first: each to one, and side chats to that of the
    thread which they were opened from."""
    roots = [thread for thread in fleet.threads.values() if not thread.parent and not thread.helper]
    tuis = _living_tuis(fleet)
    resumed = {arg for tui in tuis for arg in tui.process.argv}
    side_chats = {each.id: each for each in roots if each.side_chat and each.id not in resumed}
    linked = _link_by_owner(roots, owners, tree)
    loaded = _loaded_by_daemon(fleet, tree)
    left = roots if loaded is None else [thread for thread in roots if thread.id not in loaded.threads]
    earlier = _earlier_panes(fleet)
    linked |= _link_by_history(fleet, left, linked, earlier)
    taken = {link.key for link in linked.values()}
    waiting = [thread for thread in roots if thread.id not in linked and thread.id not in side_chats]
    free = [tui for tui in tuis if tui.pane.key not in taken]
    if loaded is None:
        linked |= _link_just_started(waiting, free)
    else:
        linked |= link_by_candidates(waiting, free, loaded, side_chats.values())
    linked |= _link_side_chats(side_chats.values(), owners, linked)
    unowned = [thread for thread in left if _may_run_out_of_sight(fleet, owners.get(thread.id))]
    unplaced = [thread for thread in unowned if thread.id not in linked]
    return linked | _link_by_claim(fleet, unplaced, linked, earlier)


def _loaded_by_daemon(fleet: Fleet, tree: ProcessTree) -> Loaded | None:
    """Return what Codex's daemon has loaded, or None."""
    holders = fleet.locks.holders if fleet.locks else {}
    loaded = [id_ for id_, pid in holders.items() if (owner := tree.get(pid)) and is_daemon(owner)]
    if not loaded:
        return None
    new = (fleet.pushed.get(each) for each in loaded if each not in fleet.threads)
    return Loaded(frozenset(loaded), tuple(pushed.cwd if pushed else None for pushed in new))


def _link_by_owner(
    threads: Iterable[Thread], owners: dict[str, ThreadOwner], tree: ProcessTree
) -> dict[str, ThreadPane]:
    linked: dict[str, ThreadPane] = {}
    for thread in threads:
        owner = tree.get(owners[thread.id].pid) if thread.id in owners else None
        # a daemon is below the pane of the TUI that started it, and serves others as well: its pane is no
        # evidence
        if owner and not is_daemon(owner) and (key := tree.pane(owner)):
            name = AGENT_NAMES.get(thread.agent, thread.agent)
            linked[thread.id] = ThreadPane(key, f"its {name} (pid {owner.pid}) runs in the pane", own=True)
    return linked


def _link_just_started(threads: list[Thread], tuis: list[Tui]) -> dict[str, ThreadPane]:
    """Link the newest thread of a directory to the only Codex there, which it began after: its lock and its
    open files are read a moment later."""
    numbers = Counter(tui.cwd for tui in tuis)
    only = {tui.cwd: tui for tui in tuis if numbers[tui.cwd] == 1}
    own: dict[str | None, list[Thread]] = {}
    for thread in threads:
        tui = only.get(thread.cwd)
        if (
            tui is not None
            and (thread.created_at or 0.0) >= tui.process.key.started - _START_TOLERANCE_S
            and (thread.originator or "").startswith(_TUI_ORIGINATORS)
        ):
            own.setdefault(thread.cwd, []).append(thread)
    linked: dict[str, ThreadPane] = {}
    for cwd, found in own.items():
        newest = max(found, key=lambda thread: thread.last_at or 0.0)
        by = f"the only Codex there (pid {only[cwd].process.pid}), and the thread began after it"
        linked[newest.id] = ThreadPane(only[cwd].pane.key, by)
    return linked


def _link_side_chats(
    side_chats: Iterable[Thread], owners: dict[str, ThreadOwner], linked: dict[str, ThreadPane]
) -> dict[str, ThreadPane]:
    """Link side chats that are loaded to the panes of the threads which they were opened from."""
    found: dict[str, ThreadPane] = {}
    for chat in sorted(side_chats, key=lambda each: each.created_at or 0.0):
        origin = chat.forked_from or ""
        link = linked.get(origin) or found.get(origin)
        if link is not None and chat.id in owners and chat.id not in linked:
            found[chat.id] = ThreadPane(link.key, f"it is a side chat of {origin}, which the pane shows")
    return found


def _link_by_history(
    fleet: Fleet, threads: Iterable[Thread], linked: dict[str, ThreadPane], earlier: dict[str, ThreadPane]
) -> dict[str, ThreadPane]:
    """Keep the panes that threads' own Codex processes ran in and have left: the rest there is no other
    worker."""
    taken = {link.key for link in linked.values()}
    kept: dict[str, ThreadPane] = {}
    for thread in threads:
        before = earlier.get(thread.id)
        if thread.id in linked or before is None or not before.own:
            continue
        if before.key in fleet.panes and before.key not in taken and _is_leaving(fleet, before.key, thread):
            agent = AGENT_NAMES.get(thread.agent, thread.agent)
            kept[thread.id] = replace(before, by=f"its {agent} ran in the pane, and has left it")
    return kept


def _is_leaving(fleet: Fleet, key: PaneKey, thread: Thread) -> bool:
    """Return whether a thread's Codex in a pane has ended, or ends with its one task (`codex exec`)."""
    occupant = fleet.occupants.get(key)
    if occupant is None:
        return True
    if occupant.key.started > (thread.last_at or 0.0):
        return False  # it is the next worker
    has_ended = occupant.gone_at is not None or fleet.panes[key].dead
    return has_ended or occupant.process.once


def _earlier_panes(fleet: Fleet) -> dict[str, ThreadPane]:
    """Return the panes of threads at the last look, or at that of an earlier agentdash if they live on: it
    saw a process of theirs, or else a claim."""
    found: dict[str, ThreadPane] = {}
    for past in fleet.past_workers.values():
        pane = fleet.panes.get(past.pane)
        is_same_pane = pane is not None and pane.server_pid == past.server_pid
        if past.own and is_same_pane and _is_left(fleet, past.pane):
            is_claim, is_scrolled = past.pid is None, past.rule == SESSION_LINE_RULE
            by = _claim("its scrollback shows" if is_scrolled else "the pane showed", past.worker)
            found[past.worker] = ThreadPane(past.pane, by, own=not is_claim, claimed=is_claim)
    return found | fleet.links.panes


def _may_run_out_of_sight(fleet: Fleet, owner: ThreadOwner | None) -> bool:
    """Return whether a thread may run in a pane that its process is not below: it has none now, or one in a
    container (`podman exec BOX codex exec`)."""
    process = fleet.processes.get(owner.key) if owner is not None and owner.key is not None else None
    if process is None:
        return owner is None
    own, other = fleet.kernel, process.kernel
    return own is not None and other is not None and bool({"pid", "mnt"} & {*other.apart_from(own)})


def _link_by_claim(
    fleet: Fleet, threads: Iterable[Thread], linked: dict[str, ThreadPane], earlier: dict[str, ThreadPane]
) -> dict[str, ThreadPane]:
    """Link threads to the only pane without a worker that shows the line which `codex exec` prints, or has
    shown it and no other since: so one in a container is found, or one that had ended when it was seen."""
    taken = {link.key for link in linked.values()}
    free = [key for key in fleet.panes if key not in taken and _is_left(fleet, key)]
    lines = {
        key: line for key in free if (line := printed_id(fleet.panes[key].screen, SESSION_LINE)) is not None
    }
    shown: dict[str, list[PaneKey]] = {}
    for key, thread in lines.items():
        shown.setdefault(thread, []).append(key)
    found: dict[str, ThreadPane] = {}
    for each in threads:
        before = earlier.get(each.id)
        if keys := shown.get(each.id):
            if len(keys) == 1:
                found[each.id] = ThreadPane(keys[0], _claim("the pane shows", each.id), claimed=True)
        elif before is not None and before.claimed and before.key in free and before.key not in lines:
            found[each.id] = before
    return found


def _claim(how: str, thread: str) -> str:
    return f"claimed, not proven: {how} `{SESSION_LINE}{thread}`, which anything may print"


def _is_left(fleet: Fleet, key: PaneKey) -> bool:
    """Return whether no worker lives in a pane."""
    occupant = fleet.occupants.get(key)
    return occupant is None or occupant.gone_at is not None


def _living_tuis(fleet: Fleet) -> list[Tui]:
    """Return the Codex processes that are the workers of panes."""
    tuis: list[Tui] = []
    for key, occupant in fleet.occupants.items():
        if occupant.agent != "codex" or occupant.gone_at is not None:
            continue
        pane, process = fleet.panes.get(key), fleet.processes.get(occupant.key)
        if pane is not None and process is not None:
            reading = fleet.readings.get(key)
            tuis.append(Tui(pane, process, reading.front if reading is not None else ""))
    return tuis
