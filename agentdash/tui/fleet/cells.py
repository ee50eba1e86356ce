"""The columns of the fleet list, and their cells. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from rich.cells import cell_len

from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text
from agentdash.tui.fleet.rows import Row
from agentdash.tui.fleet.what import what
from agentdash.tui.format import age, count, elide, pad
from agentdash.tui.primitives.columns import Column, Columns
from agentdash.tui.primitives.spans import Line, Span, Tone
from agentdash.tui.theme import STATE_WIDTH, Glyphs, Look, sign, verdict
from agentdash.tui.worker.usage import context_share, is_nearly_full

Item: TypeAlias = tuple[Row, Worker]

CARDS_BELOW_CELLS: Final = 50
"""In a narrower list, workers that need the user take up to three lines, and others lose columns."""
_WORDS_FROM_CELLS: Final = 150
"""From here on a state has its name beside its sign."""
_POLICIES_FROM_CELLS: Final = 100
_VERSIONS_FROM_CELLS: Final = 190
_TOKENS_FROM_CELLS: Final = 90
_BRANCH_CELLS: Final = 18
_BRANCH_FROM_CELLS: Final = 160
"""Below, the panel has the branch; reasons need the room."""
HOSTS_FROM_CELLS: Final = 70
"""In a narrower list the host stands behind the name."""
_NOT_STATED: Final = "?/?"
"""A policy of which neither files nor network are known takes no room."""
_POLICY_CELLS: Final = 13
"""The common policies, short: `workspace/off`, `read-only/off`."""
AGE_CELLS: Final = 4
"""The longest age, `364d`."""
_TOKENS_CELLS: Final = 5
"""The longest count, `12.4k`."""
_MIN_PATH_CELLS: Final = 3
"""The names of a worker's ancestors are left out where they have less room."""
_COST_CELLS: Final = 7
"""The longest usual cost, `$123.45`."""
_AGENT_CELLS: Final = 8
"""`opencode`, `codex`, `claude`, `gemini`, `copilot`."""
_ROUNDING: Final = 1e-9
"""29 of 100 is 28.999… % in binary."""
_AGENTS_FROM_CELLS: Final = 100
_COSTS_FROM_CELLS: Final = 116


def token_usage(worker: Worker) -> str:
    """Return how full the context is, `37%`; where that is not known, the total of tokens, `12.4k`."""
    share, shown = context_share(worker), worker.on_screen
    if share is not None:
        return f"{math.floor(100 * share + _ROUNDING)}%"
    return count(worker.tokens.total or (shown.total if shown else None))


def in_state_for(worker: Worker, look: Look) -> str:
    """Return for how long a worker has been in its state."""
    since = worker.assessment.since
    return age(None if since is None else look.now - since)


# ---------------------------------------------------------------- cells of the columns


def _state_cell(item: Item, cells: int, look: Look) -> Line:
    state = sign(item[1], look.glyphs)
    return (Span(elide(state.text, cells, ""), state.tone),)


def name_cell(item: Item, cells: int, look: Look) -> Line:
    """Return the name of a worker with the lines of its tree, and its host."""
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
    """Return the name in exactly so many cells, with its host, or what distinguishes it, or its pane."""
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
    version = f" {agent.version}" if agent.version and cells > _AGENT_CELLS else ""
    return (Span(elide(agent.name + version, cells, look.glyphs.ellipsis), "muted"),)


def _sandbox_cell(item: Item, cells: int, look: Look) -> Line:
    """Return the verdict, where there is one, and the policy."""
    worker, glyphs = item[1], look.glyphs
    mark = verdict(worker, glyphs)
    sign_ = "" if worker.sandbox.verdict == "unverified" else mark.text
    mark = mark._replace(text=pad(sign_, _mark_cells(glyphs)))
    room = cells - _mark_cells(glyphs) - 1
    if room <= 0:
        return (mark,)
    policy = worker.sandbox.configured.short() if worker.sandbox.configured else ""
    policy = "" if policy == _NOT_STATED else policy
    return mark, Span(f" {elide(policy, room, glyphs.ellipsis)}", "mismatch" if worker.mismatch else "muted")


