"""Reduce what was known earlier: observations of processes that have ended, and workers of past panes."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from agentdash.engine.judge.findings.tmux_boundary import MAX_ESCAPES
from agentdash.engine.judge.states.state_history import last_settled
from agentdash.engine.link.linker import SESSION_LINE_RULE
from agentdash.engine.reduce.calls import MAX_OBSERVATIONS, drop_commonest, without_occasions
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, memory_of
from agentdash.model.memory import PastWorker, ThreadMemory, argument_digests, digest, prompt_digest
from agentdash.model.observation import SandboxObservation
from agentdash.model.pane import PaneKey
from agentdash.model.requested import Requested
from agentdash.model.states import State
from agentdash.model.thread import Thread

_T = TypeVar("_T")
MAX_PAST_WORKERS: Final = 500
"""Past workers kept, the newest ones: those of some days."""
MAX_REQUESTS: Final = 16
"""Requests kept of one worker, one for each process that ran it, the newest."""
_START_S: Final = 30.0
"""Within which a worker CLI begins its session file, on a busy machine."""
_CLOCKS_DIFFER_S: Final = 1.0
"""Between the clock of a session file and those by which the life of its process is known."""
_UNWATCHED_S: Final = 60.0
"""Time without a look for which the same words on a screen count as the same state."""


# ---------------------------------------------------------------- observations


def recall_observations(draft: Fleet, memory: ThreadMemory) -> None:
    """Add what was observed of a thread earlier, as far as the policies in force then have been read."""
    draft.recalled[memory.thread] = memory
    if memory.requests:
        live = draft.requests.get(memory.thread, ())
        add_requests(draft, memory.thread, (*memory.requests, *live))
    if (thread := draft.threads.get(memory.thread)) is not None:
        draft.threads[thread.id] = merge_recalled(thread, memory)


def add_requests(draft: Fleet, worker: str, requests: tuple[Requested, ...]) -> None:
    """Add what a worker was asked for; of the same process the newer one counts."""
    known = {request.since: request for request in (*draft.requests.get(worker, ()), *requests)}
    ordered = sorted(known.values(), key=lambda request: request.since or 0.0)
    draft.requests[worker] = tuple(ordered[-MAX_REQUESTS:])


def keep_observations(draft: Fleet, thread: Thread) -> None:
    """Keep a thread's observations beyond the contents of its file, which will be read again."""
    known = memory_of(thread)
    if known.observations or known.escapes:
        before = draft.recalled.get(thread.id) or ThreadMemory(thread.id)
        draft.recalled[thread.id] = replace(
            before,
            observations=_newest((*before.observations, *known.observations), MAX_OBSERVATIONS),
            escapes=_newest((*before.escapes, *known.escapes), MAX_ESCAPES),
        )


def _newest(facts: tuple[_T, ...], number: int) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(facts))[-number:]


def merge_recalled(thread: Thread, memory: ThreadMemory) -> Thread:
    """Return the thread with what was observed under the policies that it has now. It is idempotent."""
    policies: dict[float | None, int] = {None: -1}
    policies |= {period.since: index for index, period in enumerate(thread.policies)}
    observations = thread.observations
    for each in memory.observations:
        if (policy := policies.get(each.policy_since)) is not None:
            observations = _merge_observation(observations, replace(each.observation, policy=policy))
    escapes = thread.escapes
    if new := [escape for escape in memory.escapes if escape not in escapes]:
        escapes = tuple(sorted((*escapes, *new), key=lambda escape: escape.at))[-MAX_ESCAPES:]
    if observations == thread.observations and escapes == thread.escapes:
        return thread
    return replace(thread, observations=observations, escapes=escapes)


def _merge_observation(
    known: tuple[SandboxObservation, ...], new: SandboxObservation
) -> tuple[SandboxObservation, ...]:
    """Return the observations in the order of their newest occasion; an equal one gets the wider time."""
    essence = without_occasions(new)
    same = next((each for each in known if without_occasions(each) == essence), None)
    if same is not None:
        wider = replace(same, first=min(same.first, new.first), last=max(same.last, new.last))
        merged = tuple(wider if each is same else each for each in known)
    else:
        merged = (*known, new)
    return drop_commonest(sorted(merged, key=lambda each: each.last))


# ---------------------------------------------------------------- panes


def recall_panes(draft: Fleet, workers: tuple[PastWorker, ...]) -> None:
    """Add the workers of past panes; a screen that has been read may have shown its state since then."""
    for past in workers:
        _add_past_worker(draft, past)
    tie_past_workers(draft)
    for past in workers:
        reading = draft.readings.get(past.pane)
        if reading is not None and (since := known_since(draft, reading)) is not None:
            draft.readings[past.pane] = replace(reading, at=min(since, reading.at))


