"""How to find a session, and the keys of the library."""

from __future__ import annotations

from typing import Final

from agentdash.tui.format import pad
from agentdash.tui.help import signs
from agentdash.tui.keys import BY_ID
from agentdash.tui.primitives.modal import Reading
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.view import View

KEYS_HERE: Final = (
    *("down", "up", "top", "bottom", "page-down", "page-up"),
    *(
        "open",
        "filter",
        "search",
        "unfold",
        "tab-right",
        "tab-left",
        "copy-id",
        "theme",
        "help",
        "back",
        "quit",
    ),
)
"""The keys that the library answers."""
_SAYS: Final = {
    "open": "Plays the chosen session and its family; of a hit: from that moment on.",
    "filter": "Shows only families with such a session.",
    "tab-right": "Unfolds the family.",
    "tab-left": "Folds it.",
    "copy-id": "Copies the session's id.",
    "back": "Stops a search, closes its hits, clears the filter.",
    "quit": "Quits.",
}
"""What keys do here that do something else in the dashboard."""
TERMS: Final = (
    ("words", "occur in any column, in any case and order"),
    ("state:failed", "how it ended: any part of a state's name"),
    ("verdict:mismatch", "match, mismatch, unverified"),
    ("finding:denied", "any part of a finding's kind"),
    ("dir:api", "any part of its directory"),
    ("version:0.16", "how its Codex's version begins"),
    ("model:mini", "any part of the model's name"),
    ("since:2026-11-01", "begun on that day or later; also 2026-11, today, yesterday, 7d, 12h"),
    ("until:yesterday", "begun on that day or before"),
    ("is:fork", "fork, archived, compressed, helper"),
    ("!term", "not so"),
)


class LibraryHelp(Reading):
    """What can be typed and pressed."""

    def lines(self, _: View, cells: int, /) -> list[Line]:
        """The terms of the filter first."""
        lines: list[Line] = [(Span("Filter", "title"), Span("  every term has to hold", "muted"))]
        for term, text in TERMS:
            lines += paragraph(text, cells, head=(Span("  " + pad(term, 18), "key"),))
        lines += [BLANK, (Span("Keys", "title"),)]
        table = getattr(self.app, "keys", BY_ID)
        for key in (table[name] for name in KEYS_HERE):
            lines += paragraph(
                _SAYS.get(key.id, key.help), cells, head=(Span("  " + pad("  ".join(key.shown), 18), "key"),)
            )
        return [*lines, BLANK, *signs(cells, self.glyphs)]
