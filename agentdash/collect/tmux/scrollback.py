"""Read the scrollback of one pane."""

from __future__ import annotations

import subprocess
from typing import Final

from agentdash.collect.tmux.servers import TmuxServer
from agentdash.model.sanitize import clean_block

_MAX_LINES: Final = 10_000
"""Lines above the screen; tmux keeps 2,000 unless it is configured."""
_MAX_CHARS: Final = 4 << 20
_TIMEOUT_S: Final = 2.0


def read_scrollback(server: TmuxServer, pane: str) -> list[str]:
    """Return the lines of a pane (`%4`), those above its screen too; none where tmux does not answer."""
    try:
        done = subprocess.run(
            ["tmux", "-u", *server.args, "capture-pane", "-p", "-S", f"-{_MAX_LINES}", "-t", pane],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.rstrip() for line in clean_block(done.stdout, _MAX_CHARS).split("\n")]
