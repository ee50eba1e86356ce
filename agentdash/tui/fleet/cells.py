"""What the fleet list shows of a worker: columns, and lines below for one that needs the user. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from rich.cells import cell_len

from agentdash.model.causes import causes
from agentdash.model.fact import Fact, FactKind
from agentdash.model.findings import DENIAL_KINDS, FIELD_LABELS, Finding, expected_label, value_in_words
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, LayerField
from agentdash.model.policy import Filesystem, Network
from agentdash.model.worker import Worker
from agentdash.thresholds import passed
from agentdash.tui.fleet.rows import USUAL_SORT, Row
from agentdash.tui.format import age, count, elide, elide_middle, elide_object, pad, wrap
from agentdash.tui.primitives.spans import Line, Span, Tone, fit, justify, width
from agentdash.tui.theme import SEVERITY_TONES, Glyphs, Look, sign
from agentdash.tui.worker.overview import context_words, cost_words

CARDS_BELOW_CELLS: Final = 50
"""In a narrower list, workers that need the user have their names on a line of their own, and others lose
columns."""
_SANDBOX_WORDS_FROM_CELLS: Final = 65
_WHERE_FROM_CELLS: Final = 90
_CONTEXT_FROM_CELLS: Final = 100
_ALL_FROM_CELLS: Final = 160
"""From here on all columns are shown."""
_SANDBOX_CELLS: Final = 18
"""The longest words of a difference, `≠ less than parent`."""
_WHERE_CELLS: Final = 12
_AGENT_CELLS: Final = 17
"""`opencode 1.18.33`, `claude 2.1.332`."""
_AGE_CELLS: Final = 4
"""The longest age, `364d`."""
_CONTEXT_CELLS: Final = 5
"""The longest count, `12.4k`."""
_COST_CELLS: Final = 7
"""The longest usual cost, `$123.45`."""
_FULL_FROM: Final = 0.8
"""Of the context window: Claude Code compacts at about 80 %, Codex at 90 %."""
_MIN_OBJECT_CELLS: Final = 18
"""Where an object has less room, the words before it are left out."""
_GAP_CELLS: Final = 1
_INDENT: Final = 4
"""Of the lines below a worker's first."""
_MAX_OBJECT_LINES: Final = 3
"""Of the object of a worker that needs the user, in a narrow list."""


# ---------------------------------------------------------------- columns


Item: TypeAlias = tuple[Row, Worker]


class Column(NamedTuple):
    """A column of a list."""

    title: str
    """Left out where the column is narrower."""
    width: Callable[[int, Glyphs], int] | None
    """Cells of it in a list of so many cells; 0: it is left out. None: it takes what the others leave."""
    cell: Callable[[Item, int, Look], Line]
    """Content for an item in at most so many cells."""
    align_right: bool = False
    sorts: str | None = None
    """By what a click on the title sorts the list; None: it does not."""


class Layout(NamedTuple):
    """The columns of a list of a certain width, with their widths."""

    columns: tuple[tuple[Column, int], ...]

    @property
    def main_at(self) -> int:
        """Return in which cell the column begins that takes what the others leave."""
        before = next(n for n, (column, _) in enumerate(self.columns) if column.width is None)
        return sum(cells + _GAP_CELLS for _, cells in self.columns[:before])

    @property
    def main_cells(self) -> int:
        """Return the width of that column."""
        return next(cells for column, cells in self.columns if column.width is None)

    def titles(self, sort: str, mark: str) -> Line:
        """Return the title row, gutter included, with a mark at the column that sorts the list unusually."""
        spans = []
        for column, cells in self.columns:
            is_sorted = column.sorts == sort != USUAL_SORT
            title = column.title + (mark if is_sorted else "")
            text = pad(title if cell_len(title) <= cells else "", cells, right=column.align_right)
            action = f"app.sort('{column.sorts}')" if column.sorts else None
            spans.append(Span(" " * _GAP_CELLS + text, "chosen" if is_sorted else "title", action))
        return tuple(spans)

    def line(self, item: Item, look: Look, *, main: Line | None = None) -> Line:
        """Return an item on one line. Spaces have no tone: some are underlined, or a ground.

        Args:
            item: a row and its worker.
            look: what drawing depends on beside it.
            main: replaces the content of the column that takes what the others leave.
        """
        spans: list[Span] = []
        for column, cells in self.columns:
            shown = main if main is not None and column.width is None else column.cell(item, cells, look)
            fill = " " * (cells - width(shown))
            before, after = (fill, "") if column.align_right else ("", fill)
            spans += [Span(before), *shown, Span(after + " " * _GAP_CELLS)]
        return (*spans[:-1], Span(spans[-1].text[_GAP_CELLS:]))


