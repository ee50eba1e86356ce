"""Render a report, or conversations, as Markdown: foreign text is in code spans and fenced blocks, where
markup has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
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
from agentdash.model.findings import sides
from agentdash.model.limits import MAX_INDENT
from agentdash.model.times import moment, precise_time_of_day, time_of_day, took
from agentdash.report.elements import difference_lines, remedy_lines
from agentdash.report.exports import (
    ONLY_PATCHES,
    TalkReport,
    ThreadTalk,
    TimelineReport,
    TimelineRow,
    gap_words,
    heading_facts,
)


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
    """Yield what was changed, by worker and turn, if anything was."""
    changes = report.changes()
    if changes:
        yield from ("", "## What was changed", "", ONLY_PATCHES, "")
    for (_, turn), found in groupby(changes, key=lambda dated: (dated.worker.id, dated.turn)):
        in_turn = list(found)
        name = f"{code(in_turn[0].worker.name)}, " if len(report.workers) > 1 else ""
        yield from (f"### {name}turn {turn}", "")
        for _, _, call, change, diff in in_turn:
            words = f"{change_words(call, change)} {line_counts(change)}".rstrip()
            yield f"- {code(shown_paths(change, call.cwd))} {words}, {time_of_day(call.at)}"
            if diff:
                yield from ("", *(f"  {line}" for line in _lines(block(diff, "diff"))), "")
        yield ""


def commands_section(report: TimelineReport) -> Iterator[str]:
    """Yield the table of commands, if there are any."""
    commands, left_out = report.commands()
    if not commands:
        return
    yield from ("", "## Commands", "")
    if left_out:
        yield from (f"{left_out:,} earlier ones are left out.", "")
    yield from ("| at | worker | command | ended | took | denied |", "|---|---|---|---|---|---|")
    for worker, _, call in commands:
        cells = (
            precise_time_of_day(call.at),
            cell(worker.name),
            cell(call.text),
            outcome_words(call),
            took(call.took) if call.took is not None else "",
            cell(call.denial or ""),
        )
        yield f"| {' | '.join(cells)} |"


def _lines(parts: list[str]) -> Iterator[str]:
    return (line for part in parts for line in part.split("\n"))


# ------------------------------------------------------------
# Conversations: answers are Markdown themselves and stay so, within block quotes, except for images and HTML,
# which are escaped outside of code. Outputs and diffs are folded.


_FENCE: Final = re.compile(r"\s{0,3}(?:[-*+>]\s+|\d+[.)]\s+)*(`{3,}|~{3,})")
_CODE_SPAN: Final = re.compile(r"((?<!`)(`+)(?!`).*?(?<!`)\2(?!`))")
_ACTIVE: Final = re.compile(r"<|!(?=\[)|&(?=#|\w)|\[(?=[^\]]*\]:)")
"""What may become HTML, an image, a character that is not there, or the definition of a link."""
_PARSER: Final = MarkdownIt("commonmark", {"html": True})
_ACTIVE_KINDS: Final = {"html_block", "html_inline", "image"}
_ROLES: Final = {"user": "You", "agent": "Agent"}


def talk_markdown(report: TalkReport, version: str) -> str:
    """Return the document."""
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
    """Yield the lines of a text with escapes outside of code, as far as that is found line by line."""
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
    """Return a line with escapes outside of code spans."""
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
    conversation = talk.conversation
    yield f"{'#' if number == 0 else '##'} {code(talk.name)}"
    yield ""
    yield f"- thread {code(conversation.thread)}"
    for fact in heading_facts(talk):
        yield f"- {code(fact)}"
    if conversation.turns:
        yield f"- began {moment(conversation.turns[0].at)} UTC"
    if conversation.problem:
        yield f"- cannot be read to its end: {code(conversation.problem)}"
    if gap := gap_words(conversation):
        yield f"- {gap}"
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
