"""Link the threads that nothing stronger places to the remaining TUIs, each once, in linear time.

By the strength of the evidence: the TUI was started with the thread's id, its pane shows the thread's prompt,
or it is the only TUI that may have started the thread.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from agentdash.model.links import PaneLink, ThreadPane
from agentdash.model.pane import Pane
from agentdash.model.process import Process
from agentdash.model.thread import Thread

_TUI_ORIGINATORS: Final = ("codex-tui", "codex_cli_rs")
"""`originator` of threads that a TUI started, before and since 0.98."""
_START_TOLERANCE_S: Final = 5.0
"""Time by which the stated start of a thread may precede that of its TUI: clocks and rounding."""
_PROMPT_CHARS: Final = 24
"""Characters of the start of a prompt that must be on a screen: longer ones wrap."""
_MIN_PROMPT_CHARS: Final = 6
"""Shorter prompts (`go`) could be on any screen by chance."""
_CACHED_SCREENS: Final = 1_024
"""Screens whose words are kept for the next pass: of more panes than anyone has; 8 kB each."""
_CACHED_PROMPTS: Final = 4_096


class Tui(NamedTuple):
    """A pane with a Codex whose thread is not linked yet."""

    pane: Pane
    process: Process

    def may_have_started(self, thread: Thread) -> bool:
        """Return whether an eligible thread of its directory is not older than it."""
        earliest = self.process.key.started - _START_TOLERANCE_S
        return thread.created_at is not None and thread.created_at >= earliest


def link_by_candidates(threads: Iterable[Thread], tuis: Iterable[Tui]) -> dict[str, ThreadPane]:
    """Return the panes of threads. Where several TUIs may have one thread, the first of them gets it.

    Args:
        threads: not linked to a pane yet.
        tuis: whose panes have no thread yet.
    """
    linker = _Linker(threads, tuis)
    linker.link_by_arguments()
    linker.link_by_prompts()
    linker.link_only_ones()
    return linker.linked


def newest_candidate(tui: Tui, threads: Iterable[Thread]) -> Thread | None:
    """Return the thread that was active last of those that the only TUI of a directory may have started."""
    candidates = [
        thread for thread in threads if is_of(thread, tui.process.cwd) and tui.may_have_started(thread)
    ]
    return max(candidates, key=lambda thread: thread.last_at or 0.0, default=None)


def only_one(tui: Tui) -> ThreadPane:
    """Return the link of a thread to the only TUI that may have started it."""
    folder = posixpath.basename(tui.process.cwd or "?")
    by = f"the only Codex in {folder} (pid {tui.process.pid}), and the thread began after it"
    return ThreadPane(tui.pane.key, by, how=PaneLink.ONLY_ONE)


def is_of(thread: Thread, cwd: str | None) -> bool:
    """Return whether a TUI in this directory may have started a thread, but for the time."""
    return thread.cwd == cwd and (thread.originator or "").startswith(_TUI_ORIGINATORS)


class _Linker:
    """The threads and TUIs that remain, and the links that were found."""

    def __init__(self, threads: Iterable[Thread], tuis: Iterable[Tui]) -> None:
        self.linked: dict[str, ThreadPane] = {}
        self._threads = {thread.id: thread for thread in threads}
        self._order = {thread: number for number, thread in enumerate(self._threads)}
        self._tuis = {tui.pane.key: tui for tui in tuis}

    def link_by_arguments(self) -> None:
        """Link TUIs that were started with a thread's id."""
        for tui in list(self._tuis.values()):
            named = [arg for arg in tui.process.argv if arg in self._threads]
            if named:
                by = f"the pane's Codex (pid {tui.process.pid}) was started with its id"
                first = min(named, key=self._order.__getitem__)
                self._link(tui, first, ThreadPane(tui.pane.key, by, how=PaneLink.ARGUMENTS))

    def link_by_prompts(self) -> None:
        """Link TUIs that show the prompt of one thread."""
        indexes = {cwd: _PromptIndex() for cwd in {tui.process.cwd for tui in self._tuis.values()}}
        for thread in self._threads.values():
            if (index := indexes.get(thread.cwd)) is not None and is_of(thread, thread.cwd):
                index.add(thread)
        for tui in list(self._tuis.values()):
            index = indexes[tui.process.cwd]
            shown = [thread for thread in index.shown_on(tui.pane.screen) if tui.may_have_started(thread)]
            if len(shown) == 1:
                index.remove(shown[0])
                link = ThreadPane(tui.pane.key, "the pane shows its prompt", how=PaneLink.PROMPT)
                self._link(tui, shown[0].id, link)

    def link_only_ones(self) -> None:
        """Link TUIs that are the only ones in their directories."""
        numbers = Counter(tui.process.cwd for tui in self._tuis.values())
        alone = [tui for tui in self._tuis.values() if numbers[tui.process.cwd] == 1]
        by_cwd: dict[str | None, list[Thread]] = {tui.process.cwd: [] for tui in alone}
        for thread in self._threads.values():
            if thread.cwd in by_cwd:
                by_cwd[thread.cwd].append(thread)
        for tui in alone:
            found = newest_candidate(tui, by_cwd[tui.process.cwd])
            if found is not None:
                self._link(tui, found.id, only_one(tui))

    def _link(self, tui: Tui, thread: str, link: ThreadPane) -> None:
        self.linked[thread] = link
        del self._threads[thread]
        del self._tuis[tui.pane.key]


class _PromptIndex:
    """The starts of the prompts of some threads, found by a word that a screen must have to show them."""

    def __init__(self) -> None:
        self._threads: dict[str, dict[str, Thread]] = {}
        """By start, then by id."""
        self._starts: dict[str, list[str]] = {}
        """By their key words; without one under ``""``."""

    def add(self, thread: Thread) -> None:
        """Add a thread whose prompt is long enough."""
        start, word = _start_of(thread.last_prompt or "")
        if len(start) < _MIN_PROMPT_CHARS:
            return
        if start not in self._threads:
            self._threads[start] = {}
            self._starts.setdefault(word, []).append(start)
        self._threads[start][thread.id] = thread

    def remove(self, thread: Thread) -> None:
        """Remove a thread that was added."""
        del self._threads[_start_of(thread.last_prompt or "")[0]][thread.id]

    def shown_on(self, screen: tuple[str, ...]) -> Iterator[Thread]:
        """Yield the threads whose prompt begins somewhere on a screen."""
        if not self._starts:
            return
        text, words = _words_of(screen)
        for word in words & self._starts.keys():
            for start in self._starts[word]:
                if start in text:
                    yield from self._threads[start].values()


@lru_cache(_CACHED_PROMPTS)
def _start_of(prompt: str) -> tuple[str, str]:
    """Return the start of a prompt, and the longest word that a screen with it has between two spaces."""
    start = " ".join(prompt.split(None, _PROMPT_CHARS)[:_PROMPT_CHARS])[:_PROMPT_CHARS]
    return start, max(start.split(" ")[1:-1], key=len, default="")


@lru_cache(_CACHED_SCREENS)
def _words_of(screen: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """Return a screen as one line, and its words; ``""`` is one of them."""
    words = " ".join(screen).split()
    return " ".join(words), frozenset(("", *words))
