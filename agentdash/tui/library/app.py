"""The library as an app: it returns the past session that was selected."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from textual import on
from textual.message import Message
from textual.suggester import Suggester
from textual.worker import Worker, get_current_worker

from agentdash.model.source import Clock
from agentdash.replay.library.entry import RECORDING, Entry, next_sort
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query, complete
from agentdash.tui.base_app import BaseApp
from agentdash.tui.keys import bindings
from agentdash.tui.library.cells import shown_text
from agentdash.tui.library.denials import DenialsChart
from agentdash.tui.library.help import LIBRARY_KEYS, LibraryHelp
from agentdash.tui.library.list import HitList, LibraryList
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.library.screen import LibraryScreen
from agentdash.tui.library.search_job import SearchJob
from agentdash.tui.options import Options
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.line_input import focus_unless_typing
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.view import View

_LISTED_FIRST: Final = 200
"""Sessions that are listed before the first paint: more than any screen shows."""
_REPORT_INTERVAL_S: Final = 0.1
"""Between two portions of entries from the reading thread: a message per entry would flood the event loop."""
_REARRANGE_INTERVAL_S: Final = 1.0
"""Between two arrangements while entries arrive: rows that moved more often could not be read."""


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
    """

    TITLE = "agentdash"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings(
        *(key for key in LIBRARY_KEYS if key not in ("down", "up", "top", "bottom", "page-down", "page-up"))
    )

    class Listed(Message):
        """All session files are listed."""

        def __init__(self, entries: Sequence[Entry]) -> None:
            self.entries = entries
            super().__init__()

    class EntriesRead(Message):
        """Entries were read, or read further.

        Args:
            rate: sessions read per second so far; 0 when all are read.
        """

        def __init__(self, entries: Sequence[Entry], rate: float) -> None:
            self.entries = entries
            self.rate = rate
            super().__init__()

    class SearchProgressed(Message):
        """The search has more hits, or is further."""

    def __init__(self, library: Library, model: LibraryModel, clock: Clock, options: Options) -> None:
        super().__init__(options)
        self._library = library
        self.model = model
        self._clock = clock
        self.root = LibraryScreen(
            self.glyphs,
            home=str(library.home.root),
            suggester=QuerySuggester(model),
            filters=options.filters,
        )
        self.search_job: SearchJob | None = None
        self._search_worker: Worker[None] | None = None
        self._rate = 0.0
        self._problem: str | None = None
        """Why there are no sessions; None until that is known."""
        self._visible_keys: tuple[str, ...] = ()

    def get_default_screen(self) -> LibraryScreen:
        """Return the library's screen."""
        return self.root

    def on_ready(self) -> None:
        """List the newest sessions at once; list and read all others in a thread."""
        self._put_new(islice(self._library.entries(), _LISTED_FIRST))
        self._arrange()
        self.run_worker(self._read_all, thread=True, name="fill")
        self.set_interval(_REARRANGE_INTERVAL_S, self.rearrange_if_stale)

    # ---------------------------------------------------------------- read

    def _put_new(self, entries: Iterable[Entry]) -> None:
        self.model.put(entry for entry in entries if entry.key not in self.model.entries)

    @on(Listed)
    def _listed(self, event: Listed) -> None:
        self._problem = None if event.entries else self._library.problem or ""
        self.model.keep({entry.key for entry in event.entries})
        self._put_new(event.entries)
        self._arrange()

    def _read_all(self) -> None:
        """Read all sessions, those in the viewport first. Runs in a thread."""
        worker = get_current_worker()
        listed = list(self._library.entries())
        self.post_message(self.Listed(listed))
        known = {
            key: self._library.refresh(entry)
            for key, entry in self.model.entries.items()
            if entry.depth != "listed"
        }
        began = reported = time.monotonic()
        portion: list[Entry] = []
        read = 0
        entries = [known.get(entry.key, entry) for entry in listed]
        for entry in self._library.fill(entries, lambda: self._visible_keys):
            portion.append(entry)
            read += entry.depth != "header"
            now = time.monotonic()
            if now - reported > _REPORT_INTERVAL_S:
                self.post_message(self.EntriesRead(portion, read / (now - began)))
                portion = []
                reported = now
            if worker.is_cancelled:
                return
        self.post_message(self.EntriesRead(portion, 0.0))

    @on(EntriesRead)
    def _entries_read(self, event: EntriesRead) -> None:
        self.model.put(event.entries)
        self._rate = event.rate
        self._show_unread()
        self.draw()

    def _show_unread(self) -> None:
        """Count what cannot be read beside sessions, and show the first of it that is new."""
        unread = tuple(self._library.unread)
        new = [problem for problem in unread if problem not in self.model.unread]
        self.model.unread = unread
        if new:
            self.show_message(new[0])

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
            self.root.show(self.model, self.search_job, look, self._rate, self._problem)
            self._visible_keys = self.root.sessions.visible_keys
        if isinstance(self.screen, LibraryHelp | DenialsChart) and self.screen.is_mounted:
            self.screen.draw(View(look))

    @on(LibraryList.CursorMoved)
    def _cursor_moved(self) -> None:
        row = self.root.sessions.selected
        self.model.selected_key = row.key if row else None
        self.draw()

    # ---------------------------------------------------------------- filter and search

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
        now = self._clock.now()
        self.model.query = Query.parse(text, now, lambda entry: shown_text(entry, now))
        self._arrange()

    def action_search(self) -> None:
        """Edit the words to search for."""
        self.root.search.edit(self.search_job.words if self.search_job else "")

    @on(FilterBar.Closed, "#search")
    def _search_submitted(self, event: FilterBar.Closed) -> None:
        if event.submitted and event.text.strip():
            self._end_search()
            self.search_job = SearchJob(event.text.strip(), self.model.searched())
            self._search_worker = self.run_worker(self._run_search, thread=True, name="search")
        self.draw()
        focus_unless_typing(self.root.hits if self.search_job else self.root.sessions)

    def _run_search(self) -> None:
        """Run the search. Runs in a thread."""
        worker, job = get_current_worker(), self.search_job
        for _ in job.steps(lambda: worker.is_cancelled) if job else ():
            self.post_message(self.SearchProgressed())

    @on(SearchProgressed)
    def _search_progressed(self) -> None:
        self.draw()

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

    # ---------------------------------------------------------------- selected session

    @on(LibraryList.Opened)
    @on(HitList.Opened)
    def action_open(self) -> None:
        """Return the selected session."""
        if self.search_job is not None:
            if (hit := self.root.hits.selected) is not None:
                self.exit(SelectedSession(hit.thread, hit.path, hit.at))
        elif (row := self.root.sessions.selected) is not None:
            entry = self.model.entries[row.key]
            if entry.is_unreadable:
                self.show_message(f"This session cannot be played: {entry.problem}")
            else:
                self.model.selected_key = entry.key
                self.exit(SelectedSession(entry.id, entry.path))

    def action_unfold(self) -> None:
        """Unfold or fold the selected family."""
        self._fold(None)

    def action_tab(self, step: int) -> None:
        """Unfold (1) or fold (-1) the selected family."""
        self._fold(step > 0)

    def _fold(self, unfold: bool | None) -> None:
        if (row := self.root.sessions.selected) is not None and self.search_job is None:
            self.model.selected_key = row.key
            self.model.fold(row.key, unfold)
            self.draw()

    def action_sort(self) -> None:
        """Sort by the next of `SORTS`."""
        self.action_sort_by(next_sort(self.model.sort))

    def action_sort_by(self, name: str) -> None:
        """Sort by this."""
        self.model.sort = name
        self._arrange()
        self.show_message(f"Sorted by {name}; s: by {next_sort(name)}.")

    def action_copy_resume(self) -> None:
        """Copy the command that goes on with the selected session."""
        if (thread := self._selected_thread()) is None:
            return
        agents = {entry.agent for entry in self.model.entries.values() if entry.id == thread}
        if agents == {RECORDING}:
            self.show_message("A recording is no session to go on with.")
        else:
            self.copy(f"{'claude --resume' if 'claude' in agents else 'codex resume'} {shlex.quote(thread)}")

    def action_copy_id(self) -> None:
        """Copy the id of the selected session to the clipboard (OSC 52)."""
        if (thread := self._selected_thread()) is not None:
            self.copy(thread)

    def _selected_thread(self) -> str | None:
        row, hit = self.root.sessions.selected, self.root.hits.selected
        if self.search_job and hit:
            return hit.thread
        if row is None:
            self.show_message("No session is selected.")
        return row.member.entry.id if row else None

    def action_denials(self) -> None:
        """Open the chart of denials in the sessions that match the filter."""
        self.push_screen(DenialsChart(self.glyphs, self.model))

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(LibraryHelp(self.glyphs))

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
        elif self.model.query.text:
            self._apply_filter("")

    def action_leave(self) -> None:
        """Close the hits; without hits, quit."""
        if self.search_job is not None:
            self._close_search()
        else:
            self.exit(None)


class QuerySuggester(Suggester):
    """Completes keys and values in a filter, also by the directories and models of the sessions."""

    def __init__(self, model: LibraryModel) -> None:
        super().__init__(use_cache=False, case_sensitive=True)  # the entries change; case is kept as typed
        self._model = model

    async def get_suggestion(self, value: str) -> str | None:
        """Return the completed filter; None if there is nothing to complete."""
        return complete(value, self._model.entries.values())
