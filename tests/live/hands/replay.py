"""What the keys of a replay do, and those of the library."""

import re
from collections.abc import Callable

from tests.live.hands.dashboard import HELP, UNCOVERED, copied, copied_id, opened
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


def jump(place: str, seen: Seen) -> Walk:
    """Return the steps that go to a place."""
    return (("S", None), (f'"{place}"', None), ("enter", seen))


REPLAY: Walk = (
    *OPENED,
    ("S", shows("or a time: 20:14")),
    ('"0%"', None),
    ("enter", AT_START),
    ("space", AT_END),
    ("[", shows("3 running")),  # in the same cell of the track
    *jump("0%", AT_START),
    ("}", LATER),
    ("{", AT_START),
    ("]", LATER),
    *jump("100%", AT_END),
    *jump("20:00:01", EARLIER),
    *opened("?", HELP, UNCOVERED),
    ("/", shows("then n: the next")),
    ('"child_1"', None),
    ("enter", shows(" 1 of ")),
    ("n", shows(" 2 of ")),
    ("X", shows("session-01a1fa8b.html")),
    ('"/nonexistent/x.html"', None),
    ("enter", shows("/nonexistent/x.html: No such file")),
    ("q", None),
)
DENIAL: Walk = (
    *OPENED,
    *jump("0%", AT_START),
    ("e", shows("A sandbox denied something.")),
    ("v", shows("turn: completed")),
    ("v", lacks("turn: completed")),  # after the last mark comes the first
    ("q", None),
)


def row(number: int) -> Seen:
    """Return whether the cursor is in this row of the library."""
    return lambda hands: hands.text.split("\n")[2 + number].startswith("›")  # below the head of the day


CHILD, NO_CHILD = shows("Sartre"), lacks("Sartre")
LIST = shows("LIBRARY", "may not write")
LIBRARY_HELP = shows("Filter: every term has to match")
LIBRARY: Walk = (
    (lambda hands: None, LIST),
    ("j", row(1)),
    ("k", row(0)),
    ("G", row(2)),
    ("home", row(0)),
    ("l", CHILD),
    ("h", NO_CHILD),
    ("z", CHILD),
    ("z", NO_CHILD),
    ("/", shows("words: denied, npm")),
    ('"denied"', shows("/ denied › 1")),
    ("enter", None),
    ("escape", lacks("/ denied")),
    ("S", shows("words that were said")),
    ('"kanban"', None),
    ("enter", shows('"kanban"  2 hits', "esc back")),
    ("escape", lacks("esc back")),
    ('"/o\rSsandbox\r?"', LIBRARY_HELP),  # in one read of the terminal
    ("escape", UNCOVERED),
    ("escape", lacks("esc back")),
    ("escape", lacks(" / o ")),
    *opened("?", LIBRARY_HELP, UNCOVERED),
    *opened("click ? help", LIBRARY_HELP, UNCOVERED),
    ("X", shows("session-01a1fa8b.html")),
    ('"/nonexistent/x.html"', None),
    ("enter", shows("/nonexistent/x.html: No such file")),
    ("enter", shows(" REPLAY ")),
    ("q", LIST),
    ("y", copied_id),
    ("C", copied("codex resume 01")),
    ("s", shows("Sorted by tokens")),
    ("t", shows("Theme: light")),
    ("q", None),
)
