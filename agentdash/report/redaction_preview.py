"""`agentdash replay --redact --preview`: what a redacted export still shows, to be read before it is passed
on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from agentdash.report.scrub import texts_of
from agentdash.report.timeline_report import TimelineReport

_PATH: Final = re.compile(r"(?<![\w:/.~$}<-])(?:(?:~|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])*[\w.@+-]+|~(?![\w]))")
_HOST: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+\w|(?<=://)[^/\s'\"`<>]+|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|\b(?:[\w-]+\.)+(?:com|org|net|io|dev|ai|co|de|local|lan|corp|internal|intern|cloud|example)\b"
)
_OUR_KINDS: Final = ("state", "finding", "policy", "turn")
"""Rows in agentdash's own words, of which the findings have quotes."""


def preview_lines(report: TimelineReport) -> Iterator[str]:
    """Yield the texts of a redacted report by what they are; each once, with how often it occurs."""
    texts = texts_of(report)
    commands = [row.text for row in report.rows if row.kind == "command"]
    sentences = [row.text for row in report.rows if row.kind in _OUR_KINDS and row.text]
    names = [
        text
        for timeline in report.workers
        for worker in (timeline.worker,)
        for text in (
            worker.name,
            worker.id,
            f"{worker.agent.name} {worker.agent.version or ''}",
            worker.model,
        )
        if text
    ]
    tools = [row.note for row in report.rows if row.kind == "call"]
    yield "A redacted export of this session shows these texts. Secrets are masked in all of them."
    yield from _section("commands", commands)
    yield from _section("paths", (path for text in texts for path in _PATH.findall(text)))
    yield from _section(
        "hosts, addresses and accounts", (host for text in texts for host in _HOST.findall(text))
    )
    yield from _section("names, ids, versions, models", names)
    yield from _section("tools", tools)
    yield from _section("sentences of agentdash, with what they quote", sentences)
    yield from _section("notes", report.notes)
    yield ""
    yield "Replace more with --replace OLD=NEW."


def _section(title: str, texts: Iterable[str]) -> Iterator[str]:
    counts = Counter(" ".join(text.split()) for text in texts)
    yield ""
    yield f"{title}: {len(counts)}" if counts else f"{title}: none"
    yield from (f"  {count:>4}x  {text}" for text, count in sorted(counts.items()))
