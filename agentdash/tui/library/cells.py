"""The content of the session list: the cells of its columns, cards, and the detail of an entry. Pure.

A row is a family, with when it began, how it ended, its sandbox, and its title.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from rich.cells import cell_len

from agentdash.model.findings import Verdict
from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage
from agentdash.prices import cost, cost_text
from agentdash.replay.library.entry import RECORDING, Entry, FamilyMember, SessionFamily
from agentdash.replay.library.query import searchable_text
from agentdash.tui.format import count, duration, elide, elide_middle, elide_path, pad
from agentdash.tui.primitives.columns import Column, Columns
from agentdash.tui.primitives.spans import Line, Span, Tone, fit, justify, paragraph, width
from agentdash.tui.theme import STATE_WIDTH, TONES_OF_STATES, VERDICT_TONES, Glyphs, Look, state_name

_WHEN_CELLS: Final = 12
"""`20 Nov 19:59`"""
_NARROW_DIRECTORY_CELLS: Final = 22
_WIDE_DIRECTORY_CELLS: Final = 32
_VERDICT_CELLS: Final = 12
"""`? unverified`"""
_AGENT_CELLS: Final = 14
"""`claude 2.1.330`"""
_SOURCES: Final = {"vscode": "VS Code"}
"""Names of sources that are not shown as Codex writes them."""


class LibraryRow(NamedTuple):
    """The place of an entry in the list. The entry itself is looked up when drawn: it changes more often."""

    key: str
    family: SessionFamily
    member: FamilyMember
    unfolded: bool = False
    """Whether the other members of the family are shown below it."""


Item: TypeAlias = tuple[LibraryRow, Entry]


def when(at: float | None, now: float) -> str:
    """Return local date and time in twelve cells: `20 Nov 19:59`; in another year `20 Nov 2025`."""
    if at is None:
        return " " * _WHEN_CELLS
    then = time.localtime(at)
    form = "%b %H:%M" if then.tm_year == time.localtime(now).tm_year else "%b %Y"
    return pad(f"{then.tm_mday:2} {time.strftime(form, then)}", _WHEN_CELLS)


def state(entry: Entry, look: Look) -> Span:
    """Return sign and name of the final state, or why there is none."""
    glyphs = look.glyphs
    if entry.is_unreadable:
        return Span(f"{glyphs.agrees[0]} unreadable", "stuck")
    if entry.state is not None:
        return Span(f"{glyphs.states[entry.state]} {state_name(entry.state)}", TONES_OF_STATES[entry.state])
    if entry.helper:
        return Span(f"{glyphs.dot} codex's own", "muted")
    if entry.recording:
        return Span(f"{glyphs.dot} recording", "muted")
    return Span(glyphs.ellipsis, "muted")


def verdict(verdict: Verdict | None, look: Look) -> Span:
    """Return the sign of a verdict; an empty span before it is known."""
    return Span(look.glyphs.verdicts[verdict], VERDICT_TONES[verdict]) if verdict else Span("")


def title(entry: Entry) -> Span:
    """Return the title, or why the file cannot be read."""
    if entry.is_unreadable:
        return Span(entry.problem or "", "stuck")
    tone: Tone = "strong" if entry.verdict == "mismatch" or (entry.state and entry.state.needs_you) else ""
    return Span(entry.title or entry.id, tone if entry.title else "muted")


def shown_text(entry: Entry, now: float) -> str:
    """Return the text in which the filter looks for words: the facts, and their short forms in the row."""
    own = "codex's own" if entry.helper else ""
    unreadable = "unreadable" if entry.is_unreadable else ""
    forms = (when(entry.begun, now), _duration(entry), count(entry.tokens), source(entry), own, unreadable)
    return "\n".join((searchable_text(entry), *forms)).casefold()


def stem(row: LibraryRow, look: Look) -> str:
    """Return the prefix of the title: the fold sign of a family, or the tree line of a member."""
    if row.member.depth:
        return "  " * min(row.member.depth, MAX_INDENT) + look.glyphs.tree[row.member.last]
    return look.glyphs.folds[row.unfolded] if len(row.family.members) > 1 else "  "


def _shown_verdict(item: Item, look: Look) -> Span:
    """Return the worst verdict of a folded family, or the entry's own."""
    row, entry = item
    folded_head = not row.member.depth and not row.unfolded
    return verdict(row.family.verdict if folded_head else entry.verdict, look)


