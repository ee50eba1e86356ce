"""The lines of a row of the fleet list: one in columns, up to three where a worker needs the user, and in a
narrow list two where a finding does not fit. Pure."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len

from agentdash.model.causes import causes
from agentdash.model.fact import Fact
from agentdash.tui.fleet.cells import AGE_CELLS, CARDS_BELOW_CELLS, Item, in_state_for, name_cell
from agentdash.tui.fleet.what import fact_line, fact_words, shown_fact, what
from agentdash.tui.format import elide_object, wrap
from agentdash.tui.primitives.columns import Layout
from agentdash.tui.primitives.spans import Line, Span, justify
from agentdash.tui.theme import Look, sign

_INDENT: Final = 4
"""Of the lines below a worker's first."""
_SIGN_CELLS: Final = 2
"""The direction of a finding, and a space."""


def row_height(item: Item, layout: Layout[Item], cells: int) -> int:
    """Return how many lines a worker takes: more than one only if it needs the user and its object needs
    them, or if its finding would be cut in a narrow list."""
    worker = item[1]
    fact = shown_fact(worker)
    if not worker.needs_you:
        found = causes(worker) if worker.mismatch and cells < CARDS_BELOW_CELLS else []
        return 2 if found and _SIGN_CELLS + cell_len(found[0].words) > layout.main.cells else 1
    if not fact.object:
        return 1
    text = cell_len(f"{fact.what} {fact.object}".strip())
    if cells >= CARDS_BELOW_CELLS:
        return 1 if text <= layout.main.cells else 2
    return 2 if text <= cells - _INDENT else 3


def row_lines(item: Item, layout: Layout[Item], cells: int, height: int, look: Look) -> list[Line]:
    """Return the lines of a worker, without the gutter."""
    worker = item[1]
    if height == 1:
        return [layout.line(item, look)]
    if cells >= CARDS_BELOW_CELLS:
        return [_first_line(item, layout, look), _object_line(shown_fact(worker), layout, cells, look)]
    for_, room = in_state_for(worker, look), cells - _INDENT
    state = sign(worker, look.glyphs)
    head = (
        state._replace(text=f"{state.text[:1]} "),
        *name_cell(item, max(1, cells - 2 - AGE_CELLS - 1), look),
    )
    first = justify(head, (Span(for_, "waited"),), cells, look.glyphs.ellipsis)
    if not worker.needs_you:
        return [first, (Span(" " * _INDENT), *what(worker, item[0], room, look))]
    return [first, *_below(shown_fact(worker), room, height - 1, look)]


def _first_line(item: Item, layout: Layout[Item], look: Look) -> Line:
    """Return the columns with the words of the fact in place of its object, which is on the next line."""
    words = fact_words(shown_fact(item[1]), layout.main.cells, look.glyphs.ellipsis)
    return layout.line(item, look, main=(Span(words),))


def _object_line(fact: Fact, layout: Layout[Item], cells: int, look: Look) -> Line:
    """Return the object below the words, at their column if it fits there, else farther left."""
    column = sum(placed.cells + 1 for placed in layout.left)
    indent = column if cell_len(fact.object) <= cells - column else min(_INDENT, column)
    text = elide_object(fact.object, cells - indent, look.glyphs.ellipsis, fact.form)
    return Span(" " * indent), Span(text, "strong")


def _below(fact: Fact, room: int, lines: int, look: Look) -> list[Line]:
    """Return the fact below a name, in one or two lines."""
    indent, mark = Span(" " * (_INDENT - 1)), look.glyphs.ellipsis
    if lines == 1:
        return [(indent, *fact_line(fact, room, look, "strong"))]
    if cell_len(fact.object) <= room:
        return [
            (indent, Span(fact_words(fact, room, mark), "muted")),
            (indent, Span(fact.object, "strong")),
        ]
    text = f"{fact.what} " if fact.what else ""
    pieces = wrap(text + fact.object, room)
    left = lines * room - cell_len(text)
    while len(pieces) > lines and left > 0:
        pieces = wrap(text + elide_object(fact.object, left, mark, fact.form), room, fills=True)
        left -= 1
    return [(indent, Span(piece, "strong")) for piece in pieces[:lines]]
