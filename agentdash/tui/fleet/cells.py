"""The content of the fleet list: the cells of its columns, and rows of one to three lines. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from rich.cells import cell_len, chop_cells

from agentdash.model.activity import MINUTES
from agentdash.model.causes import Cause, causes
from agentdash.model.fact import Fact
from agentdash.model.fleet import Tokens
from agentdash.model.worker import Worker
from agentdash.tui.fleet.rows import Row
from agentdash.tui.format import age, count, elide, elide_object, pad, wrap
from agentdash.tui.primitives.columns import Column, Columns, Layout
from agentdash.tui.primitives.spans import Line, Span, Tone, fit, justify, width
from agentdash.tui.theme import STATE_WIDTH, Glyphs, Look, sign, verdict

Item: TypeAlias = tuple[Row, Worker]

CARDS_BELOW_CELLS: Final = 50
"""In a narrower list, workers that need the user take up to three lines, and others lose columns."""
_WORDS_FROM_CELLS: Final = 150
"""From here on a state has its name beside its sign."""
_POLICIES_FROM_CELLS: Final = 100
_VERSIONS_FROM_CELLS: Final = 190
_ACTIVITY_FROM_CELLS: Final = 70
_TOKENS_FROM_CELLS: Final = 90
_BRANCH_CELLS: Final = 18
_BRANCH_FROM_CELLS: Final = 160
"""Below, the panel has the branch; reasons need the room."""
HOSTS_FROM_CELLS: Final = 70
"""In a narrower list the host stands behind the name."""
_POLICY_CELLS: Final = 13
"""The common policies, short: `workspace/off`, `read-only/off`."""
_AGE_CELLS: Final = 4
"""The longest age, `364d`."""
_TOKENS_CELLS: Final = 5
"""The longest count, `12.4k`."""
_MIN_PATH_CELLS: Final = 3
"""The names of a worker's ancestors are left out where they have less room."""
_MIN_OBJECT_CELLS: Final = 12
"""Where an object has less room, the words before it are left out."""
_MIN_WHY_CELLS: Final = 24
"""Where a reason has less room and does not fit, it is left out: three words of it explain nothing."""
_MIN_REST_CELLS: Final = 20
"""Where what a worker does has less room behind its finding, it is left out."""
_INDENT: Final = 4
"""Of the lines below a worker's first."""


def token_usage(tokens: Tokens) -> str:
    """Return how full the context is, `37%`; where that is not known, the total of tokens, `12.4k`."""
    if tokens.context is not None and tokens.window:
        return f"{100 * tokens.context // tokens.window}%"
    return count(tokens.total)


def in_state_for(worker: Worker, look: Look) -> str:
    """Return for how long a worker has been in its state."""
    since = worker.assessment.since
    return age(None if since is None else look.now - since)


# ---------------------------------------------------------------- what and why


def what(worker: Worker, row: Row, cells: int, look: Look) -> Line:
    """Return what a worker does or needs, in at most so many cells.

    Of a worker that does not need the user, a finding comes first, then those below it that do.
    """
    fact, tone = _fact(worker), _tone(worker)
    if worker.needs_you:
        return fact_line(fact, cells, look, tone)
    lead: list[Span] = []
    if worker.below and row.folded:
        more = f" +{len(worker.below) - 1}" if len(worker.below) > 1 else ""
        lead += [Span(f"! {worker.below[0]}{more}", "ask"), Span("  ")]
    if worker.mismatch and (found := causes(worker)):
        lead += [Span(cause_words(found[0], look.glyphs), "mismatch"), Span("  ")]
    if not lead:
        return fact_line(fact, cells, look, tone)
    room = cells - width(lead)
    rest = fact_line(fact, room, look, "muted") if room >= min(_MIN_REST_CELLS, cell_len(fact.text)) else ()
    return fit((*lead, *rest), cells, look.glyphs.ellipsis)


def _fact(worker: Worker) -> Fact:
    """Return the fact of a worker; of one that needs the user, words without an object stand in its place:
    they are as whole as it would be."""
    fact = worker.fact
    if fact.object or not worker.needs_you:
        return fact
    return Fact(fact.kind, "", fact.what, why=fact.why)


def fact_line(fact: Fact, cells: int, look: Look, tone: Tone = "") -> Line:
    """Return a fact on one line: the object whole, if it fits at all."""
    mark, why = look.glyphs.ellipsis, f"  ({fact.why})" if fact.why else ""
    before = f"{fact.what} " if fact.what and fact.object else fact.what
    if not fact.object:
        return (Span(elide(before, cells, mark), tone),)
    spans = [Span(before, "muted"), Span(fact.object, tone), Span(why, "muted")]
    if width(spans) <= cells:
        return tuple(span for span in spans if span.text)
    room = cells - cell_len(before)
    if room < min(_MIN_OBJECT_CELLS, cell_len(fact.object)) or _fits_alone(fact, room, cells):
        spans[0], room = Span("", "muted"), cells
    spans[1] = Span(elide_object(fact.object, max(1, room), mark, fact.form), tone)
    return tuple(span for span in spans[:2] if span.text)


