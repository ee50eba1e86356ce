"""The help of the dashboard: the keys of its screen, and all signs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from textual import on
from textual.app import ComposeResult

from agentdash.model.states import State
from agentdash.tui.format import pad
from agentdash.tui.keys import BY_ID, HandledBy, Key, bindings
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.line_input import focus_unless_typing
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, paragraph, plain
from agentdash.tui.theme import TONES_OF_STATES, Glyphs
from agentdash.tui.view import View

if TYPE_CHECKING:
    from agentdash.tui.app import AgentDash

_STATES = {
    State.WAITING_APPROVAL: "Waits for your approval.",
    State.WAITING_INPUT: "Asks you a question, or is at its prompt without a task.",
    State.BLOCKED_SANDBOX: "Blocked by its sandbox; or the host, a policy or the user refused.",
    State.FAILED_PROVIDER: "Gave up at the model or its provider.",
    State.RUNNING: "Works. Stalled: no output, no CPU, no I/O for a while.",
    State.COMPLETED: "Finished its last turn or task.",
    State.EXITED: "Stopped, or its process has ended.",
    State.UNKNOWN: "Unclear: it cannot be observed, or the evidence does not decide.",
}
_GROUPS = {
    "needs you": "Waits, is blocked or has failed; d dismisses it. Also: ended so since you last looked.",
    "running": "A turn or task is open.",
    "unclear": "Cannot be observed, or the evidence does not decide.",
    "done": "At rest, or dismissed.",
    "past": "Ended before you last looked, and nothing holds it; x shows them.",
}
_KEY_CELLS = 18


class Section(NamedTuple):
    """A part of the help."""

    title: str
    entries: list[list[Line]]
    """The lines of each sign or key."""


def _entry(name: str, tone: Tone, text: str, cells: int) -> list[Line]:
    return paragraph(text, cells, head=(Span("  " + pad(name, _KEY_CELLS), tone),))


def keys(cells: int, shown: Iterable[Key], title: str = "Keys") -> Section:
    """Return keys with what they do."""
    return Section(title, [_entry("  ".join(key.shown), "key", key.help, cells) for key in shown])


def signs(cells: int, glyphs: Glyphs) -> list[Section]:
    """Return every sign with its meaning."""
    signs: list[tuple[str, Tone, str]] = [
        (glyphs.states[state], TONES_OF_STATES[state], text) for state, text in _STATES.items()
    ]
    signs += [
        (glyphs.verdicts["mismatch"], "mismatch", "Another sandbox than configured; evidence against."),
        (glyphs.verdicts["match"], "", "As configured; evidence for."),
        (glyphs.directions["wider"], "mismatch", "More than configured."),
        (glyphs.directions["narrower"], "mismatch", "Less than configured."),
        (glyphs.cursor, "chosen", "The selected row."),
        (glyphs.sorted, "", "The list is sorted by this column."),
        (glyphs.arrow, "", "From what was configured to what is."),
        (glyphs.ellipsis, "", "Something is cut here."),
        ("  ".join(glyphs.folds).strip(), "", "A folded family, and an unfolded one."),
    ]
    return [
        Section("Signs", [_entry(sign, tone, text, cells) for sign, tone, text in signs]),
        Section("Groups", [_entry(name, "", text, cells) for name, text in _GROUPS.items()]),
    ]


def matching(sections: Iterable[Section], words: str) -> list[Line]:
    """Return the entries that have all these words, below the titles of their sections."""
    wanted = words.casefold().split()
    lines: list[Line] = []
    for section in sections:
        found = [
            entry for entry in section.entries if all(word in _text(section.title, entry) for word in wanted)
        ]
        if found:
            lines += [(Span(section.title, "title"),), *(line for entry in found for line in entry), BLANK]
    return lines or [(Span("Nothing in the help has these words.", "muted"),)]


def _text(title: str, entry: Iterable[Line]) -> str:
    return " ".join([title, *(plain(line) for line in entry)]).casefold()


def key_sections(
    here: Sequence[str], others: Collection[HandledBy], cells: int, table: Mapping[str, Key] = BY_ID
) -> list[Section]:
    """Return the keys of a screen: those that its footer has, and the others that do something there."""
    first = [table[name] for name in here]
    rest = [key for key in table.values() if key.on in others and key.id not in here]
    return [keys(cells, first, "Keys here"), keys(cells, rest, "More keys")]


class HelpScreen(TextModal):
    """The help of the dashboard.

    Args:
        here: the ids of the keys in the footer of the screen that it is opened on.
        others: who handles the keys that do something there.
    """

    BINDINGS = bindings("filter")

    def __init__(self, glyphs: Glyphs, here: Sequence[str], others: Collection[HandledBy]) -> None:
        super().__init__(glyphs, "filter", "down", "back")
        self._here = here
        self._others = others
        self._words = ""

    def compose_head(self) -> ComposeResult:
        """Compose the input of the search."""
        yield FilterBar(id="help-search", hint="words of a key, a sign, or what they do")

    def lines(self, _: View, cells: int, /) -> list[Line]:
        """Return the keys and signs that match the search."""
        intro = (
            "agentdash is read-only: no key acts on a worker. "
            "ctrl+c copies the text selected with the mouse, ctrl+q quits from anywhere."
        )
        app = cast("AgentDash", self.app)
        more = [_entry(sign, tone, text, cells) for sign, tone, text in app.more_signs()]
        entries = [
            *key_sections(self._here, self._others, cells, app.keys),
            *signs(cells, self.glyphs),
            Section("Timeline", more),
        ]
        return [*paragraph(intro, cells, "muted"), BLANK, *matching(entries, self._words)]

    def action_filter(self) -> None:
        """Edit the words to search for."""
        self.query_one(FilterBar).edit(self._words)

    @on(FilterBar.Edited)
    def _search_edited(self, event: FilterBar.Edited) -> None:
        self._words = event.text
        self.text.scroll_home(animate=False)
        self.redraw()

    @on(FilterBar.Closed)
    def _search_closed(self, event: FilterBar.Closed) -> None:
        if not event.submitted:
            self._words = ""
        focus_unless_typing(self.text)
        self.redraw()