# ---------------------------------------------------------------- cells of the columns


def _begun_cell(item: Item, _: int, look: Look) -> Line:
    return (Span(when(item[1].begun, look.now), "muted"),)


def _state_cell(item: Item, cells: int, look: Look) -> Line:
    ending = state(item[1], look)
    return (ending._replace(text=elide(ending.text, cells, look.glyphs.ellipsis)),)


def _verdict_cell(item: Item, cells: int, look: Look) -> Line:
    found = _shown_verdict(item, look)
    if cells < _VERDICT_CELLS or not found.text:
        return (found,)
    row, entry = item
    folded_head = not row.member.depth and not row.unfolded
    return (found._replace(text=f"{found.text} {row.family.verdict if folded_head else entry.verdict}"),)


def _title_cell(item: Item, cells: int, look: Look) -> Line:
    row, entry = item
    name = fit((Span(stem(row, look), "muted"), title(entry)), cells, look.glyphs.ellipsis)
    return *name, Span(" " * (cells - width(name)))


def _folder(entry: Entry) -> str:
    return (entry.cwd or "").rpartition("/")[2]


def _directory_cell(item: Item, cells: int, look: Look) -> Line:
    """Return the path, or where only its last part has room, that."""
    path, dots = item[1].cwd or "", look.glyphs.ellipsis
    shown = elide_path(path, cells, dots)
    return (Span(shown if _folder(item[1]) in shown else elide(_folder(item[1]), cells, dots), "muted"),)


def _text_cell(text: Callable[[Item], str]) -> Callable[[Item, int, Look], Line]:
    """Return a cell function for a muted text."""
    return lambda item, cells, look: (Span(elide(text(item), cells, look.glyphs.ellipsis), "muted"),)


def _duration(entry: Entry) -> str:
    """Return how long a session took. One that was killed went on after its last line: how long is in no
    file of its own."""
    if entry.took is None:
        return ""
    return f"{'>' if entry.state is State.EXITED else ''}{duration(entry.took)}"


def _version(item: Item) -> str:
    return item[1].version or ""


def _agent(item: Item) -> str:
    return "" if item[1].recording else f"{item[1].agent} {item[1].version or ''}"


def _relatives(item: Item) -> str:
    """Return the number of other members of the family, in the row of its head."""
    row = item[0]
    return "" if row.member.depth or len(row.family.members) == 1 else str(len(row.family.members) - 1)


def _usage(item: Item) -> tuple[ModelUsage, ...]:
    """Return the tokens of a folded family, or the entry's own."""
    row, entry = item
    folded_head = not row.member.depth and not row.unfolded
    return row.family.by_model if folded_head else entry.by_model


def _tokens(item: Item) -> str:
    usage = _usage(item)
    return count(sum(each.usage.total for each in usage)) if usage else ""


def _cost(item: Item) -> str:
    return cost_text(cost(_usage(item)))


def _from(list_cells: int, column_cells: int) -> Callable[[int, Glyphs], int]:
    """Return a width function: `column_cells` in a list of at least `list_cells`, else 0."""
    return lambda cells, _: column_cells if cells >= list_cells else 0


