"""Build the snapshot of a fleet: its workers, judged, in the order of their tree."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.attention import Standing, judge_attention
from agentdash.engine.judge.findings.inheritance import ParentPolicy, parent_policy
from agentdash.engine.judge.findings.pane_sandbox import judge_nested_sandbox, judge_pane_sandbox
from agentdash.engine.judge.findings.remedy_places import facts_of
from agentdash.engine.judge.findings.state_paths import DenialPredictor
from agentdash.engine.judge.findings.tmux_boundary import sandboxed_server_finding
from agentdash.engine.judge.findings.verdict import judge_sandbox
from agentdash.engine.judge.reach import reach_by_policy
from agentdash.engine.judge.source_names import by_transcript
from agentdash.engine.judge.states.activity import is_static, pane_last_sign, thread_last_sign
from agentdash.engine.judge.states.nested_state import judge_nested
from agentdash.engine.judge.states.pane_state import judge_pane, pane_session
from agentdash.engine.judge.states.past_state import past_panes
from agentdash.engine.judge.states.state_history import SettledState, settle, startup_grace_until
from agentdash.engine.judge.states.thread_facts import ThreadFacts, thread_facts
from agentdash.engine.judge.states.thread_state import judge_thread
from agentdash.engine.link.linker import link_fleet, parents_of
from agentdash.engine.link.ssh_sessions import SshSessions
from agentdash.engine.remote_rows import RemoteRows
from agentdash.engine.shared_homes import SharedHomes
from agentdash.model.attention import Attention
from agentdash.model.chat import Chat
from agentdash.model.events import LabelRead, SessionSeen
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet, History, PaneOccupant, Thread, Tokens
from agentdash.model.git import Repository
from agentdash.model.limits import STALLED_AFTER_S
from agentdash.model.links import ThreadPane
from agentdash.model.liveness import Liveness
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.process import THREAD_VARIABLES, Process
from agentdash.model.reach import Reach
from agentdash.model.remedies import PathFacts
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.state_paths import Installed
from agentdash.model.states import URGENCY, State
from agentdash.model.worker import (
    Agent,
    Assessment,
    Link,
    PastPane,
    Sandbox,
    Snapshot,
    Worker,
    nested_worker_id,
)

_EMPTY_HISTORY: Final = History()
_NO_CHAT: Final = Chat(by="")
_THREAD_KINDS: Final[dict[str, Literal["codex-thread", "claude-session"]]] = {
    "codex": "codex-thread",
    "claude": "claude-session",
}
"""Kind of worker of the threads of each CLI."""
_MAX_NEEDS: Final = 100
"""Workers that need the user, named at each of their ancestors: a chain of 10,000 would have 50 million."""
_MAX_NAME_CHARS: Final = 60
"""Characters of a prompt that serves as a name: the widest name column."""
_MAX_LINE_CHARS: Final = 300
"""Characters of the activity line: the widest terminal in use."""
_MAX_ARGV_CHARS: Final = 200
"""Characters of a command line in a link."""


class WorkerCache:
    """The workers of the snapshot before, reused while nothing that they are derived from has changed."""

    def __init__(self) -> None:
        self._judged: dict[str, tuple[RowInputs, Worker]] = {}
        self._masked: dict[str, tuple[Worker, Worker]] = {}
        self._shown: dict[str, tuple[Worker, Worker]] = {}
        self._reaches: dict[str, tuple[Reach, Policy, Reach]] = {}
        """What each worker could reach by its policy, with what that follows from."""
        self._predictor: DenialPredictor | None = None
        self._past: tuple[PastPane, ...] = ()
        self._idle: tuple[PaneKey, ...] = ()
        self.remote = RemoteRows()
        self.shared_homes = SharedHomes()

    def predictor(self, installed: Installed | None) -> DenialPredictor | None:
        """Return the predictor for these worker CLIs: the cached one while they are the same."""
        if installed is None:
            return None
        if self._predictor is None or self._predictor.installed != installed:
            self._predictor = DenialPredictor(installed)
        return self._predictor

    def same_past(self, past: tuple[PastPane, ...]) -> tuple[PastPane, ...]:
        """Return the cached past panes if they are equal: comparing snapshots is then cheap."""
        if past != self._past:
            self._past = past
        return self._past

    def same_idle(self, idle: tuple[PaneKey, ...]) -> tuple[PaneKey, ...]:
        """Return the cached panes without a worker if they are equal."""
        if idle != self._idle:
            self._idle = idle
        return self._idle

    def worker(self, inputs: RowInputs, make: Callable[[RowInputs], Worker]) -> Worker:
        """Return the worker of these inputs: the cached one, or else a new one."""
        thread = inputs.case.thread.id
        cached = self._judged.get(thread)
        if cached is not None and cached[0].is_same(inputs):
            return cached[1]
        worker = make(inputs)
        self._judged[thread] = (inputs, worker)
        return worker

    def masked(self, worker: Worker) -> Worker:
        """Return a worker with secrets masked in its name and in what agentdash concludes and quotes.

        Its moments, its calls and its screen stay as they are, for the eyes of its user. What is as before is
        not masked again.
        """
        before, masked = self._masked.get(worker.id, (None, None))
        changes = {
            name: getattr(masked, name)
            if before is not None and getattr(before, name) == getattr(worker, name)
            else mask_fields(getattr(worker, name))
            for name in ("name", "assessment", "sandbox", "line", "links", "notes")
        }
        known = replace(worker, **changes)
        self._masked[worker.id] = (worker, known)
        return known

    def reach_by_policy(self, worker: str, own: Reach, policy: Policy) -> Reach:
        """Return what a worker could reach by its policy: the identical object as before, if that is so."""
        cached = self._reaches.get(worker)
        if cached is None or cached[0] is not own or cached[1] != policy:
            cached = self._reaches[worker] = own, policy, reach_by_policy(own, policy).compact()
        return cached[2]

    def shown(
        self,
        worker: Worker,
        settled: SettledState,
        stalled: float | None,
        standing: Standing,
        session: str | None = None,
        around: tuple[Repository | None, Reach | None] = (None, None),
    ) -> Worker:
        """Return the worker as it is shown: the identical object as before, if it is equal."""
        cached = self._shown.get(worker.id)
        if cached is not None and (cached[0] is worker or cached[0] == worker):
            before, assessment = cached[1], settled.assessment
            is_same_state = before.assessment is assessment or before.assessment == assessment
            is_same_place = (before.standing, before.is_new) == (standing.group, standing.is_new)
            is_same = is_same_state and is_same_place and before.history == settled.periods
            is_same = is_same and before.ssh_connection == session
            if is_same and before.stalled == stalled and (before.git, before.reach) == around:
                return before
        shown = replace(
            worker,
            assessment=settled.assessment,
            history=settled.periods,
            stalled=stalled,
            standing=standing.group,
            is_new=standing.is_new,
            ssh_connection=session,
            git=around[0],
            reach=around[1],
        )
        self._shown[worker.id] = (worker, shown)
        return shown


class RowInputs(msgspec.Struct, frozen=True):
    """Everything that the row of a thread is derived from."""

    case: ThreadFacts
    parent: str | None
    link: ThreadPane | None
    pane: Pane | None
    platform: str | None
    parent_policy: ParentPolicy | None
    server_findings: tuple[Finding, ...] = ()
    """Findings about the tmux server of its pane."""
    predictor: DenialPredictor | None = None
    """What policies would deny the worker CLIs of this machine."""
    places: PathFacts = PathFacts()
    """What is known of the places that its remedies name."""
    requests: tuple[Requested, ...] = ()
    """What the processes that ran it were asked for."""
    label: LabelRead | None = None
    """What its screen states."""

    def is_same(self, other: RowInputs) -> bool:
        """Return whether judging again would give the same; large facts are frozen, so identity is enough for
        them.

        The time of the pass over processes matters only while the thread's turn is open.
        """
        case, theirs = self.case, other.case
        return (
            case.thread is theirs.thread
            and self.pane is other.pane
            and (self.parent, self.link, self.platform) == (other.parent, other.link, other.platform)
            and (case.owner, case.orphaned, case.commands, case.trouble)
            == (theirs.owner, theirs.orphaned, theirs.commands, theirs.trouble)
            and (case.reading, case.pushed, case.session) == (theirs.reading, theirs.pushed, theirs.session)
            and (case.processes_at == theirs.processes_at or _is_at_rest(case.thread))
            and (self.parent_policy, self.server_findings) == (other.parent_policy, other.server_findings)
            and self.predictor is other.predictor
            and self.places.is_same(other.places)
            and self.requests is other.requests
            and self.label is other.label
        )


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
        fleet: everything known.
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
        self._predictor = cache.predictor(fleet.host.installed if fleet.host else None)
        self._attention = fleet.attention or Attention()
        self._acknowledged = {each.worker: each for each in self._attention.acknowledged}
        self._sessions = SshSessions(fleet, self._links)
        self._workers: dict[str, Worker] = {}
        self._dues: list[float] = []
        self._occupied: set[PaneKey] = set()
        """Panes with a worker."""

    def add_threads(self) -> None:
        """Add the workers that are Codex threads."""
        parents = parents_of(self._fleet.threads.values())
        for thread in self._fleet.threads.values():
            if _is_shown(thread):
                self._add_thread(thread, parents.get(thread.id))

    def add_panes(self) -> None:
        """Add the workers that are panes, but for those of threads."""
        linked = {worker.pane.key for worker in self._workers.values() if worker.pane}
        self._occupied = linked | (self._fleet.occupants.keys() & self._fleet.panes.keys())
        for key, occupant in self._fleet.occupants.items():
            pane = self._fleet.panes.get(key)
            if pane is not None and key not in linked:
                last_sign = pane_last_sign(self._links.below.get(key, ()), pane, self._fleet.busy)
                is_held = occupant.gone_at is None and not pane.dead
                worker = self._cache.masked(self._pane_worker(pane, occupant))
                session = self._sessions.of_pane(pane)
                self._add(worker, last_sign, pane, is_held=is_held, session=session)

    def add_nested(self) -> None:
        """Add the worker CLIs that commands of threads have started."""
        for key, thread in self._links.nested.items():
            process = self._fleet.processes.get(key)
            if process is not None and thread in self._workers:
                last_sign = max(self._fleet.busy.get(key, 0.0), key.started)
                worker = self._cache.masked(self._nested_worker(process, thread))
                self._add(worker, last_sign, None, is_held=True)

    def add_remote(self) -> None:
        """Add the workers of other hosts, as they were judged there."""
        rows = self._cache.remote
        for received in rows.of(self._fleet.remotes):
            here = self._workers.get(received.id.removeprefix(f"{received.host}:"))
            same = self._cache.shared_homes.link(received, here, self._fleet.processes) if here else None
            if here is not None and same is not None:
                self._workers[here.id] = replace(here, links=(*here.links, same))
                continue
            key = self._sessions.panes.get(received.ssh_connection or "")
            pane = self._fleet.panes.get(key) if key else None
            row = rows.tied(received, pane) if pane else received
            if pane:
                self._occupied.add(pane.key)
            self._workers[row.id] = rows.attended(
                row,
                looked_at=self._attention.looked_at,
                acknowledgement=self._acknowledged.get(row.id),
                now=self._now,
            )

    def build(self) -> Snapshot:
        """Return the snapshot."""
        host = self._fleet.host
        return Snapshot(
            at=self._now,
            workers=tuple(_in_tree_order(self._workers)),
            sources=tuple(sorted(self._fleet.sources.values(), key=lambda source: source.name)),
            due=min((due for due in self._dues if due > self._now), default=None),
            installed=host.installed if host else None,
            past=self._cache.same_past(past_panes(self._fleet, self._occupied)),
            idle_panes=self._cache.same_idle(tuple(sorted(self._fleet.panes.keys() - self._occupied))),
            hosts=tuple(host.link for host in self._fleet.remotes.values()),
        )

    def _add_thread(self, thread: Thread, parent: str | None) -> None:
        inputs = self._inputs(thread, parent)
        worker = self._cache.worker(inputs, lambda inputs: self._cache.masked(_thread_worker(inputs)))
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
        session = self._sessions.of_pane(inputs.pane) if inputs.pane else None
        if inputs.pane is None and (owner := inputs.case.owner) is not None and owner.key is not None:
            session = self._sessions.of_process(self._fleet.processes.get(owner.key))
        self._add(worker, last_sign, inputs.pane, is_held=is_held, session=session)

    def _inputs(self, thread: Thread, parent: str | None) -> RowInputs:
        fleet, links = self._fleet, self._links
        link = links.panes.get(thread.id)
        pane = fleet.panes.get(link.key) if link else None
        case = thread_facts(fleet, thread, links)
        return RowInputs(
            case=case,
            parent=parent or links.outer.get(thread.id),
            link=link,
            pane=pane,
            platform=fleet.host.platform if fleet.host else None,
            parent_policy=parent_policy(fleet.threads.get(parent or "")),
            server_findings=self._server_findings(pane) if pane else (),
            predictor=self._predictor,
            places=facts_of(fleet, thread, case.commands),
            requests=fleet.requests.get(thread.id, ()),
            label=fleet.labels.get(thread.id),
        )

    def _server_findings(self, pane: Pane) -> tuple[Finding, ...]:
        return sandboxed_server_finding(pane, self._links.servers.get(pane.key), self._fleet.kernel)

    def _add(
        self,
        worker: Worker,
        last_sign: float,
        pane: Pane | None,
        *,
        is_held: bool,
        session: str | None = None,
    ) -> None:
        """Add a worker with its settled state and its history.

        Args:
            worker: as judged.
            last_sign: when it last gave a sign of life (unix seconds); 0 where that does not matter.
            pane: its pane.
            is_held: whether a process, a lock or a pane holds it, or may.
            session: the ssh session that shows it.
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
        standing = judge_attention(
            settled.assessment,
            is_held=is_held,
            is_child=worker.parent is not None,
            looked_at=self._attention.looked_at,
            acknowledgement=self._acknowledged.get(worker.id),
            now=self._now,
        )
        if standing.due is not None:
            self._dues.append(standing.due)
        around = self._repository(worker, is_held=is_held), self._reach(worker, is_held=is_held)
        self._workers[worker.id] = self._cache.shown(worker, settled, stalled, standing, session, around)

    def _repository(self, worker: Worker, *, is_held: bool) -> Repository | None:
        """Return the repository of a worker's directory; None of a past one: others have changed it since."""
        return self._fleet.repositories.get(worker.cwd or "") if is_held else None

    def _reach(self, worker: Worker, *, is_held: bool) -> Reach | None:
        """Return what a worker could reach, by its processes or by its policy."""
        observed = self._fleet.reaches.get(worker.id)
        own, policy = self._fleet.reaches.get(""), worker.sandbox.configured
        if observed is not None or own is None or policy is None or not is_held:
            return observed
        return self._cache.reach_by_policy(worker.id, own, policy)

    def _pane_worker(self, pane: Pane, occupant: PaneOccupant) -> Worker:
        fleet = self._fleet
        main = fleet.processes.get(occupant.key)
        assessment = judge_pane(fleet, pane, occupant)
        sandbox = judge_pane_sandbox(fleet, pane, occupant, assessment)
        has_title = bool(pane.title) and occupant.gone_at is None
        session = pane_session(fleet, pane, occupant)
        chat = session.chat if session is not None and session.chat is not None else _NO_CHAT
        by = f"descends from the pane's first process (pid {pane.pid})"
        return Worker(
            id=str(pane.key),
            kind="pane",
            name=chat.name or (pane.title if has_title else pane.window) or str(pane.key),
            agent=Agent(occupant.agent),
            assessment=assessment,
            sandbox=_add_findings(sandbox, self._server_findings(pane)),
            tokens=Tokens(total=chat.total, by_model=chat.by_model, context=chat.context),
            model=chat.model,
            pane=pane,
            pids=tuple(process.pid for process in self._links.below.get(pane.key, ())),
            cwd=main.cwd if main else None,
            started=occupant.key.started,
            activity=pane.activity,
            last_activity=max((at for at in (pane.drawn_at, pane.titled_at) if at is not None), default=None),
            line=chat.tool or assessment.why,
            links=tuple(_pane_links(occupant, by, session)),
        )

    def _nested_worker(self, process: Process, thread: str) -> Worker:
        fleet = self._fleet
        agent = process.agent or process.name
        nested = PaneOccupant(
            agent=agent, key=process.key, process=process, paths=fleet.state_paths.get(process.key, ())
        )
        assessment = judge_nested(fleet, nested)
        by = "descends from the process of the thread that its environment names"
        return Worker(
            id=nested_worker_id(process.pid),
            kind="process",
            name=_nested_name(process),
            agent=Agent(agent),
            assessment=assessment,
            parent=thread,
            sandbox=judge_nested_sandbox(fleet, nested, assessment),
            pids=(process.pid,),
            cwd=process.cwd,
            started=process.key.started,
            last_activity=max(fleet.busy.get(process.key, 0.0), process.key.started),
            line=assessment.why,
            links=(Link(f"thread {thread}", by),),
        )


