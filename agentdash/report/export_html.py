"""A story as one HTML file: no script, nothing to load, every foreign character escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Final

from agentdash.model.findings import Finding
from agentdash.model.states import State, bucket
from agentdash.model.times import lasted, moment, time_of_day
from agentdash.model.worker import Worker
from agentdash.report.timeline_report import Member, Row, TimelineReport

_STYLE: Final = files("agentdash.report") / "story.css"


def html(story: TimelineReport, version: str) -> str:
    """The whole document.

    Args:
        version: agentdash's own.
    """
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(_title(story))}</title><style>{_STYLE.read_text('utf-8')}</style></head><body>",
        *_head(story, version),
        *_states(story),
        *_findings(story),
        *_timeline(story),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _title(story: TimelineReport) -> str:
    return next((m.worker.name for m in story.members if m.worker.id == story.thread), story.thread)


def _head(story: TimelineReport, version: str) -> Iterator[str]:
    threads = sum(member.worker.kind == "codex-thread" for member in story.members)
    versions = sorted({m.worker.agent.version for m in story.members if m.worker.agent.version})
    took = lasted(story.ended - story.begun)
    facts = [
        moment(story.begun),
        f"took {took}",
        f"{threads} thread{'s' * (threads != 1)}",
        *(f"codex {v}" for v in versions),
    ]
    yield f"<h1>{escape(_title(story))}</h1>"
    yield f'<p class="dim">{escape(" · ".join(facts))} · times are UTC</p>'
    source = f"told by agentdash {escape(version)} from the session's own files"
    yield f'<p class="dim">thread <code>{escape(story.thread)}</code> · {source}</p>'
    if story.redacted:
        yield '<p class="dim">Prompts, messages and outputs are left out; commands and paths are not.</p>'
    for note in story.notes:
        yield f'<p class="dim">{escape(note)}</p>'


def _states(story: TimelineReport) -> Iterator[str]:
    yield "<h2>Workers</h2><table><tr><th>worker<th>in the end<th>sandbox<th>states over time</tr>"
    for member in story.members:
        worker = member.worker
        kind = bucket(worker.state)
        indent = "&nbsp;&nbsp;" * worker.depth
        yield f"<tr><td>{indent}{escape(worker.name)}<br><span class=dim>{indent}{escape(_agent(worker))}</span>"
        yield f'<td><span class="{kind}">{escape(_word(worker.state))}</span><br><span class=dim>{escape(worker.assessment.why)}</span>'
        yield f'<td class="{escape(worker.sandbox.verdict)}">{escape(_sandbox(worker))}<td>{_bar(member, story)}</tr>'
    yield "</table>"


def _bar(member: Member, story: TimelineReport) -> str:
    whole = max(story.ended - story.begun, 0.001)
    ends = [*(period.since for period in member.periods[1:]), story.ended]
    pieces = (
        [f'<i style="width:{100 * (member.periods[0].since - story.begun) / whole:.2f}%"></i>']
        if member.periods
        else []
    )
    for period, end in zip(member.periods, ends, strict=False):
        said = escape(f"{time_of_day(period.since)} {_word(period.state)}: {period.why}", quote=True)
        pieces.append(
            f'<i class="{bucket(period.state)}" style="width:{100 * (end - period.since) / whole:.2f}%" title="{said}"></i>'
        )
    return f'<div class="bar">{"".join(pieces)}</div>'


def _findings(story: TimelineReport) -> Iterator[str]:
    found = story.findings
    yield f"<h2>Findings</h2>{'' if found else '<p>None.</p>'}"
    for at, worker, finding in found:
        yield f'<div class="finding"><b>{escape(finding.kind)}</b> <span class=dim>{escape(_about(at, worker, finding))}</span>'
        yield f"<p>{escape(finding.message)}</p><dl><dt>configured<dd>{escape(finding.configured)}<dt>got<dd>{escape(finding.got)}"
        for evidence in finding.evidence:
            yield f"<dt>{escape(evidence.source)}<dd><time>{time_of_day(evidence.at)}</time> <code>{escape(evidence.text)}</code>"
        if finding.remedy:
            yield f"<dt>remedy<dd><code>{escape(finding.remedy)}</code>"
        yield "</dl></div>"


def _timeline(story: TimelineReport) -> Iterator[str]:
    yield "<h2>Timeline</h2>"
    if story.left_out:
        yield f'<p class="dim">{story.left_out:,} entries in the middle are left out.</p>'
    for row in story.rows:
        yield _row(row)


def _row(row: Row) -> str:
    note = f'<span class="{"bad" if row.bad else "dim"}">{escape(_word(row.note))}</span>' if row.note else ""
    block = row.kind in ("prompt", "message", "output", "command", "call") and row.text
    text = f"<pre>{escape(row.text)}</pre>" if block else escape(row.text)
    kind = escape(row.kind)
    head = f"<time>{time_of_day(row.at)}</time><span>{escape(row.who)}</span><span class=dim>{kind}</span>"
    return f'<div class="row {kind}">{head}<div>{note} {text}</div></div>'


def _word(text: str | State) -> str:
    return str(text).replace("-", " ") if isinstance(text, State) else text


def _agent(worker: Worker) -> str:
    return " ".join(filter(None, (worker.agent.name, worker.agent.version, worker.model, worker.cwd)))


def _sandbox(worker: Worker) -> str:
    policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
    return f"{policy}: {worker.sandbox.verdict}"


def _about(at: float, worker: Worker, finding: Finding) -> str:
    times = f" · seen {finding.count} times" if finding.count > 1 else ""
    return f"{worker.name} · {finding.direction} · since {time_of_day(at)}{times}"
