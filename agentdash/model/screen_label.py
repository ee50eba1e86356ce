"""The sandbox that a worker CLI states on its own screen."""

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
