"""The help of the library: the terms of the filter, and the keys."""

from __future__ import annotations

from typing import Final

from agentdash.tui.format import pad
from agentdash.tui.help import matching, signs
from agentdash.tui.keys import BY_ID
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.view import View

LIBRARY_KEYS: Final = (
    *("down", "up", "top", "bottom", "page-down", "page-up"),
    *(
        "open",
        "filter",
        "search",
        "sort-sessions",
        "denials",
        "unfold",
        "tab-right",
        "tab-left",
        "copy-id",
        "copy-resume",
        "theme",
        "help",
        "back",
        "quit",
    ),
)
"""Ids of the keys that the library handles."""
_HELP: Final = {
    "open": "Play the selected session and its family; a hit: from that moment on.",
    "filter": "Show only families with a matching session.",
    "tab-right": "Unfold the family.",
    "tab-left": "Fold the family.",
    "copy-id": "Copy the session's id.",
    "back": "Stop a search, close its hits, clear the filter.",
    "quit": "Quit.",
}
"""Help of keys that do something else here than in the dashboard."""
TERMS: Final = (
    ("words", "occur in any column, in any case and order; a row is found by what it shows: 20 nov, 9.2k"),
    ('"two words"', 'occur together; also dir:"my project"'),
    ("state:failed", "final state: any part of its name"),
    ("verdict:mismatch", "match, mismatch, unverified"),
    ("finding:denied", "any part of a finding's kind"),
    ("dir:api", "any part of the directory"),
    ("version:0.16", "the beginning of Codex's version"),
    ("model:mini", "any part of the model's name"),
    ("agent:claude", "codex or claude"),
    ("source:vscode", "any part of what started it: cli, exec, vscode, subagent"),
    ("tokens:>9k", "more than; also <, <=, >=; cost:>0.5 (dollars), took:>1h, size:>10m likewise"),
    ("since:2026-11-01", "begun on that day or later; also 2026-11, monday, yesterday, 7d, 12h, 20:15, now"),
    ("until:yesterday", "begun on that day or before"),
    ("is:fork", "archived, compressed, denied, fork, helper, recording"),
    ("!term", "inverts the term"),
    ("right", "in the input: accepts the completion shown"),
)
_HEAD_CELLS: Final = 18
"""The longest term, `since:2026-11-01`, and two spaces."""


class LibraryHelp(TextModal):
    """The help of the library."""

    def lines(self, _: View, cells: int, /) -> list[Line]:
        """Return the terms of the filter, the keys, the signs."""
        lines: list[Line] = [(Span("Filter", "title"), Span("  every term has to match", "muted"))]
        for term, text in TERMS:
            lines += paragraph(text, cells, head=(Span("  " + pad(term, _HEAD_CELLS), "key"),))
        lines += [BLANK, (Span("Keys", "title"),)]
        table = getattr(self.app, "keys", BY_ID)
        for key in (table[name] for name in LIBRARY_KEYS):
            head = (Span("  " + pad("  ".join(key.shown), _HEAD_CELLS), "key"),)
            lines += paragraph(_HELP.get(key.id, key.help), cells, head=head)
        return [*lines, BLANK, *matching(signs(cells, self.glyphs), "")]
