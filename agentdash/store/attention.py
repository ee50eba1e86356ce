"""Keep what the user has looked at, acknowledged, knows of and labelled in a small JSON file; emit it as it
changes.

The file has ids, states, kinds of findings, directories, times, digests and labels: no texts of sessions. It
is replaced whole, and read again before each change, so that several dashboards add to each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.files import MAX_TEXT_FILE_BYTES, read_bytes, write_private
from agentdash.model.events import AttentionRecalled, Event, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.source import Clock, Emit, FleetChannel, until_beat
from agentdash.model.states import Attention

NAME: Final = "attention.json"
"""The file, in agentdash's state directory."""
_KEPT_S: Final = 30 * 86_400.0
"""Of an acknowledgement: as long as the memory file keeps workers."""
_MAX_KEPT: Final = 500
"""Acknowledgements of one home, known findings, and bookmarks, the newest ones: 60 kB each."""


class _Content(msgspec.Struct, frozen=True):
    homes: dict[str, Attention] = {}


class AttentionFile:
    """The file of one state directory, for one Codex home.

    Args:
        folder: agentdash's state directory; it is created with mode 0700 when something is written.
        home: the Codex home whose workers are meant.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self.path = folder / NAME
        self._home = str(home)

    def read(self) -> Attention:
        """Return what the file has; nothing known where it is missing.

        Raises:
            OSError: it cannot be read, or this module did not write it.
        """
        return self._read().homes.get(self._home, Attention())

    def change(self, change: Callable[[Attention], Attention]) -> Attention:
        """Replace what is known by what `change` makes of it, and return that; old acknowledgements go.

        Raises:
            OSError: the file cannot be used.
        """
        content = self._read()
        known = _bounded(change(content.homes.get(self._home, Attention())))
        write_private(self.path, msgspec.json.encode(_Content({**content.homes, self._home: known})))
        return known

    def modified(self) -> float | None:
        """Return when the file was last replaced (unix seconds), or None if it is missing."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    def _read(self) -> _Content:
        try:
            content = read_bytes(self.path, MAX_TEXT_FILE_BYTES, follow=False)
            if not is_clean_json(content):
                raise msgspec.DecodeError("it has control characters")
            return msgspec.json.decode(content, type=_Content)
        except FileNotFoundError:
            return _Content()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OSError(f"{self.path} is not a file of agentdash: {error}") from error


def _bounded(known: Attention) -> Attention:
    newest = sorted(known.acknowledged, key=lambda each: each.at)[-_MAX_KEPT:]
    kept = tuple(each for each in newest if newest[-1].at - each.at < _KEPT_S)
    return msgspec.structs.replace(
        known, acknowledged=kept, known=known.known[-_MAX_KEPT:], bookmarks=known.bookmarks[-_MAX_KEPT:]
    )


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
