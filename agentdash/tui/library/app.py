"""The library as an app: it returns the past session that was selected."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from textual import getters, on
from textual.app import ComposeResult
from textual.worker import Worker, get_current_worker

from agentdash.model.source import Clock
from agentdash.replay.library.entry import RECORDING, Entry, next_sort
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.replay.library.search import TextSearch
from agentdash.tui.base_app import BaseApp
from agentdash.tui.format import elide_middle
from agentdash.tui.help import HelpScreen, entries, keys, signs
from agentdash.tui.keys import Key, bindings, ids
from agentdash.tui.library.list import HitList, LibraryList, LibraryModel, detail
from agentdash.tui.options import Options
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.filter_bar import FilterBar, focus_unless_typing
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines, Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph
from agentdash.tui.theme import Glyphs, Look

_REPORT_INTERVAL_S: Final = 0.1
"""Between two portions of entries or hits from a thread: a call for each would flood the event loop."""
_REARRANGE_INTERVAL_S: Final = 1.0
"""Between two arrangements while entries arrive: rows that moved more often could not be read."""
HINTS: Final = ("open", "filter", "search", "export", "copy-resume", "fold", "sort", "quit", "help")
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


# ------------------------------------------------------------ the app


class SelectedSession(NamedTuple):
    """The session to play."""

    thread: str
    path: Path
    at: float | None = None
    """Unix seconds to begin at; None: the beginning."""


class LibraryApp(BaseApp[SelectedSession | None]):
    """The list of all past sessions. Returns the session that was opened, or None.

    Args:
        model: what is known of them already, and how the screen was left.
        clock: for ages and relative dates.
        export: writes a session to a file, and returns what has become of it.
    """

    TITLE = "agentdash"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings(*LIBRARY_KEYS, "tab-left", "tab-right")

    def __init__(
        self,
        library: Library,
        model: LibraryModel,
        clock: Clock,
        options: Options,
        export: Callable[[str, Path], str],
    ) -> None:
        super().__init__(options)
        self._library = library
        self.model = model
        self._clock = clock
        self._export = export
        self.root = LibraryScreen(self.glyphs, home=str(library.home.root), filters=options.filters)
        self.search_job: TextSearch | None = None
        self._search_worker: Worker[None] | None = None
        self._problem: str | None = None
        """Why there are no sessions; None until that is known."""

    def get_default_screen(self) -> LibraryScreen:
        """Return the library's screen."""
        return self.root

    def on_ready(self) -> None:
        """List and read all sessions in a thread."""
        self._arrange()
        self.run_worker(self._read_all, thread=True, name="fill")
        self.set_interval(_REARRANGE_INTERVAL_S, self.rearrange_if_stale)

    # ---------------------------------------------------------------- read

    def _read_all(self) -> None:
        """Read all sessions, the newest first. Runs in a thread."""
        worker = get_current_worker()
        listed = list(self._library.entries())
        self.call_later(self._show_listed, listed)
        read = [entry for entry in self.model.entries.values() if entry.is_read]
        known = {entry.key: self._library.refresh(entry) for entry in read}
        reported, portion = time.monotonic(), []
        entries = [known.get(entry.key, entry) for entry in listed]
        for entry in self._library.fill(entries):
            portion.append(entry)
            if time.monotonic() - reported > _REPORT_INTERVAL_S:
                self.call_later(self._show_read, portion)
                reported, portion = time.monotonic(), []
            if worker.is_cancelled:
                return
        self.call_later(self._show_read, portion)

    def _show_listed(self, entries: Sequence[Entry]) -> None:
        self._problem = None if entries else self._library.problem or ""
        self.model.list(entries)
        self._arrange()

    def _show_read(self, entries: Sequence[Entry]) -> None:
        """Show entries that were read, and the first new problem of a directory."""
        self.model.put(entries)
        unread = tuple(self._library.unread)
        new = [problem for problem in unread if problem not in self.model.unread]
        self.model.unread = unread
        if new:
            self.show_message(new[0])
        self.draw()

    def rearrange_if_stale(self) -> None:
        """Arrange the rows by what is known now, if that has changed."""
        if self.model.stale:
            self._arrange()

    def _arrange(self) -> None:
        self.model.arrange()
        self.draw()

    # ---------------------------------------------------------------- draw

    @on(Lines.Resized)
    def draw(self) -> None:
        """Draw the model. Lines that have not changed are not painted again."""
        if not self.is_running:  # while the app ends, screens lose their widgets before they leave the stack
            return
        look = Look(self._clock.now(), self.glyphs)
        if self.root.is_mounted:
            self.root.show(self.model, self.search_job, look, self._problem)

    @on(LibraryList.Moved)
    def _cursor_moved(self) -> None:
        if (row := self.root.sessions.selected) is not None:
            self.model.selected_key = row.key
        self.draw()

    # ---------------------------------------------------------------- filter, search, export

    def action_filter(self) -> None:
        """Edit the filter."""
        self._end_search()
        self.root.filter.edit(self.model.query.text)

    @on(FilterBar.Edited, "#filter")
    def _filter_edited(self, event: FilterBar.Edited) -> None:
        self._apply_filter(event.text)

    @on(FilterBar.Closed, "#filter")
    def _filter_closed(self, event: FilterBar.Closed) -> None:
        if not event.submitted:
            self._apply_filter("")
        focus_unless_typing(self.root.sessions)

    def _apply_filter(self, text: str) -> None:
        self.model.query = Query.parse(text, self._clock.now())
        self._arrange()

    def action_search(self) -> None:
        """Edit the words to search for."""
        self.root.search.edit(self.search_job.words if self.search_job else "")

    @on(FilterBar.Closed, "#search")
    def _search_submitted(self, event: FilterBar.Closed) -> None:
        if event.submitted and event.text.strip():
            self._end_search()
            found = [each.entry.path for family in self.model.matching for each in family.members]
            self.search_job = TextSearch(event.text.strip(), found)
            self._search_worker = self.run_worker(self._run_search, thread=True, name="search")
        self.draw()
        focus_unless_typing(self.root.hits if self.search_job else self.root.sessions)

    def _run_search(self) -> None:
        """Run the search. Runs in a thread."""
        worker, job = get_current_worker(), self.search_job
        shown = time.monotonic()
        for _ in job.steps() if job else ():
            if worker.is_cancelled:
                break
            if time.monotonic() - shown > _REPORT_INTERVAL_S:
                shown = time.monotonic()
                self.call_later(self.draw)
        if job is not None:
            job.over = True
        self.call_later(self.draw)

    def _close_search(self) -> None:
        self._end_search()
        self.root.sessions.focus()

    def _end_search(self) -> None:
        """End the search and leave the focus where it is: `focus` waits, and would take it from an input that
        is opened next."""
        if self._search_worker is not None:
            self._search_worker.cancel()
        self.search_job = None
        self._search_worker = None
        self.draw()

    def action_export(self) -> None:
        """Edit the name of the file to export the selected session to."""
        if (entry := self._selected_entry()) is not None:
            self.root.export.edit(f"session-{entry.id[:8]}.html")

    @on(FilterBar.Closed, "#export")
    def _export_submitted(self, event: FilterBar.Closed) -> None:
        entry, file = self._selected_entry(), event.text.strip()
        if event.submitted and file and entry is not None:
            self.export(partial(self._export, entry.id if entry.recording else str(entry.path)), file)
        focus_unless_typing(self.root.hits if self.search_job else self.root.sessions)

    # ---------------------------------------------------------------- selected session

    def _selected_entry(self) -> Entry | None:
        """Return the entry of the selected row or hit; without any, say so."""
        entry = self.model.entries.get(self.root.selected_key)
        if entry is None:
            self.show_message("No session is selected.")
        return entry

    @on(Choices.Opened)
    def action_open(self) -> None:
        """Return the selected session."""
        if (entry := self._selected_entry()) is None:
            return
        hit = self.root.hits.selected if self.search_job is not None else None
        if hit is not None:
            self.exit(SelectedSession(hit.thread, hit.path, hit.at))
        elif entry.is_unreadable:
            self.show_message(f"This session cannot be played: {entry.problem}")
        else:
            self.model.selected_key = entry.key
            self.exit(SelectedSession(entry.id, entry.path))

    def action_tab(self, step: int) -> None:
        """Unfold (1) or fold (-1) the selected family."""
        self.action_fold(step > 0)

    def action_fold(self, unfold: bool | None = None) -> None:
        """Unfold or fold the selected family; None: whichever it is not."""
        if self.search_job is None and (entry := self._selected_entry()) is not None:
            self.model.selected_key = entry.key
            self.model.fold(entry.key, unfold)
            self.draw()

    def action_sort(self) -> None:
        """Sort by the next of `SORTS`."""
        self.model.sort = next_sort(self.model.sort)
        self._arrange()
        self.show_message(f"Sorted by {self.model.sort}; s: by {next_sort(self.model.sort)}.")

    def action_copy_resume(self) -> None:
        """Copy the command that resumes the selected session."""
        if (entry := self._selected_entry()) is None:
            return
        if entry.agent == RECORDING:
            self.show_message("Recordings can't be resumed.")
        else:
            program = "claude --resume" if entry.agent == "claude" else "codex resume"
            self.copy(f"{program} {shlex.quote(entry.id)}")

    def action_copy_id(self) -> None:
        """Copy the id of the selected session to the clipboard (OSC 52)."""
        if (entry := self._selected_entry()) is not None:
            self.copy(entry.id)

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(HelpScreen(self.glyphs, partial(library_help, self.keys, self.glyphs)))

    async def action_back(self) -> None:
        """Stop a running search, else close its hits, else focus the list, else clear the filter."""
        if self.search_job is not None and not self.search_job.over and self._search_worker is not None:
            self._search_worker.cancel()
        elif self.search_job is not None:
            self._close_search()
        elif self.focused is not self.root.sessions:
            for bar in self.root.query("FilterBar.-editing").results(FilterBar):
                bar.action_back()
            self.root.sessions.focus()
        else:
            self._apply_filter("")

    def action_leave(self) -> None:
        """Close the hits; without hits, quit."""
        if self.search_job is not None:
            self._close_search()
        else:
            self.exit(None)
