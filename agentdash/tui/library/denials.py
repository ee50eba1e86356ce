"""The chart of denials: how much the sandboxes refused in the listed sessions, by day, version and directory,
and what would have avoided it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.denial_sums import DenialSum
from agentdash.replay.library.entry import sums_of
from agentdash.tui.format import elide_middle, pad
from agentdash.tui.keys import bindings
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import Glyphs, Look
from agentdash.tui.view import View

_MAX_ROWS: Final = 12
"""Of a section: the newest days, the worst versions and directories."""
_MAX_REMEDIES: Final = 8
_MIN_BAR_CELLS: Final = 6
_NUMBER_CELLS: Final = 7
_WORDS_CELLS: Final = 31
"""For ` 1,000 sessions, 100 not got past`."""
_MIN_CELLS_WITH_WORDS: Final = 64


class DenialsChart(TextModal):
    """The chart over the sessions that match the filter; it grows while sessions are read."""

    BINDINGS = bindings("denials")

    def __init__(self, glyphs: Glyphs, model: LibraryModel) -> None:
        super().__init__(glyphs)
        self._model = model

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Return the chart."""
        return denial_lines(self._model, cells, view.look)

    action_denials = TextModal.action_back


def denial_lines(model: LibraryModel, cells: int, look: Look) -> list[Line]:
    """Return the lines of the chart: bars by day, version, directory, then remedies."""
    entries = model.searched()
    sums = sums_of(entries)
    partly = sum(entry.depth != "read" and not entry.is_unreadable for entry in entries)
    filtered = f', filter "{model.query.text}"' if model.query.text else ""
    lines: list[Line] = [
        (Span("Denied calls", "title"), Span(f"  in {len(entries):,} sessions{filtered}", "muted"))
    ]
    if partly:
        text = f"  {partly:,} of them are read in part, or not yet: they may have more."
        lines += paragraph(text, cells, "muted")
    if not sums.by_version:
        return [*lines, BLANK, (Span("  No denial is known."),)]
    for title, rows in (
        ("By day (UTC)", sums.by_day[-_MAX_ROWS:]),
        ("By version", sums.by_version[:_MAX_ROWS]),
        ("By directory", sums.by_directory[:_MAX_ROWS]),
    ):
        lines += [BLANK, *_section(title, rows, cells, look)]
    lines += [BLANK, (Span("What would have avoided them", "title"),)]
    for common in sums.remedies[:_MAX_REMEDIES]:
        head = (Span(f"{common.calls:>{_NUMBER_CELLS - 1},} ", "strong"),)
        lines += paragraph(common.remedy, cells, head=head)
        if common.where:
            lines += paragraph(common.where, cells, "muted", indent=_NUMBER_CELLS)
    return lines


def _section(title: str, sums: Sequence[DenialSum], cells: int, look: Look) -> Iterator[Line]:
    """Yield a bar for each name, with its calls, sessions, and sessions that did not get past them."""
    names = max(min(max(len(each.name) for each in sums), (cells - _NUMBER_CELLS) // 2), 10)
    most = max(each.calls for each in sums)
    words = _WORDS_CELLS if cells >= _MIN_CELLS_WITH_WORDS else 0
    room = max(_MIN_BAR_CELLS, cells - names - _NUMBER_CELLS - words - 2)
    full = look.glyphs.bars[-1]
    yield (Span(title, "title"),)
    for each in sums:
        name = elide_middle(each.name, names, look.glyphs.ellipsis)
        sessions = f" {each.threads:,} session{'s' if each.threads != 1 else ''}"
        stopped = (Span(f", {each.open:,} not got past", "stuck"),) if each.open else ()
        line = (
            Span(f"  {pad(name, names)}"),
            Span(f"{each.calls:>{_NUMBER_CELLS - 2},} ", "strong"),
            Span(full * max(1, round(room * each.calls / most)), "stuck"),
        )
        yield fit((*line, Span(sessions, "muted"), *stopped) if words else line, cells, look.glyphs.ellipsis)
