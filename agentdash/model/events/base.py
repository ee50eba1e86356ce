"""What all events have."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """The base of all events."""

    at: float
    """When it happened (unix seconds), by the source's own clock."""
