"""The fleet, one worker a row: what it is doing, which sandbox it got, when it last gave a sign of life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len
from textual.message import Message

from agentdash.model.fleet import Tokens
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.rows import Row
from agentdash.tui.format import age, count, elide, pad
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph, width
from agentdash.tui.theme import STATE_WIDTH, Look, sign, verdict
from agentdash.tui.view import View

_SEEN: Final = 4
_BRIEF: Final = 11
"""Cells of the longest policy in brief: `custom net-`."""
_PATH: Final = 3
"""Cells that the names above a worker need to say anything."""
_LINE: Final = 16
"""Cells that the last line needs to say anything."""
_LINE_SAYS_MORE: Final = (State.RUNNING, State.COMPLETED, State.INTERRUPTED)
"""States whose last line says more than their reason does."""


class Columns(NamedTuple):
    """Cells of each column of one-line rows; 0: left out. A space lies between two columns, two before the last."""

    state: int
    name: int
    agent: int
    mark: int
    """Of the verdict."""
    sandbox: int
    """The policy in brief."""
    used: int
    line: int

    @classmethod
    def of(cls, cells: int, mark: int = 1) -> Columns:
        """The columns that fit into so many cells. What is least needed to see who needs somebody goes first."""
        state = min(STATE_WIDTH, cells // 2)
        agent = 17 if cells >= 110 else 0
        sandbox = _BRIEF if cells >= 58 else 0
        used = 5 if cells >= 84 else 0
        room = cells - state - mark - _SEEN - 3 - sum(w + 1 for w in (agent, sandbox, used) if w)
        name = max(16, min(32, cells // 4))
        line = room - name - 2
        if line < _LINE:
            name, line = max(1, room), 0
        return cls(state, name, agent, mark, sandbox, used, line)


def titles(columns: Columns) -> Line:
    """The row above the rows, gutter included."""
    words = (
        (" STATE", columns.state + 1),
        (" WORKER", columns.name + 1),
        (" AGENT", columns.agent + 1 if columns.agent else 0),
        (
            " SANDBOX" if columns.sandbox else "",
            columns.mark + 1 + (columns.sandbox + 1 if columns.sandbox else 0),
        ),
        (f"{'USED':>6}", columns.used + 1 if columns.used else 0),
        (f"{'SEEN':>5}", _SEEN + 1),
        ("  LINE", columns.line + 2 if columns.line else 0),
    )
    return tuple(Span(pad(text, cells), "title") for text, cells in words if cells)


def one_line(row: Row, worker: Worker, columns: Columns, look: Look) -> Line:
    """A worker on one line, in columns."""
    glyphs = look.glyphs
    state, mark, room = sign(worker, glyphs), verdict(worker, glyphs), columns.name
    stem = row.stem if len(row.stem) <= room // 2 else row.stem[-(room // 2) :]
    spans = [
        state._replace(text=pad(state.text, columns.state, glyphs.ellipsis) + " "),
        Span(stem, "muted"),
        *_name(row, worker, room - len(stem), look),
    ]
    if columns.agent:
        agent = f"{worker.agent.name} {worker.agent.version or ''}"
        spans.append(Span(" " + pad(agent, columns.agent, glyphs.ellipsis), "muted"))
    spans.append(mark._replace(text=" " + pad(mark.text, columns.mark)))
    if columns.sandbox:
        spans.append(
            Span(
                " " + pad(_brief(worker), columns.sandbox, glyphs.ellipsis),
                "mismatch" if worker.mismatch else "",
            )
        )
    if columns.used:
        spans.append(Span(" " + pad(used(worker.tokens), columns.used, right=True), "muted"))
    spans.append(Span(" " + _seen(worker, look), "muted"))
    if columns.line:
        spans.append(Span("  "))
        spans.extend(fit(note(worker), columns.line, glyphs.ellipsis))
    return tuple(spans)


def card(row: Row, worker: Worker, cells: int, look: Look) -> tuple[Line, Line]:
    """A worker on two lines: for lists too narrow for columns."""
    glyphs = look.glyphs
    state, mark = sign(worker, glyphs), verdict(worker, glyphs)
    seen = Span(_seen(worker, look), "muted")
    first = min(STATE_WIDTH, cells // 2)
    top = (
        state._replace(text=pad(state.text, first, glyphs.ellipsis) + " "),
        *_name(row, worker, max(1, cells - first - 1 - _SEEN), look),
        seen,
    )
    brief = Span(f"{mark.text} {_brief(worker)}  ", "mismatch" if worker.mismatch else "muted")
    sandbox = (brief,) if worker.sandbox.configured else ()
    below = fit((Span("  "), *sandbox, *note(worker)), cells, glyphs.ellipsis)
    return top, below


def note(worker: Worker) -> Line:
    """What is wrong with it, or below it, or what it does."""
    text = (
        worker.line or worker.assessment.why
        if worker.state in _LINE_SAYS_MORE
        else worker.assessment.why or worker.line
    )
    if worker.mismatch and worker.sandbox.findings:
        return (Span(worker.sandbox.findings[0].kind, "mismatch"), Span("  " + text, "muted"))
    if worker.below and not worker.state.needs_you:
        more = f" +{len(worker.below) - 1}" if len(worker.below) > 1 else ""
        return (Span(f"! {worker.below[0]}{more}", "ask"), Span("  " + text, "muted"))
    return (Span(text, "" if worker.state.needs_you else "muted"),)


def used(tokens: Tokens) -> str:
    """How full the model's context is, `37%`, or, where that is not known, all tokens so far, `12.4k`."""
    if tokens.context is not None and tokens.window:
        return f"{100 * tokens.context // tokens.window}%"
    return count(tokens.total)


