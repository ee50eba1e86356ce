"""Past sessions, one family a row: when, how it ended, which sandbox it got, what it was about."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from textual.message import Message

from agentdash.model.findings import Verdict
from agentdash.replay.library.families import FamilyMember, SessionFamily
from agentdash.replay.library.library import Entry
from agentdash.tui.format import count, duration, elide_middle, pad
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, beside, fit, paragraph, width
from agentdash.tui.theme import STATE_WIDTH, TONES_OF_STATES, VERDICT_TONES, Look, word

_WHEN: Final = 12
_TOOK, _KIN, _TOKENS, _VERSION, _MODEL = 5, 3, 6, 8, 14


class LibraryRow(NamedTuple):
    """Where an entry stands. What is known of it is looked up when it is drawn: that changes more often."""

    key: str
    family: SessionFamily
    member: FamilyMember
    unfolded: bool = False
    """Whether the family's other members stand below it."""


class Columns(NamedTuple):
    """Cells of each column; 0: left out. A space lies between two of them."""

    mark: int
    title: int
    cwd: int
    version: int
    model: int
    took: int
    links: int
    tokens: int

    @classmethod
    def of(cls, cells: int, mark: int = 1) -> Columns:
        """The columns that fit into so many cells."""
        cwd = 32 if cells >= 160 else 22 if cells >= 100 else 0
        version = _VERSION if cells >= 90 else 0
        model = _MODEL if cells >= 130 else 0
        took, links, tokens = (
            (_TOOK if cells >= 64 else 0),
            (_KIN if cells >= 58 else 0),
            (_TOKENS if cells >= 76 else 0),
        )
        others = sum(each + 1 for each in (cwd, version, model, took, links, tokens) if each)
        return cls(
            mark,
            max(8, cells - _WHEN - STATE_WIDTH - mark - 3 - others),
            cwd,
            version,
            model,
            took,
            links,
            tokens,
        )


def titles(columns: Columns) -> Line:
    """The row above the rows, gutter included."""
    words = (
        (" BEGUN", _WHEN + 1),
        (" STATE", STATE_WIDTH + 1),
        (" ", columns.mark + 1),
        (" SESSION", columns.title + 1),
        (" DIRECTORY", columns.cwd and columns.cwd + 1),
        (" CODEX", columns.version and columns.version + 1),
        (" MODEL", columns.model and columns.model + 1),
        (f"{'TOOK':>6}", columns.took and columns.took + 1),
        (f"{'KIN':>4}", columns.links and columns.links + 1),
        (f"{'TOKENS':>7}", columns.tokens and columns.tokens + 1),
    )
    return tuple(Span(pad(text, cells), "title") for text, cells in words if cells)


def when(at: float | None, now: float) -> str:
    """Local date and time in twelve cells: `20 Nov 19:59`, and of another year `20 Nov 2025`."""
    if at is None:
        return " " * _WHEN
    then = time.localtime(at)
    form = "%b %H:%M" if then.tm_year == time.localtime(now).tm_year else "%b %Y"
    return pad(f"{then.tm_mday:2} {time.strftime(form, then)}", _WHEN)


def state(entry: Entry, look: Look) -> Span:
    """Glyph and word; what is not judged says why."""
    glyphs = look.glyphs
    if entry.state is not None:
        return Span(f"{glyphs.states[entry.state]} {word(entry.state)}", TONES_OF_STATES[entry.state])
    if entry.problem:
        return Span(f"{glyphs.agrees[0]} unreadable", "stuck")
    if entry.helper:
        return Span(f"{glyphs.dot} codex's own", "muted")
    return Span(glyphs.ellipsis, "muted")


def verdict(verdict: Verdict | None, look: Look) -> Span:
    """The mark of comparing configured and got; nothing before it is known."""
    return Span(look.glyphs.verdicts[verdict], VERDICT_TONES[verdict]) if verdict else Span("")


def title(entry: Entry) -> Span:
    """What it is about, or what is wrong with its file."""
    if entry.problem and entry.state is None:
        return Span(entry.problem, "stuck")
    tone: Tone = "strong" if entry.verdict == "mismatch" or (entry.state and entry.state.needs_you) else ""
    return Span(entry.title or entry.id, tone if entry.title else "muted")


def stem(place: LibraryRow, look: Look) -> str:
    """What stands before the title: folded or not, or the tree's line."""
    if place.member.depth:
        return "  " * place.member.depth + look.glyphs.tree[place.member.last]
    return look.glyphs.folds[place.unfolded] if len(place.family.members) > 1 else "  "


