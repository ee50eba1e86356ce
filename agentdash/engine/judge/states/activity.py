"""Signs of life: output, CPU, I/O. A worker that runs and gives none for long enough has stalled, which is a mark and no state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from agentdash.model.fleet import Thread
from agentdash.model.pane import Pane
from agentdash.model.process import Process, ProcessKey

_COUNTS: Final = re.compile(r"[\d\u2800-\u28ff⬝■•◦✻✶✳✢✽·*∗⣷⣯⣟⡿⢿⣻⣽⣾░▒▓█|/\\-]+")
"""What moves on a screen while nothing does: digits of clocks and counters, spinners, bars."""
_SPINNER: Final = re.compile(r"^[\u2801-\u28ff] ")
"""A title that begins with a braille spinner (Codex 0.132+, Claude Code) turns at least once a second while its program lives."""
_STOPPED: Final = 10.0
"""Seconds after which a spinner that stands still is a dead one."""


def differs_beyond_clocks(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether two screens differ in more than what only counts and spins."""
    if len(old) != len(new):
        return True
    return any(_COUNTS.sub("", a) != _COUNTS.sub("", b) for a, b in zip(old, new, strict=True) if a != b)


def thread_last_sign(
    thread: Thread, commands: Iterable[Process], pane: Pane | None, busy: Mapping[ProcessKey, float]
) -> float:
    """When a thread last gave a sign of life: a line in its file, CPU or I/O of its commands, something new on its screen."""
    modified = thread.file.modified if thread.file else 0.0
    return max(thread.last_at or 0.0, modified, _moved(pane), *_worked(commands, busy))


def pane_last_sign(below: Iterable[Process], pane: Pane, busy: Mapping[ProcessKey, float]) -> float:
    """When a pane's worker last did. Its own CPU is none: a program that waits for ever still draws its spinner."""
    return max(_moved(pane), *_worked((p for p in below if p.agent is None), busy))


def is_static(pane: Pane | None, polled: float | None) -> bool:
    """Whether a spinner in the pane's title has stopped: its program hangs, or was stopped."""
    if pane is None or pane.titled_at is None or polled is None or not _SPINNER.match(pane.title):
        return False
    return polled - pane.titled_at > _STOPPED


def _moved(pane: Pane | None) -> float:
    return max(pane.moved_at or 0.0, pane.drawn_at or 0.0 if pane.moved_at is None else 0.0) if pane else 0.0


def _worked(processes: Iterable[Process], busy: Mapping[ProcessKey, float]) -> list[float]:
    return [0.0, *(max(busy.get(p.key, 0.0), p.key.started) for p in processes)]
