"""Which states a worker has been in, and which of them are shown: a function of events and their times, however often anybody looks.

Blockers are shown at once. A worker that seems to rest is shown as running a moment longer: a turn that is followed by the next one has
not left `running`. And a screen that says nothing, half drawn, changes nothing before it has said nothing for that long. What lasted no
longer than that moment is not history either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states.pane_state import judge_pane
from agentdash.engine.judge.states.thread_state import case_of, judge_thread
from agentdash.model import events as e
from agentdash.model.evidence import Evidence
from agentdash.model.fleet import Fleet, History, StatePeriod, Thread
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.model.worker import Assessment

SETTLING_S: Final = 1.0
"""Seconds for which a worker must seem to rest before it has left `running`."""
BLANK_SCREEN_GRACE_S: Final = 2.0
"""Seconds for which its screen must say nothing before its state is unknown: slow machines draw slowly."""
STARTUP_GRACE_S: Final = 3.0
"""Seconds that a thread may take from its first line to its first turn: until then it is not shown, whether it waits for one or not."""
MAX_STATE_PERIODS: Final = 50
"""Spells kept of a worker."""
_RESTS: Final = (State.COMPLETED, State.INTERRUPTED, State.EXITED, State.UNREACHABLE, State.UNKNOWN)
"""States that are no blockers: nobody is kept waiting while they settle."""
_LONG_GONE: Final = 10.0
"""Seconds without a line after which nothing but a new one changes a thread that nobody holds."""
_STATE_CHANGING_EVENTS: Final = (
    e.TurnStarted,
    e.TurnEnded,
    e.TroubleLogged,
    e.StatusPushed,
    e.ScreenRead,
    e.ProcessesCounted,
    e.FileReset,
    e.FileGone,
    e.PaneGone,
)


# ---------------------------------------------------------------- what is shown


def settled(
    history: History, assessment: Assessment, now: float
) -> tuple[Assessment, tuple[StatePeriod, ...], float | None]:
    """The state that is shown, the spells up to it, and when it will be another one if nothing happens."""
    known = history.periods
    if not known and assessment.since is None:
        return assessment, (), None
    periods = _entered(known, assessment, known[-1].since if known else now)
    last = periods[-1]
    if (doubt := _doubt(periods)) and now < (due := last.since + doubt):
        before = replace(periods[-2], until=None)
        against = tuple(replace(evidence, agrees=False) for evidence in assessment.evidence)
        evidence = (
            Evidence("history", before.since, "settling", f"was so until a moment ago: {before.why}"),
            *against,
        )
        return (
            Assessment(State(before.state), before.since, before.why, evidence),
            (*periods[:-2], before),
            due,
        )
    return assessment, periods, None


def startup_grace_until(thread: Thread, assessment: Assessment, at: float) -> float | None:
    """Until when it has only just begun, if it has: its header is written before its first turn, of children too, who wait for nobody."""
    begun = thread.last_at or (thread.file.modified if thread.file else None)
    if (
        thread.turn is not None
        or assessment.state not in (State.UNKNOWN, State.WAITING_INPUT)
        or begun is None
    ):
        return None
    return begun + STARTUP_GRACE_S if begun <= at < begun + STARTUP_GRACE_S else None


def _doubt(periods: tuple[StatePeriod, ...]) -> float:
    """Seconds for which the last of these must have lasted to count: rest after work, an end, and a screen that says nothing."""
    if len(periods) < 2:
        return 0.0
    last = periods[-1].state
    if last == State.UNKNOWN:
        return BLANK_SCREEN_GRACE_S
    return (
        SETTLING_S if last == State.EXITED or (last in _RESTS and periods[-2].state == State.RUNNING) else 0.0
    )


def _entered(periods: tuple[StatePeriod, ...], assessment: Assessment, at: float) -> tuple[StatePeriod, ...]:
    """The spells with this state as the last one."""
    last = periods[-1] if periods else None
    if last is not None and last.state == assessment.state:
        return periods
    since = at if assessment.since is None else assessment.since
    if last is None:
        return (StatePeriod(str(assessment.state), since, assessment.why),)
    since = (
        since if since >= last.since else max(at, last.since)
    )  # it is back in a state that began before this one: its turn goes on
    if since - last.since < _doubt(periods):
        periods = periods[:-1]
        last = replace(periods[-1], until=None)
        if last.state == assessment.state:
            return (*periods[:-1], last)
    return (
        *periods[:-1],
        replace(last, until=since),
        StatePeriod(str(assessment.state), since, assessment.why),
    )[-MAX_STATE_PERIODS:]


# ---------------------------------------------------------------- what is remembered


def may_change_state(event: e.Event, threads: Mapping[str, Thread], histories: Mapping[str, History]) -> bool:
    """Whether an event may change somebody's state. Of most lines of a turn one need not even ask."""
    match event:
        case e.CallStarted(kind=kind):
            return kind in ("question", "permission") or not _runs(histories.get(event.thread))
        case e.CallEnded():
            return not _runs(histories.get(event.thread))
        case e.MessageLogged():
            return (turn := threads[event.thread].turn) is not None and turn.inferred
        case _:
            return isinstance(event, _STATE_CHANGING_EVENTS)


