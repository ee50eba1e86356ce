"""Build the snapshot of a fleet: its workers, judged, in the order of their tree."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from agentdash.engine.edits import same_files
from agentdash.engine.judge.attention import is_of, judge_attention, known_kinds, with_limit
from agentdash.engine.judge.findings.policies import parent_policy, remote_directory_finding
from agentdash.engine.judge.findings.remedy_places import facts_of
from agentdash.engine.judge.findings.tmux_boundary import sandboxed_server_finding
from agentdash.engine.judge.findings.verdict import Surroundings, judge_sandbox
from agentdash.engine.judge.states.activity import is_static, pane_last_sign, thread_last_sign
from agentdash.engine.judge.states.pane_state import past_panes
from agentdash.engine.judge.states.state_history import settle, startup_grace_until
from agentdash.engine.judge.states.thread_facts import thread_facts, threads_in_front
from agentdash.engine.judge.states.thread_state import judge_thread
from agentdash.engine.link.linker import link_fleet, parents_of
from agentdash.engine.reduce.observations import with_provisional
from agentdash.engine.thread_worker import RowInputs, nested_worker, pane_worker, thread_worker
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet, FleetLinks, History, awaits_request
from agentdash.model.limits import STALLED_AFTER_S
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import ProcessKey
from agentdash.model.remote import HostLink, LinkState
from agentdash.model.secrets import mask_fields
from agentdash.model.states import URGENCY, Attention, Group, Liveness, State
from agentdash.model.thread import Thread
from agentdash.model.times import time_of_day
from agentdash.model.worker import Assessment, Snapshot, Worker

# ------------------------------------------------------------
# What snapshots of one fleet share: values are made again only when what they are derived from has changed


_T = TypeVar("_T")
_B = TypeVar("_B")
_VALUES_PER_WORKER: Final = 12
_MAX_FORMER_WORKERS: Final = 20
"""Workers that are gone are forgotten when there are this many more of them than present ones."""
_FOREIGN_FIELDS: Final = ("name", "assessment", "sandbox", "line", "links", "notes")
"""Fields of a worker that agentdash concludes or quotes."""


class WorkerCache:
    """The newest values of each worker, by what they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Any, Any]] = {}

    def value(
        self,
        what: str,
        worker: str,
        basis: _B,
        make: Callable[[], _T],
        is_same: Callable[[_B, _B], bool] = operator.eq,
    ) -> _T:
        """Return a value of a worker: the identical object as before while its basis is the same."""
        known = self._known.get((what, worker))
        if known is None or not is_same(known[0], basis):
            known = self._known[what, worker] = basis, make()
        value: _T = known[1]
        return value

    def unchanged(self, worker: Worker) -> Worker:
        """Return the object of the snapshot before if it equals this one: that is compared and drawn fast."""
        return self.value("shown", worker.id, worker, lambda: worker)

    def forget_others(self, workers: Container[str], number: int) -> None:
        """Forget all but these workers, where the others have become many."""
        if len(self._known) > _VALUES_PER_WORKER * (2 * number + _MAX_FORMER_WORKERS):
            self._known = {key: known for key, known in self._known.items() if key[1] in workers}

    def mask(self, worker: Worker) -> Worker:
        """Return a worker with secrets masked in its name and in what agentdash concludes and quotes.

        Its moments, its calls and its screen stay as they are, for the eyes of its user.
        """
        fields = {name: getattr(worker, name) for name in _FOREIGN_FIELDS}
        masked = {
            name: self.value(f"masked {name}", worker.id, field, partial(mask_fields, field))
            for name, field in fields.items()
        }
        return replace(worker, **masked)


# ------------------------------------------------------------


_EMPTY_HISTORY: Final = History()


def build_snapshot(
    fleet: Fleet,
    now: float,
    cache: WorkerCache | None = None,
    stalled_after: float = STALLED_AFTER_S,
    *,
    settles: bool = True,
) -> Snapshot:
    """Return the snapshot of a fleet.

    Args:
        now: unix seconds.
        cache: of the snapshots before.
        stalled_after: seconds without a sign of life after which a running worker has stalled.
        settles: whether a state that has just begun is shown later, once it has settled.
    """
    builder = _SnapshotBuilder(fleet, now, cache or WorkerCache(), stalled_after, settles=settles)
    builder.add_threads()
    builder.add_panes()
    builder.add_nested()
    builder.add_remote()
    return builder.build()


