"""The tabs that show what was said and done: Talk, Commands, Changes.

They are functions of a conversation, which is read from the session's file when one of them is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.model.changes import DirectoryDiff
from agentdash.model.conversation import (
    Conversation,
    ConversationTurn,
    Message,
    change_words,
    line_counts,
    outcome_words,
    shown_paths,
)
from agentdash.model.thread import Call
from agentdash.model.worker import Worker
from agentdash.tui.format import age, duration, pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph
from agentdash.tui.theme import Look

READING_TABS: Final = ("Talk", "Commands", "Changes")
"""The tabs that need the conversation."""
_MAX_ENTRIES: Final = 500
"""Entries shown, the newest: an export has all."""
_MAX_MESSAGE_LINES: Final = 200
_MAX_DIFF_LINES: Final = 400
_MAX_LINES_OF_DIFF_LINE: Final = 12
"""Longer ones are generated, or minified."""
_MAX_COMMAND_LINES: Final = 12
_MIN_COMMAND_CELLS: Final = 20
_DIFF_TONES: Final[dict[str, Tone]] = {"+": "live", "-": "stuck", "@": "muted"}
_ROLES: Final = {"user": "you: ", "agent": "agent: "}


def conversation_tab(tab: str, found: Conversation, cells: int, look: Look) -> list[Line]:
    """Return the lines of one of `READING_TABS`."""
    draw = {"Talk": _talk, "Commands": _commands, "Changes": _changes}[tab]
    lines = draw(found, cells, look)
    if found.problem:
        lines += paragraph(f"cannot be read to its end: {found.problem}", cells, "stuck")
    return lines


def absent_lines(tab: str, worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return what a tab shows without a conversation: of the calls what is known, else why there is none."""
    if worker.host:
        why = f"The session's file is on {worker.host}, and is not read from here."
    elif worker.file is None or not worker.is_thread:
        why = "This worker has no session file that is read in full."
    else:
        return paragraph("Reading the session's file.", cells, "muted")
    if tab == "Commands" and worker.calls:
        return _command_lines(worker.calls, cells, look)
    return paragraph(why, cells, "muted")


def call_words(call: Call) -> Line:
    """Return what was called: `$ pytest -q`."""
    return Span(f"{call.label} ", "muted"), Span(call.text)


def outcome(call: Call, now: float) -> Span:
    """Return how a call ended and how long it took: `ok 0.2s`, `exit 1 2.0s`, `denied`, `running 9s`."""
    if call.outcome is None:
        return Span(f"running {age(now - call.at)}", "live")
    words = outcome_words(call)
    took = f" {duration(call.took)}" if call.took is not None else ""
    return Span(words + took, "stuck" if call.failed else "live" if call.outcome == "running" else "muted")


def _gap(found: Conversation, cells: int, shown: int, total: int) -> list[Line]:
    """Return what is missing at the beginning, and where all of it can be had."""
    if found.is_whole and not found.dropped and shown == total:
        return []
    text = f"Earlier parts are left out; all: agentdash replay {found.thread[:8]} --export talk.html"
    return paragraph(text, cells, "muted")


# ---------------------------------------------------------------- talk


def _talk(found: Conversation, cells: int, look: Look) -> list[Line]:
    """Return prompts and answers in full, oldest first; of calls one line each."""
    total = sum(len(turn.entries) for turn in found.turns)
    left_out = max(0, total - _MAX_ENTRIES)
    lines = _gap(found, cells, total - left_out, total)
    for turn in found.turns:
        skipped = min(left_out, len(turn.entries))
        left_out -= skipped
        if skipped < len(turn.entries) or turn.error:
            lines += _turn(turn, skipped, cells, look)
    return lines or [(Span("Nothing was said yet.", "muted"),)]


def _turn(turn: ConversationTurn, skipped: int, cells: int, look: Look) -> Iterator[Line]:
    yield _rule(turn, cells, look)
    before: object = None
    for entry in turn.entries[skipped:]:
        if isinstance(entry, Message):
            if isinstance(before, Call):
                yield BLANK
            tone: Tone = "strong" if entry.role == "user" else ""
            head = (Span(_ROLES[entry.role], "muted"),)
            yield from paragraph(entry.text.strip(), cells, tone, head=head, cap=_MAX_MESSAGE_LINES)
            yield BLANK
        else:
            left = (Span("  "), *call_words(entry))
            yield justify(left, (outcome(entry, look.now),), cells, look.glyphs.ellipsis)
            yield from _denied(entry, 4, cells)
        before = entry
    if turn.how == "aborted" or turn.error:
        yield from paragraph(f"{turn.how or 'ended'}: {turn.error or ''}".rstrip(": "), cells, "stuck")
        yield BLANK


