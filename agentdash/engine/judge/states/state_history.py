"""The states that a worker has been in, and which of them are shown: a function of events and their times.

States that need the user are shown at once. A worker that seems to rest is shown as running for `SETTLING_S`
longer, since a turn that is followed by the next one has not left `running`. A screen that shows nothing,
half drawn, changes nothing within `BLANK_SCREEN_GRACE_S`. States that lasted no longer than that are not part
of the history either, nor is asking that ended within `SETTLING_S`: a menu that was still on the screen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.judge.states.pane_state import judge_pane
from agentdash.engine.judge.states.thread_facts import thread_facts
from agentdash.engine.judge.states.thread_state import judge_thread
from agentdash.model import events as e
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import WAITING
from agentdash.model.fleet import Fleet, FleetKnown, History, RecordingEnded, StatePeriod
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Assessment

SETTLING_S: Final = 1.0
"""Time for which a worker must seem to rest before it has left `running`: the next turn of a queue starts
within it."""
BLANK_SCREEN_GRACE_S: Final = 2.0
"""Time for which a screen must match no rule before the state is unknown: slow machines take as long to draw
one."""
STARTUP_GRACE_S: Final = 3.0
"""Time that a thread may take from its first line to its first turn: until then it is not shown, not even as
waiting."""
MAX_STATE_PERIODS: Final = 50
"""State periods kept of a worker."""
_IDLE_AFTER_S: Final = 10.0
"""Time without a line after which a thread that no process has loaded can change only by a new line."""
_WAITING_CALLS: Final = ("question", "permission")
"""Kinds of calls that wait for the user."""
_RESTING: Final = (State.COMPLETED, State.INTERRUPTED, State.EXITED, State.UNREACHABLE, State.UNKNOWN)
"""States in which a worker needs no one, so that they may settle first."""


# ---------------------------------------------------------------- what is shown


class SettledState(NamedTuple):
    """The state that is shown of a worker."""

    assessment: Assessment
    periods: tuple[StatePeriod, ...]
    """Its history, the shown state last."""
    due: float | None = None
    """When another state will be shown without any event (unix seconds)."""


def settle(history: History, assessment: Assessment, now: float) -> SettledState:
    """Return the state to show at a time (unix seconds): the assessed one, or the one before until that has
    settled."""
    known = history.periods
    if not known and assessment.since is None:
        return SettledState(assessment, ())
    periods = _enter(known, assessment, known[-1].since if known else now)
    settling_time = _settling_time(periods)
    due = periods[-1].since + settling_time
    if not settling_time or now >= due:
        return SettledState(assessment, periods)
    before = replace(periods[-2], until=None)
    text = f"was so until a moment ago: {before.why}"
    evidence = Evidence(EvidenceSource.HISTORY, before.since, "settling", text)
    against = (replace(other, agrees=False) for other in assessment.evidence)
    shown = Assessment(State(before.state), before.since, before.why, (evidence, *against))
    return SettledState(shown, (*periods[:-2], before), due)


def last_settled(history: History | None, at: float) -> StatePeriod | None:
    """Return the last period of a history that had settled by a time (unix seconds)."""
    periods = history.periods if history else ()
    if not periods:
        return None
    return periods[-1] if at - periods[-1].since >= _settling_time(periods) else periods[-2]


def startup_grace_until(thread: Thread, assessment: Assessment, at: float) -> float | None:
    """Return until when a thread counts as starting, or None if it does not at time `at`.

    The header of a rollout is written before its first turn, also those of child threads, which never wait
    for input.
    """
    if thread.turn is not None or assessment.state not in (State.UNKNOWN, State.WAITING_INPUT):
        return None
    started = thread.written_at
    if started is None or not started <= at < started + STARTUP_GRACE_S:
        return None
    return started + STARTUP_GRACE_S


def _settling_time(periods: tuple[StatePeriod, ...]) -> float:
    """Return the seconds for which the last period must last to count."""
    if len(periods) < 2:
        return 0.0
    state, before = periods[-1].state, periods[-2].state
    if state == State.UNKNOWN:
        return BLANK_SCREEN_GRACE_S
    if state == State.EXITED or (state in _RESTING and before == State.RUNNING):
        return SETTLING_S
    return 0.0


def _enter(periods: tuple[StatePeriod, ...], assessment: Assessment, at: float) -> tuple[StatePeriod, ...]:
    """Return the periods with the assessed state as the last one."""
    last = periods[-1] if periods else None
    if last is not None and last.state == assessment.state:
        return periods
    since = at if assessment.since is None else assessment.since
    waits = assessment.fact is not None and assessment.fact.kind in WAITING
    if last is None:
        return (StatePeriod(state=str(assessment.state), since=since, why=assessment.why, waits=waits),)
    if since < last.since:
        since = max(at, last.since)  # back in a state that began before the last one: its turn goes on
    if since - last.since < _settling_time(periods) or _is_passing(periods, assessment.state, since):
        periods = periods[:-1]
        last = replace(periods[-1], until=None)
        if last.state == assessment.state:
            return (*periods[:-1], last)
    entered = StatePeriod(state=str(assessment.state), since=since, why=assessment.why, waits=waits)
    return (*periods[:-1], replace(last, until=since), entered)[-MAX_STATE_PERIODS:]


def _is_passing(periods: tuple[StatePeriod, ...], state: State, since: float) -> bool:
    """Return whether a worker asked within `running` for no time: a menu was still drawn when its answer was
    known."""
    if len(periods) < 2:
        return False
    asked = periods[-1].state in (State.WAITING_APPROVAL, State.WAITING_INPUT)
    is_back = state == periods[-2].state == State.RUNNING
    return asked and is_back and since - periods[-1].since < SETTLING_S


# ---------------------------------------------------------------- what is kept


def update_history(draft: Fleet, event: e.Event) -> None:
    """Add the state changes of an event, which is in the fleet already, to the histories."""
    match event:
        case e.ProcessesCounted() | FleetKnown() | RecordingEnded():
            _update_all(draft, event.at)
        case e.FileGone() | e.FileReset():  # a file that is read again states its history again
            draft.histories.pop(event.thread, None)
        case e.PaneGone(key=key):
            draft.histories.pop(str(key), None)
        case e.ScreenRead(key=key):
            threads = [thread for thread in draft.links.threads_in(key) if thread in draft.threads]
            for thread in threads:
                _update_thread(draft, draft.threads[thread], event.at)
            if not threads and key in draft.occupants:
                _update_pane(draft, key, event.at)
        case e.SessionSeen(session=str(session)) if session in draft.threads:
            _update_thread(draft, draft.threads[session], event.at)
        case (
            e.CallStarted()
            | e.CallEnded()
            | e.MessageLogged()
            | e.TurnStarted()
            | e.TurnEnded()
            | e.TroubleLogged()
            | e.StatusPushed()
        ) if event.thread in draft.threads and _may_change_state(draft, event):
            _update_thread(draft, draft.threads[event.thread], event.at)


def _may_change_state(draft: Fleet, event: e.Event) -> bool:
    """Return whether a line of a log may change a state: most are those of a running turn, and do not."""
    match event:
        case e.MessageLogged(thread=thread):
            turn = draft.threads[thread].turn
            return turn is not None and turn.inferred
        case e.CallStarted(kind=kind) if kind in _WAITING_CALLS:
            return True
        case e.CallStarted(thread=thread) | e.CallEnded(thread=thread):
            history = draft.histories.get(thread)
            return history is None or history.periods[-1].state != State.RUNNING
    return True


def _update_all(draft: Fleet, at: float) -> None:
    """Update every worker, except for threads that cannot have changed."""
    for thread in list(draft.threads.values()):
        known = draft.histories.get(thread.id)
        is_unchanged = known is not None and known.thread is thread and _is_idle(draft, thread)
        if thread.lines and not is_unchanged:
            _update_thread(draft, thread, at)
    linked = {link.key for link in draft.links.panes.values() if not link.claimed}
    for key in draft.occupants:
        if key in linked:
            draft.histories.pop(str(key), None)
        else:
            _update_pane(draft, key, at)


def _update_thread(draft: Fleet, thread: Thread, at: float) -> None:
    if thread.helper:
        return
    known = draft.histories.get(thread.id) or History()
    assessment = judge_thread(thread_facts(draft, thread, draft.links))
    if not known.periods and startup_grace_until(thread, assessment, at) is not None:
        return
    periods = _enter(known.periods, assessment, at)
    judged = thread if _is_idle(draft, thread) else None
    if periods is not known.periods or judged is not known.thread:
        draft.histories[thread.id] = History(periods, judged)


def _update_pane(draft: Fleet, key: PaneKey, at: float) -> None:
    if key not in draft.panes:
        return
    known = draft.histories.get(str(key)) or History()
    periods = _enter(known.periods, judge_pane(draft, draft.panes[key], draft.occupants[key]), at)
    if periods is not known.periods:
        draft.histories[str(key)] = History(periods)


def _is_idle(draft: Fleet, thread: Thread) -> bool:
    """Return whether a thread's rollout is the only source that knows of it, and has been silent for a
    while."""
    links, polled = draft.links, draft.processes_at
    is_linked = thread.id in links.owners or thread.id in links.commands or thread.id in links.panes
    if is_linked or thread.id in draft.pushed or polled is None:
        return False
    return polled - (thread.last_at or 0.0) > _IDLE_AFTER_S
