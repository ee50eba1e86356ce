"""The source protocol: what emits events, live or from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.pane import NO_SERVER

NOT_READ: Final = "not read: --all reads them"
"""In the detail of a source that has left out sessions at the start: tables show such a detail."""
NO_CODEX_HOME: Final = "does not exist: start Codex once, or set CODEX_HOME"
"""Ends the detail of the source of Codex's sessions where Codex was never started."""
NO_SESSIONS: Final = "has no sessions yet"
"""Ends its detail where no session was written."""
NOTHING_TO_READ: Final = (NO_SERVER, NO_CODEX_HOME, NO_SESSIONS)
"""How the detail of a source ends that has nothing to read: tmux, a Codex home."""
NO_APP_SERVER: Final = "no app-server is running"
"""Detail of Codex's feed without an app-server, which is not a failure."""
Emit = Callable[[Sequence[Event]], None]
"""Hand events to the engine."""


class FleetChannel(Protocol):
    """The newest fleet, readable by sources."""

    @property
    def value(self) -> Fleet:
        """Return the newest fleet."""
        ...

    async def wait_for_change(self, value: Fleet) -> Fleet:
        """Return the newest fleet as soon as it is not `value`."""
        ...

    async def wait_for_room(self) -> None:
        """Return when few events wait to be reduced: before a source reads on that can read faster."""
        ...


class Source(Protocol):
    """Where events come from."""

    name: str

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """One pass: everything that there is to say now."""
        ...

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Says what happens, until cancelled."""
        ...


@runtime_checkable
class ClosableSource(Protocol):
    """A source that goes on with something after `poll`."""

    async def close(self) -> None:
        """End it."""
        ...


class Clock(Protocol):
    """A source of time, and of waiting for a time."""

    def now(self) -> float:
        """Return the time (unix seconds, UTC)."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Return when `now()` has reached `at`."""
        ...


def until_beat(interval_s: float, monotonic_s: float) -> float:
    """Return the seconds until the next multiple of an interval: polls that rest until then share one
    wakeup.

    Args:
        interval_s: of the polls.
        monotonic_s: now, by `time.monotonic`.
    """
    return interval_s - monotonic_s % interval_s