def _pane_links(occupant: PaneOccupant, by: str, session: SessionSeen | None) -> Iterator[Link]:
    yield Link(f"pid {occupant.key.pid}", by)
    if session is not None and session.chat is not None:
        yield Link(f"session {session.session}", session.chat.by)


def _nested_name(process: Process) -> str:
    """Return the command line of a nested worker, as a name."""
    program, *arguments = process.argv or (process.name,)
    return clean_line(" ".join((posixpath.basename(program), *arguments)), _MAX_NAME_CHARS)


def _is_at_rest(thread: Thread) -> bool:
    return thread.turn is not None and thread.turn.ended_at is not None and not thread.open_calls


def _is_shown(thread: Thread) -> bool:
    """Return whether a thread is a worker: not one that Codex runs for itself, nor one of which nothing was
    read."""
    return not thread.helper and (thread.lines > 0 or thread.file is not None)


def _thread_worker(inputs: RowInputs) -> Worker:
    case, thread = inputs.case, inputs.case.thread
    assessment = judge_thread(case)
    sandbox = judge_sandbox(
        thread,
        assessment,
        platform=inputs.platform,
        parent_policy=inputs.parent_policy,
        predictor=inputs.predictor,
        places=inputs.places,
        requests=inputs.requests,
        label=inputs.label,
    )
    if thread.agent != "codex":
        assessment, sandbox = by_transcript(assessment, sandbox)
    return Worker(
        id=thread.id,
        kind=_THREAD_KINDS[thread.agent],
        name=_thread_name(thread),
        agent=Agent(thread.agent, thread.version),
        assessment=assessment,
        parent=inputs.parent,
        sandbox=_add_findings(sandbox, inputs.server_findings),
        pane=inputs.pane,
        pids=tuple(process.pid for process in case.commands),
        cwd=thread.cwd,
        started=thread.created_at,
        tokens=thread.tokens,
        activity=thread.activity,
        last_activity=_last_activity(thread),
        line=_activity_line(thread, assessment),
        links=tuple(_thread_links(inputs)),
        policies=thread.policies,
        moments=thread.moments,
        calls=(*reversed(thread.open_calls), *reversed(thread.calls)),
        model=thread.model,
        file=thread.file.path if thread.file else None,
        turns=thread.turns,
        notes=_notes(thread),
    )


