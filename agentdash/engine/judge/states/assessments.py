"""Assessments by one piece of evidence, or by a screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from agentdash.engine.judge.states import facts
from agentdash.model.events import ScreenRead, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact
from agentdash.model.states import State
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
    more: Iterable[Evidence] = (),
) -> Assessment:
    """Return a state that rests on a piece of evidence: a line of the log, unless given otherwise.

    Args:
        text: of the evidence; the reason unless given.
        more: further evidence.
    """
    return Assessment(state, since, why, (Evidence(source, since or 0.0, rule, text or why), *more), fact)


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
