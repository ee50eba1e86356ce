"""The parts of the Markdown report on calls: what was changed, and the commands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from agentdash.model.conversation import change_words, line_counts, outcome_words, shown_paths
from agentdash.model.times import precise_time_of_day, time_of_day, took
from agentdash.report.calls_html import MAX_COMMANDS, MAX_DIFF_CHARS, ONLY_PATCHES
from agentdash.report.markdown_text import block, cell, code
from agentdash.report.timeline_report import TimelineReport


def changes_section(report: TimelineReport) -> Iterator[str]:
    """Yield what was changed, by worker and turn; nothing where nothing was."""
    changes = report.changes
    if not changes:
        return
    yield from ("", "## What was changed", "", ONLY_PATCHES, "")
    room = MAX_DIFF_CHARS
    for (_, turn), calls in groupby(changes, key=lambda dated: (dated.worker.id, dated.turn)):
        found = list(calls)
        name = f"{code(found[0].worker.name)}, " if len(report.workers) > 1 else ""
        yield from (f"### {name}turn {turn}", "")
        for dated in found:
            call = dated.call
            for change in call.changes:
                words = f"{change_words(call, change)} {line_counts(change)}".rstrip()
                yield f"- {code(shown_paths(change, call.cwd))} {words}, {time_of_day(call.at)}"
                if change.diff and len(change.diff) <= room:
                    room -= len(change.diff)
                    yield from ("", *(f"  {line}" for line in _lines(block(change.diff, "diff"))), "")
        yield ""


def commands_section(report: TimelineReport) -> Iterator[str]:
    """Yield the table of commands; nothing without any."""
    commands = report.commands
    if not commands:
        return
    yield from ("", "## Commands", "")
    if len(commands) > MAX_COMMANDS:
        yield from (f"{len(commands) - MAX_COMMANDS:,} earlier ones are left out.", "")
    yield from ("| at | worker | command | ended | took | denied |", "|---|---|---|---|---|---|")
    for dated in commands[-MAX_COMMANDS:]:
        call = dated.call
        cells = (
            precise_time_of_day(call.at),
            cell(dated.worker.name),
            cell(call.text),
            outcome_words(call),
            took(call.took) if call.took is not None else "",
            cell(call.denial or ""),
        )
        yield f"| {' | '.join(cells)} |"


def _lines(parts: list[str]) -> Iterator[str]:
    return (line for part in parts for line in part.split("\n"))
