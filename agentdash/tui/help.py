"""The help of the dashboard: the signs, all keys, and what each kind of finding means; `/` searches it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from textual import on
from textual.app import ComposeResult

from agentdash.guide import sections
from agentdash.model.findings import DIRECTIONS, FindingKind, Verdict
from agentdash.model.states import State
from agentdash.tui.format import pad
from agentdash.tui.keys import BY_ID, GROUPS, Key, bindings
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.line_input import focus_unless_typing
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, paragraph, plain
from agentdash.tui.theme import STATE_WIDTH, TONES_OF_STATES, Glyphs, state_name
from agentdash.tui.transport.bar import legend
from agentdash.tui.view import View

if TYPE_CHECKING:
    from agentdash.tui.app import AgentDash

_STATES = {
    State.RUNNING: "A turn or task is open and there is activity.",
    State.WAITING_INPUT: "It asks a question, or is at its prompt without a task.",
    State.WAITING_APPROVAL: "A permission prompt is open.",
    State.BLOCKED_SANDBOX: "Its last attempts were denied by a sandbox, and it has not got past them.",
    State.FAILED_PERMISSION: "Ended because the host, a policy or the user refused.",
    State.FAILED_PROVIDER: "Gave up at the model or its provider.",
    State.COMPLETED: "Finished its last turn or task.",
    State.INTERRUPTED: "Stopped by its user or its parent.",
    State.EXITED: "Its process is gone without having finished.",
    State.UNREACHABLE: "It should be there and cannot be observed.",
    State.UNKNOWN: "Observed, but the evidence does not decide.",
}
_VERDICTS: tuple[tuple[Verdict, str], ...] = (
    ("match", "What was observed agrees with what was configured."),
    ("mismatch", "It got something else than it was configured to have."),
    ("unverified", "Nothing was observed that could be compared."),
)
_GROUPS: Final = {
    "needs-you": "Waits, is blocked or has failed; d acknowledges it. Also: ended so since you last looked.",
    "running": "A turn or task is open.",
    "unclear": "Cannot be observed, or the evidence does not decide.",
    "done": "At rest, or acknowledged.",
    "past": "Ended before you last looked, and nothing holds it; x shows them.",
    "mismatch": "Another sandbox than configured.",
    "new": "Changed since you last looked; u goes there.",
}
_SHORT_POLICIES: Final = (
    ("workspace/off", "Files: the workspace may be written. Network: off."),
    ("workspace/on", "Files: the workspace may be written. Network: on."),
    ("read-only/off", "Files: none may be written. Network: off."),
    ("full", "Full access: all files, and the network."),
    ("custom/filter", "Files: by rules of its own. Network: through a proxy that filters."),
)


class Section(NamedTuple):
    """A part of the help."""

    title: str
    entries: list[list[Line]]
    """The lines of each sign or key."""


def keys(cells: int, table: Mapping[str, Key] = BY_ID) -> list[Section]:
    """Return the key table, by group."""
    return [
        Section(
            group,
            [
                paragraph(key.help, cells, head=(Span("  " + pad("  ".join(key.shown), 14), "key"),))
                for key in table.values()
                if key.group == group
            ],
        )
        for group in GROUPS
    ]


def signs(cells: int, glyphs: Glyphs) -> list[Section]:
    """Return every sign with its name and its meaning."""

    def entry(sign: str, tone: Tone, text: str) -> list[Line]:
        return paragraph(text, cells, head=(Span("  " + pad(sign, STATE_WIDTH + 1), tone),))

    def named(glyph: str, name: str, text: str) -> list[Line]:
        return entry(f"{pad(glyph, 2)} {name}", "", text)

    states = [
        entry(f"{glyphs.states[state]} {state_name(state)}", TONES_OF_STATES[state], text)
        for state, text in _STATES.items()
    ]
    stalled = "Running without activity for a while: no output, no CPU, no I/O."
    return [
        Section("States", [*states, entry(f"{glyphs.stalled} running, stalled", "stuck", stalled)]),
        Section("Groups", [named(glyphs.groups[name], name, text) for name, text in _GROUPS.items()]),
        Section("Sandbox", [named(glyphs.verdicts[each], each, text) for each, text in _VERDICTS]),
        Section("Short policies", [entry(short, "", text) for short, text in _SHORT_POLICIES]),
        Section(
            "Findings",
            [named(glyphs.directions[each], info.name, info.sentence) for each, info in DIRECTIONS.items()],
        ),
        Section("Timeline of a replay", [entry(sign, tone, text) for sign, tone, text in legend(glyphs)]),
    ]


def kinds(cells: int) -> list[Section]:
    """Return what each kind of finding means, and what to do."""
    texts = sections()
    return [Section("Kinds of findings", [_kind(kind, texts[kind], cells) for kind in FindingKind])]


def _kind(name: str, text: str, cells: int) -> list[Line]:
    lines: list[Line] = [(Span(f"  {name}", "key"),)]
    for block in text.replace("**", "").replace("`", "").split("\n\n"):
        lines += paragraph(block, cells, head=(Span("    "),))
    return lines


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


class HelpScreen(TextModal):
    """The help of the dashboard."""

    BINDINGS = bindings("filter")

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs, "filter", "down", "back")
        self._words = ""

    def compose_head(self) -> ComposeResult:
        """Compose the input of the search."""
        yield FilterBar(id="help-search", hint="words of a key, a sign, or what they do")

    def lines(self, _: View, cells: int, /) -> list[Line]:
        """Return the signs, keys and kinds of findings that match the search."""
        intro = "agentdash is read-only: no key acts on a worker."
        app = cast("AgentDash", self.app)
        key_table = {name: key for name, key in app.keys.items() if key.on in app.HANDLES}
        entries = [*signs(cells, self.glyphs), *keys(cells, key_table), *kinds(cells)]
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