def _thread_name(thread: Thread) -> str:
    prompt = clean_line(thread.prompt or "", _MAX_NAME_CHARS)
    return thread.name or thread.nickname or prompt or thread.id[:8]


def _thread_links(inputs: RowInputs) -> Iterator[Link]:
    owner = inputs.case.owner
    if owner:
        yield Link(f"pid {owner.pid}", owner.by)
    if inputs.link:
        yield Link(f"pane {inputs.link.key}", inputs.link.by)
    for process in inputs.case.commands:
        command = " ".join(process.argv)[:_MAX_ARGV_CHARS] or process.name
        variable = THREAD_VARIABLES.get(inputs.case.thread.agent, "a variable")
        yield Link(f"pid {process.pid}", f"{variable} in its environment: {command}")


def _last_activity(thread: Thread) -> float | None:
    """Return the time of the newest line; of a file of which only a bare header was read, its mtime."""
    if thread.version or thread.last_at != thread.created_at:
        return thread.last_at
    return thread.file.modified if thread.file else None


def _activity_line(thread: Thread, assessment: Assessment) -> str:
    """Return what a thread needs, or does, or last did."""
    if assessment.state.needs_you:
        text = assessment.why
    elif thread.open_calls:
        call = thread.open_calls[-1]
        text = f"$ {call.text}" if call.kind == "command" else f"{call.tool} {call.text}"
    else:
        text = thread.last_message or thread.last_prompt or ""
    return clean_line(text, _MAX_LINE_CHARS)


