"""Keep what the user has looked at and acknowledged, in one small JSON file of the state directory.

The file has ids, states, times and digests: no texts. It is replaced whole, and read again before each
change, so that several dashboards add to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from agentdash.files import MAX_TEXT_FILE_BYTES, read_bytes, write_private
from agentdash.model.sanitize import is_clean_json
from agentdash.model.states import Acknowledgement, Attention

NAME: Final = "attention.json"
"""The file, in agentdash's state directory."""
_KEPT_S: Final = 30 * 86_400.0
"""Of an acknowledgement: as long as the memory file keeps workers."""
_MAX_KEPT: Final = 500
"""Acknowledgements of one home, the newest ones: 60 kB."""


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
            OSError: it cannot be read, or is no file of this module.
        """
        return self._read().homes.get(self._home, Attention())

    def acknowledge(self, new: Acknowledgement) -> Attention:
        """Add an acknowledgement; return what is known then.

        Raises:
            OSError: the file cannot be used.
        """
        return self._change(lambda known: _bounded(known.added(new), new.at))

    def withdraw(self, worker: str) -> Attention:
        """Remove the acknowledgement of a worker; return what is known then.

        Raises:
            OSError: the file cannot be used.
        """
        return self._change(lambda known: known.removed(worker))

    def look(self, at: float) -> Attention:
        """Keep when the user last looked (unix seconds); an earlier time changes nothing.

        Raises:
            OSError: the file cannot be used.
        """
        return self._change(
            lambda known: msgspec.structs.replace(known, looked_at=max(at, known.looked_at or 0.0))
        )

    def modified(self) -> float | None:
        """Return when the file was last replaced (unix seconds); None where it is missing."""
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

    def _change(self, change: Callable[[Attention], Attention]) -> Attention:
        content = self._read()
        known = change(content.homes.get(self._home, Attention()))
        new = _Content({**content.homes, self._home: known})
        write_private(self.path, msgspec.json.encode(new))
        return known


def _bounded(known: Attention, now: float) -> Attention:
    kept = [each for each in known.acknowledged if now - each.at < _KEPT_S]
    newest = sorted(kept, key=lambda each: each.at)[-_MAX_KEPT:]
    return msgspec.structs.replace(known, acknowledged=tuple(newest))
