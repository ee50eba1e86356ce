"""Render conversations as one HTML file: no scripts, no external resources, all foreign text escaped; answers
by a Markdown parser without HTML and without images."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
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
from agentdash.model.times import moment, time_of_day, took
from agentdash.report.export_html import diff_html
from agentdash.report.talk import TalkReport, ThreadTalk, gap_words, heading_facts

_STYLES: Final = tuple(Path(__file__).with_name(name) for name in ("timeline.css", "talk.css"))
_ROLES: Final = {"user": "you", "agent": "agent"}


def talk_html(report: TalkReport, version: str) -> str:
    """Return the document."""
    style = "\n".join(style.read_text("utf-8") for style in _STYLES)
    title = escape(report.threads[0].name if report.threads else "conversation")
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{style}</style></head><body>",
        *(part for number, talk in enumerate(report.threads) for part in _thread(talk, number)),
        f'<p class="dim">exported by agentdash {escape(version)} from the session\'s own files</p>',
        "</body></html>\n",
    )
    return "\n".join(parts)


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