class _SnapshotBuilder:
    """The workers of one snapshot, and when it will change by itself."""

    def __init__(
        self, fleet: Fleet, now: float, cache: WorkerCache, stalled_after: float, *, settles: bool
    ) -> None:
        self._fleet = fleet
        self._settles = settles
        self._now = now
        self._cache = cache
        self._stalled_after = stalled_after
        # without passes over processes (replay of bare rollouts) the reducer never links
        self._links = link_fleet(fleet) if fleet.processes_at is None else fleet.links
        self._attention = fleet.attention or Attention()
        self._acknowledged = {each.worker: each for each in self._attention.acknowledged}
        self._threads = with_provisional(fleet)
        self._workers: dict[str, Worker] = {}
        self._dues: list[float] = []
        self._occupied: set[PaneKey] = set()
        """Panes with a worker."""

    def add_threads(self) -> None:
        """Add the workers that are Codex threads."""
        parents = parents_of(self._fleet.threads.values())
        for thread in self._threads.values():
            # not one that Codex runs for itself, nor one that nothing was read of
            if not thread.helper and (thread.lines > 0 or thread.file is not None):
                self._add_thread(thread, parents.get(thread.id))

    def add_panes(self) -> None:
        """Add the workers that are panes, except those of threads."""
        linked = {
            worker.pane.key
            for worker in self._workers.values()
            if worker.pane and not self._links.panes[worker.id].claimed
        }
        self._occupied = linked | (self._fleet.occupants.keys() & self._fleet.panes.keys())
        for key, occupant in self._fleet.occupants.items():
            pane = self._fleet.panes.get(key)
            if pane is not None and key not in linked:
                below = self._links.below.get(key, ())
                last_sign = pane_last_sign(below, pane, self._fleet.busy)
                is_held = occupant.gone_at is None and not pane.dead
                worker = self._cache.mask(
                    pane_worker(self._fleet, pane, occupant, below, self._server_findings(occupant.key))
                )
                self._add(worker, last_sign, pane, is_held=is_held)

    def add_nested(self) -> None:
        """Add the worker CLIs that commands of threads have started."""
        for key, thread in self._links.nested.items():
            process = self._fleet.processes.get(key)
            if process is not None and (thread in self._workers or not thread):
                last_sign = max(self._fleet.busy.get(key, 0.0), key.started)
                worker = self._cache.mask(nested_worker(self._fleet, process, thread))
                self._add(worker, last_sign, None, is_held=True)

    def add_remote(self) -> None:
        """Add the workers of other hosts, as they were judged there."""
        for host in self._fleet.remotes.values():
            for row in host.workers.values():
                if host.link.state is not LinkState.CONNECTED:
                    row = unreachable(row, host.link)  # noqa: PLW2901 - as it is shown
                standing = self._standing_here(row)
                known = known_kinds(row, self._attention.known) or row.known
                self._workers[row.id] = replace(row, standing=standing, known=known)

    def _standing_here(self, row: Worker) -> Group | None:
        """Return the standing of another host's worker: what was acknowledged there or here needs no one."""
        if row.group not in (Group.NEEDS_YOU, Group.DONE):
            return row.standing
        standing = judge_attention(
            row.assessment,
            is_held=True,
            looked_at=None,
            acknowledgement=self._acknowledged.get(row.id),
            now=self._now,
            limited_until=row.limited_until,
        )
        return Group.DONE if Group.DONE in (row.group, standing.group) else standing.group

    def build(self) -> Snapshot:
        """Return the snapshot."""
        self._count_approvals_once()
        self._find_same_files()
        for mark in self._attention.bookmarks:
            worker = self._workers.get(mark.worker)
            if worker is not None and is_of(mark, worker):
                # a label that another host's user has given stays below this user's
                label = mark.label or worker.label
                self._workers[worker.id] = replace(worker, label=label, pinned=mark.pinned)
        workers = tuple(map(self._cache.unchanged, in_tree_order(self._workers)))
        self._cache.forget_others(self._workers, len(self._workers))
        return Snapshot(
            at=self._now,
            workers=workers,
            sources=tuple(sorted(self._fleet.sources.values(), key=lambda source: source.name)),
            due=min((due for due in self._dues if due > self._now), default=None),
            past=past_panes(self._fleet, self._occupied),
            idle_panes=tuple(sorted(self._fleet.panes.keys() - self._occupied)),
            hosts=tuple(host.link for host in self._fleet.remotes.values()),
        )

    def _count_approvals_once(self) -> None:
        """Count the approval of a sub-agent as that one's, and not as that of the worker whose pane shows it:
        that one goes on by itself."""
        for worker in list(self._workers.values()):
            asker = self._workers.get(worker.assessment.asker)
            if asker and asker.state is State.WAITING_APPROVAL and asker.group is not Group.PAST:
                self._workers[worker.id] = replace(worker, standing=Group.RUNNING)

    def _find_same_files(self) -> None:
        """Mark the workers that have edited a file which another one has edited too."""
        editors = [each for each in self._workers.values() if each.edits and each.git is not None]
        minute = self._now // 60  # what is half an hour old may go a minute late
        basis = minute, [(each.id, each.name, each.edits, each.git) for each in editors]
        make = partial(same_files, editors, self._workers, self._now)
        for ident, files in self._cache.value("same files", "", basis, make).items():
            self._workers[ident] = replace(self._workers[ident], same_files=files)
            self._dues.append(60 * (minute + 1))

    def _add_thread(self, thread: Thread, parent: str | None) -> None:
        inputs = self._inputs(thread, parent)
        worker = self._cache.value(
            "judged", thread.id, inputs, partial(self._judge_thread, inputs), RowInputs.is_same
        )
        if self._fleet.processes_at is not None:
            starting_until = startup_grace_until(thread, worker.assessment, self._now)
            if starting_until is not None:
                self._dues.append(starting_until)
                return
        # a thread that waits for children is as alive as they are, and they have marks of their own
        is_waiting = any(call.kind == "wait" for call in thread.open_calls)
        last_sign = 0.0
        if not is_waiting:
            last_sign = thread_last_sign(thread, inputs.case.commands, inputs.pane, self._fleet.busy)
        is_held = inputs.case.liveness is not Liveness.GONE
        self._add(worker, last_sign, inputs.pane, is_held=is_held)

    def _judge_thread(self, inputs: RowInputs) -> Worker:
        assessment = judge_thread(inputs.case)
        sandbox = self._cache.value(
            "sandbox",
            inputs.case.thread.id,
            (inputs, assessment.state),
            lambda: judge_sandbox(inputs.case.thread, assessment, inputs.surroundings),
            # most lines of a session change nothing of it
            lambda old, new: old[1] is new[1] and old[0].has_same_sandbox(new[0]),
        )
        return self._cache.mask(thread_worker(inputs, assessment, sandbox))

    def _inputs(self, thread: Thread, parent: str | None) -> RowInputs:
        fleet, links = self._fleet, self._links
        link = links.panes.get(thread.id)
        pane = fleet.panes.get(link.key) if link else None
        occupant = fleet.occupants.get(link.key) if link else None
        case = thread_facts(fleet, thread, links)
        return RowInputs(
            case=case,
            parent=parent or links.outer.get(thread.id),
            link=link,
            pane=pane,
            part=_part(fleet, links, thread) if link else "",
            server_findings=(
                *self._server_findings(case.owner.key if case.owner else None),
                *remote_directory_finding(occupant.process if occupant else None, thread),
            ),
            surroundings=Surroundings(
                platform=fleet.host.platform if fleet.host else None,
                parent_policy=parent_policy(self._threads.get(parent or "")),
                places=facts_of(fleet, thread, case.commands),
                requests=fleet.requests.get(thread.id, ()),
                awaits_request=awaits_request(fleet, thread),
            ),
        )

    def _server_findings(self, worker: ProcessKey | None) -> tuple[Finding, ...]:
        server = self._links.servers.get(worker) if worker else None
        return sandboxed_server_finding(server, self._fleet.kernel)

    def _add(self, worker: Worker, last_sign: float, pane: Pane | None, *, is_held: bool) -> None:
        """Add a worker with its settled state and its history.

        Args:
            worker: as judged.
            last_sign: when it last gave a sign of life (unix seconds); 0 where that does not matter.
            is_held: whether a process, a lock or a pane holds it, or may.
        """
        history = self._fleet.histories.get(worker.id, _EMPTY_HISTORY)
        settled = settle(history, worker.assessment, self._now if self._settles else math.inf)
        stalled = None
        if settled.assessment.state is State.RUNNING and 0 < last_sign <= self._now:
            stalls_at = last_sign + self._stalled_after
            if self._now >= stalls_at or is_static(pane, self._fleet.processes_at):
                stalled = last_sign
            else:
                self._dues.append(stalls_at)
        if settled.due is not None:
            self._dues.append(settled.due)
        assessment, until = settled.assessment, worker.limited_until
        if until is not None and assessment.state is State.FAILED_PROVIDER:
            assessment = with_limit(assessment, until, self._now)
        standing = judge_attention(
            assessment,
            is_held=is_held,
            looked_at=self._attention.looked_at,
            acknowledgement=self._acknowledged.get(worker.id),
            now=self._now,
            limited_until=until,
        )
        if standing.due is not None:
            self._dues.append(standing.due)
        self._workers[worker.id] = replace(
            worker,
            assessment=assessment,
            history=settled.periods,
            stalled=stalled,
            standing=standing.group,
            known=known_kinds(worker, self._attention.known),
            # of the directory of a past worker: others have changed it since
            git=self._fleet.repositories.get(worker.cwd or "") if is_held else None,
        )