def layout(columns: Sequence[Column], cells: int, glyphs: Glyphs) -> Layout:
    """Return the columns that fit into `cells`."""
    widths = [column.width(cells, glyphs) if column.width else None for column in columns]
    rest = max(1, cells - sum(width + _GAP_CELLS for width in widths if width))
    placed = zip(columns, (rest if width is None else width for width in widths), strict=True)
    return Layout(tuple((column, width) for column, width in placed if width))


# ---------------------------------------------------------------- what a worker does, or needs


def fact_of(worker: Worker) -> Fact:
    """Return the fact of a worker; words without an object become the object: they are as important."""
    fact = worker.fact
    return fact if fact.object else Fact(fact.kind, "", fact.text)


def fact_line(fact: Fact, cells: int, look: Look, tone: Tone = "") -> Line:
    """Return a fact on one line: the object whole, if it fits at all."""
    mark, before = look.glyphs.ellipsis, f"{fact.what} " if fact.what else ""
    room = cells - cell_len(before)
    needed = cell_len(fact.object)
    if needed > room and (needed <= cells or room < _MIN_OBJECT_CELLS):
        before, room = "", cells
    shown = Span(elide_object(fact.object, max(1, room), mark, fact.form), tone)
    return (Span(before, "muted"), shown) if before else (shown,)


def row_lines(item: Item, layout: Layout, cells: int, look: Look) -> list[Line]:
    """Return the lines of a worker, without the gutter: more than one only if it needs the user."""
    worker = item[1]
    if worker.needs_you and cells < CARDS_BELOW_CELLS:
        return _card(item, cells, look)
    if row_height(item, layout, cells, look) == 1:
        return [layout.line(item, look)]
    return _two_lines(item, layout, cells, look)


def row_height(item: Item, layout: Layout, cells: int, look: Look) -> int:
    """Return the number of these lines."""
    worker, fact = item[1], fact_of(item[1])
    if worker.needs_you and cells < CARDS_BELOW_CELLS:
        return len(_card(item, cells, look))
    fits = cell_len(f"{fact.what} {fact.object}".strip()) <= layout.main_cells
    return 1 if fits or not worker.needs_you else 2


def sandbox_lines(item: Item, layout: Layout, cells: int, look: Look) -> list[Line]:
    """Return the lines of a worker in the list of sandbox problems: in a narrow list two."""
    if cells >= CARDS_BELOW_CELLS:
        return [layout.line(item, look)]
    name = (*_sign_cell(item, 1, look), Span(" "), *_name_cell(item, cells - 2, look))
    return [name, (Span(" " * (_INDENT - 2)), *difference_line(item[1], cells - _INDENT, look))]


def _two_lines(item: Item, layout: Layout, cells: int, look: Look) -> list[Line]:
    """Return the columns with the words of what is needed, and its object below them, farther left where it
    does not fit there."""
    fact, mark = fact_of(item[1]), look.glyphs.ellipsis
    words, rest = fact.what, fact.object
    if not words:
        words, *pieces = wrap(rest, layout.main_cells)
        rest = " ".join(pieces)
    indent = layout.main_at if cell_len(rest) <= cells - layout.main_at else _INDENT
    below = elide_object(rest, cells - indent, mark, fact.form)
    main = Span(elide(words, layout.main_cells, mark), "muted" if fact.what else "strong")
    return [layout.line(item, look, main=(main,)), (Span(" " * indent), Span(below, "strong"))]


def _card(item: Item, cells: int, look: Look) -> list[Line]:
    """Return the name, and below it what is needed: words, and the object on as many lines as it needs."""
    fact, mark, room = fact_of(item[1]), look.glyphs.ellipsis, cells - _INDENT
    name = (*_sign_cell(item, 1, look), Span(" "), *_name_cell(item, cells - _AGE_CELLS - 3, look))
    lines = [justify(name, (Span(in_state_for(item[1], look), "waited"),), cells, mark)]
    indent = Span(" " * (_INDENT - 2))
    if cell_len(f"{fact.what} {fact.object}".strip()) <= room:
        return [*lines, (indent, *fact_line(fact, room, look, "strong"))]
    if fact.what:
        lines.append((indent, Span(elide(fact.what, room, mark), "muted")))
    pieces, left = wrap(fact.object, room), room * _MAX_OBJECT_LINES
    while len(pieces) > _MAX_OBJECT_LINES and left > 0:
        pieces = wrap(elide_object(fact.object, left, mark, fact.form), room)
        left -= 1
    return [*lines, *((indent, Span(piece, "strong")) for piece in pieces[:_MAX_OBJECT_LINES])]


