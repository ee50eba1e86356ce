"""The prompt or question that a worker waits with, as the worker shows it."""

from __future__ import annotations

from typing import Final

from agentdash.model.fact import WAITING, FactKind
from agentdash.model.pane import Pane
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.format import age
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.theme import ASCII, Look

_MAX_SCREEN_LINES: Final = 10
"""Of a screen, from the bottom: a dialog with a command, a reason and four options."""
_MAX_OBJECT_LINES: Final = 8
"""Of a command or a question that is not on a screen."""
_BAR: Final = ("▏", "|")
_ASKING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)


def question(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return what a worker waits with, and how to get there; nothing for a worker that does not wait."""
    if worker.state not in _ASKING or worker.fact.kind is FactKind.IDLE:
        return []
    lines = _asked(worker, cells) if worker.fact.kind in WAITING else []
    if worker.pane is not None:
        lines += _quoted(worker.pane, cells, look)
    return [BLANK, *lines, *_way(worker, cells)]


def _asked(worker: Worker, cells: int) -> list[Line]:
    """Return the object of the question, whole: the command, the file, the words."""
    fact = worker.fact
    head = (Span(f"{fact.what}  ", "ask"),)
    if len(fact.what) * 3 > cells:  # too little room beside it
        return [
            *paragraph(fact.what, cells, "ask"),
            *paragraph(fact.object, cells, "strong", indent=2, cap=_MAX_OBJECT_LINES),
        ]
    lines = paragraph(fact.object, cells, "strong", head=head, cap=_MAX_OBJECT_LINES)
    if fact.why and fact.why != fact.object:
        lines += paragraph(f"because: {fact.why}", cells, indent=2, cap=3)
    return lines


def _quoted(pane: Pane, cells: int, look: Look) -> list[Line]:
    """Return the last lines of its screen that have words, indented as there."""
    written = [line.rstrip() for line in pane.screen if any(map(str.isalnum, line))][-_MAX_SCREEN_LINES:]
    if not written:
        return []
    margin = min(len(line) - len(line.lstrip()) for line in written)
    bar = (Span(_BAR[look.glyphs is ASCII] + " ", "rule"),)
    lines = [part for line in written for part in _wrapped(line[margin:], cells, bar)]
    seen = f"its screen, {age(look.now - pane.drawn_at)} ago" if pane.drawn_at is not None else "its screen"
    return [(Span(seen, "muted"),), *lines]


def _wrapped(text: str, cells: int, bar: Line) -> list[Line]:
    """Return a line of a screen behind a bar on each of its lines."""
    return [(*bar, *line) for line in paragraph(text, cells - 2, indent=0)]


def _way(worker: Worker, cells: int) -> list[Line]:
    """Return how to get to the place where it is answered."""
    if worker.pane is None:
        where = "No tmux pane is linked to it: answer it in the window in which it runs."
        return paragraph(where, cells, "muted")
    return [(Span("o", "key", "app.go_to_pane"), Span(f" goes to pane {worker.pane.key}", "muted"))]