class Longest(NamedTuple):
    """Cells of the longest value of the columns whose width the content decides; 0: there is none."""

    directory: int = 0
    folder: int = 0
    """The last part of a directory."""
    model: int = 0
    source: int = 0
    has_agents: bool = False
    """Whether there are sessions of other worker CLIs than Codex."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Longest:
        """Return the longest values of these entries."""
        entries = list(entries)
        return cls(
            directory=_longest(entry.cwd for entry in entries),
            folder=_longest(_folder(entry) for entry in entries),
            model=_longest(entry.model for entry in entries),
            source=_longest(source(entry) for entry in entries),
            has_agents=any(entry.agent not in ("codex", RECORDING) for entry in entries),
        )


def _longest(values: Iterable[str | None]) -> int:
    return max((cell_len(value) for value in set(values) if value), default=0)


def source(entry: Entry) -> str:
    """Return what started a session, as it is shown."""
    return _SOURCES.get(entry.source or "", entry.source or "")


def _titled(title: str, longest: int, at_most: int) -> int:
    """Return the cells of a column: as its longest value, at least as its title; 0 without any value."""
    return min(at_most, max(len(title), longest)) if longest else 0


def columns(longest: Longest) -> Columns[Item]:
    """Return the columns for entries with these longest values."""

    def directory_cells(cells: int, _: Glyphs) -> int:
        if cells >= 160:
            return _titled("DIRECTORY", longest.directory, _WIDE_DIRECTORY_CELLS)
        return _titled("DIRECTORY", longest.folder, _NARROW_DIRECTORY_CELLS) if cells >= 100 else 0

    def verdict_cells(cells: int, glyphs: Glyphs) -> int:
        if cells >= 140:
            return _VERDICT_CELLS
        return len("VERDICT") if cells >= 70 else len(glyphs.verdicts["mismatch"])

    return Columns[Item](
        left=(
            Column(title="BEGUN", width=lambda *_: _WHEN_CELLS, cell=_begun_cell, sorts="newest"),
            Column(title="STATE", width=lambda *_: STATE_WIDTH, cell=_state_cell),
            Column(title="VERDICT", width=verdict_cells, cell=_verdict_cell, sorts="findings"),
        ),
        main=Column(title="SESSION", width=lambda *_: 8, cell=_title_cell, sorts="name"),
        right=(
            Column(title="DIRECTORY", width=directory_cells, cell=_directory_cell),
            Column(
                title="AGENT" if longest.has_agents else "CODEX",
                width=_from(90, _AGENT_CELLS if longest.has_agents else 8),
                cell=_text_cell(_agent if longest.has_agents else _version),
            ),
            Column(
                title="FROM",
                width=_from(120, _titled("FROM", longest.source, 10)),
                cell=_text_cell(lambda item: source(item[1])),
            ),
            Column(
                title="MODEL",
                width=_from(130, _titled("MODEL", longest.model, 14)),
                cell=_text_cell(lambda item: item[1].model or ""),
            ),
            Column(
                title="TOOK",
                width=_from(64, 5),
                cell=_text_cell(lambda item: _duration(item[1])),
                align_right=True,
                sorts="duration",
            ),
            Column(title="KIN", width=_from(58, 3), cell=_text_cell(_relatives), align_right=True),
            Column(
                title="TOKENS",
                width=_from(84, 6),
                cell=_text_cell(_tokens),
                align_right=True,
                sorts="tokens",
            ),
            Column(title="COST", width=_from(110, 8), cell=_text_cell(_cost), align_right=True, sorts="cost"),
        ),
    )


def card(item: Item, cells: int, look: Look) -> tuple[Line, Line]:
    """Return an entry on two lines: for lists too narrow for columns."""
    row, entry = item
    dots = look.glyphs.ellipsis
    left = (state(entry, look), Span(" "), _shown_verdict(item, look))
    begun = (Span(when(entry.begun, look.now).strip(), "muted"),)
    return justify(left, begun, cells, dots), fit((Span(stem(row, look), "muted"), title(entry)), cells, dots)


def detail(entry: Entry, cells: int, look: Look) -> list[Line]:
    """Return what a row has no room for: reason, verdict, findings, problem and path of the file."""
    dots = look.glyphs.ellipsis
    lines: list[Line] = []
    if entry.why:
        lines += paragraph(entry.why, cells, TONES_OF_STATES[entry.state] if entry.state else "", cap=2)
    if entry.by_model:
        total = sum(each.usage.total for each in entry.by_model)
        price = cost(entry.by_model)
        why = f" ({'; '.join(price.unpriced)})" if price and price.unpriced else ""
        lines += paragraph(f"{total:,} tokens: {cost_text(price)}{why}", cells, "muted", cap=1)
    found = f"{look.glyphs.verdicts[entry.verdict]} {entry.verdict}" if entry.verdict else ""
    if found or entry.findings:
        tone: Tone = "mismatch" if entry.verdict == "mismatch" else "muted"
        read_in_part = f" {look.glyphs.dot} by head and tail of {entry.size / 1e6:.0f} MB"
        note = "" if entry.depth == "read" else read_in_part
        lines.append(fit((Span(" ".join((found, *entry.findings)), tone), Span(note, "muted")), cells, dots))
    prompts = [("first", entry.prompt), ("last", entry.last_prompt)]
    for label, prompt in prompts if entry.last_prompt != entry.prompt else prompts[:1]:
        if prompt:
            lines.append(fit((Span(pad(f"{label}:", 7), "muted"), Span(prompt)), cells, dots))
    if entry.problem:
        lines += paragraph(entry.problem, cells, "stuck", cap=2)
    lines.append((Span(elide_middle(entry.key, cells, dots), "muted"),))
    return lines