def _tokens_cell(item: Item, cells: int, _: Look) -> Line:
    tone: Tone = "waited" if is_nearly_full(context_share(item[1])) else "muted"
    return (Span(elide(token_usage(item[1]), cells, ""), tone),)


def _cost_cell(item: Item, cells: int, look: Look) -> Line:
    """Return the cost by list prices; of a worker without token counts, what its screen states."""
    found, shown = cost(item[1].tokens.by_model), item[1].on_screen
    text = ""
    if found is not None and (found.usd is not None or found.priced_usd > 0):
        text = cost_text(found)
    elif found is None and shown is not None and shown.cost is not None:
        text = f"${shown.cost:.2f}"
    return (Span(elide(text, cells, look.glyphs.ellipsis), "muted"),)


def _age_cell(item: Item, _: int, look: Look) -> Line:
    return (Span(in_state_for(item[1], look), "waited" if item[1].needs_you else "muted"),)


def _mark_cells(glyphs: Glyphs) -> int:
    """Return the width of the widest verdict sign: 2 in ASCII."""
    return len(glyphs.verdicts["mismatch"])


def _state_width(cells: int, _: Glyphs) -> int:
    return STATE_WIDTH if cells >= _WORDS_FROM_CELLS else 1


def _name_width(cells: int, _: Glyphs) -> int:
    return max(16, min(32, cells * 22 // 100))


def _host_width(cells: int, _: Glyphs) -> int:
    return max(8, min(16, cells // 9))


def _agent_width(cells: int, _: Glyphs) -> int:
    if cells >= _VERSIONS_FROM_CELLS:
        return 2 * _AGENT_CELLS + 1
    return _AGENT_CELLS if cells >= _AGENTS_FROM_CELLS else 0


def _sandbox_width(cells: int, glyphs: Glyphs) -> int:
    if cells < CARDS_BELOW_CELLS:
        return 0
    return _mark_cells(glyphs) + (1 + _POLICY_CELLS if cells >= _POLICIES_FROM_CELLS else 0)


_STATE: Final = Column[Item](title="STATE", width=_state_width, cell=_state_cell)
_NAME: Final = Column[Item](title="WORKER", width=_name_width, cell=name_cell, sorts="name")
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
        Column(title="AGENT", width=_agent_width, cell=_agent_cell, needs="agents"),
        Column(
            title="BRANCH",
            width=lambda cells, _: _BRANCH_CELLS if cells >= _BRANCH_FROM_CELLS else 0,
            cell=_branch_cell,
        ),
        Column(title="SANDBOX", width=_sandbox_width, cell=_sandbox_cell),
        Column(
            title="CTX",
            width=lambda cells, _: _TOKENS_CELLS if cells >= _TOKENS_FROM_CELLS else 0,
            cell=_tokens_cell,
            align_right=True,
            sorts="tokens",
        ),
        Column(
            title="COST",
            width=lambda cells, _: _COST_CELLS if cells >= _COSTS_FROM_CELLS else 0,
            cell=_cost_cell,
            align_right=True,
            sorts="cost",
            needs="costs",
        ),
        Column(title="FOR", width=lambda *_: AGE_CELLS, cell=_age_cell, align_right=True, sorts="age"),
    ),
)
COLUMNS_WITH_HOST: Final = replace(COLUMNS, left=(_STATE, _HOST, _NAME_BESIDE_HOST))
"""The columns where other hosts are watched, in a list that has room for their names."""


def features(workers: Iterable[Worker], *, has_hosts: bool) -> frozenset[str]:
    """Return which columns have anything to show that not every fleet has: `hosts`, `agents`, `costs`."""
    workers = tuple(workers)
    found = {"hosts"} if has_hosts else set()
    found |= {"agents"} if len({worker.agent.name for worker in workers}) > 1 else set()
    costs = (worker.tokens.by_model or (worker.on_screen and worker.on_screen.cost) for worker in workers)
    found |= {"costs"} if any(costs) else set()
    return frozenset(found)
