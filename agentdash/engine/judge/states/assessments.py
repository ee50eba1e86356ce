"""Assessments that rest on one piece of evidence, and what other sources say about an assessment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec.structs import replace

from agentdash.engine.judge.states import facts
from agentdash.model.events import ScreenRead, SessionSeen, SourceSeen, StatusPushed
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact
from agentdash.model.process import Process
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Assessment

RECOVERY_S: Final = 3.0
"""Time for which a screen must show work before its trouble with the provider counts as over: between two
retries some CLIs draw a working screen for a moment."""


Said = Literal["busy", "waiting", "idle", "open"]
"""What a worker CLI states itself: the status in its session file, or a turn that is open in its record."""
_ADDED_BY_SCREEN: Final[dict[Said, tuple[State, ...]]] = {
    "busy": (State.RUNNING,),
    "waiting": (State.WAITING_APPROVAL, State.WAITING_INPUT),
    "idle": (
        State.COMPLETED,
        State.WAITING_INPUT,
        State.INTERRUPTED,
        State.FAILED_PROVIDER,
        State.BLOCKED_SANDBOX,
    ),
    "open": (State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT),
}
"""States of a screen that only say more about what the CLI states."""


def is_heard(reading: ScreenRead, said: Said) -> bool:
    """Return whether a screen says more about what the CLI states itself; a contradiction does not count.

    So no screen ends a turn that the CLI's status or its record says is open.
    """
    if said == "open" and reading.is_at_prompt:
        return False
    return reading.state in _ADDED_BY_SCREEN[said]


def conclude(
    state: State,
    since: float | None,
    rule: str,
    why: str,
    *,
    source: EvidenceSource = EvidenceSource.ROLLOUT,
    text: str | None = None,
    fact: Fact | None = None,
) -> Assessment:
    """Return a state that rests on one piece of evidence: a line of the log, unless given otherwise.

    Args:
        text: of the evidence; the reason unless given.
    """
    return Assessment(state, since, why, (Evidence(source, since or 0.0, rule, text or why),), fact)


def server_gone(server: SourceSeen) -> Assessment:
    """Return `unreachable`, of a worker in a pane whose tmux server does not answer."""
    return conclude(
        State.UNREACHABLE,
        server.at,
        "server-gone",
        f"its tmux server does not answer: {server.detail}",
        source=EvidenceSource.TMUX,
        text=server.detail,
        fact=facts.unclear("its tmux server does not answer:", server.detail),
    )


def assess_screen(reading: ScreenRead) -> Assessment:
    """Return the state that the screen rules of the worker CLI have read."""
    part = " (part of it is out of sight)" if reading.partial else ""
    hidden = " (behind a view that hides its prompt)" if reading.frozen else ""
    why = f"its screen shows {reading.text}{part}{hidden}"
    state, evidence = State(reading.state or State.UNKNOWN), screen_evidence(reading, reading.text)
    return Assessment(state, reading.at, why, (evidence,), facts.shown(reading))


def assess_half_menu(reading: ScreenRead, where: str) -> Assessment:
    """Return `unknown`: it may be waiting, but half of the menu does not fit into the pane."""
    why = f"may be waiting: part of a menu is out of sight in {where}: {reading.text}"
    fact = facts.unclear(f"may be waiting, part of a menu is out of sight in {where}:", reading.text)
    return Assessment(State.UNKNOWN, reading.at, why, (screen_evidence(reading, reading.text),), fact)


def screen_evidence(reading: ScreenRead, text: str) -> Evidence:
    """Return a screen reading as evidence."""
    return Evidence(reading.source, reading.at, reading.rule or "", text)


# ---------------------------------------------------------------- corroboration
# Observations of other sources agree with a concluded state or not, and never decide.


Appearances = frozenset[str]
"""What a worker may look like to a source that shows less than the authority: it works, waits for an answer,
or rests."""
_WORKS, _WAITS, _RESTS = "works", "waits", "rests"
_APPEARANCES: Final[dict[State, Appearances]] = {
    State.RUNNING: frozenset((_WORKS,)),
    State.WAITING_APPROVAL: frozenset((_WAITS,)),
    State.WAITING_INPUT: frozenset((_WAITS, _RESTS)),
    State.BLOCKED_SANDBOX: frozenset((_WORKS, _RESTS)),
    State.FAILED_PERMISSION: frozenset((_RESTS,)),
    State.FAILED_PROVIDER: frozenset((_WORKS, _RESTS)),
    State.COMPLETED: frozenset((_RESTS,)),
    State.INTERRUPTED: frozenset((_RESTS,)),
}
"""How each state may appear. Two states without a common appearance contradict each other."""
_STATUS_APPEARANCES: Final = {
    "active": frozenset((_WORKS,)),
    "busy": frozenset((_WORKS,)),
    "waiting": frozenset((_WAITS,)),
    "idle": frozenset((_RESTS,)),
    "system-error": frozenset((_RESTS,)),
}
"""How a status may appear, of `StatusPushed` and of `SessionSeen`."""
_CONTRADICTION: Final[Appearances] = frozenset()
"""Of an observation that contradicts every state."""


Corroboration = tuple[Appearances, Evidence]
"""How the worker appears to one source, and what that observed."""


def attach_corroboration(assessment: Assessment, observations: Iterable[Corroboration]) -> Assessment:
    """Return the assessment with the observations of other sources as evidence for or against it.

    Observations that agree are left out if the assessment already has evidence of their source.
    """
    expected = _APPEARANCES.get(assessment.state)
    if expected is None:
        return assessment
    known = {(e.source, e.rule, e.at) for e in assessment.evidence}
    sources = {e.source for e in assessment.evidence}
    more = [
        replace(evidence, agrees=not expected.isdisjoint(appearances))
        for appearances, evidence in observations
        if (evidence.source, evidence.rule, evidence.at) not in known
    ]
    more = [evidence for evidence in more if not evidence.agrees or evidence.source not in sources]
    return replace(assessment, evidence=(*assessment.evidence, *more)) if more else assessment


def screen_corroborates(reading: ScreenRead | None) -> Iterator[Corroboration]:
    """Yield the reading of its screen; a menu that is partly out of sight contradicts any conclusion."""
    if reading is None:
        return
    appearances = _APPEARANCES.get(State(reading.state or State.UNKNOWN))
    if appearances is not None:
        yield appearances, screen_evidence(reading, f"{reading.state}: {reading.text}")
    if reading.partial:
        yield _CONTRADICTION, screen_evidence(reading, f"part of a menu is out of sight: {reading.text}")


def feed_corroborates(pushed: StatusPushed | None) -> Iterator[Corroboration]:
    """Yield the newest status in Codex's feed."""
    if pushed is not None and pushed.status in _STATUS_APPEARANCES:
        text = f"thread/status/changed {' '.join((pushed.status, *pushed.flags))}"
        appearances = frozenset((_WAITS,)) if pushed.flags else _STATUS_APPEARANCES[pushed.status]
        yield appearances, Evidence(EvidenceSource.CODEX_FEED, pushed.at, "status-pushed", text)


