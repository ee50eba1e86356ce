"""What the keys of a replay do, and those of the library."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.live.hands.dashboard import HELP, UNCOVERED, copied_id
from tests.live.hands.hands import Seen, Walk, lacks, shows

_TRACK = re.compile(r"\d\d:\d\d:\d\d (\S+) \d\d:\d\d:\d\d  x")
FAMILY = "01a1fa8b-6427-7cd1-aa14-9712bb60aa04"
"""A recorded session with three turns and several commands, its children's too."""
DENIED = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c"
"""A recorded session whose last command was denied."""


def position(wanted: Callable[[int, int], bool]) -> Seen:
    """Return whether the place on the track, and the last one of the track, are as wanted."""

    def seen(hands: object) -> bool:
        track = _TRACK.search(hands.text)  # type: ignore[attr-defined]
        return track is not None and "◉" in track[1] and wanted(track[1].index("◉"), len(track[1]) - 1)

    return seen


AT_START, LATER = position(lambda cell, _: cell == 0), position(lambda cell, _: cell > 0)
AT_END, EARLIER = position(lambda cell, last: cell == last), position(lambda cell, last: cell < last)
OPENED: Walk = ((lambda hands: None, shows(" REPLAY paused")),)


def both_ways(forward: str, backward: str) -> Walk:
    """Return the steps from the start to what comes next, and from the end to what came before."""
    return (("0", AT_START), (forward, LATER), ("$", AT_END), (backward, EARLIER))


REPLAY: Walk = (
    *OPENED,
    ("0", AT_START),
    ("space", AT_END),
    ("0", AT_START),
    ("5", LATER),
    *((tenth, None) for tenth in "12346789"),
    ("$", AT_END),
    ("[", shows("3 running")),  # in the same cell of the track
    *both_ways("}", "{"),
    *both_ways(")", "("),
    ("<", shows("  x0.5")),
    (">", shows("  x1  ")),
    ("0", AT_START),
    ("]", LATER),
    ("$", AT_END),
    ("S", shows("2026-03-11 20:14")),
    ('"20:00:01"', None),
    ("enter", EARLIER),
    ("?", HELP),
    ("escape", UNCOVERED),
    ("/", shows("said, run or printed; then n")),
    ('"child_1"', None),
    ("enter", shows(" 1 of ")),
    ("n", shows(" 2 of ")),
    ("N", shows(" 1 of ")),
    ("q", None),
)
DENIAL: Walk = (
    *OPENED,
    ("0", AT_START),
    ("e", LATER),
    ("0", AT_START),
    ("v", LATER),
    ("$", AT_END),
    ("E", None),
    ("E", lacks("turn: completed")),  # the end of the turn is a failure too: the denial is before it
    ("$", shows("turn: completed")),
    ("V", None),
    ("V", lacks("turn: completed")),
    ("p", shows("No later wait")),  # no recorded session has one: `tests/tui/test_transport.py` goes there
    ("P", shows("No earlier wait")),
    ("q", None),
)


def row(number: int) -> Seen:
    """Return whether the cursor is in this row of the library."""
    return lambda hands: hands.text.split("\n")[2 + number].startswith("›")


CHILD, NO_CHILD = shows("Sartre"), lacks("Sartre")
LIST = shows("BEGUN")
LIBRARY_HELP = shows("every term has to match")
LIBRARY: Walk = (
    (lambda hands: None, shows("BEGUN", "14.2k")),
    ("j", row(1)),
    ("k", row(0)),
    ("G", row(2)),
    ("g", row(0)),
    ("l", CHILD),
    ("h", NO_CHILD),
    ("x", CHILD),
    ("x", NO_CHILD),
    ("/", shows('a phrase"')),
    ('"is:denied"', None),
    ("enter", shows('"is:denied"  1 of 3')),
    ("escape", lacks("1 of 3")),
    ("S", shows("words that were said")),
    ('"kanban"', None),
    ("enter", shows('"kanban"  2 hits', "esc back")),
    ("escape", LIST),
    ("D", shows("Denied calls")),
    ("escape", UNCOVERED),
    ("?", LIBRARY_HELP),
    ("escape", UNCOVERED),
    ("click ? help", LIBRARY_HELP),
    ("escape", UNCOVERED),
    ("enter", shows(" REPLAY ")),
    ("q", LIST),
    ("y", copied_id),
    ("C", lambda hands: f"clipboard: {hands.buffer}" in hands.text and "codex resume 01" in hands.buffer),
    ("s", shows("Sorted by tokens")),
    ("t", shows("Theme: light")),
    ("q", None),
)
