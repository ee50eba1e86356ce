"""Whether a process, an owner or a worker is known to live."""

from __future__ import annotations

from enum import StrEnum


class Liveness(StrEnum):
    """What is known of the life of a process or an owner; `UNKNOWN` is evidence for neither."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
