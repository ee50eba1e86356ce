"""Render a report, or conversations, as Markdown: foreign text is in code spans and fenced blocks, where
markup has no effect. The HTML exports are these documents, rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.report.elements import difference_lines, remedy_lines
from agentdash.report.exports import (
    DatedChange,
    DatedFinding,
    TalkReport,
    ThreadTalk,
    TimelineReport,
    TimelineRow,
    tokens_and_cost,
)


def markdown(report: TimelineReport, version: str) -> str:
    """Return a report as a document."""
    lines = [
        *_head(report, version),
        *_workers(report),
        *_findings(report),
        *_changes(report),
        *_commands(report),
        *_timeline(report),
    ]
    return "\n".join((*lines, ""))


def _head(report: TimelineReport, version: str) -> Iterator[str]:
    """Yield the title, how the requested thread ended, the worst finding, and what the report is made of."""
    main = report.main
    yield f"# {code(main.name if main else report.thread)}"
    yield ""
    if main is not None:
        yield f"**{main.state}** {code(main.assessment.why)}".rstrip()
        yield ""
    worst = min(report.findings, key=lambda dated: SEVERITIES.index(dated.finding.severity), default=None)
    if worst is not None:
        yield f"**{worst.finding.kind}** {code(worst.finding.message)}"
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


def _findings(report: TimelineReport) -> Iterator[str]:
    yield from ("", "## Findings", "")
    if not report.findings:
        yield "None."
    for dated in report.findings:
        yield from _finding(dated)


def _finding(dated: DatedFinding) -> Iterator[str]:
    finding = dated.finding
    yield f"### {finding.kind} ({finding.direction}): {code(dated.worker)}, since {time_of_day(dated.at)}"
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


def _changes(report: TimelineReport) -> Iterator[str]:
    """Yield what was changed, by worker and turn, if anything was."""
    changes = report.changes()
    if changes:
        yield from ("", "## What was changed", "")
        yield from ("Files that commands wrote by themselves are not listed.", "")
    for (worker, turn), found in groupby(changes, key=lambda dated: (dated.worker, dated.turn)):
        name = f"{code(worker)}, " if len(report.workers) > 1 else ""
        yield from (f"### {name}turn {turn}", "")
        for dated in found:
            yield from _change(dated)
        yield ""


def _change(dated: DatedChange) -> Iterator[str]:
    call, change = dated.call, dated.change
    words = f"{change_words(call, change)} {line_counts(change)}".rstrip()
    yield f"- {code(shown_paths(change, call.cwd))} {words}, {time_of_day(call.at)}"
    if dated.diff:
        yield from ("", *_indented(block(dated.diff, "diff")), "")


def _commands(report: TimelineReport) -> Iterator[str]:
    """Yield the table of commands, if there are any."""
    commands, left_out = report.commands()
    if not commands:
        return
    yield from ("", "## Commands", "")
    if left_out:
        yield from (f"{left_out:,} earlier ones are left out.", "")
    yield from ("| at | worker | command | ended | took | denied |", "|---|---|---|---|---|---|")
    for dated in commands:
        call = dated.call
        cells = (
            precise_time_of_day(call.at),
            cell(dated.worker),
            cell(call.text),
            outcome_words(call),
            took(call.took) if call.took is not None else "",
            cell(call.denial or ""),
        )
        yield f"| {' | '.join(cells)} |"


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
    yield from _indented(block(row.text))


def _indented(parts: list[str]) -> Iterator[str]:
    """Yield lines as they continue an item of a list."""
    return (f"  {line}" for part in parts for line in part.split("\n"))


# ------------------------------------------------------------
# Conversations: answers are Markdown themselves and stay so, within block quotes, except for images and HTML,
# which are escaped outside code. Outputs and diffs are folded.


_FENCE: Final = re.compile(r"\s{0,3}(?:[-*+>]\s+|\d+[.)]\s+)*(`{3,}|~{3,})")
_CODE_SPAN: Final = re.compile(r"((?<!`)(`+)(?!`).*?(?<!`)\2(?!`))")
_ACTIVE: Final = re.compile(r"<|!(?=\[)|&(?=#|\w)|\[(?=[^\]]*\]:)")
"""What may become HTML, an image, a character that is not there, or the definition of a link."""
_PARSER: Final = MarkdownIt("commonmark", {"html": True})
_ACTIVE_KINDS: Final = {"html_block", "html_inline", "image"}
_ROLES: Final = {"user": "You", "agent": "Agent"}


def talk_markdown(report: TalkReport, version: str) -> str:
    """Return conversations as a document."""
    lines = [line for number, talk in enumerate(report.threads) for line in _thread(talk, number)]
    return "\n".join((*lines, f"Exported by agentdash {version} from the session's own files.", ""))


def quoted(text: str) -> list[str]:
    """Return a Markdown text as the lines of a block quote, without what is active in it; as plain text where
    that cannot be distinguished from code."""
    text = text.strip("\n")
    shown = [f"> {line}".rstrip() for line in _escaped(text)]
    if _is_inert("\n".join(shown)):
        return shown
    return [f"> {line}".rstrip() for part in block(text) for line in part.split("\n")]


def _escaped(text: str) -> Iterator[str]:
    """Yield the lines of a text with escapes outside code, as far as that is found line by line."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            closing = line.strip()
            fence = "" if closing.startswith(fence) and not closing.strip(fence[0]) else fence
            yield line
        elif found:
            fence = found[1]
            yield line
        else:
            yield _escaped_line(line)


def _escaped_line(line: str) -> str:
    """Return a line with escapes outside code spans."""
    parts = _CODE_SPAN.split(line)
    # split by two groups: text, the span, its backticks
    return "".join(
        _ACTIVE.sub(lambda match: f"\\{match[0]}", part) if index % 3 == 0 else part
        for index, part in enumerate(parts)
        if index % 3 != 2
    )


def _is_inert(text: str) -> bool:
    """Return whether a text has neither HTML nor images nor definitions of links, by a Markdown parser."""
    found: dict[str, object] = {}
    tokens = _PARSER.parse(text, found)
    kinds = {
        token.type for token in (*tokens, *(child for token in tokens for child in token.children or ()))
    }
    return not kinds & _ACTIVE_KINDS and not found.get("references")


def _thread(talk: ThreadTalk, number: int) -> Iterator[str]:
    conversation, worker = talk.conversation, talk.worker
    yield f"{'#' if number == 0 else '##'} {code(talk.name)}"
    yield ""
    yield f"- thread {code(conversation.thread)}"
    if worker is not None:
        agent = f"{worker.agent.name} {worker.agent.version or ''}"
        yield from (f"- {code(fact)}" for fact in (agent, worker.model, worker.cwd) if fact)
    if conversation.turns:
        yield f"- began {moment(conversation.turns[0].at)} UTC"
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


def _call(call: CallRecord) -> Iterator[str]:
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
        yield f"Denied: {code(call.denial)}"
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
    marked = (f"<{tag}>{escape(line)}</{tag}>" for line in lines for tag in (_tag(line),))
    return f'<pre class="diff">{"".join(marked)}</pre>\n'


def _tag(line: str) -> str:
    return _DIFF_TAGS.get(line[:1], "span")