def _what_cell(item: Item, cells: int, look: Look) -> Line:
    """Return what a worker does or needs; of a folded family, who below it needs the user comes first."""
    row, worker = item
    tone: Tone = "strong" if worker.needs_you else "" if worker.group == "running" else "muted"
    if not (worker.below and row.folded):
        marks = _marks(worker, cells - _MIN_OBJECT_CELLS, look)
        said = fact_line(fact_of(worker), cells - width(marks), look, tone)
        return justify(said, marks, cells, look.glyphs.ellipsis) if marks else said
    more = f" +{len(worker.below) - 1}" if len(worker.below) > 1 else ""
    below = Span(f"{worker.below[0].replace('-', ' ', 1)}{more}  ", "ask")
    room = cells - width((below,))
    rest = fact_line(fact_of(worker), room, look, tone) if room >= _MIN_OBJECT_CELLS else ()
    return fit((below, *rest), cells, look.glyphs.ellipsis)


def _marks(worker: Worker, cells: int, look: Look) -> Line:
    """Return, as far as there is room, the thresholds that a worker has passed, and how many workers edit one
    file."""
    found: list[Span] = [
        Span(f"  {words}", "stuck") for _, words in passed(worker, look.thresholds, look.now)
    ]
    if worker.same_files:
        path = worker.same_files[0].path
        editors = 1 + sum(each.path == path for each in worker.same_files)
        found.append(Span(f"  {editors} edit {posixpath.basename(path)}", "waited"))
    while found and width(tuple(found)) > cells:
        found.pop()
    return tuple(found)


# ---------------------------------------------------------------- cells of the other columns


def in_state_for(worker: Worker, look: Look) -> str:
    """Return for how long a worker has been in its state."""
    since = worker.assessment.since
    return age(None if since is None else look.now - since)


def _sign_cell(item: Item, _: int, look: Look) -> Line:
    state = sign(item[1], look.glyphs)
    return (state._replace(text=state.text[:1]),)


