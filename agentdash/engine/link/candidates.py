"""Link the threads that a daemon runs for TUIs (0.160+) to the panes of these, in linear time.

By the strength of the evidence: the pane shows what the thread was forked from, or its prompt; its title
names the thread; the TUI was started with the thread's id; or it is the only TUI that may have the thread.

A TUI has only threads that the daemon has loaded, and may have left any of them for another (`/new`,
`/fork`, `/resume`): without evidence on its screen it is linked only where no other loaded thread could be
the one that it shows. One that was left stays loaded for a minute (0.169).
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from agentdash.model.fleet import ThreadPane
from agentdash.model.pane import Pane, PaneKey, columns
from agentdash.model.process import Process
from agentdash.model.thread import Thread

_PROMPT_CHARS: Final = 24
"""Characters of the start of a prompt that must be on a screen: longer ones wrap."""
_MIN_PROMPT_CHARS: Final = 6
"""Shorter prompts (`go`) could be on any screen by chance."""
_CACHED_SCREENS: Final = 512
"""Screens whose prompts are kept for the next pass; each has some kB. With more panes none is found again."""
_PROMPT_MARKS: Final = ("› ", "▌ ")
"""Before a prompt in the transcript, since 0.4x and until then."""
_INDENT: Final = "  "
"""Of the further rows of a prompt."""
_HEADER: Final = ">_ OpenAI Codex (v"
"""A session begins with it: what is above belongs to the one before."""
_FORKED: Final = "• Thread forked from"
"""Below the header of a fork, then an id, or a name and an id in parentheses (0.114 to 0.169)."""
_ID_CHARS: Final = 36
_REMOTE_LINE: Final = "thread id: "
"""`codex exec --remote` prints it with its thread's id (0.171)."""
_ID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Loaded(NamedTuple):
    """What the daemon of a Codex home has loaded."""

    threads: frozenset[str]
    new: tuple[str | None, ...] = ()
    """The directories of those without a rollout, which none has before its first prompt; None where not
    known."""


class Tui(NamedTuple):
    """A pane with a Codex whose thread is not linked yet."""

    pane: Pane
    process: Process
    front: str = ""
    """The name of the thread in front, by the title of the pane."""

    @property
    def cwd(self) -> str | None:
        """The directory of its threads: the one that it was given (`-C`), or was started in."""
        return _given_directory(self.process) or self.process.cwd


def link_by_candidates(
    threads: Iterable[Thread], tuis: Iterable[Tui], loaded: Loaded, side_chats: Iterable[Thread] = ()
) -> dict[str, ThreadPane]:
    """Return the panes of threads. Where several TUIs may have one thread, the first of them gets it.

    Args:
        threads: not linked to a pane yet.
        tuis: whose panes have no thread yet.
        loaded: what the daemon of these TUIs has loaded.
        side_chats: those of threads; a title may name them.
    """
    left = _Left(
        {thread.id: thread for thread in threads if thread.id in loaded.threads},
        {tui.pane.key: tui for tui in tuis},
        loaded,
        tuple(side_chats),
    )
    linked: dict[str, ThreadPane] = {}
    for rule in (_by_printed_ids, _by_forks, _by_prompts, _by_titles, _by_arguments, _only_ones):
        for tui, thread, by in rule(left):
            linked[thread] = ThreadPane(tui.pane.key, by)
            del left.threads[thread], left.tuis[tui.pane.key]
    return linked


def _given_directory(process: Process) -> str | None:
    """Return the directory that a Codex was given with `-C` or `--cd`."""
    for option, value in zip(process.argv, (*process.argv[1:], ""), strict=False):
        if option == "--":
            break
        name, _, attached = option.partition("=")
        given = value if option in ("-C", "--cd") else attached if name in ("-C", "--cd") else ""
        if given:
            return posixpath.normpath(posixpath.join(process.cwd or "/", given))
    return None


