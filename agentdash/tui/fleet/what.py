"""What a worker does or needs, and why, in the cells of a row: the fact first, its object whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.cells import cell_len

from agentdash.model.causes import Cause, causes
from agentdash.model.fact import Fact, ObjectForm
from agentdash.model.worker import Worker
from agentdash.tui.fleet.rows import Row
from agentdash.tui.format import elide, elide_object
from agentdash.tui.primitives.spans import Line, Span, Tone, fit, width
from agentdash.tui.theme import Glyphs, Look

_MIN_OBJECT_CELLS: Final[Mapping[ObjectForm, int]] = {ObjectForm.COMMAND: 24, ObjectForm.PATH: 4}
"""Where an object has less room, the words before it are left out; of a path, beside its last part."""
_MIN_TEXT_CELLS: Final = 18
"""The same of other objects."""
_MIN_WHY_CELLS: Final = 24
"""Where a reason has less room and does not fit, it is left out: three words of it explain nothing."""
_MIN_REST_CELLS: Final = 20
"""Where what a worker does has less room behind its finding, it is left out."""


def what(worker: Worker, row: Row, cells: int, look: Look) -> Line:
    """Return what a worker does or needs, in at most so many cells.

    Of a worker that does not need the user, a finding comes first, then those below it that do.
    """
    fact, tone = shown_fact(worker), _tone(worker)
    if worker.needs_you:
        return fact_line(fact, cells, look, tone)
    lead: list[Span] = []
    if worker.below and row.folded:
        more = f" +{len(worker.below) - 1}" if len(worker.below) > 1 else ""
        lead += [Span(f"! {worker.below[0]}{more}", "ask"), Span("  ")]
    if worker.mismatch and (found := causes(worker)):
        lead += [Span(cause_words(found[0], look.glyphs), "mismatch"), Span("  ")]
    if not lead:
        return fact_line(fact, cells, look, tone)
    room = cells - width(lead)
    rest = fact_line(fact, room, look, "muted") if room >= min(_MIN_REST_CELLS, cell_len(fact.text)) else ()
    return fit((*lead, *rest), cells, look.glyphs.ellipsis)


def shown_fact(worker: Worker) -> Fact:
    """Return the fact of a worker; of one that needs the user, words without an object stand in its place:
    they are as whole as it would be."""
    fact = worker.fact
    if fact.object or not worker.needs_you:
        return fact
    return Fact(fact.kind, "", fact.what, why=fact.why)


def fact_line(fact: Fact, cells: int, look: Look, tone: Tone = "") -> Line:
    """Return a fact on one line: the object whole, if it fits at all."""
    mark, why = look.glyphs.ellipsis, f"  ({fact.why})" if fact.why else ""
    before = f"{fact.what} " if fact.what and fact.object else fact.what
    if not fact.object:
        return (Span(elide(before, cells, mark), tone),)
    spans = [Span(before, "muted"), Span(fact.object, tone), Span(why, "muted")]
    if width(spans) <= cells:
        return tuple(span for span in spans if span.text)
    room = cells - cell_len(before)
    if room < min(_least_cells(fact), cell_len(fact.object)) or _fits_alone(fact, room, cells):
        spans[0], room = Span("", "muted"), cells
    spans[1] = Span(elide_object(fact.object, max(1, room), mark, fact.form), tone)
    return tuple(span for span in spans[:2] if span.text)


def fact_words(fact: Fact, cells: int, mark: str) -> str:
    """Return a fact without its object: what, and why as far as there is room for it."""
    why = f"({fact.why})" if fact.why else ""
    room = cells - cell_len(fact.what) - 1
    if not why or room < min(_MIN_WHY_CELLS, cell_len(why)):
        return elide(fact.what, cells, mark)
    return elide(f"{fact.what} {why}", cells, mark)


def _least_cells(fact: Fact) -> int:
    name = fact.object.rpartition("/")[2] if fact.form is ObjectForm.PATH else ""
    return _MIN_OBJECT_CELLS.get(fact.form, _MIN_TEXT_CELLS) + cell_len(name)


def _fits_alone(fact: Fact, room: int, cells: int) -> bool:
    return room < cell_len(fact.object) <= cells


def cause_words(cause: Cause, glyphs: Glyphs) -> str:
    """Return what is wrong with a sandbox in a few words, `▴ no sandbox`."""
    return f"{glyphs.directions[cause.worst.direction]} {cause.words}"


def _tone(worker: Worker) -> Tone:
    return "strong" if worker.needs_you else "" if worker.group == "running" else "muted"
