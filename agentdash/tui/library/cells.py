"""The content of the session list: rows, the heads of days, and the detail of an entry. Pure.

A row has when a session began, how it ended, its title, and why it deserves a look.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final, NamedTuple

from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage
from agentdash.prices import tokens_and_cost
from agentdash.replay.library.entry import Entry, FamilyMember, SessionFamily
from agentdash.tui.format import count, duration, elide, elide_middle, elide_path, pad
from agentdash.tui.primitives.spans import Line, Span, Tone, fit, justify, paragraph, width
from agentdash.tui.theme import TONES_OF_STATES, Look, state_name

CARDS_BELOW_CELLS: Final = 60
"""In a narrower list the reason of a row stands below its title."""
_FOLDER_FROM_CELLS: Final = 96
"""In a narrower list there is no column of directories."""
_FOLDER_CELLS: Final = 12
_DATE_CELLS: Final = 13
"""`20 Nov 19:59`"""
_TITLE_SHARE: Final = 0.5
"""Of the room for title and reason."""


class LibraryRow(NamedTuple):
    """The place of an entry in the list. The entry itself is looked up when drawn: it changes more often."""

    key: str
    family: SessionFamily
    member: FamilyMember
    unfolded: bool = False
    """Whether the other members of the family are shown below it."""

    @property
    def is_folded_head(self) -> bool:
        """Whether it stands for its whole family."""
        return not self.member.depth and not self.unfolded


def day(at: float, now: float) -> str:
    """Return the name of a local day: `TODAY`, `YESTERDAY`, `TUESDAY`, `20 NOV`, or `20 NOV 2025`."""
    then, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    days = (today.date() - then.date()).days
    if 0 <= days < 7:
        return ("TODAY", "YESTERDAY")[days] if days < 2 else f"{then:%A}".upper()
    return f"{then.day} {then:%b}{f' {then.year}' if then.year != today.year else ''}".upper()


def when(at: float | None, *, with_date: bool) -> str:
    """Return a local time of day, `19:59`, or date and time, `20 Nov 19:59`."""
    if at is None:
        return " " * (_DATE_CELLS - 1 if with_date else 5)
    then = time.localtime(at)
    return time.strftime(f"{then.tm_mday:2} %b %H:%M" if with_date else "%H:%M", then)


def state_sign(entry: Entry, look: Look) -> Span:
    """Return the sign of how a session ended, or of what it is."""
    glyphs = look.glyphs
    if entry.is_unreadable:
        return Span(glyphs.agrees[0], "stuck")
    if entry.state is not None:
        return Span(glyphs.states[entry.state], TONES_OF_STATES[entry.state])
    return Span(glyphs.dot if entry.helper or entry.recording else " ", "muted")


def title(entry: Entry) -> str:
    """Return the title of a session, or its id."""
    return entry.title or entry.id


def reason(row: LibraryRow, entry: Entry, look: Look) -> Span:
    """Return why a session deserves a look; for a folded family that of the member that does most."""
    shown = row.family.worst if row.is_folded_head and not entry.is_unreadable else entry
    text = shown.reason if shown is entry else f"{title(shown)}: {shown.reason}"
    if shown.is_unreadable:
        return Span(shown.problem or "", "stuck")
    if shown.denied:
        return Span(text, "stopped")
    if shown.verdict == "mismatch":
        return Span(f"{look.glyphs.verdicts['mismatch']} {text}", "mismatch")
    if shown.helper:
        return Span("run by Codex for itself", "muted")
    return Span(text, "muted")


def stem(row: LibraryRow, look: Look) -> str:
    """Return the prefix of the title: the fold sign of a family, or the tree line of a member."""
    if row.member.depth:
        return "  " * min(row.member.depth - 1, MAX_INDENT) + look.glyphs.tree[row.member.last]
    return look.glyphs.folds[row.unfolded] if len(row.family.members) > 1 else ""


def row_height(row: LibraryRow, entry: Entry, cells: int, look: Look) -> int:
    """Return how many lines a row has."""
    return 1 if cells >= CARDS_BELOW_CELLS or not reason(row, entry, look).text else 2


def row_lines(row: LibraryRow, entry: Entry, cells: int, look: Look, *, with_date: bool) -> list[Line]:
    """Return a row on one line; in a narrow list with a second one for its reason."""
    dots = look.glyphs.ellipsis
    begun = row.family.newest if row.is_folded_head else entry.begun
    why = reason(row, entry, look)
    head = (Span(f"{when(begun, with_date=with_date)} ", "muted"), state_sign(entry, look), Span(" "))
    tone: Tone = "" if entry.title else "muted"
    name = (Span(stem(row, look), "muted"), Span(title(entry), tone))
    if cells < CARDS_BELOW_CELLS:
        lines = [fit((*head, *name), cells, dots)]
        why = why._replace(text=_shortened(why.text, cells - width(head), dots))
        return [*lines, (Span(" " * width(head)), why)] if why.text else lines
    right = _numbers(row, entry)
    if cells >= _FOLDER_FROM_CELLS:
        folder = (entry.cwd or "").rpartition("/")[2]
        right = (Span("  " + pad(folder, _FOLDER_CELLS, dots), "muted"), *right)
    room = cells - width(head) - width(right) - 2
    title_cells = round(room * _TITLE_SHARE)
    shown = fit(name, title_cells, dots)
    why = why._replace(text=_shortened(why.text, room - title_cells, dots))
    left = (*head, *shown, Span(" " * (title_cells - width(shown) + 2)), why)
    return [justify(left, right, cells, dots)]


def _shortened(text: str, cells: int, mark: str) -> str:
    """Return a reason in at most so many cells; of a path at its end the last part is kept."""
    words, _, last = text.rpartition(" ")
    room = cells - len(words) - 1
    if last.startswith("/") and room > 8:
        return f"{words} {elide_path(last, room, mark)}"
    return elide(text, cells, mark)


def _numbers(row: LibraryRow, entry: Entry) -> Line:
    """Return the cells of duration and tokens. A session that was killed went on after its last line."""
    took = "" if entry.took is None else duration(entry.took)
    took = f">{took}" if took and entry.state is State.EXITED else took
    usage = _usage(row, entry)
    tokens = count(sum(each.usage.total for each in usage)) if usage else ""
    return (Span(pad(took, 6, right=True) + pad(tokens, 6, right=True), "muted"),)


def _usage(row: LibraryRow, entry: Entry) -> tuple[ModelUsage, ...]:
    """Return the tokens of a folded family, or the entry's own."""
    return row.family.by_model if row.is_folded_head else entry.by_model


