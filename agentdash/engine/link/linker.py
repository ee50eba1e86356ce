"""What belongs together: threads, the processes that run them, their commands, panes. Each tie says on what it rests.

- thread and owner: the flock on its writer lock (0.148+), or the rollout that a Codex process holds open (every version);
- thread and command: `CODEX_THREAD_ID` (0.98+) in the environment of a process; `CODEX_TOOL_CALL_ID` (0.163+) names the call;
- thread and pane: its owner runs below the pane, or the pane's Codex names it in its arguments, or shows its prompt, or is the only one;
- pane and process: descent from the pane's first process;
- thread and parent: the child's rollout, or the parent's spawn call.

Since 0.169 a shared daemon runs the turns of all TUIs of a home: owner and commands are then *not* below the pane, hence the other ways.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from msgspec.structs import replace

from agentdash.engine.link.process_tree import Tree, is_daemon
from agentdash.engine.reduce.observations import is_command, thread_of
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.links import FleetLinks, ThreadOwner, ThreadPane
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey

_TUI_ORIGINATORS = ("codex-tui", "codex_cli_rs")
_LEFT = "its Codex ran in the pane, and has left it"
_EARLY = 5.0
"""Seconds by which a thread's stated time may precede its TUI's start: clocks and rounding."""
_PROMPT = 24
"""Characters of a prompt that must stand on a screen to count as seen there."""
_SHORTEST = 6
"""Shorter prompts (`go`) could stand on any screen."""


def link_fleet(fleet: Fleet, tree: Tree | None = None) -> FleetLinks:
    """The ties of a fleet.

    Args:
        tree: its processes and panes, where somebody has put them together already.
    """
    tree = tree or Tree(fleet.processes.values(), fleet.panes)
    below: dict[PaneKey, list[Process]] = {}
    for process in sorted(fleet.processes.values(), key=lambda p: p.key):
        if (key := tree.pane(process)) is not None:
            below.setdefault(key, []).append(process)
    owners = _owners(fleet, tree)
    return FleetLinks(
        owners,
        _orphans(fleet, owners),
        _commands(fleet, tree),
        _panes(fleet, owners, tree),
        {key: tuple(found) for key, found in below.items()},
        parents_of(fleet.threads.values()),
        {key: server for key in fleet.panes if (server := tree.server(key)) is not None},
    )


def _owners(fleet: Fleet, tree: Tree) -> dict[str, ThreadOwner]:
    owners: dict[str, ThreadOwner] = {}
    paths = {t.file.path: t.id for t in fleet.threads.values() if t.file}
    for process in fleet.processes.values():
        for path in process.rollouts:
            if (thread := paths.get(path)) and not process.zombie:
                owners[thread] = ThreadOwner(
                    process.pid, f"pid {process.pid} holds its rollout open", process.key
                )
    if fleet.locks:
        for thread, pid in fleet.locks.holders.items():
            owner = tree.get(pid)
            owners[thread] = ThreadOwner(
                pid, f"pid {pid} holds its writer lock", owner.key if owner else None
            )
    return owners


def _orphans(fleet: Fleet, owners: dict[str, ThreadOwner]) -> dict[str, float]:
    """That an owner has ended is known at once; that there is none takes several looks, for open files are not looked at every time."""
    at = fleet.processes_at or 0.0
    lost = {
        thread: at
        for thread, owner in fleet.links.owners.items()
        if owner.key is not None and _has_ended(fleet, owner.key)
    }
    return {thread: since for thread, since in (lost | fleet.links.orphans).items() if thread not in owners}


def _has_ended(fleet: Fleet, key: ProcessKey) -> bool:
    process = fleet.processes.get(key)
    return process is None or process.zombie


def _commands(fleet: Fleet, tree: Tree) -> dict[str, tuple[Process, ...]]:
    found: dict[str, list[Process]] = {}
    for process in fleet.processes.values():
        thread = thread_of(process)
        if thread in fleet.threads and not process.zombie and is_command(process, tree):
            found.setdefault(thread, []).append(process)
    return {thread: tuple(sorted(some, key=lambda p: p.key)) for thread, some in found.items()}


def parents_of(threads: Iterable[Thread]) -> dict[str, str]:
    """The parent of each thread that has one."""
    parents = {child: thread.id for thread in threads for child in thread.children}
    return parents | {t.id: t.parent for t in threads if t.parent}


# ---------------------------------------------------------------- thread and pane


def _panes(fleet: Fleet, owners: dict[str, ThreadOwner], tree: Tree) -> dict[str, ThreadPane]:
    placed: dict[str, ThreadPane] = {}
    roots = [t for t in fleet.threads.values() if not t.parent and not t.helper]
    for thread in roots:
        owner = tree.get(owners[thread.id].pid) if thread.id in owners else None
        # a daemon started by a TUI is below that TUI's pane, and serves others as well: its place says nothing
        if owner and not is_daemon(owner) and (key := tree.pane(owner)):
            placed[thread.id] = ThreadPane(key, f"its Codex (pid {owner.pid}) runs in the pane", own=True)
    taken = {p.key for p in placed.values()}
    placed |= {
        t.id: left
        for t in roots
        if t.id not in placed and (left := _left(fleet, t)) is not None and left.key not in taken
    }
    taken |= {p.key for p in placed.values()}
    tuis = [
        (fleet.panes[key], process)
        for key, occupant in fleet.occupants.items()
        if occupant.agent == "codex" and occupant.gone_at is None and key not in taken and key in fleet.panes
        if (process := fleet.processes.get(occupant.key))
    ]
    free = [t for t in roots if t.id not in placed]
    for find in (_named, _shown, _only):
        for pane, process in list(tuis):
            if hit := find(pane, process, free, tuis):
                placed[hit[0].id] = ThreadPane(pane.key, hit[1])
                free.remove(hit[0])
                tuis.remove((pane, process))
    return placed


def _left(fleet: Fleet, thread: Thread) -> ThreadPane | None:
    """The pane that its own Codex ran in and has left: what it leaves there is not another worker."""
    before = fleet.links.panes.get(thread.id)
    if before is None or not before.own or before.key not in fleet.panes:
        return None
    occupant = fleet.occupants.get(before.key)
    ending = occupant is not None and (
        occupant.gone_at is not None or (occupant.process is not None and occupant.process.once)
    )
    return replace(before, by=_LEFT) if ending else None


def _named(
    pane: Pane, process: Process, free: list[Thread], tuis: list[tuple[Pane, Process]]
) -> tuple[Thread, str] | None:
    del pane, tuis
    thread = next((t for t in free if t.id in process.argv), None)
    return (thread, f"the pane's Codex (pid {process.pid}) was started with its id") if thread else None


def _shown(
    pane: Pane, process: Process, free: list[Thread], tuis: list[tuple[Pane, Process]]
) -> tuple[Thread, str] | None:
    del tuis
    screen = " ".join(" ".join(pane.screen).split())
    hits = [
        t
        for t in _candidates(process, free)
        if t.last_prompt and len(start := _start(t.last_prompt)) >= _SHORTEST and start in screen
    ]
    return (hits[0], "the pane shows its prompt") if len(hits) == 1 else None


def _only(
    pane: Pane, process: Process, free: list[Thread], tuis: list[tuple[Pane, Process]]
) -> tuple[Thread, str] | None:
    del pane
    rivals = [p for _, p in tuis if p.cwd == process.cwd]
    candidates = _candidates(process, free)
    if len(rivals) != 1 or not candidates:
        return None
    newest = max(candidates, key=lambda t: t.last_at or 0.0)
    return (
        newest,
        f"the only Codex in {posixpath.basename(process.cwd or '?')} (pid {process.pid}), and the thread began after it",
    )


def _candidates(process: Process, free: list[Thread]) -> list[Thread]:
    """Threads that this TUI may have begun: of its directory, and not older than it."""
    return [
        t
        for t in free
        if t.cwd == process.cwd
        and (t.originator or "").startswith(_TUI_ORIGINATORS)
        and t.created_at is not None
        and t.created_at >= process.key.started - _EARLY
    ]


def _start(prompt: str) -> str:
    return " ".join(prompt.split())[:_PROMPT]
