"""The library's screen: past sessions, the filter, and the hits of a full-text search."""

from __future__ import annotations

from collections.abc import Mapping

from textual import getters, on
from textual.app import ComposeResult
from textual.suggester import Suggester

from agentdash.tui.format import elide_middle
from agentdash.tui.library.cells import detail
from agentdash.tui.library.list import HitList, LibraryList
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.library.search_job import SearchJob
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph
from agentdash.tui.theme import Glyphs, Look

HINTS = ("open", "filter", "search", "sort-sessions", "unfold", "copy-resume", "quit", "help")
_MAX_PROBLEM_LINES = 2
CARDS_BELOW_CELLS = 50
"""In a narrower list an entry takes two lines: columns would leave no room for its title."""


def head(model: LibraryModel, home: str, rate: float, cells: int, look: Look) -> Line:
    """Return the first line: number of sessions, progress of reading them, and their directory.

    Args:
        home: the directory of the sessions.
        rate: sessions read per second; 0: nothing is being read.
        cells: width of the line.
    """
    total, read, unreadable = model.counts()
    dots = look.glyphs.ellipsis
    sessions = f"  {total:,} sessions" if total != 1 else "  1 session"
    spans = [Span(" "), Span(" LIBRARY ", "marked"), Span(sessions, "strong")]
    if read < total:
        spans.append(Span(f"  {read:,} read" + (f", {rate:,.0f}/s" if rate else ""), "muted"))
    if unreadable:
        spans.append(Span(f"  {unreadable:,} {'unreadable' if cells >= 60 else 'bad'}", "stuck"))
    right = (Span(elide_middle(home, max(0, cells - 60), dots) + "  ", "muted"), Span("READ-ONLY ", "muted"))
    return justify(spans, right, cells, dots)


def search_status(job: SearchJob, look: Look) -> Line:
    """Return the words, the number of hits, progress and speed of a search."""
    hits = f"  {len(job.hits) + job.left_out:,} hits"
    left_out = f" ({job.left_out:,} not shown)" if job.left_out else ""
    progress = f" {look.glyphs.dot} {job.files:,} of {job.total:,} sessions"
    rate = f", {job.rate:,.0f} MB/s" if job.bytes else ""
    problems = (Span(f" {look.glyphs.dot} {job.problems:,} unreadable", "stuck"),) if job.problems else ()
    return (
        Span(f' "{job.words}"', "strong"),
        Span(hits + left_out, "" if job.hits else "muted"),
        Span(progress + rate, "muted"),
        *problems,
        Span("   "),
        Span("esc", "key", "app.back"),
        Span(" back" if job.over else " stops", "muted"),
    )


def filter_status(model: LibraryModel) -> Line:
    """Return the query in force, and how many families match it."""
    return (
        Span(f' "{model.query.text}"', "strong"),
        Span(f"  {len(model.matching):,} of {model.family_count:,}", "muted"),
        Span("   "),
        Span("esc", "key", "app.back"),
        Span(" clears", "muted"),
    )


def no_hits(model: LibraryModel, job: SearchJob) -> list[Line]:
    """Return the lines shown without hits: whether the search goes on, and the filter that narrowed it."""
    found = "No session has these words." if job.over else "No hits yet."
    filtered = (
        f'The filter "{model.query.text}" is on: only {job.total:,} of {len(model.entries):,} sessions.'
    )
    narrowed: list[Line] = [(Span(f"  {filtered}", "stuck"),)] if model.query.predicates else []
    return [BLANK, (Span(f"  {found}"),), *narrowed]


class LibraryScreen(Page):
    """The root screen of the library."""

    top = getters.query_one("#head", Lines)
    titles = getters.query_one("#titles", Lines)
    sessions = getters.query_one(LibraryList)
    hits = getters.query_one(HitList)
    detail = getters.query_one("#detail", Lines)
    filter = getters.query_one("#filter", FilterBar)
    search = getters.query_one("#search", FilterBar)

    def __init__(
        self, glyphs: Glyphs, *, home: str, suggester: Suggester, filters: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._filters = filters
        self._suggester = suggester
        self.glyphs = glyphs
        self._home = home

    def compose(self) -> ComposeResult:
        """Compose head, list or hits, detail of the selected one, inputs, footer."""
        yield Lines(id="head", focusable=False)
        yield Lines(id="titles", focusable=False)
        yield LibraryList(id="library")
        yield HitList(id="hits")
        yield Lines(id="detail", focusable=False)
        yield FilterBar(
            id="filter",
            hint='words, "a phrase", state:failed dir:api since:7d, ! inverts; right completes',
            suggester=self._suggester,
            saved=self._filters,
        )
        hint = "words that were said, run or printed; enter searches"
        yield FilterBar(id="search", sign="S", hint=hint)
        yield Footer(self.glyphs, *HINTS)

    def on_mount(self) -> None:
        """Focus the list."""
        self.sessions.focus()

    def show(
        self, model: LibraryModel, job: SearchJob | None, look: Look, rate: float, problem: str | None
    ) -> None:
        """Draw the library.

        Args:
            job: the search that is open.
            rate: sessions read per second; 0: nothing is being read.
            problem: why there are no sessions; None until that is known.
        """
        self.set_class(job is not None, "-searching")
        self.top.show([head(model, self._home, rate, self.size.width, look)])
        placeholder = self._placeholder(model, problem)
        self.sessions.show_rows(model.rows, model.entries, model.selected_key, look, placeholder)
        titles = self.sessions.column_layout.titles(model.sort, self.glyphs.sorted)
        self.titles.show([titles])  # their widths are those of the rows
        if job is not None:
            self.hits.show_hits(job.hits, model.entries, look, no_hits(model, job))
        filtered = bool(model.query.predicates) or model.query.problem is not None
        problem_lines = paragraph(
            model.query.problem or "", self.size.width - 2, "stuck", indent=1, cap=_MAX_PROBLEM_LINES
        )
        self.filter.show_status(filtered, filter_status(model), problem_lines if model.query.problem else ())
        self.search.show_status(job is not None, search_status(job, look) if job else BLANK)
        self._show_detail(model, job, look)

    def _show_detail(self, model: LibraryModel, job: SearchJob | None, look: Look) -> None:
        if job is not None:
            key = str(hit.path) if (hit := self.hits.selected) else ""
        else:
            key = row.key if (row := self.sessions.selected) else ""
        entry = model.entries.get(key)
        self.detail.show(detail(entry, self.detail.room - 2, look) if entry and self.detail.room > 2 else [])

    def _placeholder(self, model: LibraryModel, problem: str | None) -> list[Line]:
        """Return the lines shown without sessions."""
        if model.entries:
            return [BLANK, (Span("  No session matches this filter."),), (Span("  esc clears it.", "muted"),)]
        text = "Looking for sessions." if problem is None else problem or "No sessions yet."
        tone: Tone = "" if problem is None else "strong"
        return [BLANK, *paragraph(text, self.sessions.room - 2, tone, indent=2)]

    @on(Lines.Resized)
    def _update_layout(self) -> None:
        cards = self.size.width < CARDS_BELOW_CELLS and not self.has_class("-strip")
        self.set_class(cards, "-cards")
        self.sessions.set_layout("cards" if cards else "columns", self.glyphs)
