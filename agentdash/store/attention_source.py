"""Emit what the user has looked at and acknowledged, also as other dashboards write it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from agentdash.model.events import AttentionRecalled, Event, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel, until_beat
from agentdash.model.states import Attention
from agentdash.store.attention_file import AttentionFile

SOURCE: Final = "acknowledgements"
"""The name under which a failure is reported among the sources of a snapshot."""
_CHECK_INTERVAL_S: Final = 2.0
"""Between two looks whether another dashboard has replaced the file: one `stat` each."""


class AttentionSource:
    """Emits the content of the file at its start, and when it was replaced.

    Args:
        file: the file.
        clock: the time of the events.
    """

    name = SOURCE

    def __init__(self, file: AttentionFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._last = Attention()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what the file has, or why it cannot be read."""
        del fleet
        return self._events()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what the file has, whenever that has changed."""
        del channel
        modified: float | None = -1.0
        while True:
            if (now_modified := self._file.modified()) != modified:
                modified = now_modified
                if events := self._events():
                    emit(events)
            await asyncio.sleep(until_beat(_CHECK_INTERVAL_S, time.monotonic()))

    def _events(self) -> list[Event]:
        at = self._clock.now()
        try:
            known = self._file.read()
        except OSError as error:
            return [SourceSeen(at=at, name=self.name, ok=False, detail=clean_line(str(error)))]
        if known == self._last:
            return []
        self._last = known
        return [AttentionRecalled(at=at, attention=known)]