def _notes(thread: Thread) -> tuple[str, ...]:
    notes = [f"{count} × {what} skipped" for what, count in thread.skipped]
    if thread.file and thread.file.skimmed:
        notes.insert(0, f"only head and tail of {thread.file.size / 1e6:.0f} MB read")
    if thread.denials_dropped:
        notes.append(f"{thread.denials_dropped} older denials dropped")
    return tuple(notes)


def _add_findings(sandbox: Sandbox, findings: tuple[Finding, ...]) -> Sandbox:
    return replace(sandbox, findings=(*sandbox.findings, *findings)) if findings else sandbox


# ---------------------------------------------------------------- the tree


def _in_tree_order(workers: dict[str, Worker]) -> Iterator[Worker]:
    """Yield families by their newest activity, parents before their children, children in the order of their
    spawning."""
    children: dict[str, list[Worker]] = {}
    for worker in workers.values():
        if worker.parent in workers:
            children.setdefault(worker.parent, []).append(worker)
    roots = [worker for worker in workers.values() if worker.parent not in workers]
    newest = {
        root.id: _newest_activity(root, children) if root.id in children else root.last_activity or 0.0
        for root in roots
    }
    visited: set[str] = set()
    for root in sorted(roots, key=lambda worker: newest[worker.id], reverse=True):
        if root.id in children or root.depth or root.children or root.below:
            yield from _family(root, children, visited)
        else:
            visited.add(root.id)
            yield root
    for worker in workers.values():  # files may name each other as parents: such families have no root
        if worker.id not in visited:
            yield from _family(worker, children, visited)