def nobody(snapshot: Snapshot | None, held_back: bool, cells: int, look: Look) -> list[Line]:
    """What stands where no worker stands: where agentdash looked, and what it found missing there."""
    if snapshot is None:
        return [BLANK, (Span("  Looking for workers."),)]
    if held_back:
        return [BLANK, (Span("  No worker fits this filter."),), (Span("  esc clears it.", "muted"),)]
    lines: list[Line] = [BLANK, (Span("  No workers yet.", "strong"),), BLANK]
    room = max((len(source.name) for source in snapshot.sources), default=0)
    for source in snapshot.sources:
        mark = Span(f"  {look.glyphs.agrees[source.ok]} ", "ready" if source.ok else "ask")
        head = (mark, Span(source.name.ljust(room + 2), "" if source.ok else "ask"))
        lines += paragraph(source.detail or "nothing found", cells - 2, "muted", head=head)
    hint = "Start codex, or an agent in a tmux pane: it shows up here by itself."
    return [*lines, BLANK, *paragraph(hint, cells - 2, "muted", indent=2)]


def _name(row: Row, worker: Worker, room: int, look: Look) -> tuple[Span, Span]:
    """The name in full, and its pane if there is room for it."""
    tone: Tone = "strong" if worker.state.needs_you or worker.mismatch else ""
    name = _in_full(row.path, worker.name, room, look.glyphs.ellipsis)
    pane = f" {worker.pane.key}" if worker.pane else ""
    left = room - width((Span(name),))
    return Span(name, tone), Span(pad(pane, left) if width((Span(pane),)) <= left else " " * left, "muted")


def _in_full(path: str, name: str, room: int, mark: str) -> str:
    """`main/Pasteur`; where it is too long, the names above give way first."""
    left = room - cell_len(name) - 1
    return f"{elide(path[:-1], left, mark)}/{name}" if path and left >= _PATH else elide(name, room, mark)


def _brief(worker: Worker) -> str:
    return worker.sandbox.configured.brief() if worker.sandbox.configured else ""


def _seen(worker: Worker, look: Look) -> str:
    return pad(
        age(None if worker.last_activity is None else look.now - worker.last_activity), _SEEN, right=True
    )


class FleetList(Choices):
    """The rows. The cursor stays on its worker, wherever that one moves."""

    class FileMoved(Message):
        """Another worker was chosen by hand."""

        def __init__(self, worker: str) -> None:
            self.worker = worker
            super().__init__()

    class Opened(Message):
        """A worker was clicked twice."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self._by_id: Mapping[str, Worker] = {}
        self.columns = Columns.of(80)
        self._look: Look | None = None
        self._instead: Sequence[Line] = ()

    @property
    def total(self) -> int:
        """Rows."""
        return len(self.rows)

    def show_rows(self, rows: tuple[Row, ...], view: View, instead: Sequence[Line] = ()) -> None:
        """Shows these rows with the cursor on the picked worker.

        Args:
            instead: what to show where there are no rows.
        """
        self.rows, self._by_id, self._look, self._instead = rows, view.by_id, view.look, instead
        self.redraw(len(rows) * self.tall or len(instead))
        index = next((i for i, row in enumerate(rows) if row.id == view.picked), None)
        if index is not None and index != self.cursor:
            self.place(index)
        elif self.cursor >= len(rows):
            self.place(max(0, len(rows) - 1))

    def line_at(self, y: int) -> Line:
        """One line of a row."""
        index, part = divmod(y, self.tall)
        if not self.rows or self._look is None:
            return self._instead[y] if y < len(self._instead) else BLANK
        if index >= len(self.rows):
            return BLANK
        row = self.rows[index]
        worker = self._by_id[row.id]
        gutter = Span(self._look.glyphs.cursor if index == self.cursor and part == 0 else " ", "chosen")
        if self.tall == 1:
            return (gutter, *one_line(row, worker, self.columns, self._look))
        return (gutter, *card(row, worker, self.room - 1, self._look)[part])

    def reshape(self, form: Literal["columns", "cards"]) -> None:
        """Rows of one line in columns, or of two."""
        mark = len(self._look.glyphs.verdicts["mismatch"]) if self._look else 1
        self.columns, self.tall = Columns.of(self.room - 1, mark), 1 if form == "columns" else 2
        self.repaint()

    def moved(self) -> None:
        """Tells whom the cursor is on."""
        self.post_message(self.FileMoved(self.rows[self.cursor].id))

    def opened(self) -> None:
        """Tells that it is to be opened."""
        self.post_message(self.Opened())
