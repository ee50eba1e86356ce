"""The Overview tab: what a worker does or needs, how to fix it, its sandbox, and what it did last."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len

from agentdash.model.causes import causes, ranked_findings
from agentdash.model.denials import Remedy
from agentdash.model.fact import WAITING, FactKind
from agentdash.model.fleet import StatePeriod
from agentdash.model.pane import columns
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.thread import Call, Moment
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text
from agentdash.thresholds import passed
from agentdash.tui.format import age, elide_middle, pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, justify, paragraph, width
from agentdash.tui.theme import ASCII, SEVERITY_TONES, TONES_OF_STATES, Look, sign, state_name
from agentdash.tui.worker.conversation import call_words, outcome
from agentdash.tui.worker.sandbox_table import sandbox_sentence, sandbox_table

_TIMELINE_BESIDE_FROM_CELLS: Final = 100
"""In a narrower panel the timeline stands below."""
_MIN_DIRECTORY_CELLS: Final = 12
_MAX_SCREEN_LINES: Final = 10
"""Of a screen, from the bottom: a dialog with a command, a reason and four options."""
_MAX_OBJECT_LINES: Final = 8
"""Of a command or a question."""
_BAR: Final = ("▏", "|")
_ROUNDING: Final = 1e-9
"""29 of 100 is 28.999… % in binary."""
_LOW_BELOW_LINES: Final = 16
_ASKING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_LABELS: Final = {"prompt": "you", "message": "agent"}
_TONES: Final[dict[str, Tone]] = {
    "prompt": "strong",
    "turn": "muted",
    "policy": "muted",
    "trouble": "stuck",
}


def heading(worker: Worker, parent: str | None, cells: int, look: Look) -> Line:
    """Return a worker in one line: label, name, agent, parent, host, window, directory, cost and context."""
    context = context_words(worker)
    before = [
        worker.name if worker.label else "",
        " ".join(filter(None, (worker.agent.name, worker.agent.version))),
        f"child of {parent}" if parent else "",
        f"on {worker.host}" if worker.host else "",
        worker.pane_there or "",
        f"window {worker.pane.window}" if worker.pane else "",
    ]
    after = [cost_words(worker), f"{context} context" if context else ""]
    dot = f" {look.glyphs.dot} "
    parts = filter(None, (worker.title, *before, *after))
    room = cells - sum(len(dot) + cell_len(part) for part in parts)
    shown = worker.cwd or "" if room >= _MIN_DIRECTORY_CELLS else ""
    directory = elide_middle(shown, room, look.glyphs.ellipsis) if shown else ""
    about = "".join(dot + part for part in (*before, directory, *after) if part)
    return fit((Span(" "), Span(worker.title, "strong"), Span(about)), cells, look.glyphs.ellipsis)


def context_words(worker: Worker) -> str:
    """Return how full the context of a worker is, `37%`; empty if not known."""
    share = worker.context_share
    return "" if share is None else f"{math.floor(100 * share + _ROUNDING)}%"


def cost_words(worker: Worker) -> str:
    """Return what a worker has cost, `$0.12`: by list prices, else by its screen; empty if not known."""
    found, shown = cost(worker.tokens.by_model), worker.on_screen
    if found is not None:
        return cost_text(found)
    return f"${shown.cost:.2f}" if shown is not None and shown.cost is not None else ""


def overview(worker: Worker, cells: int, look: Look, height: int) -> list[Line]:
    """Return the lines of the tab, with the timeline beside the rest where there is room for it.

    Args:
        height: lines of the panel. In a low one a question has all of them, and a sandbox as configured is a
            sentence.
    """
    if cells < _TIMELINE_BESIDE_FROM_CELLS:
        lines = summary(worker, cells, look, height)
        return [*lines, BLANK, *timeline(worker, cells, look)]
    room = cells * 3 // 5
    sides = summary(worker, room, look, height), timeline(worker, cells - room - 3, look)
    bar = Span(f" {_BAR[look.glyphs is ASCII]} ", "rule")
    return [
        (*line, Span(" " * (room - width(line))), bar, *beside)
        for line, beside in zip_longest(*sides, fillvalue=BLANK)
    ]


def summary(worker: Worker, cells: int, look: Look, height: int = _LOW_BELOW_LINES) -> list[Line]:
    """Return the state with its question, what is wrong with the sandbox, the fix, and the sandbox."""
    is_low = height < _LOW_BELOW_LINES
    lines = _state(worker, cells, look, height if is_low else 0)
    for cause in causes(worker):
        if cause.blocks:  # the state has said it
            if cause.worst.got not in worker.assessment.why:
                lines += paragraph(cause.worst.got, cells, "muted", indent=2, cap=2)
        else:
            words = f"{look.glyphs.directions[cause.worst.direction]} {cause.words}"
            since = f"since {stamp(min(each.since for each in cause.findings), look.now)}"
            tone = SEVERITY_TONES[cause.worst.severity]
            lines += [BLANK, *paragraph(f"{words}, {since}", cells, tone)]
            lines += paragraph(cause.worst.message, cells, indent=2, cap=4)
    if found := next((finding.remedy for finding in ranked_findings(worker) if finding.remedy), None):
        lines += [BLANK, *_fix(found, cells)]
    if is_low and (words := sandbox_sentence(worker.sandbox)):
        return [*lines, *paragraph(words, cells, head=(Span("Sandbox  ", "title"),))]
    return [*lines, BLANK, *sandbox_table(worker.sandbox, cells, look)]


def _state(worker: Worker, cells: int, look: Look, height: int) -> list[Line]:
    """Return state and reason, what it asks, what stalled, and the descendants that need the user; of a
    question that has so many lines alone, the answers, which stand last on its screen."""
    assessment = worker.assessment
    since = f" {age(look.now - assessment.since)}" if assessment.since is not None else ""
    head = (sign(worker, look.glyphs), Span(since + "  ", "muted"))
    asks = worker.state in _ASKING and worker.fact.kind in WAITING
    why = worker.fact.what if asks or worker.fact.kind is FactKind.IDLE else assessment.why
    lines: list[Line] = [(*head, Span(why, "ask" if asks else ""))]
    if width(lines[0]) > cells:
        lines = [head, *paragraph(why, cells, indent=2, cap=4)]
    is_question = worker.state in _ASKING and worker.fact.kind is not FactKind.IDLE
    dialog = _dialog(worker, cells, look) if is_question else []
    if height and len(dialog) > 1:
        return [*lines, *dialog[-max(1, height - len(lines)) :]]
    if asks:
        lines += paragraph(worker.fact.object, cells, "strong", indent=2, cap=_MAX_OBJECT_LINES)
        if worker.fact.why not in ("", worker.fact.object):
            lines += paragraph(f"because: {worker.fact.why}", cells, indent=2, cap=3)
    lines += dialog
    if worker.stalled is not None:
        silence = f"no output, no CPU, no I/O for {age(look.now - worker.stalled)}"
        text = f"{silence}; last: {worker.line or assessment.why}"
        lines += paragraph(text, cells, head=(Span("stalled: ", "stuck"),), cap=3)
    if words := ", ".join(words for _, words in passed(worker, look.thresholds, look.now)):
        lines += paragraph(words, cells, head=(Span("threshold: ", "stuck"),), cap=2)
    for same in worker.same_files:
        here, there = (f"{stamp(each.at, look.now)} {each.call}" for each in (same.edit, same.other))
        text = f"{same.path}, here {here}, by {same.name} {there}"
        lines += paragraph(text, cells, head=(Span("same file: ", "waited"),), cap=3)
    if worker.below:
        below = (each.replace("-", " ", 1) for each in worker.below)
        lines += paragraph(f"below it: {', '.join(below)}", cells, "ask", head=(Span("! ", "ask"),), cap=3)
    return lines


def _dialog(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the last lines of its screen that have words, behind a bar, indented as there."""
    if worker.pane is None:
        return paragraph("No tmux pane is linked to it: answer it where it runs.", cells, "muted")
    if worker.part.endswith("not in front"):
        return paragraph("Another conversation is in front in its pane.", cells, "muted")
    rows = columns(worker.pane.screen)[-1 if worker.part.startswith("side chat") else 0]
    written = [line.rstrip() for line in rows if any(map(str.isalnum, line))][-_MAX_SCREEN_LINES:]
    margin = min((len(line) - len(line.lstrip()) for line in written), default=0)
    bar = Span(_BAR[look.glyphs is ASCII] + " ", "rule")
    return [(bar, *part) for line in written for part in paragraph(line[margin:], cells - 2)]


