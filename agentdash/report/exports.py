"""The past of a family, as exports have it: its workers as of the end, and what was said and done.

As Markdown, in which foreign text is in code spans and fenced blocks, where markup has no effect; and as
HTML, rendered from that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from agentdash.engine.conversation import ConversationBuilder
from agentdash.model import events as e
from agentdash.model.conversation import (
    Conversation,
    ConversationTurn,
    Message,
    change_words,
    line_counts,
    outcome_words,
    shown_paths,
)
from agentdash.model.findings import SEVERITIES, Finding, sides
from agentdash.model.fleet import NOT_RECORDED
from agentdash.model.limits import MAX_INDENT
from agentdash.model.secrets import mask_fields
from agentdash.model.thread import Call
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.model.tokens import merged_usage
from agentdash.model.worker import Snapshot, Worker
from agentdash.prices import cost, price_list, tokens_and_cost
from agentdash.replay.conversation import denials_of
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import MergedStream
from agentdash.report.elements import difference_lines, remedy_lines, short_id
from agentdash.report.redact import Scrubber, map_texts, redacted_conversation, redacted_worker

_ID_CHARS: Final = 6
"""Of the end of a thread's id, which is random (UUIDv7)."""
_PROGRESS_STEPS: Final = 500
"""Steps between two calls of `progress`."""


class ExportReport(msgspec.Struct):
    """The past of a family."""

    thread: str
    """Id of the requested thread."""
    begun: float
    """Unix seconds."""
    ended: float
    """Unix seconds."""
    workers: list[Worker]
    """As of the end, with names that differ."""
    conversations: list[Conversation]
    """Those of the workers that have a session file, in their order."""
    redacted: bool
    notes: list[str]
    """What could not be read or was skipped."""
    sources: str
    """What it was made of, as a sentence goes on after "from"."""

    @property
    def findings(self) -> list[tuple[Worker, Finding]]:
        """The findings of all workers, by the time at which each began."""
        found = [(worker, finding) for worker in self.workers for finding in worker.sandbox.findings]
        return sorted(found, key=lambda each: each[1].since)


