"""The hub over the live sources, which recalls and saves what outlives processes and panes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.codex.home import default_home
from agentdash.config import Config, state_folder
from agentdash.engine.hub import Hub, Service
from agentdash.model.events import Event
from agentdash.model.source import Clock, Source
from agentdash.store.attention import AttentionFile, AttentionSource
from agentdash.store.memory import SOURCE, Memory, MemoryKeeper, MemorySource


class LiveHub(NamedTuple):
    """A hub over the live sources, and what saves its evidence."""

    hub: Hub
    keeper: MemoryKeeper
    attention: AttentionFile

    @property
    def service(self) -> Service:
        """Return the service that saves while the hub runs."""
        return SOURCE, lambda: self.keeper.keep(self.hub)

    def save(self) -> None:
        """Save what is not saved yet, for an exit by force."""
        self.keeper.save(self.hub.fleet, self.hub.snapshot)


def live_hub(
    config: Config,
    clock: Clock,
    *more: Source,
    observer: Callable[[Sequence[Event]], None] | None = None,
    whole: Container[str] = (),
) -> LiveHub:
    """Return the hub over the sources that the configuration enables.

    Args:
        more: further sources.
        observer: called with each batch of reduced events.
        whole: threads whose logs are read whole at first.
    """
    memory = Memory(state_folder(), _home(config))
    attention = attention_file(config)

    def sources() -> Iterator[Source]:
        from agentdash.collect.live import live_sources

        rollouts, *others = live_sources(config, clock, whole)
        # what is remembered of panes is asked for before these are linked; of threads, once all are known
        yield from (
            rollouts,
            MemorySource(memory, clock, of_threads=False),
            AttentionSource(attention, clock),
        )
        yield from (*others, MemorySource(memory, clock, of_threads=True), *more)

    hub = Hub(_Sources(sources), clock, stalled_after=config.stalled_after, observer=observer)
    return LiveHub(hub, MemoryKeeper(memory, clock), attention)


def attention_file(config: Config) -> AttentionFile:
    """Return the file of what the user has looked at, acknowledged and knows of."""
    return AttentionFile(state_folder(), _home(config))


def _home(config: Config) -> Path:
    return (config.codex_home or default_home()).expanduser().resolve()


class _Sources:
    """Sources that are made, and their modules imported, when the hub runs: the first picture comes first."""

    def __init__(self, make: Callable[[], Iterable[Source]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Source]:
        return iter(self._made)

    @cached_property
    def _made(self) -> tuple[Source, ...]:
        return tuple(self._make())


# ------------------------------------------------------------
# The C library's allocator, set up for programs that run for days


_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameters of glibc's `mallopt` (malloc.h)."""
_THRESHOLD_BYTES: Final = 128 << 10
"""glibc's own value, which grows with the largest block that was freed unless it is set."""


def return_freed_memory() -> None:
    """Let glibc give memory back to the system: by default it keeps most of what once was in use.

    With 60 growing rollouts that is 15 MB after 20 minutes, and grows on. To be called before threads start.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
