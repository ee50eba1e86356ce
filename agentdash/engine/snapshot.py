"""A fleet as it is shown: workers in the order of their tree, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.inheritance import ParentPolicy, parent_policy
from agentdash.engine.judge.findings.tmux_boundary import inside
from agentdash.engine.judge.findings.verdict import judge_sandbox
from agentdash.engine.judge.states.activity import is_static, pane_last_sign, thread_last_sign
from agentdash.engine.judge.states.pane_state import judge_pane
from agentdash.engine.judge.states.sandboxed_pane import sandbox_of
from agentdash.engine.judge.states.state_history import settled, startup_grace_until
from agentdash.engine.judge.states.thread_state import Case, case_of, judge_thread
from agentdash.engine.link.linker import link_fleet, parents_of
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet, History, PaneOccupant, StatePeriod, Thread
from agentdash.model.links import FleetLinks, ThreadPane
from agentdash.model.pane import Pane
from agentdash.model.sanitize import clean_line
from agentdash.model.states import NEEDS_YOU, State
from agentdash.model.worker import Agent, Assessment, Link, Sandbox, Snapshot, Worker

STALLED_AFTER_S: Final = 120.0
"""Seconds without a sign of life after which one that runs has stalled, unless somebody sets another time."""
_UNWRITTEN: Final = History()


class WorkerCache:
    """Workers as they were judged and shown last, to be used again while nothing that they rest on has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[RowInputs, Worker]] = {}
        self._shown: dict[str, tuple[Worker, Worker]] = {}

    def worker(self, ties: RowInputs, make: Callable[[RowInputs], Worker]) -> Worker:
        """The worker of these ties: known, or made now."""
        thread = ties.case.thread.id
        known = self._known.get(thread)
        if known is not None and known[0].same(ties):
            return known[1]
        worker = make(ties)
        self._known[thread] = (ties, worker)
        return worker

    def shown(
        self, worker: Worker, assessment: Assessment, history: tuple[StatePeriod, ...], stalled: float | None
    ) -> Worker:
        """The worker as it is shown: the very same one as last time, if that is alike."""
        known = self._shown.get(worker.id)
        if known is not None and (known[0] is worker or known[0] == worker):
            last = known[1]
            if (
                last.history == history
                and last.stalled == stalled
                and (last.assessment is assessment or last.assessment == assessment)
            ):
                return last
        shown = replace(worker, assessment=assessment, history=history, stalled=stalled)
        self._shown[worker.id] = (worker, shown)
        return shown


class RowInputs(msgspec.Struct, frozen=True):
    """All that a thread's row is made of."""

    case: Case
    parent: str | None
    placed: ThreadPane | None
    pane: Pane | None
    platform: str | None
    parent_policy: ParentPolicy | None
    border: tuple[Finding, ...] = ()
    """What there is to say of its pane's tmux server."""

    def same(self, other: RowInputs) -> bool:
        """Whether judging again would give the same. Facts are frozen, so identity is enough where they are large.

        When processes were looked at matters only while the thread's turn is open.
        """
        mine, theirs = self.case, other.case
        return (
            mine.thread is theirs.thread
            and self.pane is other.pane
            and (self.parent, self.placed, self.platform) == (other.parent, other.placed, other.platform)
            and (mine.owner, mine.orphaned, mine.commands, mine.trouble)
            == (theirs.owner, theirs.orphaned, theirs.commands, theirs.trouble)
            and (mine.reading, mine.pushed) == (theirs.reading, theirs.pushed)
            and (mine.processes_at == theirs.processes_at or _settled(mine.thread))
            and (self.parent_policy, self.border) == (other.parent_policy, other.border)
        )


