"""The screen of all sandboxes: which differ from what is configured, how, why, and whether there is a fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from rich.cells import cell_len
from textual import getters
from textual.app import ComposeResult

from agentdash.model.causes import Cause, causes
from agentdash.model.fact import FactKind
from agentdash.model.findings import DENIAL_KINDS, Finding, expected_label, value_in_words
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, LayerField
from agentdash.model.states import Group
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.format import elide, elide_path, pad
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, justify
from agentdash.tui.theme import SEVERITY_TONES, Glyphs, Look
from agentdash.tui.view import View, WorkerPointed
from agentdash.tui.worker.evidence import cause_details
from agentdash.tui.worker.screen import WorkerScreen

if TYPE_CHECKING:
    from agentdash.tui.snapshot_app import SnapshotApp

HINTS: Final = ("back", "open", "copy-remedy", "known", "past", "jump", "why", "help")
_CARDS_BELOW_CELLS: Final = 70
"""In a narrower list a worker takes two lines."""
_WHY_FROM_CELLS: Final = 100
"""In a narrower list the detail below has the causes."""
_MAX_CONFIGURED_CELLS: Final = 21
"""The common policies in words: `workspace, no network`."""
_SIGN: Final = "  "
"""In place of the sign of a direction and the space before it."""
_GAP: Final = "  "
_MAIN: Final = (LayerField.FILES, LayerField.NETWORK)
"""What is said of a sandbox; other facts only where it does not differ in these."""
_ORIGINS: Final = {"requested": "asked for"}
_DENIED: Final = "denied"
_ALSO: Final = " +{}"
"""Behind the first cause of several."""


class SandboxRow(NamedTuple):
    """A worker, and what is wrong with its sandbox."""

    worker: Worker
    causes: tuple[Cause, ...] = ()
    """Those that are more than information, the worst first, the known ones last; empty: nothing is wrong."""

    @property
    def differs(self) -> bool:
        """Return whether anything is wrong that the user does not know of."""
        return any(not cause.is_known for cause in self.causes)

    @property
    def configured(self) -> str:
        """Return the configured policy in words."""
        policy = self.worker.sandbox.configured
        return policy.brief() if policy else "not known"

    @property
    def actual(self) -> str:
        """Return what the worker has instead, or whether it has what is configured."""
        if self.causes:
            return _actual(self.worker, self.causes[0])
        sandbox = self.worker.sandbox
        if sandbox.verdict == "match":
            return "as configured"
        if sandbox.got.under_earlier_policy:
            return "not observed since the policy changed"
        seen = sandbox.got.values()
        return ", ".join(_value(name, seen[name]) for name in _MAIN if name in seen) or "not observed"

    @property
    def why(self) -> str:
        """Return the causes in words."""
        more = _ALSO.format(len(self.causes) - 1) if len(self.causes) > 1 else ""
        known = "" if self.differs else "known: "
        return known + self.causes[0].words + more if self.causes else ""

    @property
    def has_fix(self) -> bool:
        """Return whether there is a remedy to copy."""
        return any(finding.remedy for cause in self.causes for finding in cause.findings)


def sandbox_rows(workers: Iterable[Worker]) -> list[SandboxRow]:
    """Return a row for each worker: what blocks one first, then the most severe, then what is known, those as
    configured last."""
    found = (
        SandboxRow(worker, tuple(cause for cause in causes(worker) if cause.worst.severity != "info"))
        for worker in workers
    )
    return sorted(found, key=lambda row: (not row.causes, row.causes[0].rank[:3] if row.causes else ()))


def _actual(worker: Worker, cause: Cause) -> str:
    """Return what a worker has instead of what is configured: `no sandbox, network`; if the configured policy
    differs from another, that one: `asked for: read only, no network`."""
    if cause.worst.kind in DENIAL_KINDS:
        return _denied(worker, cause.worst)
    counted = (finding for finding in cause.findings if finding.severity != "info")
    fields = {field.name: field for finding in counted for field in finding.fields}
    main = [fields[name] for name in _MAIN if name in fields]
    origins: dict[str, list[str]] = {}
    for field in main or fields.values():
        is_other = field.layer == "configured" and field.reference != "configured"
        origin = f"{_ORIGINS.get(field.reference, expected_label(field))}: " if is_other else ""
        value = field.expected if is_other else field.actual
        origins.setdefault(origin, []).append(_value(field.name, value))
    return ", ".join(origin + ", ".join(values) for origin, values in origins.items()) or cause.words


def _denied(worker: Worker, finding: Finding) -> str:
    """Return what was denied: by the newest entry of the ledger with a call of it, or by the state."""
    for entry in reversed(worker.sandbox.denials):
        if entry.target and (not finding.calls or set(entry.calls) & set(finding.calls)):
            return f"{_DENIED} {entry.target}"
    return f"{_DENIED} {worker.fact.object}" if worker.fact.kind is FactKind.DENIED else _DENIED


def _value(name: LayerField, value: str) -> str:
    words = value_in_words(name, value)
    match name:
        case LayerField.FILES:
            return words
        case LayerField.NETWORK:
            off, on = ("off", OWN_NETWORK), ("on", HOST_NETWORK)
            return "no network" if value in off else "network" if value in on else f"network {words}"
        case LayerField.NETWORK_FLAG:
            words = {"1": 'says "no network"', "unset": "missing"}.get(value, value)
            return f"flag {words}"
        case LayerField.SANDBOX_FLAG:
            return f"CODEX_SANDBOX={value}"
        case LayerField.TMUX:
            return f"ran {words} via tmux" if value.startswith("outside") else f"tmux {words}"
        case _:
            return f"{name} {words}"


# ---------------------------------------------------------------- drawing


def _fitted(text: str, cells: int, mark: str) -> str:
    """Return what a worker has in at most so many cells; of a path that was denied, with its last part."""
    return elide_path(text, cells, mark) if text.startswith(_DENIED) else elide(text, cells, mark)


class SandboxList(Choices):
    """The rows of the screen. The cursor stays on its worker."""

    BINDINGS = bindings("open")

    def __init__(self) -> None:
        super().__init__(id="sandboxes")
        self.rows: list[SandboxRow] = []
        self._look: Look | None = None
        self._widths: tuple[int, ...] = ()
        self._empty = ""

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def row(self) -> SandboxRow | None:
        """Return the row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show_rows(self, rows: list[SandboxRow], selected: str | None, look: Look, empty: str) -> None:
        """Show these rows with the cursor on the selected worker, or a sentence if there are none."""
        self.rows, self._look, self._empty = rows, look, empty
        self.item_height = 2 if self.room < _CARDS_BELOW_CELLS else 1
        natural = (
            max((cell_len(text) for text in texts), default=0)
            for texts in (
                [row.worker.name for row in rows],
                [row.configured for row in rows],
                [row.actual + _SIGN for row in rows],
            )
        )
        most = max(16, self.room * 22 // 100), _MAX_CONFIGURED_CELLS, max(24, self.room * 36 // 100)
        self._widths = tuple(min(pair) for pair in zip(natural, most, strict=True))
        self.redraw(max(1, self.total * self.item_height))
        at = next((number for number, row in enumerate(rows) if row.worker.id == selected), 0)
        if at != self.cursor:
            self.set_cursor(at)
        if self.row is not None and self.row.worker.id != selected:
            self.post_message(WorkerPointed(self.row.worker.id))  # keys act on the worker under the cursor

    def titles(self) -> Line:
        """Return the heads of the columns."""
        heads = zip(("WORKER", "CONFIGURED", "ACTUAL"), self._widths, strict=True)
        text = "".join(pad(head, cells) + _GAP for head, cells in heads)
        why = "WHY" if self.room >= _WHY_FROM_CELLS else ""
        return justify((Span(f" {text}{why}", "title"),), (Span("FIX", "title"),), self.room, "")

    def line_at(self, y: int) -> Line:
        """Return a line of a row."""
        index, part = divmod(y, self.item_height)
        if self._look is None or index >= self.total:
            return (Span(f" {self._empty}", "muted"),) if y == 0 else BLANK
        row, look, cells = self.rows[index], self._look, self.room - 1
        mark = look.glyphs.ellipsis
        gutter = self.gutter_span(index, part, look.glyphs)
        fix = Span("Y  ", "key") if row.has_fix else Span(f"{look.glyphs.rule}  ", "rule")
        worst = row.causes[0].worst if row.causes else None
        tone = SEVERITY_TONES[worst.severity] if worst and row.differs else "muted"
        sign = f" {look.glyphs.directions[worst.direction]}" if worst else ""
        if self.item_height > 1 and part == 0:
            return (gutter, *justify((Span(row.worker.name),), (fix,), cells, mark))
        if self.item_height > 1:
            actual = _fitted(row.actual, cells - 2 - len(sign), mark) + sign
            room = cells - 4 - cell_len(actual)
            why = row.why if cell_len(row.why) <= room else ""
            return (gutter, Span("  "), Span(actual, tone), Span(f"{_GAP}{why}"))
        name_cells, configured_cells, actual_cells = self._widths
        line = (
            Span(pad(row.worker.name, name_cells, mark) + _GAP),
            Span(pad(row.configured, configured_cells, mark) + _GAP, "muted"),
            Span(pad(_fitted(row.actual, actual_cells - len(sign), mark) + sign, actual_cells), tone),
            Span(_GAP + row.why if self.room >= _WHY_FROM_CELLS else ""),
        )
        return (gutter, *justify(line, (fix,), cells, mark))

    def cursor_moved(self) -> None:
        """Point at the worker under the cursor."""
        if self.row is not None:
            self.post_message(WorkerPointed(self.row.worker.id))

    def item_opened(self) -> None:
        """Open the evidence of the worker under the cursor."""
        if self.row is not None:
            screen = WorkerScreen(cast("SandboxScreen", self.screen).glyphs, "Evidence")
            self.app.call_later(cast("SnapshotApp", self.app).open_screen, screen)

    action_open = item_opened


class SandboxScreen(Page):
    """The workers whose sandboxes differ; on demand all."""

    AUTO_FOCUS = "#sandboxes"
    BINDINGS = bindings("past")

    heading = getters.query_one("#heading", Lines)
    titles = getters.query_one("#sandbox-titles", Lines)
    sandboxes = getters.query_one(SandboxList)
    detail = getters.query_one("#sandbox-detail", Lines)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._view: View | None = None
        self._snapshot: Snapshot | None = None
        self._rows: list[SandboxRow] = []
        self._shows_all = False

    def compose(self) -> ComposeResult:
        """Compose the counts, the list, what is known of the row under the cursor, the footer."""
        yield Lines(id="heading", focusable=False)
        yield Lines(id="sandbox-titles", focusable=False)
        yield SandboxList()
        yield Lines(id="sandbox-detail", focusable=False)
        yield Footer(self.glyphs, *HINTS)

    def on_unmount(self) -> None:
        """Free the snapshot: tasks that began in the screen keep the screen itself, in their contexts."""
        self._view = self._snapshot = None
        self._rows = []

    def draw(self, view: View) -> None:
        """Draw the workers of the snapshot."""
        self._view = view
        if not self.sandboxes.room:
            return
        if view.snapshot is not self._snapshot:
            self._snapshot = view.snapshot
            self._rows = sandbox_rows(view.snapshot.workers) if view.snapshot else []
        present = [row for row in self._rows if row.worker.group is not Group.PAST]
        shown = self._rows if self._shows_all else [row for row in present if row.differs]
        self.heading.show(self._heading(present, view))
        empty = "No workers yet." if not self._rows else "No sandbox differs. x shows all."
        self.sandboxes.show_rows(shown, view.selected_id, view.look, empty)
        self.titles.display = bool(shown) and self.sandboxes.item_height == 1
        self.titles.show([self.sandboxes.titles()])
        if view.is_at_rest:
            self._show_detail(view)

    def _heading(self, present: Iterable[SandboxRow], view: View) -> list[Line]:
        """Return how many sandboxes differ, and why what is shown may be out of date."""
        numbers = {"differ": 0, "known": 0, "as configured": 0, "unverified": 0}
        for row in present:
            is_match = row.worker.sandbox.verdict == "match"
            rest = "known" if row.causes else "as configured" if is_match else "unverified"
            numbers["differ" if row.differs else rest] += 1
        parts = [f"{number} {words}" for words, number in numbers.items() if number]
        left = (*view.flag, Span(" SANDBOX  ", "strong"), Span(_GAP.join(parts)))
        words = "x shows those that differ" if self._shows_all else "x shows all"
        right = (Span(f"{words} ", "muted", "screen.past"),)
        lines = [justify(left, right, self.size.width, view.look.glyphs.ellipsis)]
        return [*lines, (Span(f" {view.feed_error}", "stuck"),)] if view.feed_error else lines

    def _show_detail(self, view: View) -> None:
        """Draw both sides of what differs in the row under the cursor, and its remedy."""
        lines: list[Line] = []
        for cause in self.sandboxes.row.causes if self.sandboxes.row else ():
            lines += [BLANK, *cause_details(cause, self.size.width - 2, view.look)]
        self.detail.display = bool(lines)
        self.detail.show(lines[1:])

    def action_past(self) -> None:
        """Show all workers, or only those that differ."""
        self._shows_all = not self._shows_all
        if self._view is not None:
            self.draw(self._view)
