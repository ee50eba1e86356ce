"""Render a report, or conversations, as one HTML file: no scripts, no external resources, all foreign text
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from agentdash.model.conversation import (
    CallRecord,
    ConversationTurn,
    Message,
    change_words,
    line_counts,
    outcome_words,
    shown_paths,
)
from agentdash.model.findings import SEVERITIES, sides
from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State, bucket
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.model.worker import Worker
from agentdash.report.elements import difference_lines, quantity, remedy_lines
from agentdash.report.exports import (
    ONLY_PATCHES,
    DatedChange,
    DatedFinding,
    TalkReport,
    ThreadTalk,
    TimelineReport,
    TimelineRow,
    WorkerTimeline,
    gap_words,
    heading_facts,
)

_PREFORMATTED: Final = ("prompt", "message", "output", "command", "call")
"""Kinds of rows whose line breaks are kept."""
_MIN_DURATION_S: Final = 0.001
"""Shortest duration assumed for the state bar, which divides by it."""


def html(report: TimelineReport, version: str) -> str:
    """Return the document."""
    parts = (
        _head(report, version),
        _workers(report),
        _findings(report),
        changes_section(report),
        commands_section(report),
        _timeline(report),
    )
    return _page(report.title, (line for part in parts for line in part), "timeline.css")


def _page(title: str, body: Iterable[str], *styles: str) -> str:
    style = "\n".join(Path(__file__).with_name(name).read_text("utf-8") for name in styles)
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{style}</style></head><body>",
        *body,
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


def changes_section(report: TimelineReport) -> Iterator[str]:
    """Yield what was changed, by worker and turn, if anything was."""
    changes = report.changes()
    if changes:
        yield f"<h2>What was changed</h2><p class=dim>{ONLY_PATCHES}</p>"
    for (_, turn), found in groupby(changes, key=lambda dated: (dated.worker.id, dated.turn)):
        in_turn = list(found)
        name = f"{escape(in_turn[0].worker.name)}, " if len(report.workers) > 1 else ""
        yield f"<h3>{name}turn {turn}</h3>"
        yield from map(_change, in_turn)


def _change(dated: DatedChange) -> str:
    """Return one file of a call; its diff is folded."""
    call, change = dated.call, dated.change
    css = "bad" if call.has_changed is False else "dim"
    head = f"<code>{escape(shown_paths(change, call.cwd))}</code> "
    head += f"<span class={css}>{escape(f'{change_words(call, change)} {line_counts(change)}')}</span>"
    head += f" <time>{time_of_day(call.at)}</time>"
    if not dated.diff:
        return f"<p class=change>{head}</p>"
    return f"<details class=change><summary>{head}</summary>{diff_html(dated.diff)}</details>"


def diff_html(diff: str) -> str:
    """Return a diff with its lines marked as added and removed."""
    marked = (f"<{tag}>{escape(line)}</{tag}>" for line in diff.split("\n") for tag in (_tag(line),))
    return f'<pre class="diff">{"".join(marked)}</pre>'


def _tag(line: str) -> str:
    return {"+": "ins", "-": "del", "@": "b"}.get(line[:1], "span")


def commands_section(report: TimelineReport) -> Iterator[str]:
    """Yield the table of commands, if there are any."""
    commands, left_out = report.commands()
    if not commands:
        return
    yield "<h2>Commands</h2>"
    if left_out:
        yield f"<p class=dim>{left_out:,} earlier ones are left out.</p>"
    yield '<table class="commands"><tr><th>at<th>command<th>ended<th>took</tr>'
    for dated in commands:
        call = dated.call
        css = "bad" if call.failed or call.denial else "dim"
        duration = took(call.took) if call.took is not None else ""
        denial = f"<br><span class=bad>denied: {escape(call.denial)}</span>" if call.denial else ""
        worker = f" <span class=dim>{escape(dated.worker.name)}</span>" if len(report.workers) > 1 else ""
        yield f"<tr><td><time>{precise_time_of_day(call.at)}</time>{worker}"
        yield f"<td><code>{escape(call.text)}</code>{denial}"
        yield f'<td class="{css}">{escape(outcome_words(call))}<td><time>{duration}</time></tr>'
    yield "</table>"


# ------------------------------------------------------------
# Conversations: answers are rendered by a Markdown parser without HTML and without images


_ROLES: Final = {"user": "you", "agent": "agent"}


def talk_html(report: TalkReport, version: str) -> str:
    """Return the document of conversations."""
    body = [part for number, talk in enumerate(report.threads) for part in _thread(talk, number)]
    body.append(f'<p class="dim">exported by agentdash {escape(version)} from the session\'s own files</p>')
    title = report.threads[0].name if report.threads else "conversation"
    return _page(title, body, "timeline.css", "talk.css")


def _thread(talk: ThreadTalk, number: int) -> Iterator[str]:
    conversation = talk.conversation
    tag = "h1" if number == 0 else "h2"
    yield f"<{tag}>{escape(talk.name)}</{tag}>"
    began = (f"{moment(conversation.turns[0].at)} UTC",) if conversation.turns else ()
    yield f'<p class="dim">{escape(" · ".join((*began, *heading_facts(talk))))}</p>'
    yield f'<p class="dim">thread <code>{escape(conversation.thread)}</code></p>'
    if conversation.problem:
        yield f'<p class="bad">cannot be read to its end: {escape(conversation.problem)}</p>'
    if gap := gap_words(conversation):
        yield f'<p class="dim">{gap}</p>'
    for turn in conversation.turns:
        yield from _turn(turn)


def _turn(turn: ConversationTurn) -> Iterator[str]:
    yield f'<section><p class="turn">turn {turn.number} <time>{time_of_day(turn.at)}</time></p>'
    for entry in turn.entries:
        yield from _message(entry) if isinstance(entry, Message) else _call(entry)
    if turn.how == "aborted" or turn.error:
        yield f'<p class="bad">{escape(turn.how or "ended")} {escape(turn.error or "")}</p>'
    yield "</section>"


def _message(message: Message) -> Iterator[str]:
    yield f'<div class="said {message.role}"><p class="dim">{_ROLES[message.role]} '
    yield f"<time>{time_of_day(message.at)}</time></p>"
    # a prompt is shown as it was typed: most are not meant as Markdown
    yield _rendered(message.text) if message.role == "agent" else f"<pre>{escape(message.text)}</pre>"
    yield "</div>"


def _rendered(text: str) -> str:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(parser.render(text))


def _call(call: CallRecord) -> Iterator[str]:
    """Yield a call, folded: one line of what it was and how it ended."""
    lasted = f" <span class=dim>{took(call.took)}</span>" if call.took is not None else ""
    css = "bad" if call.failed or call.denial else "dim"
    yield f"<details><summary><code>{escape(f'{call.label} {call.text}')}</code>"
    yield f'<span class="{css}">{escape(outcome_words(call))}</span>{lasted}</summary>'
    if call.escalation:
        reason = escape(call.escalation.reason or "no reason given")
        yield f'<p class="bad">asks to leave the sandbox: {reason}</p>'
    if "\n" in call.script:
        yield f"<pre>{escape(call.script)}</pre>"
    for change in call.changes:
        path = escape(shown_paths(change, call.cwd))
        words = escape(f"{change_words(call, change)} {line_counts(change)}")
        yield f"<p><code>{path}</code> <span class=dim>{words}</span></p>"
        if change.diff:
            yield diff_html(change.diff)
    if call.denial:
        yield f'<p class="bad">denied: {escape(call.denial)}</p>'
    if call.output.strip():
        yield f"<pre>{escape(call.output.strip(chr(10)))}</pre>"
    yield "</details>"