def build_report(
    thread: str,
    stream: MergedStream,
    *,
    ended: bool,
    scrubber: Scrubber | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ExportReport:
    """Replay a stream and return its report, secrets masked.

    Args:
        thread: id of the requested thread.
        ended: whether no process holds these threads.
        scrubber: replaces homes, users and hosts, and prompts, messages and outputs are left out; None: none
            of this.
        progress: called from time to time with the bytes read so far.
    """
    cursor = Cursor(stream)
    builders: dict[str, ConversationBuilder] = {}
    begun = last = 0.0
    while (step := cursor.advance()) is not None:
        begun = begun or step.at
        for event in step.events:
            if isinstance(event, e.ThreadEvent):
                builder = builders.setdefault(event.thread, ConversationBuilder(event.thread))
                builder.add(event, denials_of(cursor.fleet, event))
            if isinstance(event, e.ThreadEvent) or not stream.has_logs:
                last = step.at  # a recording of a family goes on for a while
            if scrubber is not None:
                scrubber.learn(event)
        if cursor.position % _PROGRESS_STEPS == 0:
            progress(stream.offset)
    if cursor.position and ended:
        cursor.close()
    snapshot = cursor.snapshot(settled=True)
    gone = (past.shown for past in snapshot.past if past.shown is not None)
    shown = {worker.id: worker for worker in (*gone, *snapshot.workers)}
    workers = _named(list(shown.values()), is_redacted=scrubber is not None)
    report = ExportReport(
        thread=thread,
        begun=min((begun, *(worker.started for worker in workers if worker.started))),
        ended=max((last, *(period.since for worker in workers for period in worker.history))),
        workers=workers,
        conversations=[builders[each.id].conversation() for each in workers if each.id in builders],
        redacted=scrubber is not None,
        notes=_notes(workers, snapshot),
        sources=stream.sources,
    )
    masked: ExportReport = mask_fields(report if scrubber is None else redacted(report, scrubber))
    return masked


def _named(workers: Sequence[Worker], *, is_redacted: bool) -> list[Worker]:
    """Return workers with names that differ. Those of redacted workers go: they may be cut from prompts.
    Names that several have, as forks have that of their parent, get the end of the id."""
    names = [short_id(worker.id) if is_redacted else worker.name for worker in workers]
    shared = Counter(names)
    return [
        replace(worker, name=f"{name} ({worker.id[-_ID_CHARS:]})" if shared[name] > 1 else name)
        for worker, name in zip(workers, names, strict=True)
    ]


def _notes(workers: Sequence[Worker], snapshot: Snapshot) -> list[str]:
    notes = [f"{worker.name}: {note}" for worker in workers for note in worker.notes]
    failed = [source for source in snapshot.sources if not source.ok and source.detail != NOT_RECORDED]
    return notes + [f"{source.name}: {source.detail}" for source in failed]


def redacted(report: ExportReport, scrubber: Scrubber) -> ExportReport:
    """Return a report without prompts, messages, outputs, and sentences that may quote them. Its workers have
    pseudonyms already."""
    kept = replace(
        report,
        workers=[redacted_worker(worker) for worker in report.workers],
        conversations=[redacted_conversation(each) for each in report.conversations],
        notes=[f"{len(report.notes)} notes are left out"] if report.notes else [],
    )
    scrubbed: ExportReport = map_texts(kept, scrubber.text)
    return scrubbed


# ------------------------------------------------------------
# A report as Markdown


def markdown(report: ExportReport, version: str) -> str:
    """Return a report as a document."""
    lines = [*_head(report, version), *_workers(report), *_findings(report)]
    for worker in report.workers:
        lines += _past(worker, report)
    return "\n".join((*lines, ""))


def _head(report: ExportReport, version: str) -> Iterator[str]:
    """Yield the title, how the requested thread ended, the worst finding, and what the report is made of."""
    main = next((worker for worker in report.workers if worker.id == report.thread), None)
    yield f"# {code(main.name if main else report.thread)}"
    yield ""
    if main is not None:
        yield f"**{main.state}** {code(main.assessment.why)}".rstrip()
        yield ""
    findings = (finding for _, finding in report.findings)
    if worst := min(findings, key=lambda each: SEVERITIES.index(each.severity), default=None):
        yield f"**{worst.kind}** {code(worst.message)}"
        yield ""
    yield f"- thread {code(report.thread)}"
    yield f"- began {moment(report.begun)} UTC, took {took(report.ended - report.begun)}"
    if usage := merged_usage(each for worker in report.workers for each in worker.tokens.by_model):
        found = cost(usage)
        priced = f" at list prices of {price_list().read}" if found and found.priced_usd else ""
        yield f"- {tokens_and_cost(usage)}{priced}"
    yield f"- exported by agentdash {version} from {report.sources}"
    if report.redacted:
        yield "- prompts, messages and outputs are left out; commands and paths are not"
    yield from (f"- {code(note)}" for note in report.notes)


def _workers(report: ExportReport) -> Iterator[str]:
    yield from ("", "## Workers", "")
    yield "| worker | agent | in the end | why | sandbox | tokens |"
    yield "|---|---|---|---|---|---|"
    for worker in report.workers:
        policy = worker.sandbox.configured.brief() if worker.sandbox.configured else "not stated"
        cells = (
            "&nbsp;&nbsp;" * min(worker.depth, MAX_INDENT) + cell(worker.name),
            cell(f"{worker.agent.name} {worker.agent.version or ''}"),
            f"**{worker.state}**",
            cell(worker.assessment.why),
            f"{policy}: **{worker.sandbox.verdict}**",
            tokens_and_cost(worker.tokens.by_model),
        )
        yield f"| {' | '.join(cells)} |"


def _findings(report: ExportReport) -> Iterator[str]:
    yield from ("", "## Findings", "")
    if not report.findings:
        yield "None."
    for worker, finding in report.findings:
        yield from _finding(worker, finding)


def _finding(worker: Worker, finding: Finding) -> Iterator[str]:
    begun = time_of_day(finding.since)
    yield f"### {finding.kind} ({finding.direction}): {code(worker.name)}, since {begun}"
    yield ""
    yield code(finding.message)
    yield ""
    for label, text in (*difference_lines(finding), *sides(finding)):
        if text:
            yield f"- {label}: {code(text)}"
    for evidence in finding.evidence:
        yield f"- {evidence.source} {precise_time_of_day(evidence.at)}: {code(evidence.text)}"
    if remedy := finding.remedy:
        for label, line in remedy_lines(remedy.text, remedy.where, remedy.once):
            yield f"- {label}: {code(line)}" if label else f"  {code(line)}"
    yield ""


def _past(worker: Worker, report: ExportReport) -> Iterator[str]:
    """Yield the states and policies of a worker, and its conversation if it has a session file."""
    yield from ("", f"## {code(worker.name)}", "")
    for fact in (worker.id, f"{worker.agent.name} {worker.agent.version or ''}", worker.model, worker.cwd):
        if fact:
            yield f"- {code(fact)}"
    for period in worker.policies:
        policy = f"{period.policy.brief()}, approval {period.policy.approval or 'not stated'}"
        yield f"- {time_of_day(period.since)} {policy} ({code(period.origin)})"
    for state in worker.history:
        yield f"- {time_of_day(state.since)} **{state.state}** {code(state.why)}".rstrip()
    for conversation in report.conversations:
        if conversation.thread == worker.id:
            yield from _conversation(conversation)


# ------------------------------------------------------------
# Conversations: answers are Markdown themselves and stay so, in block quotes; outputs and diffs are folded


_PARSER: Final = MarkdownIt("commonmark", {"html": True})
_ACTIVE_KINDS: Final = {"html_block", "html_inline", "image"}
_ROLES: Final = {"user": "You", "agent": "Agent"}


def quoted(text: str) -> list[str]:
    """Return a Markdown text as the lines of a block quote; as plain text if something in it is active."""
    text = text.strip("\n")
    shown = [f"> {line}".rstrip() for line in text.split("\n")]
    if _is_inert("\n".join(shown)):
        return shown
    return [f"> {line}".rstrip() for part in block(text) for line in part.split("\n")]


def _is_inert(text: str) -> bool:
    """Return whether a text has neither HTML nor images nor definitions of links, by a Markdown parser."""
    found: dict[str, object] = {}
    tokens = _PARSER.parse(f"{text}\n", found)  # without it the parser (4.3.0) fails at some comments
    kinds = {
        token.type for token in (*tokens, *(child for token in tokens for child in token.children or ()))
    }
    return not kinds & _ACTIVE_KINDS and not found.get("references")


def _conversation(conversation: Conversation) -> Iterator[str]:
    if conversation.problem:
        yield f"- cannot be read to its end: {code(conversation.problem)}"
    if conversation.dropped:
        yield f"- {conversation.dropped:,} earlier entries are left out"
    elif not conversation.is_whole:
        yield "- the beginning is left out"
    yield ""
    for turn in conversation.turns:
        yield from _turn(turn)


def _turn(turn: ConversationTurn) -> Iterator[str]:
    yield from (f"### Turn {turn.number}, {time_of_day(turn.at)}", "")
    for entry in turn.entries:
        if isinstance(entry, Message):
            yield f"**{_ROLES[entry.role]}**, {time_of_day(entry.at)}"
            yield ""
            yield from quoted(entry.text)
        else:
            yield from _call(entry)
        yield ""
    if turn.how == "aborted" or turn.error:
        yield f"**{turn.how or 'ended'}** {code(turn.error or '')}".rstrip()
        yield ""


def _call(call: Call) -> Iterator[str]:
    """Yield a call, folded: one line of what it was and how it ended."""
    lasted = f", {took(call.took)}" if call.took is not None else ""
    called = f"<code>{escape(f'{call.label} {call.text}')}</code>"
    yield f"<details><summary>{called} {outcome_words(call)}{lasted}</summary>"
    yield ""
    if call.escalation:
        yield f"Asks to leave the sandbox: {code(call.escalation.reason or 'no reason given')}"
        yield ""
    if "\n" in call.script:
        yield from block(call.script)
    for change in call.changes:
        words = f"{change_words(call, change)} {line_counts(change)}".rstrip()
        yield f"{code(shown_paths(change, call.cwd))} {words}"
        yield ""
        if change.diff:
            yield from block(change.diff, "diff")
    if call.denial:
        yield f"Denied: {code(call.denial.quote)}"
        yield ""
    if call.output.strip():
        yield from block(call.output.strip("\n"))
    yield "</details>"


# ------------------------------------------------------------
# Foreign text in Markdown: in code spans and fenced blocks, where markup has no effect


_BACKTICKS: Final = re.compile("`+")


def code(text: str) -> str:
    """Return a text on one line as a code span, whatever it contains."""
    line = " ".join(text.split())
    fence = "`" * (_longest_backticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def cell(text: str) -> str:
    r"""Return a code span for a table: a `|`, which would end the cell, is written `\|` there."""
    return code(text).replace("|", r"\|")


def block(text: str, language: str = "text") -> list[str]:
    """Return a text of several lines as a fenced block, whatever it contains."""
    fence = "`" * max(3, _longest_backticks(text) + 1)
    return [f"{fence}{language}", text, fence]


def _longest_backticks(text: str) -> int:
    return max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=0)


# ------------------------------------------------------------
# Render an exported Markdown document as one HTML page: it has no scripts and loads nothing
# Foreign text is inert in the document already. Here nothing relies on that: of HTML only the tags of a
# folded call are let through, images are text, and the page forbids browsers to load or run anything.


_FOLDED: Final = re.compile(r"<details><summary><code>[^<>]*</code>[^<>]*</summary>|</details>")
"""All the HTML of a document: the begin and the end of a call of a conversation."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_DIFF_TAGS: Final = {"+": "ins", "-": "del", "@": "b"}


def page(markdown: str) -> str:
    """Return a Markdown document as an HTML page."""
    style = Path(__file__).with_name("export.css").read_text("utf-8")
    title = markdown.partition("\n")[0].strip("# `")
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{style}</style></head><body>",
        _parser().render(markdown),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").disable("image")
    parser.add_render_rule("html_block", _html)
    parser.add_render_rule("html_inline", _html)
    parser.add_render_rule("fence", _fence)
    return parser


def _html(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    content = tokens[index].content
    return content if _FOLDED.fullmatch(content.strip()) else escape(content)


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    """Return a fenced block; a diff with its lines marked as added and removed."""
    token = tokens[index]
    if token.info.strip() != "diff":
        return f"<pre><code>{escape(token.content)}</code></pre>\n"
    lines = token.content.rstrip("\n").split("\n")
    tagged = ((line, _DIFF_TAGS.get(line[:1], "span")) for line in lines)
    marked = (f"<{tag}>{escape(line)}</{tag}>" for line, tag in tagged)
    return f'<pre class="diff">{"".join(marked)}</pre>\n'
