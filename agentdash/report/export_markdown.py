"""A story as Markdown, for issues: whatever is foreign stands in code, where it means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentdash.model.times import lasted, moment, time_of_day
from agentdash.report.timeline_report import Row, TimelineReport

_TICKS: Final = re.compile("`+")


def markdown(story: TimelineReport, version: str) -> str:
    """The whole document.

    Args:
        version: agentdash's own.
    """
    return "\n".join((*_head(story, version), *_workers(story), *_findings(story), *_timeline(story), ""))


def code(text: str) -> str:
    """A text on one line as a code span, whatever is in it; `|` too is safe in tables."""
    line = " ".join(text.split()).replace("|", "¦")
    fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def block(text: str) -> list[str]:
    """A text of many lines as a fenced block, whatever is in it."""
    fence = "`" * max(3, max((len(ticks) for ticks in _TICKS.findall(text)), default=0) + 1)
    return [f"{fence}text", text, fence]


def _head(story: TimelineReport, version: str) -> Iterator[str]:
    name = next((m.worker.name for m in story.members if m.worker.id == story.thread), story.thread)
    yield f"# {code(name)}"
    yield ""
    yield f"- thread {code(story.thread)}"
    yield f"- began {moment(story.begun)} UTC, took {lasted(story.ended - story.begun)}"
    yield f"- told by agentdash {version} from the session's own files"
    if story.redacted:
        yield "- prompts, messages and outputs are left out; commands and paths are not"
    yield from (f"- {code(note)}" for note in story.notes)


def _workers(story: TimelineReport) -> Iterator[str]:
    yield from (
        "",
        "## Workers",
        "",
        "| worker | agent | in the end | why | sandbox |",
        "|---|---|---|---|---|",
    )
    for member in story.members:
        worker = member.worker
        policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
        agent = f"{worker.agent.name} {worker.agent.version or ''}"
        name = "&nbsp;&nbsp;" * worker.depth + code(worker.name)
        yield f"| {name} | {code(agent)} | **{worker.state}** | {code(worker.assessment.why)} | {policy}: **{worker.sandbox.verdict}** |"


def _findings(story: TimelineReport) -> Iterator[str]:
    yield from ("", "## Findings", "")
    found = story.findings
    if not found:
        yield "None."
    for at, worker, finding in found:
        yield f"### {finding.kind} ({finding.direction}): {code(worker.name)}, since {time_of_day(at)}"
        yield ""
        yield code(finding.message)
        yield ""
        yield f"- configured: {code(finding.configured)}"
        yield f"- got: {code(finding.got)}"
        yield from (
            f"- {evidence.source} {time_of_day(evidence.at)}: {code(evidence.text)}"
            for evidence in finding.evidence
        )
        if finding.remedy:
            yield f"- remedy: {code(finding.remedy)}"
        yield ""


def _timeline(story: TimelineReport) -> Iterator[str]:
    yield from ("", "## Timeline", "")
    if story.left_out:
        yield f"{story.left_out:,} entries in the middle are left out."
        yield ""
    for row in story.rows:
        yield from _row(row)


def _row(row: Row) -> Iterator[str]:
    head = f"- {time_of_day(row.at)} {code(row.who)} **{row.kind}** {code(row.note)}".rstrip()
    if "\n" not in row.text:
        yield f"{head} {code(row.text)}".rstrip()
        return
    yield head
    yield from (f"  {line}" for part in block(row.text) for line in part.split("\n"))
