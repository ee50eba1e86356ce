"""What a worker CLI that is known by its pane alone is doing: its server, its process, its own file, its screen, asked in this order."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states.corroboration import (
    attach_corroboration,
    screen_says,
    session_says,
    shown_in,
)
from agentdash.engine.judge.states.sandboxed_pane import blocked, cut_off, denied, hindered, sits_still
from agentdash.model.events import ScreenRead, SessionSeen
from agentdash.model.evidence import Evidence
from agentdash.model.fleet import PaneOccupant, ProviderTrouble
from agentdash.model.fleet_draft import FleetView
from agentdash.model.pane import Pane, tmux_source
from agentdash.model.states import State
from agentdash.model.worker import Assessment

_AT_REST: Final = (State.COMPLETED, State.WAITING_INPUT, State.INTERRUPTED)
LASTING: Final = 3.0
"""Seconds for which a screen must show work again before its trouble is over."""
_SAYS: Final = {"busy": State.RUNNING, "waiting": State.WAITING_APPROVAL, "idle": State.COMPLETED}
"""A worker's own word, as a state."""
_SAYS_MORE: Final = {
    "busy": (State.RUNNING, State.FAILED_PROVIDER),
    "waiting": (State.WAITING_APPROVAL, State.WAITING_INPUT),
    "idle": (
        State.COMPLETED,
        State.WAITING_INPUT,
        State.INTERRUPTED,
        State.FAILED_PROVIDER,
        State.BLOCKED_SANDBOX,
    ),
}
"""What a screen may make of that word: it knows questions from permissions, retries from work, and how a turn has ended."""


