"""What the keys of a replay do, and those of the library."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentdash.tui.library.screen import HINTS as LIBRARY_HINTS
from agentdash.tui.transport.app import HINTS
from tests.live.hands.checks import Check, Screen
from tests.live.hands.dashboard import CLOSED, HELP_BOX, UNCOVERED, copied_id
from tests.live.hands.hands import Hands, Seen, lacks, shows

_TRACK = re.compile(r"\d\d:\d\d:\d\d (\S+) \d\d:\d\d:\d\d  x")
FAMILY = "01a1fa8b-6427-7cd1-aa14-9712bb60aa04"
"""A recorded session with three turns and several commands, its children's too."""
DENIED = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c"
"""A recorded session whose last command was denied."""


def position(wanted: Callable[[int, int], bool]) -> Seen:
    """Return whether the place on the track, and the length of the track, are as wanted."""

    def seen(hands: Hands) -> bool:
        track = _TRACK.search(hands.text)
        return track is not None and "◉" in track[1] and wanted(track[1].index("◉"), len(track[1]))

    return seen


AT_START = position(lambda cell, _: cell == 0)
AT_END = position(lambda cell, cells: cell == cells - 1)
LATER = position(lambda cell, _: cell > 0)
EARLIER = position(lambda cell, cells: cell < cells - 1)
FROM_START = ("0", AT_START)
FROM_END = ("$", AT_END)


def steps(name: str) -> tuple[Check, Check]:
    """Return the checks of the two keys that go to the next and to the previous of something."""
    return (
        Check(f"next-{name}", LATER, FROM_START),
        Check(f"previous-{name}", EARLIER, FROM_END),
    )


REPLAY = Screen(
    name="replay",
    hints=HINTS,
    open=(shows(" REPLAY paused"), AT_END, *FROM_START),
    close=("q",),
    checks=(
        Check("pause", AT_END, (*FROM_START, shows("paused"))),
        Check("next-event", LATER, FROM_START),
        Check("previous-event", shows("3 running"), FROM_END),  # in the same cell of the track
        *steps("turn"),
        *steps("command"),
        Check("tenth", EARLIER, FROM_END),
        Check("last", AT_END, FROM_START),
        Check("slower", shows("  x0.5"), after=(">", shows("  x1  "))),
        Check("faster", shows("  x2"), after=("<", shows("  x1  "))),
        Check("go-to-time", shows("2026-03-11 20:14"), FROM_END, ('"20:00:01"', "enter", EARLIER)),
        Check(
            "filter",
            shows("said, run or printed; then n"),
            FROM_START,
            ('"child_1"', "enter", shows(" 1 of ")),
        ),
        Check("next-match", shows(" 2 of "), FROM_START),
        Check("previous-match", shows(" 1 of ")),
        HELP_BOX,
    ),
)
REPLAY_OF_DENIAL = Screen(
    name="replay of a denial",
    hints=HINTS,
    open=(shows(" REPLAY paused"), AT_END, *FROM_START),
    close=("q",),
    checks=(
        Check("next-failure", LATER, FROM_START),
        Check("next-finding", LATER, FROM_START),
        # the end of the turn is a failure too: the denial is before it
        Check("previous-failure", None, FROM_END, ("E", "E", lacks("turn: completed"))),
        Check("previous-finding", None, FROM_END, ("V", "V", lacks("turn: completed"))),
    ),
)
REPLAY_OF_WAIT = Screen(
    name="replay of an approval",
    hints=HINTS,
    open=(shows(" REPLAY paused"), *FROM_START),
    close=("q",),
    checks=steps("wait"),
)


def row(number: int) -> Seen:
    """Return whether the cursor is in this row of the library."""
    return lambda hands: hands.text.split("\n")[2 + number].startswith("›")


SESSIONS = shows("  3 of 3")
LIBRARY = Screen(
    name="library",
    hints=LIBRARY_HINTS,
    open=(shows("BEGUN", "14.2k"),),
    close=(),
    checks=(
        Check("down", row(1), ("g", row(0))),
        Check("up", row(0), ("g", row(0), "j", row(1))),
        Check("bottom", row(2), ("g", row(0))),
        Check("top", row(0), ("G", row(2))),
        Check("page-down", row(2), ("g", row(0))),
        Check("page-up", row(0), ("G", row(2))),
        Check("tab-right", shows("Sartre"), ("g", row(0)), ("h",)),
        Check("tab-left", lambda hands: not shows("Sartre")(hands), ("g", row(0), "l", shows("Sartre"))),
        Check("unfold", shows("Sartre"), ("g", row(0)), ("x", lambda hands: not shows("Sartre")(hands))),
        Check(
            "filter",
            shows('a phrase"'),
            after=(
                '"is:denied"',
                "enter",
                shows('"is:denied"  1 of 3'),
                "escape",
                lambda h: not shows("1 of 3")(h),
            ),
        ),
        Check(
            "search",
            shows("words that were said"),
            after=('"kanban"', "enter", shows('"kanban"  2 hits', "esc back"), "escape", shows("BEGUN")),
        ),
        Check("denials", shows("Denied calls"), after=CLOSED),
        Check("help", shows("every term has to match"), after=CLOSED),
        Check("back", UNCOVERED, ("?", shows("every term has to match"))),
        Check("open", shows(" REPLAY "), after=("q", shows("BEGUN"))),
        Check("copy-id", copied_id),
        Check("copy-resume", lambda h: f"clipboard: {h.buffer}" in h.text and "codex resume 01" in h.buffer),
        Check("sort-sessions", shows("Sorted by tokens"), after=("s",) * 6 + (shows("Sorted by newest"),)),
        Check("theme", shows("Theme: light"), after=("t",) * 4 + (shows("Theme: dark"),)),
    ),
)
