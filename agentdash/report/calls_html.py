"""The parts of the HTML report on calls: what was changed, and the commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from agentdash.model.conversation import change_words, line_counts, outcome_words, shown_paths
from agentdash.model.times import precise_time_of_day, time_of_day, took
from agentdash.report.timeline_report import DatedCall, TimelineReport

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
