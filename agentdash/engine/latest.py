"""The latest value of something, with a wait for its next change."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from agentdash.model.fleet import Fleet

T = TypeVar("T")


class LatestValue(Generic[T]):
    """The newest value, and a wait for the next one."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._changed = asyncio.Event()

    @property
    def value(self) -> T:
        """Return the newest value."""
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = value
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, value: T) -> T:
        """Return the newest value as soon as it is not `value`; a slow reader misses those between."""
        while self._value is value:
            await self._changed.wait()
        return self._value


class LatestFleet(LatestValue[Fleet]):
    """The newest fleet of a hub, and whether its sources may emit more."""

    def __init__(self) -> None:
        super().__init__(Fleet())
        self.has_room = asyncio.Event()
        """Cleared while too many events wait to be reduced."""
        self.has_room.set()

    async def wait_for_room(self) -> None:
        """Return when few events wait to be reduced."""
        await self.has_room.wait()
