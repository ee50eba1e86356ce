"""Render a timeline report as one HTML file: no scripts, no external resources, all foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

from agentdash.model.conversation import change_words, line_counts, outcome_words, shown_paths
from agentdash.model.findings import SEVERITIES, sides
from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State, bucket
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.model.worker import Worker
from agentdash.report.elements import difference_lines, quantity, remedy_lines
from agentdash.report.timeline_report import (
    DatedCall,
    DatedFinding,
    TimelineReport,
    TimelineRow,
    WorkerTimeline,
)

_STYLE: Final = Path(__file__).with_name("timeline.css")
_PREFORMATTED: Final = ("prompt", "message", "output", "command", "call")
"""Kinds of rows whose line breaks are kept."""
_MIN_DURATION_S: Final = 0.001
"""Shortest duration assumed for the state bar, which divides by it."""


def html(report: TimelineReport, version: str) -> str:
    """Return the document."""
    style = _STYLE.read_text("utf-8")
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(report.title)}</title><style>{style}</style></head><body>",
        *_head(report, version),
        *_workers(report),
        *_findings(report),
        *changes_section(report),
        *commands_section(report),
        *_timeline(report),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _head(report: TimelineReport, version: str) -> Iterator[str]:
    threads = sum(timeline.worker.kind in ("codex-thread", "claude-session") for timeline in report.workers)
    agents = [timeline.worker.agent for timeline in report.workers]
    facts = [
        moment(report.begun),
        f"took {took(report.ended - report.begun)}",
        quantity(threads, "thread"),
        *((report.cost,) if report.cost else ()),
        *sorted({f"{agent.name} {agent.version}" for agent in agents if agent.version}),
    ]
    yield f"<h1>{escape(report.title)}</h1>"
    yield from _point(report)
    yield f'<p class="dim">{escape(" · ".join(facts))} · times are UTC</p>'
    source = f"exported by agentdash {escape(version)} from {escape(report.sources)}"
    yield f'<p class="dim">thread <code>{escape(report.thread)}</code> · {source}</p>'
    if report.redacted:
        yield '<p class="dim">Prompts, messages and outputs are left out; commands and paths are not.</p>'
    for note in report.notes:
        yield f'<p class="dim">{escape(note)}</p>'


def _point(report: TimelineReport) -> Iterator[str]:
    """Yield what matters most: how the requested thread ended, and the worst finding."""
    main = next((t.worker for t in report.workers if t.worker.id == report.thread), None)
    if main is not None:
        state = f'<b class="{bucket(main.state)}">{escape(_words(main.state))}</b>'
        yield f"<p class=point>{state} {escape(main.assessment.why)}</p>"
    worst = min(report.findings, key=lambda dated: SEVERITIES.index(dated.finding.severity), default=None)
    if worst is not None:
        more = f" <span class=dim>and {len(report.findings) - 1} more</span>" * (len(report.findings) > 1)
        yield f"<p class=point><b>{escape(worst.finding.kind)}</b> {escape(worst.finding.message)}{more}</p>"


def _workers(report: TimelineReport) -> Iterator[str]:
    yield '<h2>Workers</h2><table class="workers">'
    yield "<tr><th>worker<th>in the end<th>sandbox<th>states over time</tr>"
    for timeline in report.workers:
        worker = timeline.worker
        why = escape(worker.assessment.why)
        about = "<br>".join(filter(None, (escape(_agent(worker)), timeline.cost)))
        yield f'<tr><td style="padding-left:{min(worker.depth, MAX_INDENT)}rem">{escape(worker.name)}<br>'
        yield f"<span class=dim>{about}</span>"
        yield f'<td><span class="{bucket(worker.state)}">{escape(_words(worker.state))}</span><br>'
        yield f"<span class=dim>{why}</span>"
        yield f'<td class="{escape(worker.sandbox.verdict)}">{escape(_sandbox(worker))}'
        yield f"<td>{_state_bar(timeline, report)}</tr>"
    yield "</table>"


def _state_bar(timeline: WorkerTimeline, report: TimelineReport) -> str:
    duration = max(report.ended - report.begun, _MIN_DURATION_S)
    ends = [*(change.since for change in timeline.states[1:]), report.ended]
    pieces = []
    if timeline.states:
        pieces.append(
            f'<i style="width:{100 * (timeline.states[0].since - report.begun) / duration:.2f}%"></i>'
        )
    for change, end in zip(timeline.states, ends, strict=False):
        text = f"{time_of_day(change.since)} {_words(change.state)}: {change.why}"
        width = f"width:{100 * (end - change.since) / duration:.2f}%"
        pieces.append(
            f'<i class="{bucket(change.state)}" style="{width}" title="{escape(text, quote=True)}"></i>'
        )
    return f'<div class="bar">{"".join(pieces)}</div>'


def _findings(report: TimelineReport) -> Iterator[str]:
    yield f"<h2>Findings</h2>{'' if report.findings else '<p>None.</p>'}"
    for dated in report.findings:
        finding = dated.finding
        summary = escape(_summary(dated))
        yield f'<div class="finding"><b>{escape(finding.kind)}</b> <span class=dim>{summary}</span>'
        yield f"<p>{escape(finding.message)}</p><dl>"
        for label, text in (*difference_lines(finding), *sides(finding)):
            yield f"<dt>{label}<dd>{escape(text)}"
        for evidence in finding.evidence:
            yield f"<dt>{escape(evidence.source)}<dd><time>{precise_time_of_day(evidence.at)}</time>"
            yield f"<code>{escape(evidence.text)}</code>"
        if finding.remedy:
            remedy = finding.remedy
            for label, line in remedy_lines(remedy.text, remedy.where, remedy.once):
                yield f"<dt>{label}<dd><code>{escape(line)}</code>"
        yield "</dl></div>"


def _timeline(report: TimelineReport) -> Iterator[str]:
    yield "<h2>Timeline</h2>"
    if report.omitted:
        yield f'<p class="dim">{report.omitted:,} entries in the middle are left out.</p>'
    for row in report.rows:
        yield _row(row)


def _row(row: TimelineRow) -> str:
    css = "bad" if row.highlighted else "dim"
    note = f'<span class="{css}">{escape(_words(row.note))}</span>' if row.note else ""
    text = escape(row.text)
    if row.text and row.kind in _PREFORMATTED:
        text = f"<pre>{text}</pre>"
    kind = escape(row.kind)
    time = precise_time_of_day(row.at)
    head = f"<time>{time}</time><span>{escape(row.worker)}</span><span class=dim>{kind}</span>"
    return f'<div class="row {kind}">{head}<div>{note} {text}</div></div>'


def _words(text: str | State) -> str:
    return str(text).replace("-", " ") if isinstance(text, State) else text


def _agent(worker: Worker) -> str:
    return " ".join(filter(None, (worker.agent.name, worker.agent.version, worker.model, worker.cwd)))


def _sandbox(worker: Worker) -> str:
    policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
    return f"{policy}: {worker.sandbox.verdict}"


def _summary(dated: DatedFinding) -> str:
    finding = dated.finding
    times = f" · seen {finding.count} times" if finding.count > 1 else ""
    return f"{dated.worker.name} · {finding.direction} · since {time_of_day(dated.at)}{times}"


MAX_COMMANDS: Final = 1_000
"""Commands listed, the newest: browsers become slow with many rows."""
MAX_DIFF_CHARS: Final = 1_000_000
"""Characters of all diffs; what follows is listed without them."""
ONLY_PATCHES: Final = "Files that commands wrote by themselves are not listed."


def changes_section(report: TimelineReport) -> Iterator[str]:
    """Yield what was changed, by worker and turn; nothing where nothing was."""
    changes = report.changes
    if not changes:
        return
    yield f"<h2>What was changed</h2><p class=dim>{ONLY_PATCHES}</p>"
    room = MAX_DIFF_CHARS
    for (worker, turn), calls in groupby(changes, key=lambda dated: (dated.worker.id, dated.turn)):
        found = list(calls)
        name = f"{escape(found[0].worker.name)}, " if len(report.workers) > 1 and worker else ""
        yield f"<h3>{name}turn {turn}</h3>"
        for dated in found:
            for change in dated.call.changes:
                fits = len(change.diff) <= room
                room -= len(change.diff) if fits else 0
                yield _change(dated, shown_paths(change, dated.call.cwd), change.diff if fits else "")


def _change(dated: DatedCall, path: str, diff: str) -> str:
    """Return one file of a call; its diff is folded."""
    call = dated.call
    change = next(change for change in call.changes if shown_paths(change, call.cwd) == path)
    css = "bad" if call.has_changed is False else "dim"
    words = f"{change_words(call, change)} {line_counts(change)}"
    head = f"<code>{escape(path)}</code> <span class={css}>{escape(words)}</span>"
    head += f" <time>{time_of_day(call.at)}</time>"
    if not diff:
        return f"<p class=change>{head}</p>"
    return f"<details class=change><summary>{head}</summary>{diff_html(diff)}</details>"


def diff_html(diff: str) -> str:
    """Return a diff with its lines marked as added and removed."""
    marked = (f"<{tag}>{escape(line)}</{tag}>" for line in diff.split("\n") for tag in (_tag(line),))
    return f'<pre class="diff">{"".join(marked)}</pre>'


def _tag(line: str) -> str:
    return {"+": "ins", "-": "del", "@": "b"}.get(line[:1], "span")


def commands_section(report: TimelineReport) -> Iterator[str]:
    """Yield the table of commands; nothing without any."""
    commands = report.commands
    if not commands:
        return
    yield f"<h2>Commands</h2>{omitted_commands(commands)}"
    yield '<table class="commands"><tr><th>at<th>command<th>ended<th>took</tr>'
    for dated in commands[-MAX_COMMANDS:]:
        call = dated.call
        css = "bad" if call.failed or call.denial else "dim"
        duration = took(call.took) if call.took is not None else ""
        denial = f"<br><span class=bad>denied: {escape(call.denial)}</span>" if call.denial else ""
        worker = f" <span class=dim>{escape(dated.worker.name)}</span>" if len(report.workers) > 1 else ""
        yield f"<tr><td><time>{precise_time_of_day(call.at)}</time>{worker}"
        yield f"<td><code>{escape(call.text)}</code>{denial}"
        yield f'<td class="{css}">{escape(outcome_words(call))}<td><time>{duration}</time></tr>'
    yield "</table>"


def omitted_commands(commands: Sequence[DatedCall]) -> str:
    """Return how many commands are not listed."""
    left_out = len(commands) - MAX_COMMANDS
    return f"<p class=dim>{left_out:,} earlier ones are left out.</p>" if left_out > 0 else ""
