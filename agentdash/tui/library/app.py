"""The library as an app: somebody picks a past session, and that is what it returns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from textual import on
from textual.message import Message
from textual.worker import Worker, get_current_worker

from agentdash.model.clock import Clock
from agentdash.replay.library.library import Entry, Library
from agentdash.replay.library.query import Query
from agentdash.tui.base_app import BaseApp
from agentdash.tui.fleet.filter_bar import FilterBar
from agentdash.tui.keys import bindings
from agentdash.tui.library.help import KEYS_HERE, LibraryHelp
from agentdash.tui.library.hit_list import HitList
from agentdash.tui.library.list import LibraryList
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.library.screen import LibraryScreen
from agentdash.tui.library.search_job import SearchJob
from agentdash.tui.options import Options
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.view import View

_AT_ONCE: Final = 200
"""Sessions that are listed before anything else is done: more than any screen shows."""
_MOMENT: Final = 0.1
"""Seconds between two portions of entries."""
_ARRANGED: Final = 1.0
"""Seconds between two arrangements of the list while it fills."""


class Picked(NamedTuple):
    """What somebody wants to watch."""

    thread: str
    path: Path
    at: float | None = None
    """The moment to begin at; None: the beginning."""


class LibraryApp(BaseApp[Picked | None]):
    """All past sessions. Returns the one that was picked, or None.

    Args:
        library: what there is.
        shelf: what is known of it already, and how it was left.
        clock: what ages are counted by.
    """

    TITLE = "agentdash"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings(
        *(name for name in KEYS_HERE if name not in ("down", "up", "top", "bottom", "page-down", "page-up"))
    )

    class Listed(Message):
        """All sessions there are."""

        def __init__(self, entries: Sequence[Entry]) -> None:
            self.entries = entries
            super().__init__()

    class Filled(Message):
        """Entries are better known now."""

        def __init__(self, entries: Sequence[Entry], rate: float) -> None:
            self.entries, self.rate = entries, rate
            super().__init__()

    class Found(Message):
        """A search has come further."""

    def __init__(self, library: Library, shelf: LibraryModel, clock: Clock, options: Options) -> None:
        super().__init__(options)
        self._library, self.shelf, self._clock = library, shelf, clock
        self.root = LibraryScreen(self.glyphs, str(library.home.root))
        self.hunt: SearchJob | None = None
        self._hunter: Worker[None] | None = None
        self._rate = 0.0
        self._empty: str | None = None
        """Why there is nothing, once that is known."""
        self._in_sight: tuple[str, ...] = ()

    def get_default_screen(self) -> LibraryScreen:
        """The library."""
        return self.root

    def on_ready(self) -> None:
        """Lists the newest at once, and begins to list and read all the others."""
        self.shelf.put(
            entry
            for entry in islice(self._library.entries(), _AT_ONCE)
            if entry.key not in self.shelf.entries
        )
        self._arrange()
        self.run_worker(self._fill, thread=True, name="fill")
        self.set_interval(_ARRANGED, self.settle)

    # ---------------------------------------------------------------- reading

    @on(Listed)
    def _listed(self, event: Listed) -> None:
        self._empty = None if event.entries else self._library.problem or ""
        self.shelf.keep({entry.key for entry in event.entries})
        self.shelf.put(entry for entry in event.entries if entry.key not in self.shelf.entries)
        self._arrange()

    def _fill(self) -> None:
        """In a thread: reads on, what can be seen first."""
        worker = get_current_worker()
        listed = list(self._library.entries())
        self.post_message(self.Listed(listed))
        known = {
            key: self._library.refresh(entry)
            for key, entry in self.shelf.entries.items()
            if entry.depth != "listed"
        }
        began = told = time.monotonic()
        portion: list[Entry] = []
        read = 0
        for entry in self._library.fill(
            [known.get(entry.key, entry) for entry in listed], lambda: self._in_sight
        ):
            portion.append(entry)
            read += entry.depth != "header"
            now = time.monotonic()
            if now - told > _MOMENT:
                self.post_message(self.Filled(portion, read / (now - began)))
                portion, told = [], now
            if worker.is_cancelled:
                return
        self.post_message(self.Filled(portion, 0.0))

    @on(Filled)
    def _filled(self, event: Filled) -> None:
        self.shelf.put(event.entries)
        self._rate = event.rate
        self.draw()

    def settle(self) -> None:
        """Families come together, and the filter meets what is known by now."""
        if self.shelf.stale:
            self._arrange()

    def _arrange(self) -> None:
        self.shelf.arrange()
        self.draw()

    # ---------------------------------------------------------------- drawing

    @on(Lines.Resized)
    def draw(self) -> None:
        """Shows what there is now. What has not changed is not painted again."""
        if not self.is_running:  # it ends: screens lose their parts before they leave the stack
            return
        look = Look(self._clock.now(), self.glyphs)
        if self.root.is_mounted:
            self.root.show(self.shelf, self.hunt, look, self._rate, self._empty)
            self._in_sight = self.root.sessions.in_sight
        if isinstance(self.screen, LibraryHelp):
            self.screen.draw(View(look))

    @on(LibraryList.FileMoved)
    def _moved(self) -> None:
        place = self.root.sessions.chosen
        self.shelf.picked = place.key if place else None
        self.draw()

    # ---------------------------------------------------------------- finding

    def action_filter(self) -> None:
        """Lets somebody type a filter."""
        self._close_hunt()
        self.root.filter.edit(self.shelf.query.text)

    @on(FilterBar.Typed, "#filter")
    def _filter_typed(self, event: FilterBar.Typed) -> None:
        self._narrow(event.text)

    @on(FilterBar.Done, "#filter")
    def _filter_done(self, event: FilterBar.Done) -> None:
        if not event.kept:
            self._narrow("")
        self.root.sessions.focus()

    def _narrow(self, text: str) -> None:
        self.shelf.query = Query.parse(text, self._clock.now())
        self._arrange()

    def action_search(self) -> None:
        """Lets somebody type words to search for."""
        self.root.search.edit(self.hunt.words if self.hunt else "")

    @on(FilterBar.Done, "#search")
    def _search_done(self, event: FilterBar.Done) -> None:
        if event.kept and event.text.strip():
            self._close_hunt()
            self.hunt = SearchJob(event.text.strip(), self.shelf.searched())
            self._hunter = self.run_worker(self._hunt, thread=True, name="search")
        self.draw()
        (self.root.hits if self.hunt else self.root.sessions).focus()

    def _hunt(self) -> None:
        """In a thread: searches."""
        worker, hunt = get_current_worker(), self.hunt
        for _ in hunt.steps(lambda: worker.is_cancelled) if hunt else ():
            self.post_message(self.Found())

    @on(Found)
    def _found(self) -> None:
        self.draw()

    def _close_hunt(self) -> None:
        if self._hunter is not None:
            self._hunter.cancel()
        self.hunt = self._hunter = None
        self.draw()
        self.root.sessions.focus()

    # ---------------------------------------------------------------- choosing

    @on(LibraryList.Opened)
    @on(HitList.Opened)
    def action_open(self) -> None:
        """Returns the chosen session."""
        if self.hunt is not None:
            if (hit := self.root.hits.chosen) is not None:
                self.exit(Picked(hit.thread, hit.path, hit.at))
        elif (place := self.root.sessions.chosen) is not None:
            entry = self.shelf.entries[place.key]
            if entry.problem and entry.state is None:
                self.say(f"This session cannot be played: {entry.problem}")
            else:
                self.shelf.picked = entry.key
                self.exit(Picked(entry.id, entry.path))

    def action_unfold(self) -> None:
        """Shows the rest of the family, or hides it."""
        self._fold(None)

    def action_tab(self, step: int) -> None:
        """Unfolds (1) or folds (-1)."""
        self._fold(step > 0)

    def _fold(self, unfold: bool | None) -> None:
        if (place := self.root.sessions.chosen) is not None and self.hunt is None:
            self.shelf.picked = place.key
            self.shelf.fold(place.key, unfold)
            self.draw()

    def action_copy_id(self) -> None:
        """The session's id, to the clipboard (OSC 52)."""
        place, hit = self.root.sessions.chosen, self.root.hits.chosen
        thread = hit.thread if self.hunt and hit else place.member.entry.id if place else None
        if thread is not None:
            self.copy_to_clipboard(thread)
            self.say(f"Copied {thread}")

    def action_help(self) -> None:
        """What can be typed and pressed."""
        self.push_screen(LibraryHelp(self.glyphs))

    async def action_back(self) -> None:
        """Stops a search, closes its hits, clears the filter."""
        if self.hunt is not None and not self.hunt.over and self._hunter is not None:
            self._hunter.cancel()
        elif self.hunt is not None:
            self._close_hunt()
        elif self.focused is not self.root.sessions:
            self.root.sessions.focus()
        elif self.shelf.query.text:
            self._narrow("")

    def action_leave(self) -> None:
        """Closes the hits; from the list: out."""
        if self.hunt is not None:
            self._close_hunt()
        else:
            self.exit(None)
