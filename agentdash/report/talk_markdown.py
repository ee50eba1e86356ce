"""Render conversations as Markdown.

Answers are Markdown themselves and stay so, within block quotes, but for what loads something or is HTML:
images and `<` are escaped outside of code. Outputs and diffs are folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
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
from agentdash.model.times import moment, time_of_day, took
from agentdash.report.talk import TalkReport, ThreadTalk, gap_words, heading_facts

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
