"""Read model, context and cost off the line that a worker CLI draws below its input box.

The patterns are those of `usage` in `[screen]` of `agents/<cli>.toml`; the names of their groups are the
fields of `ScreenUsage`. They are matched with the box and what is below it: what stands above may quote
anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agentdash.agents.user_patterns import Pattern
from agentdash.model.pane import ScreenUsage

FIELDS: Final = frozenset(ScreenUsage.__struct_fields__)
_UNITS: Final[Mapping[str, int]] = {"k": 1_000, "m": 1_000_000}
_NUMBER: Final = re.compile(r"([\d.,]+)([kKmM]?)\Z")
_MAX_MODEL_CHARS: Final = 80


def read_usage(text: str, patterns: Iterable[Pattern]) -> ScreenUsage:
    """Return what the text states."""
    found: dict[str, str] = {}
    for pattern in patterns:
        if (match := pattern.search(text)) is not None:
            found |= {name: value for name, value in match.groupdict().items() if value}
    model = found.pop("model", "")[:_MAX_MODEL_CHARS]
    numbers = {name: number for name, value in found.items() if (number := _number(value)) is not None}
    whole = {name: round(numbers[name]) for name in ("context", "window", "total") if name in numbers}
    return ScreenUsage(model=model or None, percent=numbers.get("percent"), cost=numbers.get("cost"), **whole)


def _number(text: str) -> float | None:
    """Return `1.2K`, `1,240`, `195k`, `0.05` as a number; None for anything else."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    try:
        return float(match[1].replace(",", "")) * _UNITS.get(match[2].lower(), 1)
    except ValueError:
        return None