def one_line(place: LibraryRow, entry: Entry, columns: Columns, look: Look) -> Line:
    """An entry on one line, in columns."""
    dots = look.glyphs.ellipsis
    mark = verdict(place.family.verdict if _stands_for_all(place) else entry.verdict, look)
    ending = state(entry, look)
    spans = [
        Span(when(entry.begun, look.now) + " ", "muted"),
        ending._replace(text=pad(ending.text, STATE_WIDTH, dots) + " "),
        mark._replace(text=pad(mark.text, columns.mark) + " "),
    ]
    name = fit((Span(stem(place, look), "muted"), title(entry)), columns.title, dots)
    spans += [*name, Span(" " * (columns.title - width(name)))]
    directory = (entry.cwd or "").rpartition("/")[2] if columns.cwd <= 22 else entry.cwd or ""
    links = len(place.family.members) - 1 if not place.member.depth else 0
    for text, cells, right in (
        (elide_middle(directory, columns.cwd, dots), columns.cwd, False),
        (entry.version or "", columns.version, False),
        (entry.model or "", columns.model, False),
        (duration(entry.took) if entry.took is not None else "", columns.took, True),
        (str(links or ""), columns.links, True),
        (count(entry.tokens), columns.tokens, True),
    ):
        if cells:
            spans.append(Span(" " + pad(text, cells, dots, right=right), "muted"))
    return tuple(spans)


def card(place: LibraryRow, entry: Entry, cells: int, look: Look) -> tuple[Line, Line]:
    """An entry on two lines: for lists too narrow for columns."""
    dots = look.glyphs.ellipsis
    mark = verdict(place.family.verdict if _stands_for_all(place) else entry.verdict, look)
    top = beside(
        (state(entry, look), Span(" "), mark),
        (Span(when(entry.begun, look.now).strip(), "muted"),),
        cells,
        dots,
    )
    return top, fit((Span(stem(place, look), "muted"), title(entry)), cells, dots)


def detail(entry: Entry, cells: int, look: Look) -> list[Line]:
    """What a row has no room for."""
    lines: list[Line] = []
    if entry.why:
        lines += paragraph(entry.why, cells, TONES_OF_STATES[entry.state] if entry.state else "", cap=2)
    found = f"{look.glyphs.verdicts[entry.verdict]} {entry.verdict}" if entry.verdict else ""
    if found or entry.findings:
        tone: Tone = "mismatch" if entry.verdict == "mismatch" else "muted"
        note = (
            ""
            if entry.depth == "read"
            else f" {look.glyphs.dot} by head and tail of {entry.size / 1e6:.0f} MB"
        )
        lines.append(
            fit(
                (Span(" ".join((found, *entry.findings)), tone), Span(note, "muted")),
                cells,
                look.glyphs.ellipsis,
            )
        )
    if entry.problem:
        lines += paragraph(entry.problem, cells, "stuck", cap=2)
    lines.append((Span(elide_middle(entry.key, cells, look.glyphs.ellipsis), "muted"),))
    return lines


def _stands_for_all(place: LibraryRow) -> bool:
    return not place.member.depth and not place.unfolded


class LibraryList(Choices):
    """The rows. The cursor stays on its entry when families come together above it."""

    class FileMoved(Message):
        """Another entry was chosen by hand."""

    class Opened(Message):
        """An entry was clicked twice."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.places: tuple[LibraryRow, ...] = ()
        self.columns = Columns.of(80)
        self._entries: Mapping[str, Entry] = {}
        self._look: Look | None = None
        self._instead: Sequence[Line] = ()

    @property
    def total(self) -> int:
        """Rows."""
        return len(self.places)

    @property
    def chosen(self) -> LibraryRow | None:
        """The row under the cursor."""
        return self.places[self.cursor] if self.cursor < len(self.places) else None

    @property
    def in_sight(self) -> tuple[str, ...]:
        """The entries that can be seen now."""
        first = self.scroll_offset.y // self.tall
        return tuple(place.key for place in self.places[first : first + self.size.height // self.tall + 1])

    def show_places(
        self,
        places: tuple[LibraryRow, ...],
        entries: Mapping[str, Entry],
        picked: str | None,
        look: Look,
        instead: Sequence[Line],
    ) -> None:
        """Shows these rows with the cursor on the picked entry, or `instead` where there are none."""
        moved = places is not self.places
        self.places, self._entries, self._look, self._instead = places, entries, look, instead
        self.redraw(len(places) * self.tall or len(instead))
        if not moved:
            return
        index = next(
            (i for i, place in enumerate(places) if place.key == picked),
            min(self.cursor, max(0, len(places) - 1)),
        )
        if index != self.cursor:
            self.place(index)

    def line_at(self, y: int) -> Line:
        """One line of a row."""
        index, part = divmod(y, self.tall)
        if not self.places or self._look is None:
            return self._instead[y] if y < len(self._instead) else BLANK
        if index >= len(self.places):
            return BLANK
        place = self.places[index]
        entry = self._entries[place.key]
        gutter = Span(self._look.glyphs.cursor if index == self.cursor and part == 0 else " ", "chosen")
        if self.tall == 1:
            return (gutter, *one_line(place, entry, self.columns, self._look))
        return (gutter, *card(place, entry, self.room - 1, self._look)[part])

    def reshape(self, form: Literal["columns", "cards"], mark: int) -> None:
        """Rows of one line in columns, or of two."""
        self.columns, self.tall = Columns.of(self.room - 1, mark), 1 if form == "columns" else 2
        self.repaint()

    def moved(self) -> None:
        """Tells that the cursor is elsewhere."""
        self.post_message(self.FileMoved())

    def opened(self) -> None:
        """Tells that it is to be opened."""
        self.post_message(self.Opened())
