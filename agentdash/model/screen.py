"""What a worker CLI states on its own screen: its sandbox, model, context and cost."""

from __future__ import annotations

import msgspec

from agentdash.model.policy import Filesystem, Network


class ScreenLabel(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a screen states of the sandbox of one thread."""

    thread: str
    text: str
    """The line, as it stands there."""
    filesystem: Filesystem = Filesystem.UNKNOWN
    network: Network = Network.UNKNOWN
    roots: tuple[str, ...] = ()
    """Directories that it names as writable: absolute paths."""
    is_fixed: bool = False
    """Whether the policy that it is about cannot be changed in the running CLI (`codex exec`)."""


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
