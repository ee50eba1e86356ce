"""Restore messages as programs gave them: without what a script prints before a message that it captured
(`echo "failed: $(cp a /opt 2>&1)"`), and without the line breaks of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agentdash.sandbox.denials.attribution import prefix_of
from agentdash.sandbox.denials.lines import Lines
from agentdash.sandbox.denials.programs import Role
from agentdash.sandbox.denials.ran import Ran

_BLOCK_MARGIN: Final = "  "
"""On both sides of a block of Symfony's console (Composer, Artisan): its lines are cut at a width, inside of
words as well, and padded to it."""


def without_breaks(lines: Lines, numbers: Iterable[int]) -> Lines:
    """Return the lines with each of these that is part of a block as long as its paragraph.

    Args:
        lines: the output.
        numbers: of the lines that may report a denial.
    """
    for number in numbers:
        first = last = number
        while _goes_on(lines, first - 1):
            first -= 1
        while _goes_on(lines, last):
            last += 1
        if first < last:
            parts = (line.removeprefix(_BLOCK_MARGIN).rstrip() for line in lines.range(first, last))
            lines = lines.with_line(number, "".join(parts))
    return lines


def _goes_on(lines: Lines, number: int) -> bool:
    """Return whether a line of a block is cut at its width and goes on in the next one."""
    if not 0 <= number < len(lines) - 1:
        return False
    line, following = lines[number], lines[number + 1]
    if not (line.startswith(_BLOCK_MARGIN) and line.endswith(_BLOCK_MARGIN) and len(line) == len(following)):
        return False
    is_full = not line.removesuffix(_BLOCK_MARGIN).endswith(" ")
    return is_full and following.startswith(_BLOCK_MARGIN) and following.endswith(_BLOCK_MARGIN)


def without_labels(lines: Lines, numbers: Iterable[int], ran: Iterable[Ran]) -> Lines:
    """Return the lines with each of these beginning with the name of a simple tool, where the script prints
    what is known only when it runs, and a line holds such a message.

    Args:
        lines: the output.
        numbers: of the lines that may report a denial.
        ran: the commands of the script.
    """
    commands = tuple(ran)
    names = {c.name for c in commands if c.role is Role.TOOL and not c.unseen}
    if not names or not any(c.name in ("echo", "printf") and "" in c.words for c in commands):
        return lines
    named = re.compile(rf"[\s=:'\"(\[](?=(?:{'|'.join(map(re.escape, sorted(names)))}): )")
    for number in numbers:
        line = lines[number]
        if prefix_of(line) not in names and (label := named.search(line)):
            lines = lines.with_line(number, line[label.end() :])
    return lines
