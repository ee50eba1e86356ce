"""The hub over the live sources, which recalls and saves what outlives processes and panes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from agentdash.agents.codex.home import default_home
from agentdash.config import Config, state_folder
from agentdash.engine.hub import Hub, Service
from agentdash.model.events import Event
from agentdash.model.source import Clock, Source
from agentdash.store.attention_file import AttentionFile
from agentdash.store.attention_source import AttentionSource
from agentdash.store.memory import SOURCE, Memory
from agentdash.store.memory_keeper import MemoryKeeper
from agentdash.store.memory_source import PaneMemorySource, ThreadMemorySource
from agentdash.store.thread_digests import ThreadDigests


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
    known: ThreadDigests | None = None,
) -> LiveHub:
    """Return the hub over the sources that the configuration enables.

    Args:
        more: further sources.
        observer: called with each batch of reduced events.
        known: of earlier passes, where a single one is made; None: all rollouts are read.
    """
    home = (config.codex_home or default_home()).expanduser().resolve()
    memory = Memory(state_folder(), home)
    attention = AttentionFile(state_folder(), home)
    digests = [] if known is None else [known]

    def sources() -> Iterator[Source]:
        from agentdash.collect.live import live_sources

        rollouts, *others = live_sources(config, clock, known)
        # what is remembered of panes is asked for before these are linked; of threads, once all are known
        yield from (rollouts, *digests, PaneMemorySource(memory, clock), AttentionSource(attention, clock))
        yield from (*others, ThreadMemorySource(memory, clock), *more)

    hub = Hub(_Sources(sources), clock, stalled_after=config.stalled_after, observer=observer)
    return LiveHub(hub, MemoryKeeper(memory, clock), attention)


class _Sources:
    """Sources that are made, and their modules imported, when the hub runs: the first picture comes first."""

    def __init__(self, make: Callable[[], Iterable[Source]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Source]:
        return iter(self._made)

    @cached_property
    def _made(self) -> tuple[Source, ...]:
        return tuple(self._make())
