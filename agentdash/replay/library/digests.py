"""Take library entries from digests, so that a second start reads only files that have changed.

Kept are entries of threads that no process has loaded, judged by as much of their file as ever is. An entry
is taken as long as its file, the file of its parent, its name, what was seen of it while it ran, and what is
asked for it are as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.model.secrets import mask_fields
from agentdash.replay.library.entry import Entry
from agentdash.store.digests import DigestStore, file_states

_VIEW: Final = "library"
"""The view of the digests of entries."""
_ENDED_S: Final = 60.0
"""Seconds since the last line after which a thread that no process has loaded stays as it is."""


class _EntryDigest(msgspec.Struct, array_like=True):
    """What is kept of an entry."""

    entry: Entry
    inputs: bytes
    """Identifies what the entry was made with besides its file."""


_NOWHERE: Final = Path()
"""In place of the path of a stored entry, which is known by the path of its digest."""


def _without_path(kind: type, value: Any) -> Any:
    del kind, value
    return _NOWHERE


_encode: Final = msgspec.msgpack.Encoder(enc_hook=lambda _: "").encode
_decode: Final = msgspec.msgpack.Decoder(_EntryDigest, dec_hook=_without_path).decode

Inputs = Callable[[Entry], tuple[object, ...]]
"""Return what an entry is made with besides its file and that of its parent."""


class EntryDigests:
    """The digests of one reading of the library.

    Args:
        entries: of the listing: their files are examined now.
    """

    def __init__(self, store: DigestStore, entries: Iterable[Entry], inputs: Inputs) -> None:
        self._store = store
        self._inputs = inputs
        ids = {entry.path: entry.id for entry in entries}
        self._states = file_states(ids)
        self._paths: dict[str, Path] = {}
        for path in self._states:
            self._paths.setdefault(ids[path], path)
        self._fresh: list[Entry] = []

    def restore(self, entries: Mapping[Path, Entry]) -> Iterator[Entry]:
        """Yield the entries that are known to be as they were, completed."""
        for path, body in self._store.load(_VIEW, self._states).items():
            listed = entries.get(path)
            if listed is None or (digest := _decoded(body)) is None:
                continue
            entry = replace(digest.entry, path=path, listed_at=listed.listed_at, archived=listed.archived)
            if digest.entry.id == listed.id and self._fingerprint(entry) == digest.inputs:
                yield entry

    def keep(self, entry: Entry, at: float) -> None:
        """Keep an entry that was read now, if it stays as it is.

        Args:
            entry: of a thread that no process has loaded.
            at: now (unix seconds).
        """
        last = (entry.begun or at) + (entry.took or 0.0)
        if entry.path in self._states and at - last > _ENDED_S and mask_fields(entry) == entry:
            self._fresh.append(entry)

    def save(self) -> None:
        """Write what was kept."""
        digests = {each.path: _EntryDigest(each, self._fingerprint(each)) for each in self._fresh}
        self._fresh.clear()
        self._store.save(
            _VIEW, [(path, self._states[path], _encode(digest)) for path, digest in digests.items()]
        )

    def _fingerprint(self, entry: Entry) -> bytes:
        path = self._paths.get(entry.parent or "")
        parent = self._states[path].identity if path is not None else b""
        return hashlib.blake2b(_encode((parent, *self._inputs(entry))), digest_size=16).digest()


def _decoded(body: bytes) -> _EntryDigest | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
