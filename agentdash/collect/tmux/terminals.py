"""Notice that panes draw, without asking tmux: their programs write to terminals, which inotify reports.

Only the times of output are seen so, not the output. Nothing else in tmux needs attention within seconds: a
new pane has a new terminal; sizes, names and modes of panes are found by the next poll.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentdash.collect import inotify
from agentdash.collect.notices import Notices

_FOLDER: Final = Path("/dev/pts")
"""Where Linux has pseudo-terminals (`devpts`)."""
_OWN_TERMINAL: Final = "/dev/tty"
"""A program may open its terminal by this name; then that is what it writes to."""


class PaneTerminals:
    """The terminals of panes, watched for output and for new ones."""

    def __init__(self) -> None:
        self._notices = Notices()

    def watch(self, terminals: Iterable[str]) -> bool:
        """Watch these terminals; return whether output in all of them is noticed."""
        masks = {str(_FOLDER): inotify.CREATE | inotify.DELETE, _OWN_TERMINAL: inotify.MODIFY}
        # a path that does not belong to this folder is another system's, or was made up
        known = [path for path in terminals if Path(path).parent == _FOLDER]
        masks |= dict.fromkeys(known, inotify.MODIFY)
        self._notices.watch(masks)
        return all(self._notices.watched(path) for path in masks)

    async def wait(self, seconds: float) -> bool:
        """Return whether a program has written since the last call, or does within this time."""
        return await self._notices.wait(seconds)

    def close(self) -> None:
        """Stop watching."""
        self._notices.close()
