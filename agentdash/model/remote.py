"""Other hosts: the link to each, and its workers as the agentdash there states them (`collect/remote`)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from agentdash.model.worker import Worker


class LinkState(StrEnum):
    """The state of the link to a host. The values are those of the documents."""

    CONNECTING = "connecting"
    """Nothing was received yet."""
    CONNECTED = "connected"
    LOST = "lost"
    """It has ended, or nothing arrives over it: what was received last holds no longer."""


class HostLink(msgspec.Struct, frozen=True):
    """The link to a host, at one moment."""

    name: str
    """As it was given: `build1`, `me@gpu2:2222`."""
    state: LinkState
    at: float
    """Since when it is in this state (unix seconds)."""
    detail: str = ""
    """Why it was lost; what else is wrong with it."""
    version: str | None = None
    """Of the agentdash there; None: not received yet."""
    news_at: float | None = None
    """Of a lost link: when something was last received; None: never, or it is not lost."""


class RemoteHost(msgspec.Struct, frozen=True):
    """A host, and its workers as received last."""

    link: HostLink
    workers: dict[str, Worker] = {}
    """By their id there."""
    failed_sources: tuple[tuple[str, str], ...] = ()
    """What the agentdash there could not read: the source, and the detail."""
