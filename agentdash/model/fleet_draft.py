"""A fleet under construction: copies lazily what a batch of events changes, and freezes into a `Fleet`."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from typing import TypeVar, overload

from agentdash.model.events import HostSeen
from agentdash.model.fleet import Fleet, FleetLinks, Locks
from agentdash.model.process import Kernel
from agentdash.model.states import Attention

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class CopyOnWrite(MutableMapping[K, V]):
    """A mapping that shares its dict until it is first changed; the shared dict itself never changes.

    Reading costs what a dict costs. The first change after `__init__` or `freeze` copies the dict, the
    following ones do not; changes of constant cost need another implementation of this class alone.
    """

    __slots__ = ("_data", "_shared")

    def __init__(self, data: dict[K, V]) -> None:
        self._data = data
        self._shared = True

    def freeze(self) -> dict[K, V]:
        """Return the dict as it is now; later changes do not reach it."""
        self._shared = True
        return self._data

    def discard(self, key: K) -> None:
        """Remove a key, if present."""
        if key in self._data:
            del self[key]

    def clear(self) -> None:
        """Remove all keys."""
        self._data = {}
        self._shared = False

    def _writable(self) -> dict[K, V]:
        if self._shared:
            self._data = dict(self._data)
            self._shared = False
        return self._data

    def __setitem__(self, key: K, value: V) -> None:
        self._writable()[key] = value

    def __delitem__(self, key: K) -> None:
        del self._writable()[key]

    def __getitem__(self, key: K) -> V:
        return self._data[key]

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[K]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    # the inherited versions of these are correct, and ten times as slow

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: V | D | None = None, /) -> V | D | None:
        """Return the value of a key, or the default."""
        return self._data.get(key, default)

    def keys(self) -> KeysView[K]:
        """Return a view of the keys."""
        return self._data.keys()

    def values(self) -> ValuesView[V]:
        """Return a view of the values."""
        return self._data.values()

    def items(self) -> ItemsView[K, V]:
        """Return a view of the items."""
        return self._data.items()


class FleetDraft:
    """The fields of a `Fleet`, changeable; neither the fleet it starts from nor any fleet it froze changes
    with it.

    Args:
        fleet: what is known before the changes.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.threads = CopyOnWrite(fleet.threads)
        self.panes = CopyOnWrite(fleet.panes)
        self.processes = CopyOnWrite(fleet.processes)
        self.readings = CopyOnWrite(fleet.readings)
        self.pushed = CopyOnWrite(fleet.pushed)
        self.observed = CopyOnWrite(fleet.observed)
        self.provisional = CopyOnWrite(fleet.provisional)
        self.occupants = CopyOnWrite(fleet.occupants)
        self.locks: Locks | None = fleet.locks
        self.processes_at: float | None = fleet.processes_at
        self.files_at: float | None = fleet.files_at
        self.sources = CopyOnWrite(fleet.sources)
        self.host: HostSeen | None = fleet.host
        self.mounts = CopyOnWrite(fleet.mounts)
        self.state_paths = CopyOnWrite(fleet.state_paths)
        self.repositories = CopyOnWrite(fleet.repositories)
        self.reaches = CopyOnWrite(fleet.reaches)
        self.paths = CopyOnWrite(fleet.paths)
        self.links: FleetLinks = fleet.links
        self.busy = CopyOnWrite(fleet.busy)
        self.labels = CopyOnWrite(fleet.labels)
        self.troubles = CopyOnWrite(fleet.troubles)
        self.sessions = CopyOnWrite(fleet.sessions)
        self.requests = CopyOnWrite(fleet.requests)
        self.recalled = CopyOnWrite(fleet.recalled)
        self.past_workers = CopyOnWrite(fleet.past_workers)
        self.attention: Attention | None = fleet.attention
        self.histories = CopyOnWrite(fleet.histories)
        self.remotes = CopyOnWrite(fleet.remotes)

    @property
    def kernel(self) -> Kernel | None:
        """Return agentdash's own kernel facts."""
        return self.host.kernel if self.host else None

    def freeze(self) -> Fleet:
        """Return the fleet as it is now. Mappings that did not change are those of the fleet before."""
        return Fleet(
            threads=self.threads.freeze(),
            panes=self.panes.freeze(),
            processes=self.processes.freeze(),
            readings=self.readings.freeze(),
            pushed=self.pushed.freeze(),
            observed=self.observed.freeze(),
            provisional=self.provisional.freeze(),
            occupants=self.occupants.freeze(),
            locks=self.locks,
            processes_at=self.processes_at,
            files_at=self.files_at,
            sources=self.sources.freeze(),
            host=self.host,
            mounts=self.mounts.freeze(),
            state_paths=self.state_paths.freeze(),
            repositories=self.repositories.freeze(),
            reaches=self.reaches.freeze(),
            paths=self.paths.freeze(),
            links=self.links,
            busy=self.busy.freeze(),
            labels=self.labels.freeze(),
            troubles=self.troubles.freeze(),
            sessions=self.sessions.freeze(),
            requests=self.requests.freeze(),
            recalled=self.recalled.freeze(),
            past_workers=self.past_workers.freeze(),
            attention=self.attention,
            histories=self.histories.freeze(),
            remotes=self.remotes.freeze(),
        )


FleetView = Fleet | FleetDraft
"""What linking and judging read: a fleet, or the state of one in the middle of a batch of events."""