def _name_cell(item: Item, cells: int, look: Look) -> Line:
    """Return a name in exactly so many cells, with the lines of its tree, and what distinguishes it."""
    row, worker = item
    mark = look.glyphs.ellipsis
    stem = row.stem[-(cells // 2) :]
    room = cells - cell_len(stem)
    tag = (f" {row.tag}" if row.tag else "") + (f" +{row.folded}" if row.folded else "")
    tag = elide(tag, room // 2, mark)
    text = elide(worker.title, room - cell_len(tag), mark)
    fill = pad(tag, room - cell_len(text))
    return Span(stem, "muted"), Span(text, "strong" if worker.needs_you else ""), Span(fill, "muted")


def _where(worker: Worker) -> str:
    """Return the host, where it is another one, and the tmux window, `2:release`."""
    return " ".join(filter(None, (worker.host, worker.pane.window if worker.pane else None)))


def _agent(worker: Worker) -> str:
    return f"{worker.agent.name} {worker.agent.version or ''}".strip()


def _muted(words: Callable[[Worker], str]) -> Callable[[Item, int, Look], Line]:
    """Return the cell of a column that has only words of a worker."""
    return lambda item, cells, look: (Span(elide(words(item[1]), cells, look.glyphs.ellipsis), "muted"),)


_NETWORK_WORDS: Final = {Network.ON: "+net", Network.MEDIATED: "+proxy"}


def sandbox_words(worker: Worker) -> str:
    """Return what is wrong with a sandbox in a few words; if nothing is, the configured policy."""
    if worker.mismatch:
        found = [cause for cause in causes(worker) if not cause.is_known]
        differing = (cause for cause in found if cause.worst.kind not in DENIAL_KINDS)
        cause = next(differing, found[0] if found else None)
        return cause.words if cause else "differs"
    policy = worker.sandbox.configured
    if policy is None or policy.filesystem is Filesystem.UNKNOWN:
        return ""
    if policy.filesystem is Filesystem.UNRESTRICTED and policy.network is Network.ON:
        return "full access"
    name = "all files" if policy.filesystem is Filesystem.UNRESTRICTED else policy.filesystem.value
    return name + _NETWORK_WORDS.get(policy.network, "")


def _sandbox_cell(item: Item, cells: int, look: Look) -> Line:
    worker, mismatch = item[1], look.glyphs.verdicts["mismatch"]
    if cells <= cell_len(mismatch):
        return (Span(mismatch if worker.mismatch else "", "mismatch"),)
    text = f"{mismatch} {sandbox_words(worker)}" if worker.mismatch else sandbox_words(worker)
    return (Span(elide(text, cells, look.glyphs.ellipsis), "mismatch" if worker.mismatch else "muted"),)


def _context_cell(item: Item, cells: int, _: Look) -> Line:
    """Return how full the context is, `37%`; where that is not known, the total of tokens, `12.4k`."""
    worker = item[1]
    share, shown = worker.context_share, worker.on_screen
    if share is None:
        text = count(worker.tokens.total or (shown.total if shown else None))
        return (Span(elide(text, cells, ""), "muted"),)
    return (Span(elide(context_words(worker), cells, ""), "waited" if share >= _FULL_FROM else "muted"),)


def _age_cell(item: Item, _: int, look: Look) -> Line:
    return (Span(in_state_for(item[1], look), "waited" if item[1].needs_you else "muted"),)


def _sandbox_width(cells: int, glyphs: Glyphs) -> int:
    sign_cells = cell_len(glyphs.verdicts["mismatch"])
    return sign_cells if cells < _SANDBOX_WORDS_FROM_CELLS else _SANDBOX_CELLS


def _from(least: int, width: int) -> Callable[[int, Glyphs], int]:
    """Return the width of a column that only a list of so many cells has."""
    return lambda cells, _: width if cells >= least else 0


COLUMNS: Final = (
    Column("", lambda *_: 1, _sign_cell),
    Column("WORKER", lambda cells, _: max(16, min(32, cells * 22 // 100)), _name_cell, sorts="name"),
    Column("WHAT", None, _what_cell, sorts="attention"),
    Column("AGENT", _from(_ALL_FROM_CELLS, _AGENT_CELLS), _muted(_agent)),
    Column("WHERE", _from(_WHERE_FROM_CELLS, _WHERE_CELLS), _muted(_where)),
    Column("SANDBOX", _sandbox_width, _sandbox_cell),
    Column(
        "CTX", _from(_CONTEXT_FROM_CELLS, _CONTEXT_CELLS), _context_cell, align_right=True, sorts="tokens"
    ),
    Column("COST", _from(_ALL_FROM_CELLS, _COST_CELLS), _muted(cost_words), align_right=True, sorts="cost"),
    Column("FOR", lambda *_: _AGE_CELLS, _age_cell, align_right=True, sorts="age"),
)
_DIFFERENCE: Final = Column(
    "CONFIGURED, ACTUAL", None, lambda item, *room: difference_line(item[1], *room), sorts="attention"
)
SANDBOX_COLUMNS: Final = tuple(_DIFFERENCE if each.width is None else each for each in COLUMNS)
"""Those of the list of sandbox problems."""


# ---------------------------------------------------------------- sandboxes that differ


_MAIN: Final = (LayerField.FILES, LayerField.NETWORK)
"""What is said of a sandbox; other facts only where it does not differ in these."""
_ORIGINS: Final = {"requested": "asked for"}
_NETWORKS: Final = {"off": "no network", OWN_NETWORK: "no network", "on": "network", HOST_NETWORK: "network"}
_DENIED: Final = "denied"
_WITH_CONFIGURED_FROM_CELLS: Final = 46
"""In a narrower column there is no room for the configured policy."""


def difference_line(worker: Worker, cells: int, look: Look) -> Line:
    """Return what is configured, and what a worker has instead, by its worst problem: `workspace, no network
    → no sandbox, network`."""
    policy = worker.sandbox.configured
    before = (
        f"{policy.brief()} {look.glyphs.arrow} " if policy and cells >= _WITH_CONFIGURED_FROM_CELLS else ""
    )
    wrong = [cause for cause in causes(worker) if not cause.is_known]
    tone = SEVERITY_TONES[wrong[0].worst.severity] if wrong else "muted"
    actual, room, mark = actual_words(worker), cells - len(before), look.glyphs.ellipsis
    is_path = actual.startswith(_DENIED)  # of which the last part tells most
    shown = elide_middle(actual, room, mark) if is_path else elide(actual, room, mark)
    return Span(before, "muted"), Span(shown, tone)


def actual_words(worker: Worker) -> str:
    """Return what a worker has instead of what is configured: `no sandbox, network`; if the configured policy
    differs from another, that one: `asked for: read only, no network`; empty if nothing differs."""
    if not (found := causes(worker)):
        return ""
    cause = found[0]
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
    """Return a value in words that need no label beside them: `no sandbox`, `network flag unset`."""
    if name is LayerField.NETWORK and value in _NETWORKS:
        return _NETWORKS[value]
    words = value_in_words(name, value)
    return words if name is LayerField.FILES else f"{FIELD_LABELS[name]} {words}"