def build_snapshot(
    fleet: Fleet, now: float, cache: WorkerCache | None = None, stalled_after: float = STALLED_AFTER_S
) -> Snapshot:
    """The snapshot of a fleet at a time.

    Args:
        memo: what was shown last.
        stalled_after: seconds without a sign of life after which a worker that runs has stalled.
    """
    links = link_fleet(fleet) if fleet.processes_at is None else fleet.links
    cache = cache or WorkerCache()
    platform = fleet.host.platform if fleet.host else None
    parents = parents_of(fleet.threads.values())
    workers: dict[str, Worker] = {}
    dues: list[float] = []

    def show(worker: Worker, life: float, *, still: bool) -> None:
        assessment, history, due = settled(fleet.histories.get(worker.id, _UNWRITTEN), worker.assessment, now)
        stalled = None
        if assessment.state is State.RUNNING and 0 < life <= now:
            stalled = life if still or now - life >= stalled_after else None
            dues.extend([life + stalled_after] if stalled is None else ())
        dues.extend([due] if due is not None else ())
        workers[worker.id] = cache.shown(worker, assessment, history, stalled)

    for thread in fleet.threads.values():
        if not _shown(thread):
            continue
        placed = links.panes.get(thread.id)
        pane = fleet.panes.get(placed.key) if placed else None
        case, parent = case_of(fleet, thread, links), parents.get(thread.id)
        border = inside(pane, links.servers.get(pane.key), fleet.kernel) if pane else ()
        ties = RowInputs(
            case, parent, placed, pane, platform, parent_policy(fleet.threads.get(parent or "")), border
        )
        worker = cache.worker(ties, _thread_worker)
        if (
            fleet.processes_at is not None
            and (due := startup_grace_until(thread, worker.assessment, now)) is not None
        ):
            dues.append(due)
            continue
        # who waits for children is as alive as they are, and they have marks of their own
        waits = any(call.kind == "wait" for call in thread.open_calls)
        life = 0.0 if waits else thread_last_sign(thread, case.commands, pane, fleet.busy)
        show(worker, life, still=is_static(pane, fleet.processes_at))
    occupied = {worker.pane.key for worker in workers.values() if worker.pane}
    for key, occupant in fleet.occupants.items():
        if key in fleet.panes and key not in occupied:
            pane = fleet.panes[key]
            life = pane_last_sign(links.below.get(key, ()), pane, fleet.busy)
            show(_pane_worker(fleet, links, pane, occupant), life, still=is_static(pane, fleet.processes_at))
    sources = tuple(sorted(fleet.sources.values(), key=lambda s: s.name))
    due = min((due for due in dues if due > now), default=None)
    return Snapshot(now, tuple(_in_tree(workers)), sources, due, fleet.host.installed if fleet.host else None)


def _settled(thread: Thread) -> bool:
    return thread.turn is not None and thread.turn.ended_at is not None and not thread.open_calls


def _shown(thread: Thread) -> bool:
    """Helper threads are Codex's own business; a thread whose file says nothing yet is not one."""
    return not thread.helper and (thread.lines > 0 or thread.file is not None)


def _thread_worker(ties: RowInputs) -> Worker:
    case, placed = ties.case, ties.placed
    thread, owner, commands = case.thread, case.owner, case.commands
    assessment = judge_thread(case)
    links = [Link(f"pid {owner.pid}", owner.by)] if owner else []
    if placed:
        links.append(Link(f"pane {placed.key}", placed.by))
    links += [
        Link(f"pid {p.pid}", f"CODEX_THREAD_ID in its environment: {' '.join(p.argv)[:200] or p.name}")
        for p in commands
    ]
    modified = thread.file.modified if thread.file else None
    return Worker(
        id=thread.id,
        kind="codex-thread",
        name=thread.name or thread.nickname or clean_line(thread.prompt or "", 60) or thread.id[:8],
        agent=Agent("codex", thread.version),
        assessment=assessment,
        parent=ties.parent,
        sandbox=_beside(judge_sandbox(thread, assessment, ties.platform, ties.parent_policy), ties.border),
        pane=ties.pane,
        pids=tuple(p.pid for p in commands),
        cwd=thread.cwd,
        tokens=thread.tokens,
        last_activity=thread.last_at if thread.version or thread.last_at != thread.created_at else modified,
        line=_line(thread, assessment),
        links=tuple(links),
        policies=thread.policies,
        moments=thread.moments,
        calls=(*reversed(thread.open_calls), *reversed(thread.calls)),
        model=thread.model,
        file=thread.file.path if thread.file else None,
        turns=thread.turns,
        notes=_notes(thread),
    )


def _pane_worker(fleet: Fleet, links: FleetLinks, pane: Pane, occupant: PaneOccupant) -> Worker:
    processes = links.below.get(pane.key, ())
    main = fleet.processes.get(occupant.key)
    assessment = judge_pane(fleet, pane, occupant)
    seen = [at for at in (pane.drawn_at, pane.titled_at) if at is not None]
    return Worker(
        id=str(pane.key),
        kind="pane",
        name=pane.title if pane.title and occupant.gone_at is None else pane.window or str(pane.key),
        agent=Agent(occupant.agent),
        assessment=assessment,
        sandbox=_beside(
            sandbox_of(fleet, pane, occupant, assessment),
            inside(pane, links.servers.get(pane.key), fleet.kernel),
        ),
        pane=pane,
        pids=tuple(p.pid for p in processes),
        cwd=main.cwd if main else None,
        last_activity=max(seen, default=None),
        line=assessment.why
        if assessment.state.needs_you
        else next((x.strip() for x in reversed(pane.screen) if x.strip()), ""),
        links=(Link(f"pid {occupant.key.pid}", f"descends from the pane's first process (pid {pane.pid})"),),
    )


def _beside(sandbox: Sandbox, border: tuple[Finding, ...]) -> Sandbox:
    """A sandbox with what there is to say of the tmux server around it."""
    return replace(sandbox, findings=(*sandbox.findings, *border)) if border else sandbox


def _line(thread: Thread, assessment: Assessment) -> str:
    if assessment.state.needs_you:
        return clean_line(assessment.why, 300)
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


def _family(
    worker: Worker, children: dict[str, list[Worker]], depth: int, seen: set[str]
) -> Iterator[Worker]:
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
