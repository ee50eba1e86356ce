"""A fleet as it is shown: workers in the order of their tree, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from agentdash.facts.events import ScreenRead, StatusPushed
from agentdash.facts.fleet import Fleet, Tenant, Thread
from agentdash.facts.pane import Pane
from agentdash.facts.process import Process
from agentdash.facts.text import clean_line
from agentdash.facts.worker import NEEDS_YOU, Agent, Judged, Link, Snapshot, Worker
from agentdash.judge.findings import judge_sandbox
from agentdash.judge.inheritance import Heritage, heritage
from agentdash.judge.kinship import Kinship, Owned, Placed, kinship
from agentdash.judge.state import Case, judge_pane, judge_thread


class Memo:
    """Workers as they were judged last, to be used again while nothing that they rest on has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Ties, Worker]] = {}

    def worker(self, ties: Ties, make: Callable[[Ties], Worker]) -> Worker:
        """The worker of these ties: known, or made now."""
        known = self._known.get(ties.thread.id)
        if known is not None and known[0].same(ties):
            return known[1]
        worker = make(ties)
        self._known[ties.thread.id] = (ties, worker)
        return worker


class Ties(msgspec.Struct, frozen=True):
    """All that a thread's row is made of."""

    thread: Thread
    parent: str | None
    owner: Owned | None
    commands: tuple[Process, ...]
    placed: Placed | None
    pane: Pane | None
    platform: str | None
    reading: ScreenRead | None
    pushed: StatusPushed | None
    looked: float | None
    """When processes were looked at; matters only while the thread's turn is open."""
    heritage: Heritage | None

    def same(self, other: Ties) -> bool:
        """Whether judging again would give the same. Facts are frozen, so identity is enough where they are large."""
        return (
            self.thread is other.thread
            and self.pane is other.pane
            and (self.parent, self.owner, self.placed, self.platform) == (other.parent, other.owner, other.placed, other.platform)
            and self.commands == other.commands
            and (self.reading, self.pushed) == (other.reading, other.pushed)
            and (self.looked == other.looked or _settled(self.thread))
            and self.heritage == other.heritage
        )


def picture(fleet: Fleet, now: float, memo: Memo | None = None) -> Snapshot:
    """The snapshot of a fleet at a time."""
    kin, memo = kinship(fleet), memo or Memo()
    platform = fleet.host.platform if fleet.host else None
    workers: dict[str, Worker] = {}
    for thread in fleet.threads.values():
        if not _shown(thread):
            continue
        placed = kin.panes.get(thread.id)
        ties = Ties(
            thread,
            kin.parents.get(thread.id),
            kin.owners.get(thread.id),
            kin.commands.get(thread.id, ()),
            placed,
            fleet.panes.get(placed.key) if placed else None,
            platform,
            fleet.readings.get(placed.key) if placed else None,
            fleet.pushed.get(thread.id),
            fleet.processes_at,
            heritage(fleet.threads.get(kin.parents.get(thread.id, ""))),
        )
        workers[thread.id] = memo.worker(ties, _thread_worker)
    inhabited = {placed.key for placed in kin.panes.values()}
    for key, tenant in fleet.tenants.items():
        if key in fleet.panes and key not in inhabited:
            worker = _pane_worker(fleet, kin, fleet.panes[key], tenant)
            workers[worker.id] = worker
    return Snapshot(now, tuple(_in_tree(workers)), tuple(sorted(fleet.sources.values(), key=lambda s: s.name)))


def _settled(thread: Thread) -> bool:
    return thread.turn is not None and thread.turn.ended_at is not None and not thread.open_calls


def _shown(thread: Thread) -> bool:
    """Helper threads are Codex's own business; a thread whose file says nothing yet is not one."""
    return not thread.helper and (thread.lines > 0 or thread.file is not None)


