"""Toned text, the content of all widgets.

A tone is a name such as `ask` or `muted`, styled by `agentdash.tcss`. Foreign text is never parsed as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size

from agentdash.tui.format import elide, wrap

Tone = Literal[
    "",
    "ask",
    "stuck",
    "live",
    "ready",
    "gone",
    "mismatch",
    "muted",
    "strong",
    "title",
    "key",
    "chosen",
    "marked",
    "rule",
    "waited",
    "stopped",
]
"""`ask`, `stuck`, `live`, `ready`, `gone` are kinds of states; the others are roles of a text.
`waited` and `stopped` are `ask` and `stuck` of numbers and graphs: with the terminal's own colours, no
badges."""


class Span(NamedTuple):
    """A run of text in one tone."""

    text: str
    tone: Tone = ""
    action: str | None = None
    """The Textual action that a click on it runs: `app.why`."""


Line: TypeAlias = tuple[Span, ...]
BLANK: Line = ()


def plain(line: Line) -> str:
    """Return the text without tones."""
    return "".join(span.text for span in line)


def width(line: Iterable[Span]) -> int:
    """Return the width in terminal cells."""
    return sum(cell_len(span.text) for span in line)


def fit(line: Sequence[Span], cells: int, mark: str) -> Line:
    """Return the line in at most `cells`; where its end is cut off, it ends with `mark`."""
    if width(line) <= cells:
        return tuple(line)
    out: list[Span] = []
    left = cells
    for span in line:
        if (need := cell_len(span.text)) >= left:
            room = max(0, left - cell_len(mark))
            return (*out, span._replace(text=set_cell_size(span.text, room).rstrip() + mark[: left - room]))
        out.append(span)
        left -= need
    return tuple(out)


def padded(text: str, cells: int, tone: Tone = "") -> Line:
    """Return `text` in `cells`. The spaces after it have no tone: some are underlined, or a ground."""
    return Span(elide(text, cells, ""), tone), Span(" " * (cells - cell_len(text)))


def paragraph(
    text: str, cells: int, tone: Tone = "", *, head: Sequence[Span] = (), indent: int = 0, cap: int = 0
) -> list[Line]:
    """Return `text` wrapped into `cells`.

    Args:
        text: may have line breaks.
        cells: width of the lines.
        tone: of the text.
        head: stands before the first line; the others are indented by its width.
        indent: least indent of all lines.
        cap: keep at most so many lines, the last one ending with `...`; 0 keeps all.
    """
    indent = max(indent, width(head)) if head else indent
    lines = wrap(text, max(8, cells - indent))
    if cap and len(lines) > cap:
        lines = [*lines[: cap - 1], elide(lines[cap - 1], max(0, cells - indent - 4), "") + " ..."]
    first = (*head, Span(" " * (indent - width(head)))) if head else (Span(" " * indent),)
    rest = (Span(" " * indent),)
    return [(*(first if i == 0 else rest), Span(line, tone)) for i, line in enumerate(lines or [""])]


def justify(left: Sequence[Span], right: Sequence[Span], cells: int, mark: str) -> Line:
    """Return `left` and `right` at the two edges of a line; where both do not fit, `left` is cut."""
    room = cells - width(right)
    left = fit(left, max(0, room - 1), mark)
    return (*left, Span(" " * max(0, room - width(left))), *right)


def mark(line: Sequence[Span], start: int, end: int) -> Line:
    """Return the line with its characters `start:end` (end -1: to the last) in the tone `marked`."""
    text_length = sum(len(span.text) for span in line)
    end = text_length if end < 0 else end
    out: list[Span] = []
    at = 0
    for span in line:
        a, b = max(0, start - at), max(0, end - at)
        pieces: tuple[tuple[str, Tone], ...] = (
            (span.text[:a], span.tone),
            (span.text[a:b], "marked"),
            (span.text[max(a, b) :], span.tone),
        )
        out.extend(span._replace(text=text, tone=tone) for text, tone in pieces if text)
        at += len(span.text)
    return tuple(out)
