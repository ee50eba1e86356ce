"""The help of the dashboard: all keys, and the meaning of the signs."""

from __future__ import annotations

from collections.abc import Mapping

from agentdash.model.findings import DIRECTIONS, Verdict
from agentdash.model.states import State
from agentdash.tui.format import pad
from agentdash.tui.keys import BY_ID, GROUPS, Key
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.theme import STATE_WIDTH, TONES_OF_STATES, Glyphs, state_name
from agentdash.tui.transport.bar import legend
from agentdash.tui.view import View

_STATES = {
    State.RUNNING: "A turn or task is open and there is activity.",
    State.WAITING_INPUT: "It asks a question, or is at its prompt without a task.",
    State.WAITING_APPROVAL: "A permission prompt is open.",
    State.BLOCKED_SANDBOX: "Its last attempts were denied by a sandbox, and it has not got past them.",
    State.FAILED_PERMISSION: "Ended because the host, a policy or the user refused.",
    State.FAILED_PROVIDER: "Ended, or is retrying, at the model or its provider.",
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


def keys(cells: int, table: Mapping[str, Key] = BY_ID) -> list[Line]:
    """Return the key table, by group."""
    lines: list[Line] = []
    for group in GROUPS:
        lines += [(Span(group, "title"),)]
        for key in table.values():
            if key.group == group:
                head = (Span("  " + pad("  ".join(key.shown), 14), "key"),)
                lines += paragraph(key.help, cells, head=head)
        lines += [BLANK]
    return lines


def signs(cells: int, glyphs: Glyphs) -> list[Line]:
    """Return every sign with its name and its meaning."""
    lines: list[Line] = [(Span("States", "title"),)]
    for state, text in _STATES.items():
        head = (
            Span(
                "  " + pad(f"{glyphs.states[state]} {state_name(state)}", STATE_WIDTH + 1),
                TONES_OF_STATES[state],
            ),
        )
        lines += paragraph(text, cells, head=head)
    stalled = (Span("  " + pad(f"{glyphs.stalled} running, stalled", STATE_WIDTH + 1), "stuck"),)
    lines += paragraph(
        "Running without activity for a while: no output, no CPU, no I/O.", cells, head=stalled
    )
    lines += [BLANK, (Span("Sandbox", "title"),)]
    for verdict, text in _VERDICTS:
        lines += paragraph(text, cells, head=_sign(glyphs.verdicts[verdict], verdict))
    lines += [BLANK, (Span("Findings", "title"),)]
    for direction, info in DIRECTIONS.items():
        lines += paragraph(info.sentence, cells, head=_sign(glyphs.directions[direction], direction))
    lines += [BLANK, (Span("Timeline of a replay", "title"),)]
    for sign, tone, text in legend(glyphs):
        lines += paragraph(text, cells, head=(Span("  " + pad(sign, STATE_WIDTH + 1), tone),))
    return lines


def _sign(glyph: str, name: str) -> Line:
    return (Span("  " + pad(f"{pad(glyph, 2)} {name}", STATE_WIDTH + 1)),)


class HelpScreen(TextModal):
    """The help of the dashboard."""

    def lines(self, _: View, cells: int, /) -> list[Line]:
        """Return the keys and the signs."""
        intro = "agentdash is read-only: no key acts on a worker."
        return [
            *paragraph(intro, cells, "muted"),
            BLANK,
            *keys(cells, getattr(self.app, "keys", BY_ID)),
            *signs(cells, self.glyphs),
        ]
