"""The library's screen: past sessions, the filter, the hits of a full-text search, and its help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual import getters
from textual.app import ComposeResult

from agentdash.replay.library.search import TextSearch
from agentdash.tui.format import elide_middle
from agentdash.tui.help import entries, keys, signs
from agentdash.tui.keys import Key, ids
from agentdash.tui.library.list import HitList, LibraryList, LibraryModel, detail
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines, Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph
from agentdash.tui.theme import Glyphs, Look

HINTS: Final = ("open", "filter", "search", "export", "copy-resume", "fold", "sort", "quit", "help")


def head(model: LibraryModel, home: str, cells: int, look: Look) -> list[Line]:
    """Return the first lines: number of sessions, how many are read, the filter, their directory; then what
    is wrong with the filter."""
    entries = model.entries.values()
    total, helped = len(entries), len(entries) - len(model.families)
    read = sum(entry.is_read for entry in entries)
    unreadable = len(model.unread) + sum(entry.problem is not None for entry in entries)
    dots = look.glyphs.ellipsis
    spans = [Span(" "), Span(" LIBRARY ", "marked"), Span(f"  {_counted(total, 'session')}", "strong")]
    if model.query.text:
        found = f"  / {model.query.text} {look.glyphs.cursor} {len(model.matching):,}"
        spans.append(Span(found, "chosen"))
    elif helped and cells >= 60:
        spans.append(Span(f" ({_counted(helped, 'sub-agent')})", "muted"))
    if read < total:
        spans.append(Span(f"  {read:,} read", "muted"))
    if unreadable:
        spans.append(Span(f"  {unreadable:,} unreadable", "stuck"))
    right = Span(elide_middle(home, max(0, cells - 60), dots) + "  READ-ONLY ", "muted")
    first = justify(spans, (right,), cells, dots)
    wrong = model.query.problem
    return [first, *(paragraph(wrong, cells - 1, "stuck", indent=1, cap=2) if wrong else ())]


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' if number != 1 else ''}"


def search_status(job: TextSearch, look: Look) -> Line:
    """Return the words of a search, the number of hits, and its progress."""
    left_out = f" ({job.left_out:,} not shown)" if job.left_out else ""
    progress = f" {look.glyphs.dot} {job.files:,} of {job.total:,} sessions"
    problems = (Span(f" {look.glyphs.dot} {job.problems:,} unreadable", "stuck"),) if job.problems else ()
    return (
        Span(f' "{job.words}"', "strong"),
        Span(f"  {_counted(len(job.hits) + job.left_out, 'hit')}{left_out}", "" if job.hits else "muted"),
        Span(progress, "muted"),
        *problems,
        Span("   "),
        Span("esc", "key", "app.back"),
        Span(" back" if job.over else " stops", "muted"),
    )


def no_hits(model: LibraryModel, job: TextSearch) -> list[Line]:
    """Return the lines shown without hits: whether the search goes on, and the filter that narrowed it."""
    found = "No session has these words." if job.over else "No hits yet."
    filtered = f'  The filter "{model.query.text}" is on: {job.total:,} of {len(model.entries):,} sessions.'
    return [BLANK, (Span(f"  {found}"),), *([(Span(filtered, "stuck"),)] if model.query.text else [])]


class LibraryScreen(Page):
    """The root screen of the library."""

    top = getters.query_one("#head", Lines)
    sessions = getters.query_one(LibraryList)
    hits = getters.query_one(HitList)
    detail = getters.query_one("#detail", Lines)
    filter = getters.query_one("#filter", FilterBar)
    search = getters.query_one("#search", FilterBar)
    export = getters.query_one("#export", FilterBar)

    def __init__(self, glyphs: Glyphs, *, home: str, filters: Mapping[str, str]) -> None:
        super().__init__()
        self._filters = filters
        self.glyphs = glyphs
        self._home = home

    def compose(self) -> ComposeResult:
        """Compose head, list or hits, detail of the selected one, inputs, footer."""
        yield Lines(id="head", focusable=False)
        yield LibraryList(id="library")
        yield HitList(id="hits")
        yield Lines(id="detail", focusable=False)
        hint = "words: denied, npm, api, nov; ! inverts; since:7d, ? has more"
        yield FilterBar(id="filter", hint=hint, saved=self._filters)
        hint = "words that were said, run or printed; enter searches"
        yield FilterBar(id="search", sign="S", hint=hint)
        yield FilterBar(id="export", sign="X", hint="FILE.html or FILE.md")
        yield Footer(self.glyphs, *HINTS)

    def on_mount(self) -> None:
        """Focus the list."""
        self.sessions.focus()

    def show(self, model: LibraryModel, job: TextSearch | None, look: Look, problem: str | None) -> None:
        """Draw the library, and the search that is open; or why there are no sessions, once that is known."""
        self.set_class(job is not None, "-searching")
        self.top.show(head(model, self._home, self.size.width, look))
        self.sessions.show_model(model, look, self._placeholder(model, problem))
        if job is not None:
            self.hits.show_hits(job.hits, model.entries, look, no_hits(model, job))
        self.search.show_status(job is not None, search_status(job, look) if job else BLANK)
        entry = model.entries.get(self.selected_key)
        self.detail.show(detail(entry, self.detail.room - 2, look) if entry and self.detail.room > 2 else [])

    @property
    def selected_key(self) -> str:
        """The key of the selected entry, or that of the selected hit; empty without any."""
        if self.has_class("-searching"):
            return str(hit.path) if (hit := self.hits.selected) else ""
        return row.key if (row := self.sessions.selected) else ""

    def _placeholder(self, model: LibraryModel, problem: str | None) -> list[Line]:
        """Return the lines shown without sessions."""
        if model.entries:
            return [BLANK, (Span("  No session matches this filter."),), (Span("  esc clears it.", "muted"),)]
        text = "Looking for sessions." if problem is None else problem or "No sessions yet."
        tone: Tone = "" if problem is None else "strong"
        return [BLANK, *paragraph(text, self.sessions.room - 2, tone, indent=2)]


# ------------------------------------------------------------ help


LIBRARY_KEYS: Final = (
    *("open", "filter", "search", "export", "copy-resume", "fold", "sort", "copy-id"),
    *("theme", "help", "back", "quit"),
)
"""Ids of the keys that the library handles, beside those of its lists."""
_HELP: Final = {
    "open": "Replay the selected session and its family; a hit: from that moment on.",
    "filter": "Show only families with a matching session.",
    "fold": "Show the sub-agents and forks of the selected session, or fold them away; also left and right.",
    "sort": "Sort by newest, tokens, cost, duration in turn.",
    "copy-id": "Copy the session's id.",
    "back": "Stop a search, close its hits, clear the filter.",
    "quit": "Quit.",
}
"""Help of keys that do something else here than in the dashboard."""
TERMS: Final = (
    ("words", "occur in a row or its detail, in any case and order: denied, mismatch, fork, 20 nov"),
    ('"two words"', "occur together"),
    ("!term", "inverts the term"),
    ("since:7d", "begun then or later; also 12h, yesterday, 2026-11-01, 2026-11-01T20:15"),
    ("until:yesterday", "begun then or before"),
)


def library_help(table: Mapping[str, Key], glyphs: Glyphs, cells: int) -> list[Line]:
    """Return the help of the library: the keys, the terms of the filter, the signs."""
    return [
        *keys("Keys", (table[name] for name in (*ids("lines"), *LIBRARY_KEYS)), cells, _HELP),
        *entries("Filter: every term has to match", ((term, "key", text) for term, text in TERMS), cells),
        *entries("Signs", signs(glyphs), cells),
    ]
