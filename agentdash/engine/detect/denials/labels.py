"""Remove what a script prints before a message that it captured: `echo "failed: $(cp a /opt 2>&1)"`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentdash.engine.detect.denials.lines import Lines
from agentdash.engine.detect.denials.programs import Role
from agentdash.engine.detect.denials.ran import Ran
from agentdash.engine.detect.denials.sources import prefix_of


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
