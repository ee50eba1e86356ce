"""The states of a worker, and what is known of the life of a process."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """What a worker is doing (DESIGN: states)."""

    RUNNING = "running"
    WAITING_INPUT = "waiting-input"
    WAITING_APPROVAL = "waiting-approval"
    BLOCKED_SANDBOX = "blocked-sandbox"
    FAILED_PERMISSION = "failed-permission"
    FAILED_PROVIDER = "failed-provider"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    EXITED = "exited"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"

    @property
    def needs_you(self) -> bool:
        """Return whether the worker goes on only after the user has acted."""
        return self in NEEDS_YOU


NEEDS_YOU: Final = (
    State.WAITING_APPROVAL,
    State.WAITING_INPUT,
    State.BLOCKED_SANDBOX,
    State.FAILED_PERMISSION,
    State.FAILED_PROVIDER,
)
"""The states that need an action of the user, the most urgent first."""
URGENCY: Final = (
    *NEEDS_YOU,
    State.EXITED,
    State.RUNNING,
    State.UNKNOWN,
    State.UNREACHABLE,
    State.COMPLETED,
    State.INTERRUPTED,
)
"""All states, the most urgent first. `exited` counts here where it ended in the middle of a turn."""


def bucket(state: State) -> str:
    """Return the bucket of a state in the header and in the filter."""
    if state.needs_you:
        return "needs-you"
    if state is State.RUNNING:
        return "running"
    if state in (State.COMPLETED, State.INTERRUPTED):
        return "ready"
    if state in (State.EXITED, State.UNREACHABLE):
        return "gone"
    return "unknown"


class Liveness(StrEnum):
    """What is known of the life of a process or an owner; `UNKNOWN` is evidence for neither."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