def judge_pane(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> Assessment:
    """State of a worker CLI that is known by its pane only."""
    source = fleet.sources.get(tmux_source(pane.key.server))
    if source is not None and not source.ok:
        text = f"its tmux server cannot be asked: {source.detail}"
        return Assessment(
            State.UNREACHABLE, source.at, text, (Evidence("tmux", source.at, "server-gone", source.detail),)
        )
    pane = _with_status(fleet, pane)
    if pane.dead or (occupant is not None and occupant.gone_at is not None):
        return _gone(fleet, pane, occupant)
    reading, session = fleet.readings.get(pane.key), _session(fleet, pane, occupant)
    return attach_corroboration(
        _alive(fleet, pane, occupant, reading, session), (*screen_says(reading), *session_says(session))
    )


# ---------------------------------------------------------------- it is gone


def _gone(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> Assessment:
    at, how, evidence = _ending(pane, occupant)
    finished = pane.dead and pane.dead_status == 0
    reading = fleet.readings.get(pane.key)
    # who was at rest and left without an error has quit: what its last screen quotes did not stop it
    left = finished or (
        reading is not None and reading.state in _AT_REST and not pane.dead_status and not pane.dead_signal
    )
    if not left and (found := denied(fleet, pane, occupant) or hindered(fleet, occupant)) is not None:
        assessment = blocked(*found, at, how)
        return Assessment(
            assessment.state, assessment.since, assessment.why, (*assessment.evidence, evidence)
        )
    known = fleet.histories.get(str(pane.key))
    last = known.periods[-1] if known and known.periods else None
    if (
        last is not None and last.state == State.BLOCKED_SANDBOX and last.since >= at
    ):  # its last words have scrolled away
        return Assessment(State.BLOCKED_SANDBOX, last.since, last.why, (evidence,))
    if finished and occupant is not None and occupant.process is not None and occupant.process.once:
        return Assessment(State.COMPLETED, at, f"its one task is done: {how}", (evidence,))
    return Assessment(State.EXITED, at, how, (evidence,))


def _ending(pane: Pane, occupant: PaneOccupant | None) -> tuple[float, str, Evidence]:
    """When it ended, how, and what shows it."""
    if pane.dead:
        at, how = pane.dead_at or 0.0, _died(pane)
        return at, how, Evidence("tmux", at, "pane-dead", f"pane_dead=1, {how}")
    at = (occupant.gone_at if occupant else None) or 0.0
    text = f"{occupant.agent} (pid {occupant.key.pid}) is gone from the pane" if occupant else "it is gone"
    return at, text, Evidence("process", at, "worker-gone", text)


def _with_status(fleet: FleetView, pane: Pane) -> Pane:
    """A dead pane whose server has not collected its program yet: that is a zombie, and the kernel knows how it ended."""
    if not pane.dead or pane.dead_status is not None or pane.dead_signal is not None:
        return pane
    code = next((p.exit_code for p in fleet.processes.values() if p.pid == pane.pid and p.zombie), None)
    return pane if code is None else replace(pane, dead_status=code)


def _died(pane: Pane) -> str:
    if pane.dead_signal:
        return f"killed by signal {pane.dead_signal}"
    return "exit code unknown" if pane.dead_status is None else f"exit code {pane.dead_status}"


# ---------------------------------------------------------------- it is there


def _alive(
    fleet: FleetView,
    pane: Pane,
    occupant: PaneOccupant | None,
    reading: ScreenRead | None,
    session: SessionSeen | None,
) -> Assessment:
    """What its own file says, in the words of its screen where these say more; without one its screen."""
    state = State(reading.state) if reading is not None and reading.state else None
    if session is not None and session.status is not None and state not in _SAYS_MORE[session.status]:
        evidence = next(session_says(session)).evidence
        return Assessment(
            _SAYS[session.status], session.since, f"its own session file says: {evidence.text}", (evidence,)
        )
    if (
        reading is not None
        and state is State.FAILED_PROVIDER
        and (cut := cut_off(fleet, occupant, reading.text)) is not None
    ):
        return blocked(*cut, reading.at, "it tries again")
    if (
        state in (None, State.RUNNING)
        and sits_still(fleet, pane, occupant)
        and (found := hindered(fleet, occupant)) is not None
    ):
        return blocked(*found, pane.moved_at or pane.drawn_at or 0.0, "it sits still")
    trouble = fleet.troubles.get(str(pane.key))
    if trouble is not None and state in (None, State.INTERRUPTED) and not _over(trouble, reading):
        evidence = Evidence(trouble.source, trouble.at, "request-failed", trouble.text)
        return Assessment(
            State.FAILED_PROVIDER,
            trouble.at,
            f"stopped while its provider failed: {trouble.text}",
            (evidence,),
        )
    if reading is not None and state is not None:
        return shown(reading)
    if reading is not None and reading.partial:
        return half_a_menu(reading, f"its {pane.width}x{pane.height} pane")
    if (found := denied(fleet, pane, occupant)) is not None:
        return blocked(*found, pane.drawn_at or pane.titled_at or 0.0, "it goes no further")
    return Assessment(State.UNKNOWN, None, "its process runs; nothing that it shows is understood here")


def _over(trouble: ProviderTrouble, reading: ScreenRead | None) -> bool:
    """Whether work had gone on before it stopped."""
    return trouble.over is not None and reading is not None and reading.at - trouble.over > LASTING


def _session(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> SessionSeen | None:
    keys = [p.key for p in fleet.links.below.get(pane.key, ())] + ([occupant.key] if occupant else [])
    return next((fleet.sessions[key] for key in keys if key in fleet.sessions), None)


def shown(reading: ScreenRead) -> Assessment:
    """A state as the rules for the worker's screen read it."""
    half = " (part of it is out of sight)" if reading.partial else ""
    hidden = " (behind a view that hides its prompt)" if reading.frozen else ""
    evidence = Evidence(shown_in(reading), reading.at, reading.rule or "", reading.text)
    return Assessment(
        State(reading.state or "unknown"),
        reading.at,
        f"its screen shows {reading.text}{half}{hidden}",
        (evidence,),
    )


def half_a_menu(reading: ScreenRead, where: str) -> Assessment:
    """It may be waiting: what for, and whether at all, does not fit on its screen."""
    why = f"may be waiting: part of a menu is out of sight in {where}: {reading.text}"
    return Assessment(
        State.UNKNOWN, reading.at, why, (Evidence("screen", reading.at, reading.rule or "", reading.text),)
    )