def _newest_activity(root: Worker, children: dict[str, list[Worker]]) -> float:
    """Return the newest activity in a family. Not recursive: files may name chains of any depth."""
    newest, pending, visited = 0.0, [root], {root.id}
    while pending:
        worker = pending.pop()
        newest = max(newest, worker.last_activity or 0.0)
        below = [child for child in children.get(worker.id, ()) if child.id not in visited]
        visited.update(child.id for child in below)
        pending += below
    return newest


def _family(root: Worker, children: dict[str, list[Worker]], visited: set[str]) -> list[Worker]:
    """Return a worker and those below it, each with its depth, children and what its members need."""
    members: list[tuple[Worker, int, tuple[str, ...]]] = []
    pending = [(root, 0)]
    visited.add(root.id)
    while pending:
        worker, depth = pending.pop()
        own = [child for child in children.get(worker.id, ()) if child.id not in visited]
        visited.update(child.id for child in own)
        members.append((worker, depth, tuple(child.id for child in own)))
        pending += [(child, depth + 1) for child in reversed(own)]
    family: list[Worker] = []
    waiting: dict[str, list[Worker]] = {}
    """Workers below each one that need the user, in their order."""
    for worker, depth, child_ids in reversed(members):
        below = [each for child in child_ids for each in waiting.pop(child)]
        waiting[worker.id] = _most_urgent([worker, *below])
        needs = tuple(f"{each.state} {each.name}" for each in _most_urgent(below))
        is_unchanged = (worker.depth, worker.children, worker.below) == (depth, child_ids, needs)
        family.append(
            worker if is_unchanged else replace(worker, depth=depth, children=child_ids, below=needs)
        )
    family.reverse()
    return family


def _most_urgent(workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers that need the user, the most urgent first."""
    waiting = [worker for worker in workers if worker.needs_you]
    waiting.sort(key=lambda worker: URGENCY.index(worker.state))
    return waiting[:_MAX_NEEDS]
