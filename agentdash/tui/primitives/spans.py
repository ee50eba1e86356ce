"""Text with tones: what every part of a screen is made of, before it has colours or a terminal.

A tone is a word such as `ask` or `muted`; `agentdash.tcss` says what it looks like. Foreign text stays text: nothing here parses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
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
]
"""`ask`, `stuck`, `live`, `ready`, `gone`: the kinds of states. The others say what a piece of text is for."""


class Span(NamedTuple):
    """A run of text in one tone."""

    text: str
    tone: Tone = ""
    action: str | None = None
    """The Textual action that a click on it runs: `app.why`."""


Line: TypeAlias = tuple[Span, ...]
BLANK: Line = ()


def plain(line: Line) -> str:
    """The text alone."""
    return "".join(span.text for span in line)


def width(line: Iterable[Span]) -> int:
    """Cells that it takes."""
    return sum(cell_len(span.text) for span in line)


def fit(line: Sequence[Span], cells: int, mark: str) -> Line:
    """The line in at most `cells`, its end cut off and marked."""
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


def paragraph(
    text: str, cells: int, tone: Tone = "", *, head: Sequence[Span] = (), indent: int = 0, cap: int = 0
) -> list[Line]:
    """`text` wrapped into `cells`, its first line after `head`, the others after `indent` spaces.

    Args:
        cap: keep at most so many lines; 0 keeps all. What is missing is marked by `...`.
    """
    indent = max(indent, width(head)) if head else indent
    lines = wrap(text, max(8, cells - indent))
    if cap and len(lines) > cap:
        lines = [*lines[: cap - 1], elide(lines[cap - 1], max(0, cells - indent - 4), "") + " ..."]
    first = (*head, Span(" " * (indent - width(head)))) if head else (Span(" " * indent),)
    rest = (Span(" " * indent),)
    return [(*(first if i == 0 else rest), Span(line, tone)) for i, line in enumerate(lines or [""])]


def beside(left: Sequence[Span], right: Sequence[Span], cells: int, mark: str) -> Line:
    """`left`, spaces, `right` at the right edge; where both do not fit, `left` is cut."""
    room = cells - width(right)
    left = fit(left, max(0, room - 1), mark)
    return (*left, Span(" " * max(0, room - width(left))), *right)


def mark(line: Sequence[Span], start: int, end: int) -> Line:
    """The line with its characters from `start` to `end` (-1: the last) in the tone `marked`."""
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


def difference(old: Sequence[Span], new: Sequence[Span]) -> tuple[int, int | None]:
    """The cells in which two lines differ: the first, and the one after the last (None: to the end of the line)."""
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))))
    start = width(new[:shared])
    if (total := width(new)) != width(old):
        return start, None
    rest = zip(reversed(old[shared:]), reversed(new[shared:]), strict=False)
    same_end = [pair[1] for pair in takewhile(lambda pair: pair[0] == pair[1], rest)]
    return start, total - width(same_end)
