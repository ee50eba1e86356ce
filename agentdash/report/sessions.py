"""`agentdash sessions`: the sessions of a Codex home and of Claude Code, newest first, as the document
`agentdash.sessions/1` and as a table.

Of each file the head is parsed, and the lines that count tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.claude.home import default_home as default_claude_home
from agentdash.agents.codex.home import CodexHome, default_home, open_lines, problem
from agentdash.agents.codex.rollout.reader import tokens_by_model
from agentdash.agents.session_logs import is_transcript, log_begun_at, reader_of_log, thread_of_log
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.thread import Thread
from agentdash.model.times import iso
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.prices import Cost, cost, cost_text, price_list
from agentdash.report.elements import UnreadableReport, unreadable

# ------------------------------------------------------------
# Tokens and their cost at list prices, as documents show them


class ModelTokensReport(msgspec.Struct):
    """The tokens of one model. The parts do not overlap."""

    model: str | None
    """Null: not stated, or in a part of the file that was not read."""
    tier: str | None
    """A service tier with prices of its own; null: the standard one."""
    input: int
    """Without those of the cache."""
    cached: int
    """Read from the cache."""
    cache_writes: int
    """Written to the cache."""
    output: int
    """With those of the reasoning."""
    reasoning: int
    """Those of the reasoning, which `output` counts too."""
    total: int
    """All of them."""
    cost_usd: float | None
    """Null: no price is known."""


class TokensReport(msgspec.Struct):
    """Tokens and their cost at list prices."""

    total: int
    """All of them."""
    cost_usd: float | None
    """Null where a part of the tokens has no price."""
    priced_usd: float
    """The cost of those that have a price."""
    unpriced: list[str]
    """Why the others have none."""
    prices_of: str
    """The day of the price list, ISO."""
    models: list[ModelTokensReport]
    """By model and service tier."""


def tokens_report(usages: Sequence[ModelUsage]) -> TokensReport | None:
    """Return the document of some tokens, or None if there are none."""
    merged = merged_usage(usages)
    total = cost(merged)
    if total is None:
        return None
    return TokensReport(
        total=sum(each.usage.total for each in merged),
        cost_usd=_rounded(total.usd),
        priced_usd=round(total.priced_usd, 6),
        unpriced=list(total.unpriced),
        prices_of=price_list().read.isoformat(),
        models=[_model_report(each) for each in merged],
    )


def _model_report(usage: ModelUsage) -> ModelTokensReport:
    parts, found = usage.usage, cost((usage,))
    return ModelTokensReport(
        model=usage.model,
        tier=usage.tier,
        input=parts.input,
        cached=parts.cached,
        cache_writes=parts.cache_writes + parts.cache_writes_1h,
        output=parts.output,
        reasoning=parts.reasoning,
        total=parts.total,
        cost_usd=_rounded(found.usd) if found else None,
    )


def _rounded(usd: float | None) -> float | None:
    """Return an amount without the digits that only the addition of fractions has."""
    return None if usd is None else round(usd, 6)


# ------------------------------------------------------------


_HEAD_LINES: Final = 40
"""Lines read of each file: in every version of Codex they contain the header, the first policy and the
first prompt."""
_BATCH_LINES: Final = 1_000
"""Lines held in memory at a time."""
_MAX_PROMPT_CHARS: Final = 200
"""More than a row shows, even on a wide screen."""
_FROM_WIDTH: Final = {"STARTED": 60, "AGENT": 80, "TOKENS": 80, "SIZE": 140, "COST": 140, "DIRECTORY": 140}
"""The width of a terminal from which a column is shown: enough is left for the prompt then."""
_WHOLE_IDS_FROM_WIDTH: Final = 120
_NUMBERS: Final = ("SIZE", "TOKENS", "COST")
_TEXTS: Final = ("DIRECTORY", "PROMPT")
"""Columns that are cut where there is no room; the others are whole."""
_ID_PREFIX_CHARS: Final = 18
"""Of an id on a narrow terminal: its time in milliseconds, and 12 random bits (UUIDv7)."""


class SessionReport(msgspec.Struct):
    """One session. Null: not in the head of its file."""

    id: str
    agent: str
    """The worker CLI: `codex`, `claude`."""
    started_at: str | None
    """When it began."""
    modified_at: str | None
    """When its file was written last."""
    size: int
    """Bytes on disk."""
    file: str
    archived: bool
    """Whether it is archived."""
    compressed: bool
    """Whether its file is compressed."""
    version: str | None
    cwd: str | None
    parent: str | None
    forked_from: str | None
    """Id of the thread it was forked from; null where it was not."""
    prompt: str | None
    """Its first prompt; null where it is not known."""
    tokens: TokensReport | None
    """Those that it used itself, without those of its children and of the thread it was forked from; null:
    its file has none."""
    problem: str | None
    """Why it cannot be read."""


class _Session(NamedTuple):
    """A session, and its tokens by model."""

    report: SessionReport
    by_model: tuple[ModelUsage, ...]


class FamilyReport(msgspec.Struct):
    """A session with its children and forks."""

    head: str
    """Id of the session that is no child or fork of another one in the list."""
    members: list[str]
    """Ids, in the order of the list."""
    tokens: TokensReport | None
    """The sum; each token counts once."""


class SessionsReport(msgspec.Struct):
    """The document of `agentdash sessions --json`."""

    schema: Literal["agentdash.sessions/1"]
    home: str
    """The Codex home."""
    problem: str | None
    """Why there are no sessions, if there is a reason."""
    unreadable_directories: list[UnreadableReport]
    """Directories that may contain more sessions, but cannot be listed."""
    sessions: list[SessionReport]
    """The sessions, newest first."""
    families: list[FamilyReport]
    """The families of these sessions; sessions that are not listed are in none."""

    @property
    def problems(self) -> list[UnreadableReport]:
        """Everything that could not be read."""
        files = [UnreadableReport(each.file, each.problem) for each in self.sessions if each.problem]
        return [*self.unreadable_directories, *files]


def read_sessions(
    root: Path | None,
    limit: int | None,
    claude_root: Path | None = None,
    progress: Callable[[int], None] = lambda _size: None,
) -> SessionsReport:
    """Return the newest `limit` sessions (None: all).

    Args:
        root: the Codex home; None: the default one.
        claude_root: the configuration directory of Claude Code; None: the default one.
        progress: called with the size of each file, in bytes, when it has been read.
    """
    home = CodexHome(root or default_home())
    claude_home = ClaudeHome(claude_root or default_claude_home())
    errors: list[OSError] = []
    paths = [
        *islice(home.rollouts(errors.append), limit),
        *(path for _, path in claude_home.by_last_record(errors.append)[:limit]),
    ]
    found = []
    for path in paths:
        found.append(_read(home, path))
        progress(found[-1].report.size)
    found.sort(key=lambda session: session.report.started_at or "", reverse=True)
    found = found[:limit]
    return SessionsReport(
        schema="agentdash.sessions/1",
        home=clean_line(str(home.root)),
        problem=problem(home),
        unreadable_directories=list(map(unreadable, errors)),
        sessions=[session.report for session in found],
        families=_families(found),
    )


def print_sessions(report: SessionsReport, console: Console) -> None:
    """Print the sessions as a table, or why there are none."""
    for directory in report.unreadable_directories:
        console.print(Text(str(directory)))
    if not report.sessions:
        console.print(Text(report.problem or f"no sessions in {report.home}"))
        return
    rows = list(map(_cells, mask_fields(report.sessions)))
    if console.width < _WHOLE_IDS_FROM_WIDTH:
        rows = [{**row, "ID": row["ID"][:_ID_PREFIX_CHARS]} for row in rows]
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = [name for name in rows[0] if console.width >= _FROM_WIDTH.get(name, 0)]
    for column in columns:
        table.add_column(
            column,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if column in _NUMBERS else "left",
            min_width=None if column in _TEXTS else max(len(column), *(len(row[column]) for row in rows)),
            max_width=console.width // 6 if column == "DIRECTORY" else None,
        )
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    console.print(table)


def _cells(session: SessionReport) -> dict[str, str]:
    """Return the cells of a row of the table."""
    return {
        "STARTED": (session.started_at or "")[:16].replace("T", " "),
        "ID": session.id,
        "AGENT": f"{session.agent} {session.version or ''}",
        "SIZE": f"{session.size / 1e6:.1f} MB" if session.size >= 1e6 else f"{session.size / 1e3:.0f} kB",
        "TOKENS": f"{session.tokens.total:,}" if session.tokens else "-",
        "COST": _cost(session.tokens) or "-",
        "DIRECTORY": session.cwd or "-",
        "PROMPT": session.problem or session.prompt or "-",
    }


def _cost(tokens: TokensReport | None) -> str:
    if tokens is None:
        return ""
    return cost_text(Cost(usd=tokens.cost_usd, priced_usd=tokens.priced_usd))


def _families(sessions: Sequence[_Session]) -> list[FamilyReport]:
    reports = [session.report for session in sessions]
    above = {report.id: report.parent or report.forked_from for report in reports}
    members: dict[str, list[str]] = {}
    usages: dict[str, list[ModelUsage]] = {}
    for session in sessions:
        head = _head(session.report.id, above)
        members.setdefault(head, []).append(session.report.id)
        usages.setdefault(head, []).extend(session.by_model)
    return [
        FamilyReport(head=head, members=ids, tokens=tokens_report(usages[head]))
        for head, ids in members.items()
    ]


def _head(thread: str, above: Mapping[str, str | None]) -> str:
    """Return the ancestor of a thread that has none among those listed."""
    seen = {thread}
    while (parent := above.get(thread)) in above and parent is not None and parent not in seen:
        seen.add(parent)
        thread = parent
    return thread


def _reduced(path: Path, thread: Thread, lines: Iterator[bytes]) -> Thread:
    """Return a thread after lines of its log, in bounded memory."""
    reader = reader_of_log(path, thread.id)
    fleet = Fleet()
    while batch := list(islice(lines, _BATCH_LINES)):
        fleet = reduce(fleet, reader.read(batch))
    return fleet.threads.get(thread.id, thread)


def _read(home: CodexHome, path: Path) -> _Session:
    thread = Thread(thread_of_log(path) or path.stem, agent="claude" if is_transcript(path) else "codex")
    trouble: str | None = None
    by_model: tuple[ModelUsage, ...] = ()
    try:
        stat = path.stat()
        lines = open_lines(path)
        if thread.agent == "codex":
            lines = islice(lines, _HEAD_LINES)
            by_model = tokens_by_model(thread.id, open_lines(path))
        thread = _reduced(path, thread, lines)
        by_model = by_model or thread.tokens.by_model
    except OSError as error:
        stat = None
        trouble = clean_line(error.strerror or str(error))
    report = SessionReport(
        id=thread.id,
        agent=thread.agent,
        started_at=iso(thread.created_at or log_begun_at(path)),
        modified_at=iso(stat.st_mtime if stat else None),
        size=stat.st_size if stat else 0,
        file=clean_line(str(path)),
        archived=path.is_relative_to(home.archived),
        compressed=path.suffix == ".zst",
        version=thread.version,
        cwd=thread.cwd,
        parent=thread.parent,
        forked_from=thread.forked_from,
        prompt=clean_line(thread.prompt, _MAX_PROMPT_CHARS) if thread.prompt else None,
        tokens=tokens_report(by_model),
        problem=trouble,
    )
    return _Session(report, by_model)