def update_history(fleet: Fleet, event: e.Event, histories: dict[str, History]) -> None:
    """Adds to `histories`, in place, what an event has changed.

    Args:
        fleet: with the event already in it.
    """
    match event:
        case e.ProcessesCounted():
            _all(fleet, event.at, histories)
        case e.FileGone() | e.FileReset():  # what is read again tells its states again
            histories.pop(event.thread, None)
        case e.PaneGone(key=key):
            histories.pop(str(key), None)
        case e.ScreenRead(key=key):
            _at_pane(fleet, key, event.at, histories)
        case e.StatusPushed() | e.ThreadEvent() if event.thread in fleet.threads:
            _thread(fleet, fleet.threads[event.thread], event.at, histories)


def _runs(history: History | None) -> bool:
    return history is not None and bool(history.periods) and history.periods[-1].state == State.RUNNING


def _all(fleet: Fleet, at: float, histories: dict[str, History]) -> None:
    """Everybody, but for threads of which nothing new can be said."""
    for thread in fleet.threads.values():
        known = histories.get(thread.id)
        if (
            not thread.helper
            and thread.lines
            and (known is None or known.thread is not thread or not _alone(fleet, thread))
        ):
            _thread(fleet, thread, at, histories)
    occupied = {placed.key for placed in fleet.links.panes.values()}
    for key in fleet.occupants:
        if key in occupied:
            histories.pop(str(key), None)
        else:
            _pane(fleet, key, at, histories)


def _at_pane(fleet: Fleet, key: PaneKey, at: float, histories: dict[str, History]) -> None:
    threads = [
        thread
        for thread, placed in fleet.links.panes.items()
        if placed.key == key and thread in fleet.threads
    ]
    for thread in threads:
        _thread(fleet, fleet.threads[thread], at, histories)
    if not threads and key in fleet.occupants:
        _pane(fleet, key, at, histories)


def _thread(fleet: Fleet, thread: Thread, at: float, histories: dict[str, History]) -> None:
    if thread.helper:
        return
    known = histories.get(thread.id) or History()
    assessment = judge_thread(case_of(fleet, thread, fleet.links))
    if not known.periods and startup_grace_until(thread, assessment, at) is not None:
        return
    periods = _entered(known.periods, assessment, at)
    sealed = thread if _alone(fleet, thread) else None
    if periods is not known.periods or sealed is not known.thread:
        histories[thread.id] = History(periods, sealed)


def _alone(fleet: Fleet, thread: Thread) -> bool:
    """Whether only its file speaks of it, and has not for a while."""
    links, polled = fleet.links, fleet.processes_at
    spoken_of = (
        thread.id in links.owners
        or thread.id in links.commands
        or thread.id in links.panes
        or thread.id in fleet.pushed
    )
    return not spoken_of and polled is not None and polled - (thread.last_at or 0.0) > _LONG_GONE


def _pane(fleet: Fleet, key: PaneKey, at: float, histories: dict[str, History]) -> None:
    if key not in fleet.panes:
        return
    known = histories.get(str(key)) or History()
    periods = _entered(known.periods, judge_pane(fleet, fleet.panes[key], fleet.occupants[key]), at)
    if periods is not known.periods:
        histories[str(key)] = History(periods)