def _rule(turn: ConversationTurn, cells: int, look: Look) -> Line:
    title = f"turn {turn.number} {look.glyphs.dot} {stamp(turn.at, look.now)} "
    return Span(title, "title"), Span(look.glyphs.rule * max(0, cells - len(title)), "rule")


# ---------------------------------------------------------------- changes


def _changes(found: Conversation, cells: int, look: Look) -> list[Line]:
    """Return the files changed with their diffs, the newest turn first."""
    lines: list[Line] = []
    shown = 0
    for turn in reversed(found.turns):
        changing = [call for call in turn.calls if call.changes]
        shown += len(changing)
        if shown > _MAX_ENTRIES:
            return [*lines, *_gap(found, cells, 0, 1)]
        lines += [_rule(turn, cells, look)] if changing else []
        for call in changing:
            lines += _changed_files(call, cells, look)
    none = "No patch has changed a file. What commands write is not listed here."
    return [*(lines or paragraph(none, cells, "muted")), *_gap(found, cells, 1, 1)]


def _changed_files(call: Call, cells: int, look: Look) -> Iterator[Line]:
    tone: Tone = "stuck" if call.failed else "muted"
    for change in call.changes:
        right = (Span(f"{change_words(call, change)} {line_counts(change)}".rstrip(), tone),)
        yield justify((Span(shown_paths(change, call.cwd), "strong"),), right, cells, look.glyphs.ellipsis)
        yield from _diff_lines(change.diff, cells, is_cut=change.is_cut and not change.diff)
        yield BLANK


def _diff_lines(text: str, cells: int, *, is_cut: bool) -> Iterator[Line]:
    diff = text.split("\n") if text else []
    for line in diff[:_MAX_DIFF_LINES]:
        tone = _DIFF_TONES.get(line[:1], "")
        yield from paragraph(line, cells, tone, indent=2, cap=_MAX_LINES_OF_DIFF_LINE)
    if len(diff) > _MAX_DIFF_LINES or is_cut:
        yield (Span("  more is left out here", "muted"),)


def directory_lines(diff: DirectoryDiff, cells: int) -> list[Line]:
    """Return how the working tree differs now, whoever has changed it; untracked files are not compared."""
    if diff.problem:
        return [BLANK, *paragraph(f"Its directory is not compared: {diff.problem}.", cells, "muted")]
    head = f"Its directory now, against {diff.base}, whoever has changed it; without untracked files"
    lines = [BLANK, *paragraph(head, cells, "title")]
    if not diff.text:
        return [*lines, (Span("  no difference", "muted"),)]
    return [*lines, *_diff_lines(diff.text, cells, is_cut=diff.is_cut)]


# ---------------------------------------------------------------- commands


def _commands(found: Conversation, cells: int, look: Look) -> list[Line]:
    """Return the commands, the newest first."""
    commands = list(found.commands)
    shown = commands[-_MAX_ENTRIES:][::-1]
    lines = _command_lines(shown, cells, look) or [(Span("No commands have been read.", "muted"),)]
    return [*lines, *_gap(found, cells, len(shown), len(commands))]


def _command_lines(shown: Sequence[Call], cells: int, look: Look) -> list[Line]:
    """Return when each command ran, the whole command, how it ended, how long it took."""
    column = stamp_cells((call.at for call in shown), look.now)
    lines: list[Line] = []
    for call in shown:
        ended = outcome(call, look.now)
        head = (Span(pad(stamp(call.at, look.now), column) + " ", "muted"), call_words(call)[0])
        room = max(_MIN_COMMAND_CELLS, cells - len(ended.text) - 1)
        first, *more = paragraph(call.text, room, head=head, cap=_MAX_COMMAND_LINES)
        lines += [justify(first, (ended,), cells, look.glyphs.ellipsis), *more]
        lines += _about(call, column + 1, cells)
    return lines


def _about(call: Call, indent: int, cells: int) -> Iterator[Line]:
    """Yield what is unusual about a command: that the user typed it, what it asked for, what was denied."""
    if call.by_user:
        yield from paragraph("typed by the user: runs without a sandbox", cells, "muted", indent=indent)
    if asked := call.escalation:
        for_what = "to leave the sandbox" if asked.kind == "escalated" else "for more permissions"
        text = f"asked {for_what}: {asked.reason or 'no reason given'}"
        yield from paragraph(text, cells, "muted", indent=indent, cap=2)
    yield from _denied(call, indent, cells)


def _denied(call: Call, indent: int, cells: int) -> list[Line]:
    """Return what was denied, on lines of its own."""
    head = (Span(" " * indent + "denied: ", "stuck"),)
    return paragraph(call.denial.quote, cells, "stuck", head=head, cap=4) if call.denial else []