def _part(fleet: Fleet, links: FleetLinks, thread: Thread) -> str:
    """Return which thread of its pane a thread is, and whether it is in front; empty if it is alone."""
    key = links.panes[thread.id].key
    if len(links.threads_in(key)) < 2:
        return ""
    kind = "side chat" if thread.side_chat else "main conversation"
    return f"{kind}, {'in front' if thread.id in threads_in_front(fleet, links, key) else 'not in front'}"


# ------------------------------------------------------------
# The order of the workers of a snapshot: families, each as a tree


_MAX_NEEDS: Final = 100
"""Workers that need the user, named at each of their ancestors: a chain of 10,000 would have 50 million."""


def in_tree_order(workers: dict[str, Worker]) -> Iterator[Worker]:
    """Yield families by their newest activity, parents before their children, children in the order of their
    spawning."""
    children: dict[str, list[Worker]] = {}
    for worker in workers.values():
        if worker.parent in workers:
            children.setdefault(worker.parent, []).append(worker)
    roots = (worker for worker in workers.values() if worker.parent not in workers)
    visited: set[str] = set()
    families = [
        _family(root, children, visited)
        for root in (*roots, *workers.values())  # files may name each other as parents: without a root
        if root.id not in visited
    ]
    families.sort(key=lambda family: max(worker.last_activity or 0.0 for worker in family), reverse=True)
    return chain.from_iterable(families)


