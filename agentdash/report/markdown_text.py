"""Foreign text in Markdown: in code spans and fenced blocks, where markup has no effect."""

from __future__ import annotations

import re
from typing import Final

_BACKTICKS: Final = re.compile("`+")


def code(text: str) -> str:
    """Return a text on one line as a code span, whatever it contains."""
    line = " ".join(text.split())
    fence = "`" * (_longest_backticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def cell(text: str) -> str:
    r"""Return a code span for a table: a `|`, which would end the cell, is written `\|` there."""
    return code(text).replace("|", r"\|")


def block(text: str, language: str = "text") -> list[str]:
    """Return a text of several lines as a fenced block, whatever it contains."""
    fence = "`" * max(3, _longest_backticks(text) + 1)
    return [f"{fence}{language}", text, fence]


def _longest_backticks(text: str) -> int:
    return max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=0)
