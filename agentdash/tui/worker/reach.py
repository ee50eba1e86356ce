"""The Reach tab: what a worker's commands could write, read or connect to now."""

from __future__ import annotations

from typing import Final

from agentdash.model.reach import Reach, Reached
from agentdash.model.worker import Worker
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph
from agentdash.tui.theme import Look

_TONES: Final[dict[str, Tone]] = {"can": "stuck", "may": "mismatch", "unknown": "muted"}
_VERBS: Final = {"connect": "connect to", "write": "write", "read": "read"}
_NOT_LOOKED: Final = "Not known: none of its processes lives, or it was not looked at yet."


def reach_tab(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the lines of the tab: how it is known, then each target, the worst first."""
    reach = worker.reach
    if reach is None:
        return paragraph(_NOT_LOOKED, cells, "muted")
    lines = paragraph(reach_in_words(reach), cells)
    if reach.limits:
        lines += paragraph(f"could refuse more: {', '.join(reach.limits)}", cells, "muted")
    lines.append(BLANK)
    lines += [_line(each, cells, look) for each in reach.reached()]
    hidden = [each for each in reach.targets if each.certainty == "unknown"]
    lines += [_line(each, cells, look) for each in hidden]
    return lines


def reach_in_words(reach: Reach) -> str:
    """Return in a sentence how much is reached, and by what it is known."""
    by = "Its commands" if reach.by == "processes" else "By its policy, its commands"
    found = reach.reached()
    certain = sum(each.certainty == "can" for each in found)
    possible = len(found) - certain
    parts = [f"can reach {certain}"] if certain else []
    parts += [f"may reach {possible}"] if possible else []
    parts += [] if parts else ["reach none"]
    return f"{by} {' and '.join(parts)} of {len(reach.targets) + reach.refused} targets."


def _line(each: Reached, cells: int, look: Look) -> Line:
    target = each.target
    verb = Span(f"{each.certainty:<8}", _TONES[each.certainty])
    how = f" ({each.how})" if each.how else ""
    text = f"{_VERBS[target.action]} {target.path}{how}"
    return fit((verb, Span(text), Span(f"  {target.what}", "muted")), cells, look.glyphs.ellipsis)
