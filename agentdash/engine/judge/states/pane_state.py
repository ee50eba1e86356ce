"""The state of a worker CLI that is known by its pane alone.

Its tmux server, its process, its session file and its screen are consulted in this order.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from agentdash.engine.judge.states import facts as short
from agentdash.engine.judge.states.assessments import (
    RECOVERY_S,
    Said,
    assess_half_menu,
    assess_screen,
    conclude,
    is_heard,
    server_gone,
)
from agentdash.engine.judge.states.corroboration import (
    attach_corroboration,
    screen_corroborates,
    session_corroborates,
)
from agentdash.engine.judge.states.sandboxed_pane import (
    assess_blocked,
    has_no_activity,
    network_cut_denial,
    screen_denial,
    state_path_denial,
)
from agentdash.model.events import ScreenRead, SessionSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import NOT_RECORDED, FleetView, PaneOccupant, ProviderTrouble
from agentdash.model.pane import Pane, tmux_source
from agentdash.model.states import State
from agentdash.model.worker import Assessment

_AT_REST: Final = (State.COMPLETED, State.WAITING_INPUT, State.INTERRUPTED)
_AT_WORK: Final = (State.RUNNING, State.WAITING_APPROVAL, State.BLOCKED_SANDBOX, State.FAILED_PROVIDER)
_STATE_OF_STATUS: Final[dict[Literal["busy", "idle", "waiting"], State]] = {
    "busy": State.RUNNING,
    "waiting": State.WAITING_APPROVAL,
    "idle": State.COMPLETED,
}
"""The state that the status of a session file (`SessionSeen.status`) stands for where the screen adds
nothing."""
_STATE_OF_TURN: Final = {
    "ended": State.COMPLETED,
    "failed": State.FAILED_PROVIDER,
    "interrupted": State.INTERRUPTED,
}
"""The state that a turn in the log of a session (`Chat.turn`) stands for. An open one may be waiting."""


_LOGS_WITHOUT_ENDS: Final = ("qwen",)
"""Worker CLIs whose logs have no line for a turn that is cancelled or fails: an open one says nothing."""


def judge_pane(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> Assessment:
    """Return the state of a worker CLI that is known by its pane only."""
    server = fleet.sources.get(tmux_source(pane.key.server))
    if server is not None and server.detail == NOT_RECORDED:
        return _assess_unrecorded(fleet, pane, occupant, server.at)
    if server is not None and not server.ok:
        return server_gone(server)
    pane = _with_exit_code(fleet, pane)
    if pane.dead or (occupant is not None and occupant.gone_at is not None):
        return _assess_ended(fleet, pane, occupant)
    reading, session = fleet.readings.get(pane.key), pane_session(fleet, pane, occupant)
    return attach_corroboration(
        _assess_alive(fleet, pane, occupant, reading, session),
        (*screen_corroborates(reading), *session_corroborates(session)),
    )


def _assess_unrecorded(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None, at: float) -> Assessment:
    """Return the state after the end of a recording: of a worker that had not ended, it is not known."""
    if pane.dead or (occupant is not None and occupant.gone_at is not None):
        return _assess_ended(fleet, pane, occupant)
    history = fleet.histories.get(str(pane.key))
    periods = history.periods if history else ()
    last = next((period for period in reversed(periods) if period.state != State.UNREACHABLE), None)
    before = f"; it was {last.state} then: {last.why}" if last else ""
    return conclude(
        State.UNREACHABLE,
        since=at,
        why=f"{NOT_RECORDED}{before}",
        source=EvidenceSource.HISTORY,
        rule="recording-ended",
        fact=short.unclear(f"{NOT_RECORDED}{before}"),
    )


# ---------------------------------------------------------------- its process has ended


def _assess_ended(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> Assessment:
    at, how, evidence = _ending(pane, occupant)
    finished = pane.dead and pane.dead_status == 0
    # one that was at rest and left without an error has quit: what its last screen quotes did not stop it
    quit_at_rest = _was_at_rest(fleet, pane) and not pane.dead_status and not pane.dead_signal
    if not finished and not quit_at_rest:
        denial = screen_denial(fleet, pane, occupant) or state_path_denial(fleet, occupant)
        if denial is not None:
            assessment = assess_blocked(denial, at, how)
            return replace(assessment, evidence=(*assessment.evidence, evidence))
    history = fleet.histories.get(str(pane.key))
    last = history.periods[-1] if history and history.periods else None
    if last is not None and last.state == State.BLOCKED_SANDBOX and last.since >= at:
        # what it printed last has scrolled away since
        fact = short.unclear("blocked:", last.why)
        return Assessment(
            state=State.BLOCKED_SANDBOX, since=last.since, why=last.why, evidence=(evidence,), fact=fact
        )
    if finished and occupant is not None and occupant.process is not None and occupant.process.once:
        return Assessment(
            state=State.COMPLETED,
            since=at,
            why=f"its one task is done: {how}",
            evidence=(evidence,),
            fact=short.done(""),
        )
    fact = short.ended(how, in_a_turn=not quit_at_rest and _was_at_work(fleet, pane))
    return Assessment(state=State.EXITED, since=at, why=how, evidence=(evidence,), fact=fact)


def _was_at_work(fleet: FleetView, pane: Pane) -> bool:
    """Return whether a worker that has ended was in the middle of something: by its last screen, or since it
    ended with an error."""
    reading = fleet.readings.get(pane.key)
    state = reading.state if reading is not None else None
    return state in _AT_WORK or bool(pane.dead_status or pane.dead_signal)


def _was_at_rest(fleet: FleetView, pane: Pane) -> bool:
    reading = fleet.readings.get(pane.key)
    return reading is not None and reading.state in _AT_REST


def _ending(pane: Pane, occupant: PaneOccupant | None) -> tuple[float, str, Evidence]:
    """Return when it ended (unix seconds), how, and the evidence."""
    if pane.dead:
        at, how = pane.dead_at or 0.0, _cause_of_death(pane)
        source, rule, text = EvidenceSource.TMUX, "pane-dead", f"pane_dead=1, {how}"
    else:
        at = (occupant.gone_at if occupant else None) or 0.0
        how = f"{occupant.agent} (pid {occupant.key.pid}) is gone from the pane" if occupant else "it is gone"
        source, rule, text = EvidenceSource.PROCESS, "worker-gone", how
    return at, how, Evidence(source=source, at=at, rule=rule, text=text)


def _with_exit_code(fleet: FleetView, pane: Pane) -> Pane:
    """Return a dead pane with the exit code of its zombie, which tmux 3.3 may not have collected."""
    if not pane.dead or pane.dead_status is not None or pane.dead_signal is not None:
        return pane
    code = next((p.exit_code for p in fleet.processes.values() if p.pid == pane.pid and p.zombie), None)
    return pane if code is None else replace(pane, dead_status=code)


def _cause_of_death(pane: Pane) -> str:
    if pane.dead_signal:
        return f"killed by signal {pane.dead_signal}"
    return "exit code unknown" if pane.dead_status is None else f"exit code {pane.dead_status}"


# ---------------------------------------------------------------- its process lives


def _assess_alive(
    fleet: FleetView,
    pane: Pane,
    occupant: PaneOccupant | None,
    reading: ScreenRead | None,
    session: SessionSeen | None,
) -> Assessment:
    """Return the state by its session file or log, as far as the screen only says more about it; without
    these by its screen."""
    state = State(reading.state) if reading is not None and reading.state else None
    said = _said(session)
    is_contradicted = reading is not None and state is not None and said and not is_heard(reading, said)
    if session is not None and session.status is not None and (state is None or is_contradicted):
        return _assess_session(session)
    if session is not None and is_contradicted:
        return _by_log(session, State.RUNNING, "its newest turn is open", "")
    if (found := _sandbox_block(fleet, pane, occupant, reading, state)) is not None:
        return found
    chat = session.chat if session is not None else None
    if session is not None and chat is not None and chat.trouble and state in (None, State.RUNNING):
        return _by_log(session, State.RUNNING, "it tries again", chat.trouble)
    trouble = fleet.troubles.get(str(pane.key))
    if trouble is not None and state in (None, State.INTERRUPTED) and not _is_over(trouble, reading):
        return conclude(
            State.FAILED_PROVIDER,
            since=trouble.at,
            why=f"stopped while its provider failed: {trouble.text}",
            source=trouble.source,
            rule="request-failed",
            text=trouble.text,
            fact=short.provider(trouble.text),
        )
    if reading is not None and state is not None:
        return assess_screen(reading)
    if reading is not None and reading.partial:
        return assess_half_menu(reading, f"its {pane.width}x{pane.height} pane")
    if (denial := screen_denial(fleet, pane, occupant)) is not None:
        return assess_blocked(denial, pane.drawn_at or pane.titled_at or 0.0, "it goes no further")
    if session is not None and chat is not None and chat.turn in _STATE_OF_TURN:
        return _by_log(session, _STATE_OF_TURN[chat.turn], f"its newest turn {chat.turn}", chat.why)
    return Assessment(
        state=State.UNKNOWN,
        since=None,
        why="its process runs; nothing that it shows is understood here",
        fact=short.unclear("its process runs; its screen is not understood"),
    )


def _by_log(session: SessionSeen, state: State, how: str, error: str) -> Assessment:
    """Return a state by the log of a session, where the screen does not decide it."""
    text = f"{how}: {error}" if error else how
    facts = {
        State.RUNNING: short.retries(error) if error else short.by_status("busy", ""),
        State.COMPLETED: short.done(""),
        State.INTERRUPTED: short.stopped("", ""),
        State.FAILED_PROVIDER: short.provider(error),
    }
    return conclude(
        state,
        since=session.since,
        why=f"by the log of its session: {text}",
        source=EvidenceSource.SESSION_LOG,
        rule="session-log",
        text=text,
        fact=facts[state],
    )


def _said(session: SessionSeen | None) -> Said | None:
    """Return what the CLI states itself: its status, or that a turn of this process is open in its log."""
    if session is None or session.status is not None:
        return session.status if session is not None else None
    chat = session.chat
    if chat is None or chat.turn != "open" or session.agent in _LOGS_WITHOUT_ENDS:
        return None
    is_own = chat.since is None or chat.since >= session.key.started
    return "open" if is_own else None


def _assess_session(session: SessionSeen) -> Assessment:
    status = session.status or "idle"
    evidence = next(session_corroborates(session)).evidence
    return Assessment(
        state=_STATE_OF_STATUS[status],
        since=session.since,
        why=f"its session file: {evidence.text}",
        evidence=(evidence,),
        fact=short.by_status(status, session.waiting_for or ""),
    )


def _sandbox_block(
    fleet: FleetView,
    pane: Pane,
    occupant: PaneOccupant | None,
    reading: ScreenRead | None,
    state: State | None,
) -> Assessment | None:
    """Return `blocked-sandbox` where its sandbox explains a failing provider or a standstill."""
    if reading is not None and (state is State.FAILED_PROVIDER or reading.is_retrying):
        denial = network_cut_denial(fleet, occupant, reading.text)
        return assess_blocked(denial, reading.at, "it tries again") if denial else None
    if state in (None, State.RUNNING) and has_no_activity(fleet, pane, occupant):
        denial = state_path_denial(fleet, occupant)
        return assess_blocked(denial, _last_change(pane), "it sits still") if denial else None
    return None


def _last_change(pane: Pane) -> float:
    return pane.moved_at or pane.drawn_at or 0.0


def _is_over(trouble: ProviderTrouble, reading: ScreenRead | None) -> bool:
    """Return whether work had gone on before it stopped."""
    return trouble.over is not None and reading is not None and reading.at - trouble.over > RECOVERY_S


def pane_session(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> SessionSeen | None:
    """Return the session of a pane's worker: of its process, or of one that it started itself again as."""
    if occupant is None:
        return None
    keys = [occupant.key, *(p.key for p in fleet.links.below.get(pane.key, ()) if p.agent == occupant.agent)]
    return next((fleet.sessions[key] for key in keys if key in fleet.sessions), None)
