"""The session list by day, the detail of an entry, and the hits of a full-text search.

A row has when a session began, how it ended, its title, and why it deserves a look.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from textual.message import Message

from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State
from agentdash.prices import tokens_and_cost
from agentdash.replay.library.entry import NEWEST, SORTS, Entry, FamilyMember, SessionFamily, group_families
from agentdash.replay.library.query import Query
from agentdash.replay.library.search import Hit
from agentdash.tui.format import count, duration, elide, elide_middle, pad
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, justify, paragraph, width
from agentdash.tui.theme import TONES_OF_STATES, Look, state_name

CARDS_BELOW_CELLS: Final = 60
"""In a narrower list the reason of a row stands below its title."""
_FOLDER_FROM_CELLS: Final = 96
"""In a narrower list there is no column of directories."""
_FOLDER_CELLS: Final = 12
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
    then = time.localtime(at)
    text = time.strftime(f"{then.tm_mday:2} %b %H:%M" if with_date else "%H:%M", then)
    return text if at is not None else " " * len(text)


def state_sign(entry: Entry, look: Look) -> Span:
    """Return the sign of how a session ended, or of what it is."""
    glyphs = look.glyphs
    if entry.is_unreadable:
        return Span(glyphs.agrees[0], "stuck")
    if entry.state is not None:
        return Span(glyphs.states[entry.state], TONES_OF_STATES[entry.state])
    return Span(glyphs.dot if entry.helper or entry.recording else " ", "muted")


def reason(row: LibraryRow, entry: Entry, look: Look) -> Span:
    """Return why a session deserves a look; for a folded family that of the member that does most."""
    shown = row.family.worst if row.is_folded_head and not entry.is_unreadable else entry
    text = shown.reason if shown is entry else f"{shown.title or shown.id}: {shown.reason}"
    if shown.is_unreadable:
        return Span(shown.problem or "", "stuck")
    if shown.denied:
        return Span(text, "stopped")
    if shown.verdict == "mismatch":
        return Span(f"{look.glyphs.verdicts['mismatch']} {text}", "mismatch")
    return Span("run by Codex for itself" if shown.helper else text, "muted")


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
    name = (Span(stem(row, look), "muted"), Span(entry.title or entry.id, tone))
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
    cut = elide_middle if text.rpartition(" ")[2].startswith("/") else elide
    return cut(text, cells, mark)


def _numbers(row: LibraryRow, entry: Entry) -> Line:
    """Return the cells of duration and tokens, of a folded family all; a session that was killed took longer
    than its file shows."""
    took = "" if entry.took is None else duration(entry.took)
    took = f">{took}" if took and entry.state is State.EXITED else took
    usage = row.family.by_model if row.is_folded_head else entry.by_model
    tokens = count(sum(each.usage.total for each in usage)) if usage else ""
    return (Span(pad(took, 6, right=True) + pad(tokens, 6, right=True), "muted"),)


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
    spent = tokens_and_cost(entry.by_model)
    facts = (f"{entry.agent} {entry.version or ''}".strip(), entry.model, entry.source, spent)
    lines.append(fit((Span(dot.join(filter(None, facts)), "muted"),), cells, dots))
    lines.append((Span(elide_middle(entry.key, cells, dots), "muted"),))
    return lines


# ------------------------------------------------------------ what is known, arranged as families


class LibraryModel:
    """What the library screen shows. It outlives the screen: a reopened library looks as it was left."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        """All entries by their key."""
        self.query = Query()
        self.sort = NEWEST
        """A name of `SORTS`."""
        self.unfolded: set[str] = set()
        """Keys of the heads of families that are shown in full."""
        self.selected_key: str | None = None
        """Key of the entry under the cursor."""
        self.rows: tuple[LibraryRow, ...] = ()
        self.matching: list[SessionFamily] = []
        """The families that match the query."""
        self.families: list[SessionFamily] = []
        """All of them, the newest first."""
        self.unread: Sequence[str] = ()
        """Directories and indexes that cannot be read, and why."""
        self.stale = False
        """Whether entries have changed since the rows were arranged."""

    @property
    def is_by_day(self) -> bool:
        """Whether the rows are in the order of time, so that days have heads."""
        return self.sort == NEWEST

    def list(self, entries: Iterable[Entry]) -> None:
        """Have these entries, as they were read if they were, and no others: their files are gone."""
        self.entries = {entry.key: self.entries.get(entry.key, entry) for entry in entries}
        self.stale = True

    def put(self, entries: Iterable[Entry]) -> None:
        """Add or replace entries."""
        for entry in entries:
            self.entries[entry.key] = entry
            self.stale = True

    def arrange(self) -> None:
        """Gather the families and compute the rows."""
        if self.stale:
            self.families = group_families(list(self.entries.values()))
            self.stale = False
        matching = [family for family in self.families if self.query.matches_family(family)]
        self.matching = sorted(matching, key=SORTS[self.sort])
        self.rows = tuple(row for family in self.matching for row in self._rows_of(family))
        if self.selected_key is not None and all(row.key != self.selected_key for row in self.rows):
            self.selected_key = self._head_of(self.selected_key)

    def fold(self, key: str, unfold: bool | None = None) -> None:
        """Unfold (True) or fold (False) the family of this row's key; None toggles."""
        head = self._head_of(key)
        if head not in self.unfolded if unfold is None else unfold:
            self.unfolded.add(head)
        else:
            self.unfolded.discard(head)
            self.selected_key = head
        self.arrange()

    def _head_of(self, key: str) -> str:
        """Return the key of the head of the matching family with this entry, else the entry's own."""
        found = (each for each in self.matching if any(member.entry.key == key for member in each.members))
        return next((family.head.key for family in found), key)

    def _rows_of(self, family: SessionFamily) -> Iterator[LibraryRow]:
        head = family.head.key
        unfolded = head in self.unfolded
        for member in family.members if unfolded else family.members[:1]:
            yield LibraryRow(member.entry.key, family=family, member=member, unfolded=unfolded)


