"""The report of `agentdash since` in at most 20 lines, as text and as Markdown."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from rich.cells import cell_len, set_cell_size

from agentdash.model.secrets import mask_secrets
from agentdash.model.times import lasted
from agentdash.report.markdown_text import code
from agentdash.report.since import KINDS, SinceReport, SinceRow

MAX_LINES: Final = 20
_NAME_CELLS: Final = 22
_MIN_DAYS: Final = 3
"""Spans from here on are stated in days."""
_MIN_TEXT_CELLS: Final = 20
"""Room for a text beside the command: on narrower terminals the command has a line of its own."""


def since_lines(report: SinceReport, width: int) -> list[str]:
    """Return the report as lines of a terminal, at most `MAX_LINES`."""
    shown = chosen_rows(report, MAX_LINES - 2)
    commands = max((len(row.replay) for row in shown), default=0)
    kinds = max((len(row.kind) for row in shown), default=0)
    rest = width - kinds - len(_clock(report.since, report)) - 2 - _NAME_CELLS - commands - 4
    with_commands = rest >= _MIN_TEXT_CELLS
    text_cells = rest if with_commands else rest + commands + 1
    lines = [_head(report)[:width]]
    for row in shown:
        cells = (
            row.kind.ljust(kinds),
            _clock(row.at, report),
            _cut(row.name, _NAME_CELLS),
            _cut(_text(row), max(1, text_cells)),
            *((row.replay,) if with_commands else ()),
        )
        lines.append(" ".join(cells).rstrip())
    return [*lines, *(line[:width] for line in _tail(report, shown))]


def since_markdown(report: SinceReport) -> str:
    """Return the report as Markdown, all foreign text in code spans."""
    shown = chosen_rows(report, MAX_LINES - 4)
    lines = [f"## {_head(report)}", ""]
    lines += [
        f"- **{row.kind}** {_clock(row.at, report)} {code(mask_secrets(row.name))}: "
        f"{code(_text(row))} ({code(row.replay)})"
        for row in shown
    ]
    return "\n".join((*lines, *_tail(report, shown), ""))


def chosen_rows(report: SinceReport, most: int) -> list[SinceRow]:
    """Return at most `most` rows, in their order: the first of each kind before the second of any."""
    ranked = [
        (rank, number, row)
        for number, kind in enumerate(KINDS)
        for rank, row in enumerate(row for row in report.rows if row.kind == kind)
    ]
    best = sorted(ranked, key=lambda entry: entry[:2])[:most]
    return [row for rank, number, row in sorted(best, key=lambda entry: (entry[1], entry[0]))]


def _head(report: SinceReport) -> str:
    since, now = (datetime.fromisoformat(at).astimezone() for at in (report.since, report.generated_at))
    needs = sum(row.kind == "needs-you" for row in report.rows)
    done = sum(row.kind == "done" for row in report.rows)
    parts = [f"{report.active} {'worker' if report.active == 1 else 'workers'} active", f"{done} done"]
    parts += [f"{needs} {'needs' if needs == 1 else 'need'} you now"] if needs else []
    parts += [f"{lasted(report.waited_seconds)} waited for you"] if report.waited_seconds >= 1 else []
    is_this_week = now - since < timedelta(days=6)  # a day of the week is else another one
    begin = f"{since:%a %H:%M}" if is_this_week else f"{since:%Y-%m-%d %H:%M}"
    days = (now - since).days
    span = f"{days} days" if days >= _MIN_DAYS else lasted((now - since).total_seconds())
    return f"since {begin}, {span}: {', '.join(parts)}"


def _tail(report: SinceReport, shown: list[SinceRow]) -> list[str]:
    left = Counter(row.kind for row in report.rows) - Counter(row.kind for row in shown)
    parts = [", ".join(f"{number} more {kind}" for kind, number in left.items())] if left else []
    parts += [f"{len(report.problems)} not read"] if report.problems else []
    return [f"{'; '.join(parts)}: see --json"] if parts else []


def _text(row: SinceRow) -> str:
    took = f"{lasted(row.seconds)}: " if row.seconds is not None and row.seconds >= 1 else ""
    times = f"{row.count}×, " if row.count > 1 and row.kind != "outside" else ""
    remedy = f" — helps: {' '.join(row.remedy.split())}" if row.remedy else ""
    return mask_secrets(f"{times}{took}{' '.join(row.text.split())}{remedy}")


def _clock(at: str | None, report: SinceReport) -> str:
    """Return a time in local time: with its date where the report is about more than a day."""
    span = datetime.fromisoformat(report.generated_at) - datetime.fromisoformat(report.since)
    form = "%H:%M" if span <= timedelta(days=1) else "%m-%d %H:%M"
    shown = f"{datetime.fromisoformat(at or report.since).astimezone():{form}}"
    return shown if at else " " * len(shown)


def _cut(text: str, cells: int) -> str:
    text = mask_secrets(text)
    return set_cell_size(text, cells) if cell_len(text) <= cells else set_cell_size(text, cells - 1) + "…"
