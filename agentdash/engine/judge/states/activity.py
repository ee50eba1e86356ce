"""Activity: output, CPU, I/O. A running worker without any has stalled, which is a mark and no state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from agentdash.model.pane import Pane
from agentdash.model.process import Process, ProcessKey
from agentdash.model.thread import Thread

_ANIMATED: Final = re.compile(r"[\d\u2800-\u28ff⬝■•◦✻✶✳✢✽·*∗⣷⣯⣟⡿⢿⣻⣽⣾░▒▓█|/\\-]+")
"""What changes on a screen while nothing is done: digits of clocks and counters, spinners, bars."""
_SPINNER_TITLE: Final = re.compile(r"^[\u2801-\u28ff] ")
"""A title that begins with a braille spinner (Codex 0.132+, Claude Code): it turns at least once a second."""
_SPINNER_STOPPED_S: Final = 10.0
"""Time without a change after which such a spinner counts as stopped: ten times its slowest period."""


def differs_beyond_clocks(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether two screens differ in more than clocks, counters and spinners."""
    if len(old) != len(new):
        return True
    changed = ((a, b) for a, b in zip(old, new, strict=True) if a != b)
    return any(_ANIMATED.sub("", a) != _ANIMATED.sub("", b) for a, b in changed)


def thread_last_sign(
    thread: Thread, commands: Iterable[Process], pane: Pane | None, busy: Mapping[ProcessKey, float]
) -> float:
    """Return when a thread was last active: a new line, CPU or I/O of its commands, a changed screen."""
    modified = thread.file.modified if thread.file else 0.0
    return max(thread.last_at or 0.0, modified, _screen_changed(pane), *_last_busy(commands, busy))


def pane_last_sign(below: Iterable[Process], pane: Pane, busy: Mapping[ProcessKey, float]) -> float:
    """Return when a pane's worker was last active.

    CPU of the worker itself does not count: a program that waits forever still draws its spinner.
    """
    return max(_screen_changed(pane), *_last_busy((p for p in below if p.agent is None), busy))


def is_static(pane: Pane | None, polled: float | None) -> bool:
    """Return whether a spinner in the pane's title has stopped: its program hangs, or got SIGSTOP."""
    if pane is None or pane.titled_at is None or polled is None or not _SPINNER_TITLE.match(pane.title):
        return False
    return polled - pane.titled_at > _SPINNER_STOPPED_S


def _screen_changed(pane: Pane | None) -> float:
    if pane is None:
        return 0.0
    return (pane.drawn_at if pane.moved_at is None else pane.moved_at) or 0.0


def _last_busy(processes: Iterable[Process], busy: Mapping[ProcessKey, float]) -> list[float]:
    return [0.0, *(max(busy.get(p.key, 0.0), p.key.started) for p in processes)]