def _words(fact: Fact, cells: int, mark: str) -> str:
    """Return a fact without its object: what, and why as far as that says anything."""
    why = f"({fact.why})" if fact.why else ""
    room = cells - cell_len(fact.what) - 1
    if not why or room < min(_MIN_WHY_CELLS, cell_len(why)):
        return elide(fact.what, cells, mark)
    return elide(f"{fact.what} {why}", cells, mark)


def _fits_alone(fact: Fact, room: int, cells: int) -> bool:
    return room < cell_len(fact.object) <= cells


def cause_words(cause: Cause, glyphs: Glyphs) -> str:
    """Return what is wrong with a sandbox in a few words, `▴ no sandbox`."""
    return f"{glyphs.directions[cause.worst.direction]} {cause.words}"


def _tone(worker: Worker) -> Tone:
    return "strong" if worker.needs_you else "" if worker.group == "running" else "muted"


# ---------------------------------------------------------------- cells of the columns


def _state_cell(item: Item, cells: int, look: Look) -> Line:
    state = sign(item[1], look.glyphs)
    return (state._replace(text=elide(state.text, cells, "")),)


def _name_cell(item: Item, cells: int, look: Look) -> Line:
    return _named(item, cells, look, with_host=True)


def _host_cell(item: Item, cells: int, look: Look) -> Line:
    return (Span(elide(item[1].host or "-", cells, look.glyphs.ellipsis), "muted"),)


def _name_beside_host_cell(item: Item, cells: int, look: Look) -> Line:
    return _named(item, cells, look, with_host=False)


def _named(item: Item, cells: int, look: Look, *, with_host: bool) -> Line:
    row, worker = item
    stem = row.stem if len(row.stem) <= cells // 2 else row.stem[-(cells // 2) :]
    named = name(row, worker, cells - len(stem), look, with_host=with_host)
    return Span(stem, "muted"), *named


