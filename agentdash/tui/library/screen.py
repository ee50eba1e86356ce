"""The library: all past sessions, what is typed to find one, and what a full-text search finds in them."""

from __future__ import annotations

from textual import getters, on
from textual.app import ComposeResult
from textual.screen import Screen

from agentdash.tui.fleet.filter_bar import FilterBar
from agentdash.tui.format import elide_middle
from agentdash.tui.library.hit_list import HitList
from agentdash.tui.library.list import LibraryList, detail, titles
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.library.search_job import SearchJob
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, beside, paragraph
from agentdash.tui.theme import Glyphs, Look

HINTS = ("open", "filter", "search", "unfold", "copy-id", "quit", "help")
CARDS_BELOW = 50
"""Cells under which an entry takes two lines."""


def head(shelf: LibraryModel, home: str, rate: float, cells: int, look: Look) -> Line:
    """How many there are, how far reading them has come, and where they are."""
    total, read, bad = shelf.counts()
    dots = look.glyphs.ellipsis
    spans = [
        Span(" "),
        Span(" LIBRARY ", "marked"),
        Span(f"  {total:,} sessions" if total != 1 else "  1 session", "strong"),
    ]
    if read < total:
        spans.append(Span(f"  {read:,} read" + (f", {rate:,.0f}/s" if rate else ""), "muted"))
    if bad:
        spans.append(Span(f"  {bad:,} {'unreadable' if cells >= 60 else 'bad'}", "stuck"))
    right = (Span(elide_middle(home, max(0, cells - 60), dots) + "  ", "muted"), Span("READ-ONLY ", "muted"))
    return beside(spans, right, cells, dots)


def hunting(hunt: SearchJob, look: Look) -> Line:
    """What is searched for, what was found, how far it has come and how fast."""
    found = f"  {len(hunt.hits) + hunt.left_out:,} hits"
    how_far = f" {look.glyphs.dot} {hunt.files:,} of {hunt.total:,} sessions"
    rate = f", {hunt.rate:,.0f} MB/s" if hunt.bytes else ""
    bad = (Span(f" {look.glyphs.dot} {hunt.problems:,} unreadable", "stuck"),) if hunt.problems else ()
    left_out = f" ({hunt.left_out:,} not shown)" if hunt.left_out else ""
    return (
        Span(f' "{hunt.words}"', "strong"),
        Span(found + left_out, "" if hunt.hits else "muted"),
        Span(how_far + rate, "muted"),
        *bad,
        Span("   "),
        Span("esc", "key", "app.back"),
        Span(" back" if hunt.over else " stops", "muted"),
    )


def filtering(shelf: LibraryModel, total: int) -> Line:
    """The query in force, how many families it lets through, and what of it is not understood."""
    trouble = (Span(f"  {shelf.query.problem}", "stuck"),) if shelf.query.problem else ()
    return (
        Span(f' "{shelf.query.text}"', "strong"),
        Span(f"  {len(shelf.matching):,} of {total:,}", "muted"),
        *trouble,
        Span("   "),
        Span("esc", "key", "app.back"),
        Span(" clears", "muted"),
    )


class LibraryScreen(Screen[None]):
    """The root of the library."""

    top = getters.query_one("#head", Lines)
    titles = getters.query_one("#titles", Lines)
    sessions = getters.query_one(LibraryList)
    hits = getters.query_one(HitList)
    detail = getters.query_one("#detail", Lines)
    filter = getters.query_one("#filter", FilterBar)
    search = getters.query_one("#search", FilterBar)

    def __init__(self, glyphs: Glyphs, home: str) -> None:
        super().__init__()
        self.glyphs, self._home = glyphs, home

    def compose(self) -> ComposeResult:
        """Head, list or hits, the chosen one in detail, what is typed, footer."""
        yield Lines(id="head", focusable=False)
        yield Lines(id="titles", focusable=False)
        yield LibraryList(id="library")
        yield HitList(id="hits")
        yield Lines(id="detail", focusable=False)
        yield FilterBar(
            id="filter",
            hint="words in any column, state:failed verdict:mismatch dir:api since:7d, ! inverts a term",
        )
        yield FilterBar(id="search", sign="s", hint="words that were said, run or printed; enter searches")
        yield Footer(self.glyphs, *HINTS)

    def on_mount(self) -> None:
        """Keys go to the list first."""
        self.sessions.focus()

    def show(
        self, shelf: LibraryModel, hunt: SearchJob | None, look: Look, rate: float, problem: str | None
    ) -> None:
        """Shows what there is now."""
        cells = self.size.width
        self.set_class(hunt is not None, "-hunting")
        self.top.show([head(shelf, self._home, rate, cells, look)])
        self.titles.show([titles(self.sessions.columns)])
        self.sessions.show_places(
            shelf.places, shelf.entries, shelf.picked, look, self._instead(shelf, problem)
        )
        if hunt is not None:
            self.hits.show_hits(hunt.hits, shelf.entries, look)
        self.filter.tell(
            bool(shelf.query.predicates) or shelf.query.problem is not None, filtering(shelf, shelf.families)
        )
        self.search.tell(hunt is not None, hunting(hunt, look) if hunt else BLANK)
        self._show_detail(shelf, hunt, look)

    def _show_detail(self, shelf: LibraryModel, hunt: SearchJob | None, look: Look) -> None:
        key = None
        if hunt is not None:
            key = str(hit.path) if (hit := self.hits.chosen) else None
        elif (place := self.sessions.chosen) is not None:
            key = place.key
        entry = shelf.entries.get(key or "")
        self.detail.show(detail(entry, self.detail.room - 2, look) if entry and self.detail.room > 2 else [])

    def _instead(self, shelf: LibraryModel, problem: str | None) -> list[Line]:
        """What stands where no session stands."""
        if shelf.entries:
            return [BLANK, (Span("  No session fits this filter."),), (Span("  esc clears it.", "muted"),)]
        text = "Looking for sessions." if problem is None else problem or "No sessions yet."
        return [
            BLANK,
            *paragraph(text, self.sessions.room - 2, "" if problem is None else "strong", indent=2),
        ]

    @on(Lines.Resized)
    def _reshaped(self) -> None:
        cards = self.size.width < CARDS_BELOW and not self.has_class("-strip")
        self.set_class(cards, "-cards")
        self.sessions.reshape("cards" if cards else "columns", len(self.glyphs.verdicts["mismatch"]))