def recall_session(draft: Fleet, event: e.PaneSessionRead) -> None:
    """Add the session whose id the scrollback of a pane shows."""
    past = PastWorker(
        pane=event.key,
        worker=event.thread,
        agent=event.agent,
        seen=event.at,
        server_pid=event.server_pid,
        own=True,
        rule=SESSION_LINE_RULE,
    )
    _add_past_worker(draft, past)


def keep_pane_worker(draft: Fleet, key: PaneKey, at: float) -> None:
    """Keep the worker of a pane that is gone, with the last state that had settled."""
    pane, occupant = draft.panes.get(key), draft.occupants.get(key)
    linked = [draft.threads[thread] for thread in draft.links.threads_in(key) if thread in draft.threads]
    if pane is None or (occupant is None and not linked):
        return
    thread = max(linked, key=lambda each: each.last_at or 0.0, default=None)
    link = draft.links.panes[thread.id] if thread else None
    worker = thread.id if thread else str(key)
    period = last_settled(draft.histories.get(worker), at)
    past = PastWorker(
        pane=key,
        worker=worker,
        agent=occupant.agent if occupant else linked[0].agent,
        seen=at,
        server_pid=pane.server_pid,
        name=pane.window,
        cwd=thread.cwd if thread else occupant.process.cwd if occupant else None,
        pid=occupant.key.pid if occupant and not (link and link.claimed) else None,
        own=link is not None and (link.own or link.claimed),
        state=State(period.state) if period else State.UNKNOWN,
        since=period.since if period else None,
        ended_at=at,
        started=occupant.key.started if occupant else None,
        arguments=argument_digests(occupant.process.argv) if occupant else (),
    )
    _add_past_worker(draft, past)


def tie_past_workers(draft: Fleet) -> None:
    """Tie panes whose worker was gone before its session file was read to the thread that this file names.

    It is the only thread of the CLI that began in the directory while the process ran, with a prompt that was
    among its arguments.
    """
    for past in list(draft.past_workers.values()):
        if past.is_thread or past.started is None or not past.arguments:
            continue
        found = [thread for thread in draft.threads.values() if _may_be_of(thread, past)]
        if len(found) == 1:
            draft.past_workers[past.pane] = replace(past, worker=found[0].id, own=True)


def _may_be_of(thread: Thread, past: PastWorker) -> bool:
    if thread.agent != past.agent or thread.cwd != past.cwd or thread.created_at is None:
        return False
    began, last = past.started or 0.0, past.ended_at or past.seen + _START_S
    if not began - _CLOCKS_DIFFER_S <= thread.created_at <= last + _CLOCKS_DIFFER_S:
        return False
    return thread.prompt is not None and prompt_digest(thread.prompt) in past.arguments


def known_since(draft: Fleet, reading: e.ScreenRead) -> float | None:
    """Return since when a screen has shown what it shows, by an earlier look, or None.

    It is known if the same words of the same process were seen then, and the pane has drawn nothing since, or
    the look was a moment ago.
    """
    past, pane = draft.past_workers.get(reading.key), draft.panes.get(reading.key)
    occupant = draft.occupants.get(reading.key)
    if past is None or pane is None or occupant is None or past.since is None:
        return None
    then = (past.server_pid, past.pid, past.agent, str(past.state), past.rule, past.words)
    words = digest(reading.text)
    now = (pane.server_pid, occupant.key.pid, reading.agent, reading.state, reading.rule, words)
    is_unchanged = reading.at - past.seen <= _UNWATCHED_S or (pane.drawn_at or reading.at) <= past.seen
    return past.since if then == now and is_unchanged else None


def with_known_since(draft: Fleet, pushed: e.StatusPushed) -> e.StatusPushed:
    """Return the first status of a thread with the time since which an earlier look knew it.

    It is known if the thread waited for the same then, and has written no line since.
    """
    thread = draft.threads.get(pushed.thread)
    if thread is None or not pushed.flags or pushed.thread in draft.pushed:
        return pushed
    state = State.WAITING_APPROVAL if "waitingOnApproval" in pushed.flags else State.WAITING_INPUT
    for past in draft.past_workers.values():
        is_same = past.worker == thread.id and past.state is state and past.since is not None
        if is_same and (thread.last_at or 0.0) <= past.seen:
            return replace(pushed, at=min(pushed.at, past.since or pushed.at))
    return pushed


def _add_past_worker(draft: Fleet, past: PastWorker) -> None:
    before = draft.past_workers.get(past.pane)
    if before is not None and before.seen > past.seen:
        return
    draft.past_workers[past.pane] = past
    if len(draft.past_workers) > MAX_PAST_WORKERS:
        oldest = min(draft.past_workers.values(), key=lambda each: each.seen)
        draft.past_workers.pop(oldest.pane, None)