def _family(root: Worker, children: dict[str, list[Worker]], visited: set[str]) -> list[Worker]:
    """Return a worker and those below it, each with its depth, children and what its members need. Not
    recursive: files may name chains of any depth."""
    members: list[tuple[Worker, int, tuple[str, ...]]] = []
    pending = [(root, 0)]
    visited.add(root.id)
    while pending:
        worker, depth = pending.pop()
        below = [child for child in children.get(worker.id, ()) if child.id not in visited]
        visited.update(child.id for child in below)
        members.append((worker, depth, tuple(child.id for child in below)))
        pending += [(child, depth + 1) for child in reversed(below)]
    family: list[Worker] = []
    waiting: dict[str, list[Worker]] = {}
    """Workers below each one that need the user, in their order."""
    for worker, depth, own in reversed(members):
        below = [each for child in own for each in waiting.pop(child)]
        waiting[worker.id] = _most_urgent([worker, *below])
        needs = tuple(f"{each.state} {each.name}" for each in _most_urgent(below))
        family.append(replace(worker, depth=depth, children=own, below=needs))
    family.reverse()
    return family


def _most_urgent(workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers that need the user, the most urgent first."""
    waiting = [worker for worker in workers if worker.needs_you]
    waiting.sort(key=lambda worker: URGENCY.index(worker.state))
    return waiting[:_MAX_NEEDS]


def unreachable(row: Worker, link: HostLink) -> Worker:
    """Return the row of a worker behind a lost link: what it was then says nothing about now."""
    last = "" if link.news_at is None else f" since {time_of_day(link.news_at)} UTC"
    detail = f": {link.detail}" if link.detail else ""
    why = f"no news from {link.name}{last}{detail}"
    then, since = f"{row.state} then: {row.assessment.why}", link.news_at or link.at
    return replace(
        row,
        assessment=Assessment(
            state=State.UNREACHABLE,
            since=since,
            why=why,
            evidence=(
                Evidence(EvidenceSource.HOST, since, "link-lost", why),
                Evidence(EvidenceSource.HOST, since, "last-news", then, agrees=False),
            ),
            fact=Fact(FactKind.UNCLEAR, f"no news from {link.name}", why=link.detail),
        ),
        standing=Group.PAST if row.group is Group.PAST else Group.UNCLEAR,
        stalled=None,
        line=why,
    )