# ------------------------------------------------------------ the list


class LibraryList(Choices):
    """The rows of the library. The cursor stays on its entry when families are merged above it."""

    class Moved(Message):
        """Another session was selected by key or mouse."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[LibraryRow, ...] = ()
        self._model = LibraryModel()
        self._heads: Sequence[Line] = ()
        """What stands above each row."""

    @property
    def selected(self) -> LibraryRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def cursor_moved(self) -> None:
        """Post that another session was selected."""
        self.post_message(self.Moved())

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of a row."""
        row, model = self.rows[index], self._model
        return row_lines(row, model.entries[row.key], self.room - 1, self.look, with_date=not model.is_by_day)

    def show_model(self, model: LibraryModel, look: Look, placeholder: Sequence[Line]) -> None:
        """Show the rows with the cursor on the selected entry, or `placeholder` without rows."""
        self.begin(look)
        rearranged = model.rows is not self.rows
        self._model, self.rows = model, model.rows
        if rearranged:
            days = [day(row.family.newest, look.now) if model.is_by_day else "" for row in self.rows]
            self._heads = [
                (Span(f" {name}", "title"),) if name != above else BLANK
                for name, above in zip(days, ["", *days], strict=False)
            ]
        heights = [row_height(row, model.entries[row.key], self.room - 1, look) for row in self.rows]
        self.place(self._heads, heights, () if self.rows else placeholder)
        index = min(self.cursor, max(0, self.total - 1))
        if rearranged:  # else the cursor may be ahead of the model, which its message has not reached yet
            keys = [row.key for row in self.rows]
            index = keys.index(model.selected_key) if model.selected_key in keys else index
        if index != self.cursor:
            self.set_cursor(index)


# ------------------------------------------------------------ the hits of a full-text search


def hit_text(hit: Hit, cells: int) -> Line:
    """Return the text of a hit with its matches marked, from where the first match fits into the line."""
    first = hit.marks[0] if hit.marks else (0, 0)
    start = 0 if first[1] < cells else min(first[0], first[1] - cells // 2)
    spans: list[Span] = [Span("…", "muted")] if start else []
    at = start
    for begin, end in hit.marks:
        if begin >= at:
            spans += [Span(hit.text[at:begin], "muted"), Span(hit.text[begin:end], "strong")]
            at = end
    return (*spans, Span(hit.text[at:], "muted"))


class HitList(Choices):
    """The hits, two lines each."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.hits: Sequence[Hit] = ()
        self._entries: Mapping[str, Entry] = {}

    @property
    def selected(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    def show_hits(
        self, hits: Sequence[Hit], entries: Mapping[str, Entry], look: Look, placeholder: Sequence[Line]
    ) -> None:
        """Show these hits, or `placeholder` without any; the cursor keeps its index."""
        self.begin(look)
        self.hits, self._entries = hits, entries
        self.place([BLANK] * len(hits), [2] * len(hits), () if hits else placeholder)
        if self.cursor >= len(hits):
            self.set_cursor(0)

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of a hit: its session, then its kind and the text around the match."""
        hit, cells, dots = self.hits[index], self.room - 1, self.look.glyphs.ellipsis
        entry = self._entries.get(str(hit.path))
        at = Span(when(hit.at, with_date=True), "muted")
        name = (entry.title or entry.id) if entry else hit.thread
        head = justify((Span(name),), (at,), cells, dots)
        kind = Span(f"  {hit.what}: ")
        return [head, fit((kind, *hit_text(hit, cells - len(kind.text))), cells, dots)]