def name(row: Row, worker: Worker, cells: int, look: Look, *, with_host: bool = True) -> Line:
    """Return the name in exactly so many cells, with its host, or what tells it from others, or its pane."""
    tone: Tone = "strong" if worker.needs_you or worker.mismatch else ""
    mark = look.glyphs.ellipsis
    host = worker.host if with_host else None
    own = host or row.tag
    tag = f" {own}" if own else f" {worker.pane.key}" if worker.pane else ""
    tag += f" +{row.folded}" if row.folded else ""
    full = cell_len(row.path) + cell_len(worker.name) + cell_len(tag)
    if not (own or row.folded) and full > cells:
        tag = ""  # a pane is shown where there is room for it
    tag = elide(tag, cells // 2, mark)
    text = _with_path(row.path, worker.name, cells - cell_len(tag), mark)
    return Span(text, tone), Span(pad(tag, cells - cell_len(text)), "muted")


def _with_path(path: str, text: str, cells: int, mark: str) -> str:
    """Return `main/Pasteur` in at most `cells`: the path is cut before the name."""
    left = cells - cell_len(text) - 1
    if path and left >= _MIN_PATH_CELLS:
        return f"{elide(path[:-1], left, mark)}/{text}"
    return elide(text, cells, mark)


def _what_cell(item: Item, cells: int, look: Look) -> Line:
    return what(item[1], item[0], cells, look) or (Span(""),)


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
    policy = worker.sandbox.configured.short() if worker.sandbox.configured else ""
    return mark, Span(f" {elide(policy, room, glyphs.ellipsis)}", "mismatch" if worker.mismatch else "muted")


def _activity_cell(item: Item, _: int, look: Look) -> Line:
    worker = item[1]
    levels = worker.activity.levels(look.now) if worker.activity else (0,) * MINUTES
    return (Span("".join(look.glyphs.bars[level] for level in levels), "live"),)


def _tokens_cell(item: Item, cells: int, _: Look) -> Line:
    return (Span(elide(token_usage(item[1].tokens), cells, ""), "muted"),)


def _age_cell(item: Item, _: int, look: Look) -> Line:
    return (Span(in_state_for(item[1], look), "ask" if item[1].needs_you else "muted"),)


def _mark_cells(glyphs: Glyphs) -> int:
    """Return the width of the widest verdict sign: 2 in ASCII."""
    return len(glyphs.verdicts["mismatch"])


def _state_width(cells: int, _: Glyphs) -> int:
    return STATE_WIDTH if cells >= _WORDS_FROM_CELLS else 1


def _name_width(cells: int, _: Glyphs) -> int:
    return max(16, min(32, cells // 4))


def _host_width(cells: int, _: Glyphs) -> int:
    return max(8, min(16, cells // 9))


def _sandbox_width(cells: int, glyphs: Glyphs) -> int:
    if cells < CARDS_BELOW_CELLS:
        return 0
    return _mark_cells(glyphs) + (1 + _POLICY_CELLS if cells >= _POLICIES_FROM_CELLS else 0)


_STATE: Final = Column[Item](title="STATE", width=_state_width, cell=_state_cell)
_NAME: Final = Column[Item](title="WORKER", width=_name_width, cell=_name_cell, sorts="name")
_HOST: Final = Column[Item](title="HOST", width=_host_width, cell=_host_cell)
_NAME_BESIDE_HOST: Final = replace(_NAME, cell=_name_beside_host_cell)


def _branch_cell(item: Item, cells: int, look: Look) -> Line:
    repository = item[1].git
    text = repository.short() if repository else "-"
    return (Span(elide(text, cells, look.glyphs.ellipsis), "" if repository else "rule"),)


COLUMNS: Final = Columns[Item](
    left=(_STATE, _NAME),
    main=Column(title="WHAT, AND WHY", width=lambda *_: 1, cell=_what_cell, sorts="attention"),
    right=(
        Column(
            title="AGENT", width=lambda cells, _: 17 if cells >= _VERSIONS_FROM_CELLS else 0, cell=_agent_cell
        ),
        Column(
            title="BRANCH",
            width=lambda cells, _: _BRANCH_CELLS if cells >= _BRANCH_FROM_CELLS else 0,
            cell=_branch_cell,
        ),
        Column(title="SANDBOX", width=_sandbox_width, cell=_sandbox_cell),
        Column(
            title="ACTIVITY",
            width=lambda cells, _: MINUTES if cells >= _ACTIVITY_FROM_CELLS else 0,
            cell=_activity_cell,
            sorts="activity",
        ),
        Column(
            title="CTX",
            width=lambda cells, _: _TOKENS_CELLS if cells >= _TOKENS_FROM_CELLS else 0,
            cell=_tokens_cell,
            align_right=True,
            sorts="tokens",
        ),
        Column(title="FOR", width=lambda *_: _AGE_CELLS, cell=_age_cell, align_right=True, sorts="age"),
    ),
)
"""A further column, of cost, say, is one more entry, and one more of `rows.SORTS`."""
COLUMNS_WITH_HOST: Final = replace(COLUMNS, left=(_STATE, _HOST, _NAME_BESIDE_HOST))
"""The columns where other hosts are watched, in a list that has room for their names."""


# ---------------------------------------------------------------- rows of several lines


def row_height(item: Item, layout: Layout[Item], cells: int) -> int:
    """Return how many lines a worker takes: more than one only if it needs the user and its object needs
    them."""
    worker = item[1]
    fact = _fact(worker)
    if not worker.needs_you or not fact.object:
        return 1
    text = cell_len(f"{fact.what} {fact.object}".strip())
    if cells >= CARDS_BELOW_CELLS:
        return 1 if text <= layout.main.cells else 2
    return 2 if text <= cells - _INDENT else 3


def row_lines(item: Item, layout: Layout[Item], cells: int, height: int, look: Look) -> list[Line]:
    """Return the lines of a worker, without the gutter."""
    worker = item[1]
    if height == 1:
        return [layout.line(item, look)]
    if cells >= CARDS_BELOW_CELLS:
        return [_first_line(item, layout, look), _object_line(_fact(worker), layout, cells, look)]
    for_, room = in_state_for(worker, look), cells - _INDENT
    state = sign(worker, look.glyphs)
    head = (
        state._replace(text=f"{state.text[:1]} "),
        *_name_cell(item, max(1, cells - 2 - _AGE_CELLS - 1), look),
    )
    first = justify(head, (Span(for_, "ask"),), cells, look.glyphs.ellipsis)
    return [first, *_below(_fact(worker), room, height - 1, look)]


def _first_line(item: Item, layout: Layout[Item], look: Look) -> Line:
    """Return the columns with the words of the fact in place of its object, which is on the next line."""
    words = _words(_fact(item[1]), layout.main.cells, look.glyphs.ellipsis)
    return layout.line(item, look, main=(Span(words),))


def _object_line(fact: Fact, layout: Layout[Item], cells: int, look: Look) -> Line:
    """Return the object below the words, at their column if it fits there, else farther left."""
    column = sum(placed.cells + 1 for placed in layout.left)
    indent = column if cell_len(fact.object) <= cells - column else min(_INDENT, column)
    text = elide_object(fact.object, cells - indent, look.glyphs.ellipsis, fact.form)
    return Span(" " * indent), Span(text, "strong")


def _below(fact: Fact, room: int, lines: int, look: Look) -> list[Line]:
    """Return the fact below a name, in one or two lines."""
    indent, mark = Span(" " * (_INDENT - 1)), look.glyphs.ellipsis
    if lines == 1:
        return [(indent, *fact_line(fact, room, look, "strong"))]
    if cell_len(fact.object) <= room:
        return [
            (indent, Span(_words(fact, room, mark), "muted")),
            (indent, Span(fact.object, "strong")),
        ]
    text = f"{fact.what} " if fact.what else ""
    pieces = wrap(text + fact.object, room)
    if len(pieces) > lines:
        text += elide_object(fact.object, lines * room - cell_len(text) - 1, mark, fact.form)
        pieces = chop_cells(text, room)
    return [(indent, Span(piece.strip(), "strong")) for piece in pieces[:lines]]
