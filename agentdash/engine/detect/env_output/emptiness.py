"""What is known of a value: whether it is empty, or set, or may stand for several."""

from __future__ import annotations

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Parts, Trimmed


def is_many(element: Parts) -> bool:
    """Return whether an element of an array may stand for several."""
    for part in element:
        match part:
            case str() | Hole():
                pass
            case Choice(options=options) if (
                not any(map(is_many, options)) and (Hole(Kind.QUIET),) not in options
            ):
                pass
            case _:
                return True
    return False


def is_set(value: Parts | None, *, counts_empty: bool) -> bool | None:
    """Return whether a variable with a value counts as set; None where that is not known."""
    if value is None:
        return False
    if is_empty(value) is None:
        return None  # an inherited variable may be unset
    return counts_empty or not is_empty(value)


def _without_breaks(parts: Parts) -> Parts:
    return tuple(part.strip("\n") if isinstance(part, str) else part for part in parts)


def is_empty(parts: Parts) -> bool | None:
    """Return whether text is empty; None where it is not known."""
    if not parts:
        return True
    for part in parts:
        match part:
            case str() if part:
                return False
            case Hole(kind=Kind.OTHER | Kind.DIGITS):
                return False
            case Trimmed(parts=inner) if is_empty(_without_breaks(inner)) is False:
                return False
            case Dump(some=some) as dump if some or True in (dump.required(0), dump.required(1)):
                return False
            case _:
                pass
    return None
