"""What the session log of a worker CLI in a pane says: name, turn, tokens, last tool."""

from __future__ import annotations

from typing import Literal

import msgspec

from agentdash.model.changes import Edit
from agentdash.model.tokens import ModelUsage


class Chat(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest facts of a session. None: the log has none, or does not decide it."""

    by: str
    """How the session was found among others that could be meant."""
    name: str | None = None
    """Its title; without one the first prompt."""
    model: str | None = None
    total: int | None = None
    """Tokens of all requests."""
    by_model: tuple[ModelUsage, ...] = ()
    context: int | None = None
    """Tokens given to the model with the newest request."""
    tool: str | None = None
    """The newest tool, with what it was called for: `bash: make test`."""
    edits: tuple[Edit, ...] = ()
    """The newest edit of each file, as far as the newest messages name them."""
    asks: str = ""
    """The question with which the newest message ends; empty: it asks nothing."""
    turn: Literal["open", "ended", "failed", "interrupted"] | None = None
    """Where its newest turn is. `open`: it works, or waits for an answer or an approval."""
    since: float | None = None
    """When the turn got there (unix seconds)."""
    why: str = ""
    """The error of a failed turn."""
    trouble: str | None = None
    """The error of the newest request, where the CLI tries again."""
