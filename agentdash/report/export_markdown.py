"""Render a timeline report as Markdown, for issues: all foreign text is in code spans, where markup has no
effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentdash.model.layer_words import sides
from agentdash.model.times import lasted, moment, time_of_day
from agentdash.report.elements import difference_lines, remedy_lines
from agentdash.report.timeline_report import TimelineReport, TimelineRow

_BACKTICKS: Final = re.compile("`+")


def markdown(report: TimelineReport, version: str) -> str:
    """Return the document.

    Args:
        version: the version of agentdash.
    """
    return "\n".join((*_head(report, version), *_workers(report), *_findings(report), *_timeline(report), ""))


def code(text: str) -> str:
    """Return a text on one line as a code span, whatever it contains; `|` is replaced, which would end a
    table cell."""
    line = " ".join(text.split()).replace("|", "¦")
    fence = "`" * (_longest_backticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def block(text: str) -> list[str]:
    """Return a text of several lines as a fenced block, whatever it contains."""
    fence = "`" * max(3, _longest_backticks(text) + 1)
    return [f"{fence}text", text, fence]


def _longest_backticks(text: str) -> int:
    return max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=0)


def _head(report: TimelineReport, version: str) -> Iterator[str]:
    yield f"# {code(report.title)}"
    yield ""
    yield f"- thread {code(report.thread)}"
    yield f"- began {moment(report.begun)} UTC, took {lasted(report.ended - report.begun)}"
    yield f"- exported by agentdash {version} from the session's own files"
    if report.redacted:
        yield "- prompts, messages and outputs are left out; commands and paths are not"
    yield from (f"- {code(note)}" for note in report.notes)


def _workers(report: TimelineReport) -> Iterator[str]:
    yield from (
        "",
        "## Workers",
        "",
        "| worker | agent | in the end | why | sandbox |",
        "|---|---|---|---|---|",
    )
    for timeline in report.workers:
        worker = timeline.worker
        policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
        cells = (
            "&nbsp;&nbsp;" * worker.depth + code(worker.name),
            code(f"{worker.agent.name} {worker.agent.version or ''}"),
            f"**{worker.state}**",
            code(worker.assessment.why),
            f"{policy}: **{worker.sandbox.verdict}**",
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
            yield f"- {evidence.source} {time_of_day(evidence.at)}: {code(evidence.text)}"
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
    head = f"- {time_of_day(row.at)} {code(row.worker)} **{row.kind}** {code(row.note)}".rstrip()
    if "\n" not in row.text:
        yield f"{head} {code(row.text)}".rstrip()
        return
    yield head
    yield from (f"  {line}" for part in block(row.text) for line in part.split("\n"))
