"""Read the scrollback of one pane."""

from __future__ import annotations

from typing import Final

from agentdash.collect.tmux.command import NoAnswerError, ask
from agentdash.collect.tmux.servers import server_of
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_block

_MAX_LINES: Final = 10_000
"""Lines above the screen; tmux keeps 2,000 unless it is configured."""
_MAX_CHARS: Final = 4 << 20


def read_scrollback(pane: PaneKey) -> list[str]:
    """Return the lines of a pane, those above its screen too; none where tmux does not answer."""
    try:
        text = ask(server_of(pane.server), "capture-pane", "-p", "-S", f"-{_MAX_LINES}", "-t", pane.id)
    except NoAnswerError:
        return []
    return [line.rstrip() for line in clean_block(text, _MAX_CHARS).split("\n")]