def _thread_worker(ties: Ties) -> Worker:
    thread, owner, placed, commands = ties.thread, ties.owner, ties.placed, ties.commands
    judged = judge_thread(Case(thread, owner, commands, ties.looked, ties.reading, ties.pushed))
    links = [Link(f"pid {owner.pid}", owner.by)] if owner else []
    if placed:
        links.append(Link(f"pane {placed.key}", placed.by))
    links += [Link(f"pid {p.pid}", f"CODEX_THREAD_ID in its environment: {' '.join(p.argv)[:200] or p.name}") for p in commands]
    modified = thread.file.modified if thread.file else None
    return Worker(
        id=thread.id,
        kind="codex-thread",
        name=thread.name or thread.nickname or clean_line(thread.prompt or "", 60) or thread.id[:8],
        agent=Agent("codex", thread.version),
        judged=judged,
        parent=ties.parent,
        sandbox=judge_sandbox(thread, judged, ties.platform, ties.heritage),
        pane=ties.pane,
        pids=tuple(p.pid for p in commands),
        cwd=thread.cwd,
        tokens=thread.tokens,
        last_activity=thread.last_at if thread.version or thread.last_at != thread.created_at else modified,
        line=_line(thread, judged),
        links=tuple(links),
        policies=thread.policies,
        moments=thread.moments,
        calls=(*reversed(thread.open_calls), *reversed(thread.calls)),
        model=thread.model,
        file=thread.file.path if thread.file else None,
        turns=thread.turns,
        notes=_notes(thread),
    )


def _pane_worker(fleet: Fleet, kin: Kinship, pane: Pane, tenant: Tenant) -> Worker:
    processes = kin.below.get(pane.key, ())
    main = fleet.processes.get(tenant.key)
    judged = judge_pane(fleet, pane, tenant)
    seen = [at for at in (pane.drawn_at, pane.titled_at) if at is not None]
    return Worker(
        id=str(pane.key),
        kind="pane",
        name=pane.title if pane.title and tenant.gone_at is None else pane.window or str(pane.key),
        agent=Agent(tenant.agent),
        judged=judged,
        pane=pane,
        pids=tuple(p.pid for p in processes),
        cwd=main.cwd if main else None,
        last_activity=max(seen, default=None),
        line=judged.why if judged.state.needs_you else next((x.strip() for x in reversed(pane.screen) if x.strip()), ""),
        links=(Link(f"pid {tenant.key.pid}", f"descends from the pane's first process (pid {pane.pid})"),),
    )


def _line(thread: Thread, judged: Judged) -> str:
    if judged.state.needs_you:
        return clean_line(judged.why, 300)
    if thread.open_calls:
        call = thread.open_calls[-1]
        return clean_line(f"$ {call.text}" if call.kind == "command" else f"{call.tool} {call.text}", 300)
    return clean_line(thread.last_message or thread.last_prompt or "", 300)


def _notes(thread: Thread) -> tuple[str, ...]:
    notes = [f"{count} × {what} skipped" for what, count in thread.skipped]
    if thread.file and thread.file.skimmed:
        notes.insert(0, f"only head and tail of {thread.file.size / 1e6:.0f} MB read")
    return tuple(notes)


# ---------------------------------------------------------------- the tree


def _in_tree(workers: dict[str, Worker]) -> Iterator[Worker]:
    """Families by their newest activity, parents before children, children in the order of their spawning."""
    children: dict[str, list[Worker]] = {}
    for worker in workers.values():
        if worker.parent in workers:
            children.setdefault(worker.parent, []).append(worker)
    roots = [w for w in workers.values() if w.parent not in workers]
    newest = {w.id: _newest(w, children, set()) for w in roots}
    seen: set[str] = set()
    for root in sorted(roots, key=lambda w: newest[w.id], reverse=True):
        yield from _family(root, children, 0, seen)
    for worker in workers.values():  # files that name each other as parents
        if worker.id not in seen:
            yield from _family(worker, children, 0, seen)


def _newest(worker: Worker, children: dict[str, list[Worker]], seen: set[str]) -> float:
    seen.add(worker.id)
    below = (_newest(c, children, seen) for c in children.get(worker.id, ()) if c.id not in seen)
    return max((worker.last_activity or 0.0, *below))


def _family(worker: Worker, children: dict[str, list[Worker]], depth: int, seen: set[str]) -> Iterator[Worker]:
    seen.add(worker.id)
    own = [c for c in children.get(worker.id, ()) if c.id not in seen]
    below = [w for child in own for w in _family(child, children, depth + 1, seen)]
    children_ids, needs = tuple(c.id for c in own), _needs(below)
    unchanged = (worker.depth, worker.children, worker.below) == (depth, children_ids, needs)
    yield worker if unchanged else replace(worker, depth=depth, children=children_ids, below=needs)
    yield from below


def _needs(workers: Iterable[Worker]) -> tuple[str, ...]:
    waiting = [w for w in workers if w.state.needs_you]
    return tuple(f"{w.state} {w.name}" for w in sorted(waiting, key=lambda w: NEEDS_YOU.index(w.state)))