def detail(entry: Entry, cells: int, look: Look) -> list[Line]:
    """Return what a row has no room for: how it ended, findings, prompts, what it ran with, its file."""
    dots, dot = look.glyphs.ellipsis, f" {look.glyphs.dot} "
    lines: list[Line] = []
    if entry.state is not None:
        head = (Span(f"{state_name(entry.state)}: ", TONES_OF_STATES[entry.state]),)
        lines += paragraph(entry.why, cells, head=head, cap=2)
    if entry.problem:
        lines += paragraph(entry.problem, cells, "stuck", cap=2)
    if entry.findings:
        lines.append(fit((Span(", ".join(entry.findings), "mismatch"),), cells, dots))
    for label, prompt in (("first", entry.prompt), ("last", entry.last_prompt)):
        if prompt and prompt != entry.title and not (label == "last" and prompt == entry.prompt):
            lines.append(fit((Span(pad(f"{label}:", 7), "muted"), Span(prompt)), cells, dots))
    facts = (
        f"{entry.agent} {entry.version or ''}".strip(),
        entry.model or "",
        entry.source or "",
        tokens_and_cost(entry.by_model),
    )
    lines.append(fit((Span(dot.join(filter(None, facts)), "muted"),), cells, dots))
    lines.append((Span(elide_middle(entry.key, cells, dots), "muted"),))
    return lines