class _Left(NamedTuple):
    """The threads and TUIs that are not linked yet."""

    threads: dict[str, Thread]
    tuis: dict[PaneKey, Tui]
    loaded: Loaded
    side_chats: tuple[Thread, ...]

    def among(self, threads: Iterable[Thread], tui: Tui) -> list[Thread]:
        """Return those of the threads that are left and that a TUI may have."""
        return [each for each in threads if each.id in self.threads and _may_have(tui, each)]

    def may_only_have(self, tui: Tui, thread: str) -> bool:
        """Return whether the daemon has loaded no other thread that a TUI may show."""
        others = (other for other in self.threads.values() if other.id != thread)
        is_other_new = any(cwd in (None, tui.cwd) for cwd in self.loaded.new)
        return not is_other_new and not any(_may_have(tui, other) for other in others)


_Links = Iterator[tuple[Tui, str, str]]
"""A TUI, its thread, and the evidence. The two are gone from those that are left before the next link."""


def _may_have(tui: Tui, thread: Thread) -> bool:
    """Return whether a TUI may show a thread of the daemon."""
    return tui.process.is_remote or thread.cwd == tui.cwd


def _by_printed_ids(left: _Left) -> _Links:
    """Link the `codex exec --remote` that print the id of their thread first."""
    for tui in list(left.tuis.values()):
        process = tui.process
        is_exec = process.is_remote and process.once
        shown = printed_id(tui.pane.screen, _REMOTE_LINE) if is_exec else None
        if shown in left.threads:
            by = f"the pane's `codex exec --remote` (pid {process.pid}) shows `{_REMOTE_LINE}{shown}`"
            yield tui, shown, by


def _by_forks(left: _Left) -> _Links:
    """Link TUIs whose screens name the thread that theirs was forked from, where only one fork may be it.

    A fork without a prompt of its own shows the prompts of that thread, below the line that names it.
    """
    forks: dict[str, list[Thread]] = {}
    for thread in left.threads.values():
        if thread.forked_from:
            forks.setdefault(thread.forked_from, []).append(thread)
    for tui in list(left.tuis.values()):
        screen = _read(columns(tui.pane.screen)[0])
        candidates = left.among(forks.get(screen.forked_from or "", ()), tui)
        prompted = [each for each in candidates if _start_of(each.last_prompt or "") in screen.prompts]
        found = prompted or [each for each in candidates if not each.last_prompt]
        if len(found) == 1:
            yield tui, found[0].id, f"the pane shows that its thread was forked from {screen.forked_from}"


def _by_prompts(left: _Left) -> _Links:
    """Link TUIs to the thread whose prompt is the lowest on their screen, if none but it may show it."""
    by_start: dict[str, list[Thread]] = {}
    unprompted: list[Thread] = []
    for thread in left.threads.values():
        if len(start := _start_of(thread.last_prompt or "")) >= _MIN_PROMPT_CHARS:
            by_start.setdefault(start, []).append(thread)
        elif thread.forked_from and not thread.last_prompt:
            unprompted.append(thread)
    for tui in list(left.tuis.values()):
        screen = _read(columns(tui.pane.screen)[0])
        shown = (left.among(by_start.get(start, ()), tui) for start in screen.prompts)
        lowest = next(filter(None, shown), [])
        might_be_fork = not screen.has_header and left.among(unprompted, tui)
        if len(lowest) == 1 and screen.forked_from is None and not might_be_fork:
            yield tui, lowest[0].id, "the pane shows its prompt"


def _by_titles(left: _Left) -> _Links:
    """Link TUIs to the only thread that the title of their pane, and of no other, names; where that is a side
    chat, to the one that it was opened from.

    A fork keeps the name of its origin (0.171): where both are loaded, it may be either.
    """
    by_start: dict[str, list[Thread]] = {}
    for thread in (*left.threads.values(), *left.side_chats):
        by_start.setdefault(_start_of(thread.name or thread.prompt or ""), []).append(thread)
    numbers = Counter(tui.front for tui in left.tuis.values())
    forked = {thread.forked_from for thread in left.threads.values()}
    for tui in list(left.tuis.values()):
        named = [each for each in by_start.get(_start_of(tui.front), ()) if each.is_titled(tui.front)]
        if len(named) != 1 or numbers[tui.front] != 1 or named[0].id in forked:
            continue
        shown = named[0].forked_from if named[0].side_chat else named[0].id
        if shown in left.threads and _may_have(tui, left.threads[shown]):
            yield tui, shown, f"the title of the pane names {named[0].id}"


