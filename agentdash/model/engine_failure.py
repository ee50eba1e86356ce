"""A failure of the engine itself, as part of a snapshot."""

from __future__ import annotations

from typing import Literal

import msgspec

FailedStep = Literal["reduce", "observe", "snapshot", "stopped"]


class EngineFailure(msgspec.Struct, frozen=True):
    """An error inside the engine: from then on a snapshot may be old or incomplete."""

    at: float
    """When it happened first (unix seconds)."""
    step: FailedStep
    error: str
    """Type and message of the newest error, `KeyError: 'x'`."""
    count: int = 1
    """How often it has happened."""

    @property
    def goes_on(self) -> bool:
        """Return whether snapshots are still built, without the events that were lost."""
        return self.step in ("reduce", "observe")

    @property
    def text(self) -> str:
        """Return the failure in one line."""
        lost = f" ({self.count} events lost)" if self.goes_on else ""
        return f"{self.error}{lost}"


class EngineFailedError(Exception):
    """The engine failed: its snapshots are old or incomplete. The message is one line."""

    def __init__(self, failure: EngineFailure) -> None:
        super().__init__(f"engine: {failure.text}")
        self.failure = failure
