"""Render a timeline report as Markdown, for issues: all foreign text is in code spans, where markup has no
effect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from agentdash.model.conversation import change_words, line_counts, outcome_words, shown_paths
from agentdash.model.findings import sides
from agentdash.model.limits import MAX_INDENT
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.report.elements import difference_lines, remedy_lines
from agentdash.report.export_html import MAX_COMMANDS, MAX_DIFF_CHARS, ONLY_PATCHES
from agentdash.report.talk_markdown import block, cell, code
from agentdash.report.timeline_report import TimelineReport, TimelineRow


def markdown(report: TimelineReport, version: str) -> str:
    """Return the document."""
    parts = (
        _head(report, version),
        _workers(report),
        _findings(report),
        changes_section(report),
        commands_section(report),
        _timeline(report),
    )
    return "\n".join((*(line for part in parts for line in part), ""))


def _head(report: TimelineReport, version: str) -> Iterator[str]:
    yield f"# {code(report.title)}"
    yield ""
    yield f"- thread {code(report.thread)}"
    yield f"- began {moment(report.begun)} UTC, took {took(report.ended - report.begun)}"
    if report.cost:
        yield f"- {report.cost}"
    yield f"- exported by agentdash {version} from {report.sources}"
    if report.redacted:
        yield "- prompts, messages and outputs are left out; commands and paths are not"
    yield from (f"- {code(note)}" for note in report.notes)


def _workers(report: TimelineReport) -> Iterator[str]:
    yield from (
        "",
        "## Workers",
        "",
        "| worker | agent | in the end | why | sandbox | tokens |",
        "|---|---|---|---|---|---|",
    )
    for timeline in report.workers:
        worker = timeline.worker
        policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
        cells = (
            "&nbsp;&nbsp;" * min(worker.depth, MAX_INDENT) + cell(worker.name),
            cell(f"{worker.agent.name} {worker.agent.version or ''}"),
            f"**{worker.state}**",
            cell(worker.assessment.why),
            f"{policy}: **{worker.sandbox.verdict}**",
            timeline.cost,
        )
        yield f"| {' | '.join(cells)} |"


def _findings(report: TimelineReport) -> Iterator[str]:
    yield from ("", "## Findings", "")
    if not report.findings:
        yield "None."
    for at, worker, finding in report.findings:
        yield f"### {finding.kind} ({finding.direction}): {code(worker.name)}, since {time_of_day(at)}"
        yield ""
        yield code(finding.message)
        yield ""
        for label, text in (*difference_lines(finding), *sides(finding)):
            yield f"- {label}: {code(text)}"
        for evidence in finding.evidence:
            yield f"- {evidence.source} {precise_time_of_day(evidence.at)}: {code(evidence.text)}"
        if finding.remedy:
            remedy = finding.remedy
            for label, line in remedy_lines(remedy.text, remedy.where, remedy.once):
                yield f"- {label}: {code(line)}" if label else f"  {code(line)}"
        yield ""


def _timeline(report: TimelineReport) -> Iterator[str]:
    yield from ("", "## Timeline", "")
    if report.omitted:
        yield f"{report.omitted:,} entries in the middle are left out."
        yield ""
    for row in report.rows:
        yield from _row(row)


def _row(row: TimelineRow) -> Iterator[str]:
    head = f"- {precise_time_of_day(row.at)} {code(row.worker)} **{row.kind}** {code(row.note)}".rstrip()
    if "\n" not in row.text:
        yield f"{head} {code(row.text)}".rstrip()
        return
    yield head
    yield from (f"  {line}" for part in block(row.text) for line in part.split("\n"))


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