def session_corroborates(session: SessionSeen | None) -> Iterator[Corroboration]:
    """Yield the status in the worker CLI's own session file."""
    if session is not None and session.status is not None:
        waiting_for = f", waiting for {session.waiting_for}" if session.waiting_for else ""
        text = f"status {session.status}{waiting_for}"
        evidence = Evidence(EvidenceSource.SESSION_FILE, session.since, "session-status", text)
        yield _STATUS_APPEARANCES[session.status], evidence


def commands_corroborate(commands: tuple[Process, ...]) -> Iterator[Corroboration]:
    """Yield the newest live process of its commands; a background terminal outlives its turn."""
    if commands:
        process = commands[-1]
        text = f"pid {process.pid} of its commands runs: {' '.join(process.argv)[:200] or process.name}"
        evidence = Evidence(EvidenceSource.PROCESS, process.key.started, "command-alive", text)
        yield frozenset((_WORKS, _WAITS)), evidence


def output_corroborates(thread: Thread) -> Iterator[Corroboration]:
    """Yield the newest denial in a turn that has ended, also one inside of a command that exited with 0."""
    turn = thread.turn
    if turn is None or (turn.ended_at is None and not turn.inferred):
        return
    for call in reversed(thread.calls):
        denial = call.denial
        if denial is not None and denial.is_certain and turn.has(call):
            at, text = call.ended_at or call.at, f"`{call.text}` -> {denial.quote}"
            yield _CONTRADICTION, Evidence(denial.source, at, f"denied-{denial.what}", text)
            return