def _by_arguments(left: _Left) -> _Links:
    """Link TUIs that were started with a thread's id; `codex fork ID` starts another thread."""
    for tui in list(left.tuis.values()):
        named = [arg for arg in tui.process.argv if arg in left.threads]
        if named and "fork" not in tui.process.argv and left.may_only_have(tui, named[0]):
            yield tui, named[0], f"the pane's Codex (pid {tui.process.pid}) was started with its id"


def _only_ones(left: _Left) -> _Links:
    """Link TUIs that are the only ones in their directories to the only thread that is loaded there."""
    numbers = Counter(tui.cwd for tui in left.tuis.values())
    by_cwd: dict[str | None, list[str]] = {}
    for thread in left.threads.values():
        by_cwd.setdefault(thread.cwd, []).append(thread.id)
    for tui in [tui for tui in left.tuis.values() if numbers[tui.cwd] == 1]:
        found = by_cwd.get(tui.cwd, [])
        if len(found) == 1 and left.may_only_have(tui, found[0]):
            folder = posixpath.basename(tui.cwd or "?")
            only = f"the only Codex in {folder} (pid {tui.process.pid})"
            yield tui, found[0], f"{only}, and no other thread is loaded there"


class _Screen(NamedTuple):
    """What a screen shows of its thread."""

    prompts: tuple[str, ...]
    """The starts of the prompts, the lowest first."""
    forked_from: str | None
    """Empty where the screen has no id of it."""
    has_header: bool
    """Whether it begins on the screen."""


@lru_cache(_CACHED_SCREENS)
def _read(rows: tuple[str, ...]) -> _Screen:
    """Read what a screen shows of the session that is shown last."""
    headers = [number for number, row in enumerate(rows) if _HEADER in row]
    rows = rows[headers[-1] :] if headers else rows
    prompts: list[str] = []
    forked_from: str | None = None
    for number, row in enumerate(rows):
        if row.startswith(_PROMPT_MARKS):
            prompts.append(_start_of(_message(rows, number)))
        elif row.startswith(_FORKED):
            found = _ID.search(_message(rows, number))
            forked_from = found[0] if found else ""
    return _Screen(tuple(reversed(prompts)), forked_from, has_header=bool(headers))


def _message(rows: tuple[str, ...], number: int) -> str:
    """Return the message that begins in a row, without its mark, with the rows that continue it."""
    message = [rows[number][len(_INDENT) :]]
    for row in rows[number + 1 :]:
        if not row.startswith(_INDENT) or not row.strip():
            break
        message.append(row)
    return " ".join(message)


def _start_of(prompt: str) -> str:
    return " ".join(prompt.split(None, _PROMPT_CHARS)[:_PROMPT_CHARS])[:_PROMPT_CHARS]


def printed_id(rows: tuple[str, ...], mark: str) -> str | None:
    """Return the thread id of the last line of a screen that is `mark` and an id, or None."""
    found: str | None = None
    if mark.rstrip() not in "\n".join(rows):  # nearly all screens, hundreds a pass: faster than a loop
        return found
    for number, row in enumerate(rows):
        if row.startswith(mark.rstrip()):
            line = _unwrapped(rows, number, mark)
            if line.startswith(mark) and _ID.fullmatch(line, len(mark)):
                found = line[len(mark) :]
    return found


def _unwrapped(rows: tuple[str, ...], number: int, mark: str) -> str:
    """Return a line of a mark and an id, with the rows in which a narrow pane continues it.

    tmux keeps no blank at the end of a row.
    """
    line, width = rows[number], len(rows[number])
    if line == mark.rstrip():
        line = mark
        width += 1
    while len(line) < len(mark) + _ID_CHARS and number + 1 < len(rows):
        number += 1
        line += rows[number]
        if len(rows[number]) != width:
            break
    return line
