"""The findings of the whole fleet, one cause a row, the worst first: below the list, and on a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual import getters, on
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from agentdash.model.causes import Cause, causes
from agentdash.model.findings import DIRECTIONS, FIELD_LABELS, difference
from agentdash.model.states import Group
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.header import Header
from agentdash.tui.format import date, elide, elide_object, pad, stamp
from agentdash.tui.keys import bindings
from agentdash.tui.messages import WorkerOpened, WorkerPointed
from agentdash.tui.primitives.content import content
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import Line, Span, justify, paragraph, width
from agentdash.tui.theme import ASCII, SEVERITY_TONES, Glyphs, Look
from agentdash.tui.view import View
from agentdash.tui.worker.evidence import labelled

HINTS = ("back", "open", "why", "copy-remedy", "jump", "help")
_EMPTY = "No findings: nothing that was observed differs from what was configured, and nothing was denied."

_WORDS_CELLS: Final = 33
"""The longest words of a cause, `another policy than its role asks`."""
_MAX_NAMES_CELLS: Final = 30
_MIN_FACT_CELLS: Final = 20
"""Where a difference has less room, the names take it."""
_GAP: Final = Span("  ")


class CauseGroup(NamedTuple):
    """The same cause in several workers."""

    cause: Cause
    """The worst of them."""
    workers: tuple[Worker, ...]
    times: int
    """How often it was observed in all workers together."""

    @property
    def id(self) -> str:
        """Return what stays the same while it is observed again."""
        return f"{self.workers[0].id} {self.cause.words} {self.cause.worst.kind}"


def group_causes(workers: Iterable[Worker]) -> list[CauseGroup]:
    """Return the causes of a fleet, grouped by words, kinds and message, the worst first.

    The workers of a group are in the order of their ids: that of a snapshot changes whenever one is active.
    """
    members: dict[tuple[object, ...], list[tuple[Cause, Worker]]] = {}
    for worker in workers:
        for cause in causes(worker):
            key = (cause.words, frozenset(cause.kinds), cause.worst.message)
            members.setdefault(key, []).append((cause, worker))
    groups = [
        CauseGroup(
            cause=min((cause for cause, _ in group), key=lambda cause: cause.rank),
            workers=tuple(sorted((worker for _, worker in group), key=lambda worker: worker.id)),
            times=sum(finding.count for cause, _ in group for finding in cause.findings),
        )
        for group in members.values()
    ]
    return sorted(groups, key=lambda group: group.cause.rank)


def row(group: CauseGroup, look: Look, cells: int, *, ansi: bool = False) -> Content:
    """Return a cause on one line: direction, words, workers, what differs, how often and when.

    The columns stand below each other; what has no room is left out, or cut at its end.
    """
    finding, mark = group.cause.worst, look.glyphs.ellipsis
    tone = SEVERITY_TONES[finding.severity]
    sign = look.glyphs.directions[finding.direction]
    words = Span(f"{sign} {elide(group.cause.words, _WORDS_CELLS, mark)}", tone)
    fill = Span(" " * (_WORDS_CELLS + cell_len(sign) + 1 - cell_len(words.text)) + _GAP.text)
    right = (Span(f"{group.times}x  {stamp(group.cause.last, look.now)}", "muted"),)
    room = cells - width((words, fill, *right)) - cell_len(_GAP.text)
    names = ", ".join(worker.name for worker in group.workers)
    fact_cells = room - _MAX_NAMES_CELLS - cell_len(_GAP.text)
    left = [words, fill]
    if fact_cells < _MIN_FACT_CELLS:
        left.append(Span(elide(names, max(0, room), mark), "strong"))
    else:
        fact = Span(fact_of(group, look, fact_cells))
        left += [Span(pad(names, _MAX_NAMES_CELLS, mark), "strong"), _GAP, fact]
    return content(justify(left, right, cells, mark), ascii_only=look.glyphs is ASCII, ansi=ansi)


def fact_of(group: CauseGroup, look: Look, cells: int) -> str:
    """Return what differs, `network: on → off`; of what blocks a worker, the target; else the sentence."""
    cause, fact, mark = group.cause, group.workers[0].fact, look.glyphs.ellipsis
    if cause.blocks and fact.object:
        return elide_object(fact.object, cells, mark, fact.form)
    if not cause.worst.fields:
        return elide(cause.worst.message, cells, mark)
    field = cause.worst.fields[0]
    expected, actual = difference(field)
    text = f"{FIELD_LABELS[field.name]}: {expected.text} {look.glyphs.arrow} {actual.text}"
    return elide(text, cells, mark)


def prompt(group: CauseGroup, look: Look, cells: int, *, ansi: bool = False) -> Content:
    """Return a cause in full: direction, workers, words, sentence, kinds, and remedy."""
    finding = group.cause.worst
    tone = SEVERITY_TONES[finding.severity]
    names = ", ".join(worker.name for worker in group.workers)
    dot = f" {look.glyphs.dot} "
    kinds = dot.join(group.cause.kinds)
    times = f"{group.times}x{dot}last {stamp(group.cause.last, look.now)}"
    words = f"{look.glyphs.directions[finding.direction]} {group.cause.words}"
    lines: list[Line] = [(Span(words, tone), _GAP, Span(names, "strong"), _GAP, Span(times, "muted"))]
    if width(lines[0]) > cells:
        lines = paragraph(words, cells, tone)
        lines += [*paragraph(names, cells, "strong", indent=2), *paragraph(times, cells, "muted", indent=2)]
    lines += paragraph(finding.message, cells, indent=2)
    lines += paragraph(f"{DIRECTIONS[finding.direction].short}{dot}{kinds}", cells, "muted", indent=2)
    remedy = next((each.remedy for each in group.cause.findings if each.remedy), None)
    if remedy:
        lines += labelled("remedy (Y)", remedy.text, cells, "strong", cap=0)
    spans = [span for line in lines for span in (*line, Span("\n"))][:-1]
    return content(spans, ascii_only=look.glyphs is ASCII, ansi=ansi)


def _is_past(worker: Worker) -> bool:
    return worker.group is Group.PAST


_MIN_CELLS: Final = 8
"""Width for which the height of a narrower list is measured: more than the padding of its rows."""


class FindingsList(OptionList, inherit_bindings=False):
    """The causes of all workers' findings. Enter or a click opens the first worker that has it."""

    BINDINGS = bindings("down", "up", "top", "bottom", "page-down", "page-up", "open")

    def __init__(self, *, id: str, whole: bool) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id, markup=False)
        self._whole = whole
        self._snapshot: Snapshot | None = None
        self._grouped_from: Mapping[str, tuple[object, ...]] = {}
        """What causes follow from, of each worker: most changes of a worker are none of it."""
        self._groups: Sequence[CauseGroup] = ()
        self._shown: list[tuple[str, Content]] = []
        self._drawn_from: tuple[bool, bool, str, int] | None = None
        """What the shown rows were made of, beside the groups."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height at a width. The base class raises where no cell is left for the text."""
        return super().get_content_height(container, viewport, max(width, _MIN_CELLS))

    @property
    def worker(self) -> str | None:
        """Return the id of the highlighted cause's first worker."""
        if self.highlighted is None or self.highlighted >= len(self._groups):
            return None
        return self._groups[self.highlighted].workers[0].id

    def show_fleet(self, snapshot: Snapshot | None, look: Look) -> None:
        """Show the causes of all workers; the highlighted one keeps the highlight."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._group(snapshot.workers if snapshot else ())
        self.set_class(not self._groups, "-none")
        number = len(self._groups)
        title = f" {number} finding{'s' * (number != 1)} "
        if title != self.border_title:  # to set it paints the whole list
            self.border_title = title
        is_ansi, cells = self.app.native_ansi_color, self.scrollable_content_region.width
        drawn_from = (look.glyphs is ASCII, is_ansi, date(look.now), cells)
        if drawn_from == self._drawn_from:  # nothing in a row is an age
            return
        self._drawn_from = drawn_from
        shown = [(group.id, self._drawn(group, look, cells, ansi=is_ansi)) for group in self._groups]
        if shown == self._shown:
            return
        before = self.highlighted_option.id if self.highlighted_option else None
        at = self.scroll_offset
        same = [name for name, _ in shown] == [name for name, _ in self._shown]
        if same:
            for number, ((_, new), (_, old)) in enumerate(zip(shown, self._shown, strict=True)):
                if new != old:
                    self.replace_option_prompt_at_index(number, new)
        else:
            self.set_options([Option(text, id=name) for name, text in shown])
            ids = [name for name, _ in shown]
            first = 0 if shown and self.has_focus else None
            self.highlighted = ids.index(before) if before in ids else first
            self.scroll_to(y=at.y, animate=False, immediate=True)
        self._shown = shown

    def _group(self, workers: Iterable[Worker]) -> None:
        """Group the causes of these workers, unless all that they follow from is as before."""
        grouped = [worker for worker in workers if self._whole or not _is_past(worker)]
        grouped_from = {each.id: (each.name, each.sandbox, each.state, each.fact) for each in grouped}
        if grouped_from != self._grouped_from:
            self._grouped_from = grouped_from
            self._groups = group_causes(grouped)
            self._drawn_from = None

    def _drawn(self, group: CauseGroup, look: Look, cells: int, *, ansi: bool) -> Content:
        draw = prompt if self._whole else row
        return draw(group, look, cells, ansi=ansi)

    def action_down(self) -> None:
        """Highlight the next cause."""
        self.action_cursor_down()

    def action_up(self) -> None:
        """Highlight the previous cause."""
        self.action_cursor_up()

    def action_top(self) -> None:
        """Highlight the first cause."""
        self.action_first()

    def action_bottom(self) -> None:
        """Highlight the last cause."""
        self.action_last()

    def action_page(self, direction: int) -> None:
        """Move the highlight a page down (1) or up (-1)."""
        page: Callable[[], None] = self.action_page_down if direction > 0 else self.action_page_up
        page()

    def action_open(self) -> None:
        """Open the first worker that has the highlighted cause."""
        if (worker := self.worker) is not None:
            self.post_message(WorkerOpened(worker))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_open()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if self._whole and (worker := self.worker) is not None:
            self.post_message(WorkerPointed(worker))

    def on_focus(self) -> None:
        """Highlight the worst cause, where none is."""
        if self.highlighted is None and self.option_count:
            self.highlighted = 0


class FindingsStrip(FindingsList):
    """The findings below the fleet list: of all workers but past ones, whose rows are folded."""

    def __init__(self) -> None:
        super().__init__(id="findings", whole=False)


class FindingsScreen(Page):
    """All findings on the whole screen, with their kinds and remedies."""

    AUTO_FOCUS = "#all-findings"

    header = getters.query_one(Header)
    findings = getters.query_one("#all-findings", FindingsList)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Compose header, list, footer."""
        yield Header()
        yield Lines(id="no-findings", focusable=False)
        yield FindingsList(id="all-findings", whole=True)
        yield Footer(self.glyphs, *HINTS)

    def draw(self, view: View) -> None:
        """Draw the findings of the snapshot."""
        self.header.show_fleet(view)
        self.findings.show_fleet(view.snapshot, view.look)
        self.query_one("#no-findings", Lines).show([(Span(f" {_EMPTY}", "muted"),)])
        self.set_class(not self.findings.option_count, "-no-findings")
