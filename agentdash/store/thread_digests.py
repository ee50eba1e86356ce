"""Restore Codex threads from digests, so that a one-shot command reads only rollouts that have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.events import Event
from agentdash.model.fleet import Fleet, History, StatePeriod, ThreadRestored
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.thread import Thread
from agentdash.store.digests import DigestStore, FileState, file_states

_VIEW: Final = "threads"
"""The view of the digests of threads."""
_SECRET: Final = b""
"""The digest of a rollout with secrets: it is read each time, and not searched for secrets again."""
_RESTING_S: Final = 60.0
"""Seconds since its last line after which a rollout gets a digest: one that grows would get a new one each
time."""


class _ThreadDigest(msgspec.Struct, array_like=True):
    """What is kept of a rollout."""

    thread: Thread
    name: str | None
    """The name of the thread in the index of names, which stands in no rollout."""
    periods: tuple[StatePeriod, ...]
    is_judged: bool
    """Whether the last period is the state of the thread as it is (`History.thread`)."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_ThreadDigest).decode


class ThreadDigests:
    """The digests of one pass over the sources; a source right behind the rollouts, which looks at what these
    have added to the fleet.

    Args:
        store: where digests are kept.
        clock: the time of the events.
    """

    name = "digests"

    def __init__(self, store: DigestStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._states: dict[Path, FileState] = {}
        self._unread: dict[Path, tuple[str, str | None]] = {}
        """Thread and name of the rollouts without a digest."""
        self._fresh: dict[Path, _ThreadDigest] = {}

    def restore(self, threads: Mapping[Path, str], names: Mapping[str, str]) -> dict[Path, ThreadRestored]:
        """Return what is known of rollouts that have not changed.

        Args:
            threads: the rollouts to read, and their threads.
            names: of threads, in the index of names.
        """
        ids = list(threads.values())
        single = {path: thread for path, thread in threads.items() if ids.count(thread) == 1}
        self._states = file_states(single)
        self._unread = {path: (single[path], names.get(single[path])) for path in self._states}
        found: dict[Path, ThreadRestored] = {}
        for path, body in self._store.load(_VIEW, self._states).items():
            digest = _decoded(body)
            if digest is not None and (digest.thread.id, digest.name) == self._unread[path]:
                history = History(digest.periods, digest.thread if digest.is_judged else None)
                found[path] = ThreadRestored(at=self._clock.now(), thread=digest.thread, history=history)
            if body == _SECRET or path in found:
                del self._unread[path]
        return found

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Take the threads that were read, before other sources add to them; emit nothing."""
        before = self._clock.now() - _RESTING_S
        for path, (ident, name) in self._unread.items():
            thread = fleet.threads.get(ident)
            if thread is None or thread.last_at is None or thread.last_at > before:
                continue
            if thread.file is None or thread.file.unreadable is not None:
                continue
            history = fleet.histories.get(ident, History())
            self._fresh[path] = _ThreadDigest(thread, name, history.periods, history.thread is thread)
        return ()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit nothing: the sources of a dashboard read their files, since they read on when these grow."""
        del emit, channel

    def save(self) -> None:
        """Keep the threads that were taken; of those with secrets nothing but that they have some."""
        digests = [
            (path, self._states[path], _encode(digest) if mask_fields(digest) == digest else _SECRET)
            for path, digest in self._fresh.items()
        ]
        self._fresh = {}
        self._store.save(_VIEW, digests)


def _decoded(body: bytes) -> _ThreadDigest | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
