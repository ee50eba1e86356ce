"""The fleet list: one worker a row, with its state, its sandbox, and when it was last active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from rich.cells import cell_len
from textual.message import Message

from agentdash.model.fleet import Tokens
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.rows import Row
from agentdash.tui.format import age, count, elide, pad
from agentdash.tui.primitives.columns import Column, ColumnList, Columns
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph, width
from agentdash.tui.theme import STATE_WIDTH, Glyphs, Look, sign, verdict
from agentdash.tui.view import View

Item: TypeAlias = tuple[Row, Worker]

_SEEN_CELLS: Final = 4
"""The longest age, `364d`."""
_POLICY_CELLS: Final = 11
"""The longest policy in brief, `custom net-`."""
_MIN_PATH_CELLS: Final = 3
"""The names of a worker's ancestors are left out where they have less room."""
_MIN_LINE_CELLS: Final = 16
"""The last line is left out where it has less room."""
_STATES_WITH_LINE: Final = (State.RUNNING, State.COMPLETED, State.INTERRUPTED)
"""States in which the worker's last line is more informative than the reason of the state."""


def note(worker: Worker) -> Line:
    """Return line or reason, after the worst finding or the state of a descendant that needs the user."""
    line, why = worker.line, worker.assessment.why
    text = line or why if worker.state in _STATES_WITH_LINE else why or line
    if worker.mismatch and worker.sandbox.findings:
        return (Span(worker.sandbox.findings[0].kind, "mismatch"), Span("  " + text, "muted"))
    if worker.below and not worker.state.needs_you:
        more = f" +{len(worker.below) - 1}" if len(worker.below) > 1 else ""
        return (Span(f"! {worker.below[0]}{more}", "ask"), Span("  " + text, "muted"))
    return (Span(text, "" if worker.state.needs_you else "muted"),)


def token_usage(tokens: Tokens) -> str:
    """Return how full the context is, `37%`; where that is not known, the total of tokens, `12.4k`."""
    if tokens.context is not None and tokens.window:
        return f"{100 * tokens.context // tokens.window}%"
    return count(tokens.total)


def _policy(worker: Worker) -> str:
    return worker.sandbox.configured.brief() if worker.sandbox.configured else ""


def _seen(worker: Worker, look: Look) -> str:
    seconds = None if worker.last_activity is None else look.now - worker.last_activity
    return pad(age(seconds), _SEEN_CELLS, right=True)


def _name(row: Row, worker: Worker, cells: int, look: Look) -> Line:
    """Return the name with its path, and the pane if there is room for it."""
    tone: Tone = "strong" if worker.state.needs_you or worker.mismatch else ""
    name = Span(_with_path(row.path, worker.name, cells, look.glyphs.ellipsis), tone)
    pane = f" {worker.pane.key}" if worker.pane else ""
    left = cells - width((name,))
    return name, Span(pad(pane, left) if cell_len(pane) <= left else " " * left, "muted")


def _with_path(path: str, name: str, cells: int, mark: str) -> str:
    """Return `main/Pasteur` in at most `cells`: the path is cut before the name."""
    left = cells - cell_len(name) - 1
    return (
        f"{elide(path[:-1], left, mark)}/{name}"
        if path and left >= _MIN_PATH_CELLS
        else elide(name, cells, mark)
    )


def _mark_cells(glyphs: Glyphs) -> int:
    """Return the width of the widest verdict sign: 2 in ASCII."""
    return len(glyphs.verdicts["mismatch"])


# ---------------------------------------------------------------- cells of the columns


def _state_cell(item: Item, cells: int, look: Look) -> Line:
    state = sign(item[1], look.glyphs)
    return (state._replace(text=elide(state.text, cells, look.glyphs.ellipsis)),)


def _name_cell(item: Item, cells: int, look: Look) -> Line:
    row, worker = item
    stem = row.stem if len(row.stem) <= cells // 2 else row.stem[-(cells // 2) :]
    return Span(stem, "muted"), *_name(row, worker, cells - len(stem), look)


def _agent_cell(item: Item, cells: int, look: Look) -> Line:
    agent = item[1].agent
    return (Span(elide(f"{agent.name} {agent.version or ''}", cells, look.glyphs.ellipsis), "muted"),)


def _sandbox_cell(item: Item, cells: int, look: Look) -> Line:
    worker, glyphs = item[1], look.glyphs
    mark = verdict(worker, glyphs)
    mark = mark._replace(text=pad(mark.text, _mark_cells(glyphs)))
    room = cells - _mark_cells(glyphs) - 1
    if room <= 0:
        return (mark,)
    return mark, Span(
        " " + pad(_policy(worker), room, glyphs.ellipsis), "mismatch" if worker.mismatch else ""
    )


def _tokens_cell(item: Item, cells: int, _: Look) -> Line:
    return (Span(elide(token_usage(item[1].tokens), cells, ""), "muted"),)


