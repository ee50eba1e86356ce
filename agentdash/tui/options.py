"""What the app is given: where snapshots come from, how it is to look, how it gets to a pane."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentdash.model.pane import PaneKey
from agentdash.model.worker import Snapshot

OnSnapshot = Callable[[Snapshot], None]
"""Is shown every snapshot, and tells somebody away from the screen what is new in it."""
GoToPane = Callable[[PaneKey], Awaitable[str | None]]
"""Goes to a pane; returns None, or on one line what was in the way."""


class Feed(Protocol):
    """Where snapshots come from."""

    def snapshots(self) -> AsyncIterator[Snapshot]:
        """The newest snapshot whenever there is a new one, at most 10 a second. Whoever is slow misses some."""
        ...


@dataclass(frozen=True)
class Options:
    """How it is to look."""

    ascii: bool = False
    """No sign outside of ASCII."""
    theme: str | None = None
    """A name out of `theme.THEMES`, or of Textual's own; None: `TEXTUAL_THEME`, else `dark`."""
    banner: str | None = None
    """A word in the header, `DEMO`."""
    select: str | None = None
    """The worker to start on: a name, a pane id, an id or its beginning."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Other keys for an action, by its id: see `keys.remapped`."""
    debug_log_hint: str = "--debug-log FILE writes the traceback"
    """Where the traceback of an engine failure is, or how to get it."""
