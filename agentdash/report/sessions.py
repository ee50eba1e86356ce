"""`agentdash sessions`: the sessions of a Codex home and of other CLIs, newest first, as the document
`agentdash.sessions/2` and as a table.

Of each file the head is parsed, and the lines that count tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, default_home, open_lines, problem
from agentdash.agents.codex.rollout.reader import tokens_by_model
from agentdash.agents.session_logs import (
    agent_of_log,
    log_begun_at,
    other_logs,
    reader_of_log,
    thread_of_log,
)
from agentdash.agents.session_rows import log_stat
from agentdash.documents.worker import document
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.thread import Thread
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.prices import Cost, cost, cost_text, price_list
from agentdash.replay.whole_log import reduce_lines
from agentdash.report.elements import UnreadableReport, cut, say, unreadable

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
    if (total := cost(merged)) is None:
        return None
    return document(
        TokensReport,
        total,
        total=sum(each.usage.total for each in merged),
        cost_usd=total.usd,
        prices_of=price_list().read.isoformat(),
        models=[_model_report(each) for each in merged],
    )


def _model_report(each: ModelUsage) -> ModelTokensReport:
    usage, found = each.usage, cost((each,))
    return document(
        ModelTokensReport,
        usage,
        model=each.model,
        tier=each.tier,
        cache_writes=usage.cache_writes + usage.cache_writes_1h,
        cost_usd=found and found.usd,
    )


# ------------------------------------------------------------


_HEAD_LINES: Final = 40
"""Lines read of each file: in every version of Codex they contain the header, the first policy and the
first prompt."""
_MAX_PROMPT_CHARS: Final = 200
"""More than a row shows, even on a wide screen."""
_COLUMNS: Final = ("STARTED", "ID", "AGENT", "TOKENS", "COST", "DIRECTORY", "PROMPT")
_ALL_FROM_WIDTH: Final = 140
"""Columns from which the table has all its columns; below, the prompt counts more."""
_MIN_PROMPT_CELLS: Final = 10
_DIRECTORY_CHARS: Final = 30
"""Of a directory, its end."""
_ID_PREFIX_CHARS: Final = 18
"""Of an id on a narrow terminal: its time in milliseconds, and 12 random bits (UUIDv7)."""


class SessionReport(msgspec.Struct):
    """One session. Null: not in the head of its file."""

    id: str
    agent: str
    """The worker CLI: `codex`, `claude`, `gemini`, `qwen`, `copilot`."""
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


class SessionsReport(msgspec.Struct):
    """The document of `agentdash sessions --json`."""

    schema: Literal["agentdash.sessions/2"]
    home: str
    """The Codex home."""
    problem: str | None
    """Why there are no sessions, if there is a reason."""
    unreadable_directories: list[UnreadableReport]
    """Directories that may contain more sessions, but cannot be listed."""
    sessions: list[SessionReport]
    """The sessions, newest first."""

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
    errors: list[OSError] = []
    rollouts = islice(home.rollouts(errors.append), limit)
    others = other_logs(ClaudeHome(claude_root), errors.append)[:limit]
    found = []
    for path in (*rollouts, *(path for _, path in others)):
        found.append(_read(home, path))
        progress(found[-1].size)
    found.sort(key=lambda session: session.started_at or "", reverse=True)
    return SessionsReport(
        schema="agentdash.sessions/2",
        home=clean_line(str(home.root)),
        problem=problem(home),
        unreadable_directories=list(map(unreadable, errors)),
        sessions=found[:limit],
    )


def print_sessions(report: SessionsReport, console: Console) -> None:
    """Print the sessions as a table, or why there are none."""
    if not report.sessions:
        say(console, report.problem or f"no sessions in {report.home}")
        return
    rows = [_COLUMNS, *map(_cells, mask_fields(report.sessions))]
    if console.width < _ALL_FROM_WIDTH:
        rows = [(started, ident[:_ID_PREFIX_CHARS], prompt) for started, ident, *_, prompt in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)][:-1]
    room = max(_MIN_PROMPT_CELLS, console.width - sum(widths) - 2 * len(widths))
    for number, cells in enumerate(rows):
        line = "  ".join(map(cut, cells, (*widths, room))).rstrip()
        console.print(Text(line, "" if number else "dim"), soft_wrap=True)


def _cells(session: SessionReport) -> tuple[str, ...]:
    """Return the cells of a row of the table."""
    tokens = session.tokens
    return (
        (session.started_at or "")[:16].replace("T", " "),
        session.id,
        f"{session.agent} {session.version or ''}",
        f"{tokens.total:,}" if tokens else "-",
        (cost_text(Cost(usd=tokens.cost_usd, priced_usd=tokens.priced_usd)) if tokens else "") or "-",
        (session.cwd or "-")[-_DIRECTORY_CHARS:],
        session.problem or session.prompt or "-",
    )


def _read(home: CodexHome, path: Path) -> SessionReport:
    thread = Thread(thread_of_log(path) or path.stem, agent=agent_of_log(path))
    is_codex = thread.agent == "codex"
    size, modified, trouble = 0, None, None
    by_model: tuple[ModelUsage, ...] = ()
    try:
        stat = log_stat(path)
        lines = islice(open_lines(path), _HEAD_LINES if is_codex else None)
        thread = reduce_lines(thread, reader_of_log(path, thread.id), lines)
        by_model = tokens_by_model(thread.id, open_lines(path)) if is_codex else ()
        size, modified = stat.st_size, stat.st_mtime
    except OSError as error:
        trouble = clean_line(error.strerror or str(error))
    return document(
        SessionReport,
        thread,
        started_at=thread.created_at or log_begun_at(path),
        modified_at=modified,
        size=size,
        file=clean_line(str(path)),
        archived=path.is_relative_to(home.archived),
        compressed=path.suffix == ".zst",
        prompt=clean_line(thread.prompt, _MAX_PROMPT_CHARS) if thread.prompt else None,
        tokens=tokens_report(by_model or thread.tokens.by_model),
        problem=trouble,
    )
