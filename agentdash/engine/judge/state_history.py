"""Which states a worker has been in, and which of them are shown: a function of events and their times, however often anybody looks.

Blockers are shown at once. A worker that seems to rest is shown as running a moment longer: a turn that is followed by the next one has
not left `running`. And a screen that says nothing, half drawn, changes nothing before it has said nothing for that long. What lasted no
longer than that moment is not history either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.pane_state import judge_pane
from agentdash.engine.judge.thread_state import case_of, judge_thread
from agentdash.model import events as e
from agentdash.model.evidence import Evidence
from agentdash.model.fleet import Fleet, History, Spell, Thread
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.model.worker import Judged

SETTLING: Final = 1.0
"""Seconds for which a worker must seem to rest before it has left `running`."""
DUMB: Final = 2.0
"""Seconds for which its screen must say nothing before its state is unknown: slow machines draw slowly."""
NEWBORN: Final = 3.0
"""Seconds that a thread may take from its first line to its first turn: until then it is not shown, whether it waits for one or not."""
SPELLS: Final = 50
"""Spells kept of a worker."""
_RESTS: Final = (State.COMPLETED, State.INTERRUPTED, State.EXITED, State.UNREACHABLE, State.UNKNOWN)
"""States that are no blockers: nobody is kept waiting while they settle."""
_LONG_GONE: Final = 10.0
"""Seconds without a line after which nothing but a new one changes a thread that nobody holds."""
_TELLING: Final = (
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


def settled(history: History, judged: Judged, now: float) -> tuple[Judged, tuple[Spell, ...], float | None]:
    """The state that is shown, the spells up to it, and when it will be another one if nothing happens."""
    known = history.spells
    if not known and judged.since is None:
        return judged, (), None
    spells = _entered(known, judged, known[-1].since if known else now)
    last = spells[-1]
    if (doubt := _doubt(spells)) and now < (due := last.since + doubt):
        before = replace(spells[-2], until=None)
        against = tuple(replace(evidence, agrees=False) for evidence in judged.evidence)
        evidence = (Evidence("history", before.since, "settling", f"was so until a moment ago: {before.why}"), *against)
        return Judged(State(before.state), before.since, before.why, evidence), (*spells[:-2], before), due
    return judged, spells, None


def newborn_until(thread: Thread, judged: Judged, at: float) -> float | None:
    """Until when it has only just begun, if it has: its header is written before its first turn, of children too, who wait for nobody."""
    begun = thread.last_at or (thread.file.modified if thread.file else None)
    if thread.turn is not None or judged.state not in (State.UNKNOWN, State.WAITING_INPUT) or begun is None:
        return None
    return begun + NEWBORN if begun <= at < begun + NEWBORN else None


def _doubt(spells: tuple[Spell, ...]) -> float:
    """Seconds for which the last of these must have lasted to count: rest after work, an end, and a screen that says nothing."""
    if len(spells) < 2:
        return 0.0
    last = spells[-1].state
    if last == State.UNKNOWN:
        return DUMB
    return SETTLING if last == State.EXITED or (last in _RESTS and spells[-2].state == State.RUNNING) else 0.0


def _entered(spells: tuple[Spell, ...], judged: Judged, at: float) -> tuple[Spell, ...]:
    """The spells with this state as the last one."""
    last = spells[-1] if spells else None
    if last is not None and last.state == judged.state:
        return spells
    since = at if judged.since is None else judged.since
    if last is None:
        return (Spell(str(judged.state), since, judged.why),)
    since = since if since >= last.since else max(at, last.since)  # it is back in a state that began before this one: its turn goes on
    if since - last.since < _doubt(spells):
        spells = spells[:-1]
        last = replace(spells[-1], until=None)
        if last.state == judged.state:
            return (*spells[:-1], last)
    return (*spells[:-1], replace(last, until=since), Spell(str(judged.state), since, judged.why))[-SPELLS:]


# ---------------------------------------------------------------- what is remembered


def tells(event: e.Event, threads: Mapping[str, Thread], histories: Mapping[str, History]) -> bool:
    """Whether an event may change somebody's state. Of most lines of a turn one need not even ask."""
    match event:
        case e.CallStarted(kind=kind):
            return kind in ("question", "permission") or not _runs(histories.get(event.thread))
        case e.CallEnded():
            return not _runs(histories.get(event.thread))
        case e.Said():
            return (turn := threads[event.thread].turn) is not None and turn.inferred
        case _:
            return isinstance(event, _TELLING)


def remember(fleet: Fleet, event: e.Event, histories: dict[str, History]) -> None:
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
    return history is not None and bool(history.spells) and history.spells[-1].state == State.RUNNING


def _all(fleet: Fleet, at: float, histories: dict[str, History]) -> None:
    """Everybody, but for threads of which nothing new can be said."""
    for thread in fleet.threads.values():
        known = histories.get(thread.id)
        if not thread.helper and thread.lines and (known is None or known.thread is not thread or not _alone(fleet, thread)):
            _thread(fleet, thread, at, histories)
    inhabited = {placed.key for placed in fleet.kin.panes.values()}
    for key in fleet.tenants:
        if key in inhabited:
            histories.pop(str(key), None)
        else:
            _pane(fleet, key, at, histories)


def _at_pane(fleet: Fleet, key: PaneKey, at: float, histories: dict[str, History]) -> None:
    threads = [thread for thread, placed in fleet.kin.panes.items() if placed.key == key and thread in fleet.threads]
    for thread in threads:
        _thread(fleet, fleet.threads[thread], at, histories)
    if not threads and key in fleet.tenants:
        _pane(fleet, key, at, histories)


def _thread(fleet: Fleet, thread: Thread, at: float, histories: dict[str, History]) -> None:
    if thread.helper:
        return
    known = histories.get(thread.id) or History()
    judged = judge_thread(case_of(fleet, thread, fleet.kin))
    if not known.spells and newborn_until(thread, judged, at) is not None:
        return
    spells = _entered(known.spells, judged, at)
    sealed = thread if _alone(fleet, thread) else None
    if spells is not known.spells or sealed is not known.thread:
        histories[thread.id] = History(spells, sealed)


def _alone(fleet: Fleet, thread: Thread) -> bool:
    """Whether only its file speaks of it, and has not for a while."""
    kin, looked = fleet.kin, fleet.processes_at
    spoken_of = thread.id in kin.owners or thread.id in kin.commands or thread.id in kin.panes or thread.id in fleet.pushed
    return not spoken_of and looked is not None and looked - (thread.last_at or 0.0) > _LONG_GONE


def _pane(fleet: Fleet, key: PaneKey, at: float, histories: dict[str, History]) -> None:
    if key not in fleet.panes:
        return
    known = histories.get(str(key)) or History()
    spells = _entered(known.spells, judge_pane(fleet, fleet.panes[key], fleet.tenants[key]), at)
    if spells is not known.spells:
        histories[str(key)] = History(spells)
