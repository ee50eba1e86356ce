"""The help in a box over the screen: the keys of the screen first, then all signs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from agentdash.model.states import State
from agentdash.tui.format import pad
from agentdash.tui.keys import HandledBy, Key, bindings
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines, Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, paragraph
from agentdash.tui.theme import TONES_OF_STATES, Glyphs

Sign: TypeAlias = tuple[str, Tone, str]
"""A sign, its tone and its meaning."""
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
    "pinned": "P pins a worker: its family keeps its place here, in whatever state it is.",
    "needs you": "Waits, is blocked or has failed; d dismisses it. Also: ended so since you last looked.",
    "running": "A turn or task is open.",
    "unclear": "Cannot be observed, or the evidence does not decide.",
    "done": "At rest, or dismissed.",
    "past": "Ended before you last looked, and nothing holds it; x shows them.",
}
_KEY_CELLS = 18


def entries(title: str, found: Iterable[Sign], cells: int) -> list[Line]:
    """Return signs, keys or words below a title, each with its meaning."""
    lines: list[Line] = [(Span(title, "title"),)]
    for name, tone, text in found:
        lines += paragraph(text, cells, head=(Span("  " + pad(name, _KEY_CELLS), tone),))
    return [*lines, BLANK]


def keys(title: str, shown: Iterable[Key], cells: int, helps: Mapping[str, str] | None = None) -> list[Line]:
    """Return keys with what they do; `helps` has other sentences for some, by their ids."""
    found = (("  ".join(key.shown), (helps or {}).get(key.id, key.help)) for key in shown)
    return entries(title, ((name, "key", text) for name, text in found), cells)


def signs(glyphs: Glyphs) -> list[Sign]:
    """Return every sign with its meaning."""
    return [
        *((glyphs.states[state], TONES_OF_STATES[state], text) for state, text in _STATES.items()),
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


def dashboard_help(
    here: Sequence[str],
    handled: Collection[HandledBy],
    table: Mapping[str, Key],
    glyphs: Glyphs,
    legend: Sequence[Sign],
    cells: int,
) -> list[Line]:
    """Return the help of the dashboard.

    Args:
        here: ids of the keys in the footer, which come first.
        handled: by what the other keys are handled that do something there.
        legend: the signs of a timeline, if there is one.
    """
    intro = (
        "agentdash is read-only: no key acts on a worker. "
        "ctrl+c copies the text selected with the mouse, ctrl+q quits from anywhere."
    )
    others = [key for key in table.values() if key.on in handled and key.id not in here]
    return [
        *paragraph(intro, cells, "muted"),
        BLANK,
        *keys("Keys here", (table[name] for name in here), cells),
        *keys("More keys", others, cells),
        *entries("Signs", signs(glyphs), cells),
        *entries("Groups", ((name, "", text) for name, text in _GROUPS.items()), cells),
        *(entries("Timeline", legend, cells) if legend else ()),
    ]


class HelpScreen(Page, ModalScreen[None]):
    """A text that scrolls; `esc`, `q` and the key that opened it close it.

    Args:
        lines: returns the text in lines of so many cells.
    """

    AUTO_FOCUS = "#text"
    BINDINGS = bindings("back", "quit", "help")

    text = getters.query_one("#text", Lines)

    def __init__(self, glyphs: Glyphs, lines: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Compose the text and its keys."""
        with Vertical(id="modal"):
            yield Lines(id="text")
            yield Footer(self._glyphs, "down", "up", "back")

    @on(Lines.Resized)
    def _fit(self) -> None:
        if self.text.room:
            self.text.show(self._lines(self.text.room - 1))

    def action_back(self) -> None:
        """Close the box."""
        self.dismiss()

    action_leave = action_help = action_back