def _seen_cell(item: Item, _: int, look: Look) -> Line:
    return (Span(_seen(item[1], look), "muted"),)


def _note_cell(item: Item, cells: int, look: Look) -> Line:
    return fit(note(item[1]), cells, look.glyphs.ellipsis)


def _sandbox_width(cells: int, glyphs: Glyphs) -> int:
    return _mark_cells(glyphs) + (1 + _POLICY_CELLS if cells >= 58 else 0)


COLUMNS: Final = Columns[Item](
    left=(Column(title="STATE", width=lambda cells, _: min(STATE_WIDTH, cells // 2), cell=_state_cell),),
    main=Column(title="WORKER", width=lambda cells, _: max(16, min(32, cells // 4)), cell=_name_cell),
    right=(
        Column(title="AGENT", width=lambda cells, _: 17 if cells >= 110 else 0, cell=_agent_cell),
        Column(title="SANDBOX", width=_sandbox_width, cell=_sandbox_cell),
        Column(
            title="USED", width=lambda cells, _: 5 if cells >= 84 else 0, cell=_tokens_cell, align_right=True
        ),
        Column(title="SEEN", width=lambda *_: _SEEN_CELLS, cell=_seen_cell, align_right=True),
    ),
    rest=Column(title="LINE", width=lambda *_: _MIN_LINE_CELLS, cell=_note_cell),
)
"""What is least needed to find the workers that need the user is left out first."""


def card(item: Item, cells: int, look: Look) -> tuple[Line, Line]:
    """Return a worker on two lines: for lists too narrow for columns."""
    row, worker = item
    glyphs = look.glyphs
    state = sign(worker, glyphs)
    state_cells = min(STATE_WIDTH, cells // 2)
    above = (
        state._replace(text=pad(state.text, state_cells, glyphs.ellipsis) + " "),
        *_name(row, worker, max(1, cells - state_cells - 1 - _SEEN_CELLS), look),
        Span(_seen(worker, look), "muted"),
    )
    policy = f"{verdict(worker, glyphs).text} {_policy(worker)}  "
    sandbox = (Span(policy, "mismatch" if worker.mismatch else "muted"),) if worker.sandbox.configured else ()
    return above, fit((Span("  "), *sandbox, *note(worker)), cells, glyphs.ellipsis)


def empty_state(snapshot: Snapshot | None, filtered: bool, cells: int, look: Look) -> list[Line]:
    """Return the lines shown without workers: every source, and what it did not find.

    Args:
        snapshot: None until the first one arrives.
        filtered: whether a filter hides all workers.
        cells: width of the list.
        look: what drawing depends on.
    """
    if snapshot is None:
        return [BLANK, (Span("  Looking for workers."),)]
    if filtered:
        return [BLANK, (Span("  No worker matches this filter."),), (Span("  esc clears it.", "muted"),)]
    lines: list[Line] = [BLANK, (Span("  No workers yet.", "strong"),), BLANK]
    name_cells = max((len(source.name) for source in snapshot.sources), default=0)
    for source in snapshot.sources:
        mark = Span(f"  {look.glyphs.agrees[source.ok]} ", "ready" if source.ok else "ask")
        head = (mark, Span(source.name.ljust(name_cells + 2), "" if source.ok else "ask"))
        lines += paragraph(source.detail or "nothing found", cells - 2, "muted", head=head)
    hint = "Start codex, or an agent in a tmux pane: it shows up here by itself."
    return [*lines, BLANK, *paragraph(hint, cells - 2, "muted", indent=2)]


class FleetList(ColumnList[Item]):
    """The rows of the fleet. The cursor stays on its worker when rows move."""

    COLUMNS = COLUMNS

    class CursorMoved(Message):
        """Another worker was selected by key or mouse."""

        def __init__(self, worker: str) -> None:
            self.worker = worker
            super().__init__()

    class Opened(Message):
        """A worker was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self._by_id: Mapping[str, Worker] = {}

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def item_at(self, index: int) -> Item:
        """Return a row and its worker."""
        row = self.rows[index]
        return row, self._by_id[row.id]

    def card(self, item: Item, cells: int, look: Look) -> tuple[Line, Line]:
        """Return a worker on two lines."""
        return card(item, cells, look)

    def show_rows(self, rows: tuple[Row, ...], view: View, placeholder: Sequence[Line] = ()) -> None:
        """Show rows with the cursor on the selected worker; without rows, show `placeholder`."""
        self.rows = rows
        self._by_id = view.by_id
        selected = next((index for index, row in enumerate(rows) if row.id == view.selected_id), None)
        self.show_items(selected, view.look, placeholder)

    def cursor_moved(self) -> None:
        """Post the worker under the cursor."""
        self.post_message(self.CursorMoved(self.rows[self.cursor].id))

    def item_opened(self) -> None:
        """Post that a worker was double-clicked."""
        self.post_message(self.Opened())
