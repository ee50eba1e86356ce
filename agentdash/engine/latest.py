"""The latest value of something, with a wait for its next change."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class LatestValue(Generic[T]):
    """The newest of something, for who reads it and for who waits for the next."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._changed = asyncio.Event()

    @property
    def value(self) -> T:
        """What there is now."""
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = value
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, value: T) -> T:
        """What there is, as soon as that is something else. Whoever is slow misses what was between."""
        while self._value is value:
            await self._changed.wait()
        return self._value
