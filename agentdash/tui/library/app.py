"""The library as an app: it returns the past session that was selected."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from textual import on
from textual.worker import Worker, get_current_worker

from agentdash.model.source import Clock
from agentdash.replay.library.entry import RECORDING, Entry, next_sort
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.replay.library.search import TextSearch
from agentdash.tui.base_app import BaseApp
from agentdash.tui.help import HelpScreen
from agentdash.tui.keys import bindings
from agentdash.tui.library.list import LibraryList, LibraryModel
from agentdash.tui.library.screen import LIBRARY_KEYS, LibraryScreen, library_help
from agentdash.tui.options import Options
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.filter_bar import FilterBar, focus_unless_typing
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look

_REPORT_INTERVAL_S: Final = 0.1
"""Between two portions of entries or hits from a thread: a call for each would flood the event loop."""
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
        self._visible_keys: tuple[str, ...] = ()

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
        """Read all sessions, those in the viewport first. Runs in a thread."""
        worker = get_current_worker()
        listed = list(self._library.entries())
        self.call_later(self._show_listed, listed)
        known = {
            key: self._library.refresh(entry) for key, entry in self.model.entries.items() if entry.is_read
        }
        reported = time.monotonic()
        portion: list[Entry] = []
        entries = [known.get(entry.key, entry) for entry in listed]
        for entry in self._library.fill(entries, lambda: self._visible_keys):
            portion.append(entry)
            if time.monotonic() - reported > _REPORT_INTERVAL_S:
                self.call_later(self._show_read, portion)
                portion = []
                reported = time.monotonic()
            if worker.is_cancelled:
                return
        self.call_later(self._show_read, portion)

    def _show_listed(self, entries: Sequence[Entry]) -> None:
        self._problem = None if entries else self._library.problem or ""
        self.model.keep({entry.key for entry in entries})
        self.model.put(entry for entry in entries if entry.key not in self.model.entries)
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
            self._visible_keys = self.root.sessions.visible_keys

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
            self.show_message(f"Writing {file} ...")
            self.run_worker(partial(self._write, entry, file), thread=True, name="export")
        focus_unless_typing(self.root.hits if self.search_job else self.root.sessions)

    def _write(self, entry: Entry, file: str) -> None:
        """Export a session. Runs in a thread."""
        target = entry.id if entry.recording else str(entry.path)
        self.call_later(self.show_message, self._export(target, Path(file).expanduser()))

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
        elif self.model.query.text:
            self._apply_filter("")

    def action_leave(self) -> None:
        """Close the hits; without hits, quit."""
        if self.search_job is not None:
            self._close_search()
        else:
            self.exit(None)
