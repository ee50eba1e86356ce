"""What a worker CLI's screen states of its model, its context and its cost."""

from __future__ import annotations

import msgspec


class ScreenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures below an input box; None: not shown. They are the CLI's, and rounded as it shows them."""

    model: str | None = None
    """As the CLI names it, with the provider where it names that too."""
    context: int | None = None
    """Tokens in the context."""
    window: int | None = None
    """Tokens that the context has room for."""
    percent: float | None = None
    """How full the context is."""
    total: int | None = None
    """Tokens of the session."""
    cost: float | None = None
    """US dollars, by the CLI's own prices."""