def _fix(remedy: Remedy, cells: int) -> list[Line]:
    """Return the texts that `Y` copies one after another: whole, since they are to be copied."""
    lines: list[Line] = []
    for presses, (text, what) in enumerate(_copies(remedy), 1):
        key = Span(pad("Y" * presses, 4), "key", "app.copy_remedy")
        head = (Span("Fix  " if presses == 1 else "     ", "title"), key)
        lines += paragraph(text, cells, "strong", head=head)
        lines += paragraph(what, cells, "muted", indent=9) if what else []
    return lines


def _copies(remedy: Remedy) -> list[tuple[str, str]]:
    """Return what can be copied of a remedy, and what it is: the command for one run, the setting."""
    once = [(remedy.once, "for this run")] if remedy.once else []
    where = f"for good: {remedy.where}" if remedy.where else "for good" if once else ""
    return [*once, (remedy.text, where)]


def remedies(worker: Worker) -> list[str]:
    """Return the texts to copy of a worker's remedies: of what blocks it, then of the worst finding."""
    found = (finding.remedy for finding in ranked_findings(worker) if finding.remedy)
    return list(dict.fromkeys(text for remedy in found for text, _ in _copies(remedy)))


# ---------------------------------------------------------------- timeline


def timeline(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the moments of a worker and the periods of its states, newest first."""
    times = (*(moment.at for moment in worker.moments), *(period.since for period in worker.history))
    column = stamp_cells(times, look.now)
    calls = {call.id: call for call in worker.calls}
    entries = [(each.at, 0, *_moment(each, calls.get(each.call or ""), look)) for each in worker.moments]
    entries += [(period.since, 1, *_period(period, look)) for period in worker.history]
    entries.sort(key=lambda entry: entry[:2])  # at the same time: the moment, then the state that it led to
    lines = []
    for at, _, left, right in reversed(entries):
        head = Span(pad(stamp(at, look.now), column) + "  ", "muted")
        lines.append(justify((head, *left), right, cells, look.glyphs.ellipsis))
    return lines or [(Span("No events have been read.", "muted"),)]


def _moment(moment: Moment, call: Call | None, look: Look) -> tuple[Line, Line]:
    """Return what happened, and how a call ended."""
    if moment.kind == "call" and call is not None:
        return call_words(call), (outcome(call, look.now),)
    label = "$ " if moment.kind == "call" else f"{_LABELS.get(moment.kind, moment.kind)}: "
    return (Span(label, "muted"), Span(clean_line(moment.text), _TONES.get(moment.kind, ""))), ()


def _period(period: StatePeriod, look: Look) -> tuple[Line, Line]:
    """Return a state with its reason, and how long it lasted."""
    state = State(period.state)
    lasted = age((look.now if period.until is None else period.until) - period.since)
    name = Span(f"{look.glyphs.states[state]} {state_name(state)}  ", TONES_OF_STATES[state])
    return (name, Span(period.why, "muted")), (Span(lasted, "muted"),)
