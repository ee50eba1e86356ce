"""The panel of one worker: its tabs, and what Screen and Evidence show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len
from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical

from agentdash.model.causes import Cause, causes
from agentdash.model.conversation import Conversation
from agentdash.model.evidence import Evidence
from agentdash.model.findings import FIELD_LABELS, Side, Verdict, difference, sides
from agentdash.model.layers import DifferingField
from agentdash.model.pane import Pane
from agentdash.model.worker import Worker
from agentdash.tui.format import age, elide, pad, stamp, stamp_cells, wrap
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph, width
from agentdash.tui.theme import ASCII, SEVERITY_TONES, VERDICT_TONES, Look, sign
from agentdash.tui.view import View
from agentdash.tui.worker.conversation import READING_TABS, absent_lines, conversation_tab, directory_lines
from agentdash.tui.worker.overview import overview

PANE: Final = "Screen"
EVIDENCE: Final = "Evidence"
TABS: Final = ("Overview", "Talk", "Commands", "Changes", PANE, EVIDENCE)
_MARK_CELLS: Final = 2
"""Of the sign that there are more tabs, and a space."""


def tab_bar(chosen: str, cells: int, look: Look, name: str = "") -> Line:
    """Return the names of the tabs, the open one in brackets, behind the name of the worker."""
    rule, more = Span(look.glyphs.rule + " ", "rule"), Span(look.glyphs.ellipsis, "muted")
    title = Span(elide(name, cells // 3, look.glyphs.ellipsis), "strong")
    spans = [rule, title, Span(" "), rule] if name else []
    room, names = cells - width(spans) - 2 * _MARK_CELLS, list(TABS)
    while sum(len(each) + 2 for each in names) > room and len(names) > 1:  # the open one stays
        del names[0 if names.index(chosen) > (len(names) - 1) / 2 else -1]
    spans += [more] if names[0] != TABS[0] else []
    for each in names:
        is_open, action = each == chosen, f"app.tab_named('{each}')"
        spans.append(Span(f"[{each}]", "chosen", action) if is_open else Span(f" {each} ", "muted", action))
    spans += [more] if names[-1] != TABS[-1] else []
    return (*spans, Span(" " + look.glyphs.rule * max(0, cells - width(spans) - 1), "rule"))


class WorkerPanel(Vertical):
    """The panel. It holds which tab is open; everything else comes with `show`."""

    bar = getters.query_one("#tabs", Lines)
    tab = getters.query_one("#tab", Lines)

    def __init__(self) -> None:
        super().__init__(id="panel")
        self.open_tab = TABS[0]
        self._shown: str | None = None
        """The worker that is shown."""
        self._wrapped: tuple[Conversation, tuple[object, ...], list[Line]] | None = None
        """The newest conversation, what else its lines depend on, and the lines."""

    def compose(self) -> ComposeResult:
        """Compose the tab bar and the open tab."""
        yield Lines(id="tabs", focusable=False)
        yield Lines(id="tab")

    def show(self, view: View, *, is_named: bool) -> None:
        """Draw the selected worker; where `is_named`, with its name before the tabs."""
        worker, look = view.worker, view.look
        cells = self.tab.room or self.app.size.width - 2  # of the first frame, which is not laid out yet
        if worker is None or cells < 1:
            self._shown = None
            self.bar.show([])
            self.tab.show(_absent(view, max(1, cells)))
            return
        name = worker.title if is_named else ""
        self.bar.show([tab_bar(self.open_tab, self.bar.room or self.app.size.width, look, name)])
        before, self._shown = self._shown, f"{self.open_tab} {worker.id}"
        if is_other := self._shown != before:  # one that was followed to its end is left there
            self.tab.scroll_home(animate=False, immediate=True)
        follow = self.open_tab in ("Screen", "Talk")
        lines = self._content(worker, view, self.tab.size.height or self.app.size.height, cells)
        self.tab.show(lines, follow=follow, from_end=is_other)

    @property
    def reads_session(self) -> bool:
        """Whether the open tab shows what is in the worker's session file."""
        return self.open_tab in READING_TABS

    def switch_tab(self, step: int) -> None:
        """Open the next (1) or the previous (-1) tab."""
        self.open_tab = TABS[(TABS.index(self.open_tab) + step) % len(TABS)]

    def _content(self, worker: Worker, view: View, height: int, cells: int) -> list[Line]:
        look = view.look
        if self.open_tab in READING_TABS:
            diff = view.diff if self.open_tab == "Changes" else None
            below = directory_lines(diff, cells) if diff is not None else []
            if view.conversation is not None:
                return [*self._conversation_lines(view.conversation, cells, look), *below]
            return [*absent_lines(self.open_tab, worker, cells, look), *below]
        match self.open_tab:
            case "Overview":
                return overview(worker, cells, look, height)
            case "Screen":
                return pane_view(worker.pane, height, cells, look)
            case _:
                return evidence_tab(worker, cells, look)

    def _conversation_lines(self, found: Conversation, cells: int, look: Look) -> list[Line]:
        """Return the lines of the open tab; wrapping hundreds of messages takes too long for every second."""
        is_running = any(call.outcome is None for call in found.calls)
        minute = look.now // (1 if is_running else 60)
        key = (self.open_tab, cells, minute, look.glyphs)
        if self._wrapped is None or self._wrapped[0] is not found or self._wrapped[1] != key:
            self._wrapped = (found, key, conversation_tab(self.open_tab, found, cells, look))
        return self._wrapped[2]


def _absent(view: View, cells: int) -> list[Line]:
    """Return why no worker is shown: it has gone, or none is chosen."""
    if view.snapshot is None or not (view.selected_id or view.snapshot.workers):
        return []
    why = "No worker is selected." if view.selected_id is None else "This worker is no longer listed."
    return paragraph(why, cells, "muted")


# ------------------------------------------------------------
# The Screen tab: a tmux pane as it was last captured


_CONTINUED: Final = ("↪ ", "> ")


def pane_view(pane: Pane | None, height: int, cells: int, look: Look) -> list[Line]:
    """Return a head line and the pane's screen, its last written line at the bottom of `height` lines.

    Lines that are wider than the panel are wrapped.
    """
    if pane is None:
        return [(Span("No tmux pane is linked to this worker.", "muted"),)]
    written = list(pane.screen)
    while written and not written[-1]:
        written.pop()
    if not written:
        return [(Span(f"Pane {pane.key} is empty.", "muted"),)]
    place = f"pane {pane.key} in {pane.session}:{pane.window}, {pane.width}x{pane.height}"
    drawn = f", drawn {age(look.now - pane.drawn_at)} ago" if pane.drawn_at is not None else ""
    mode = ", in copy mode: its own screen is hidden" if pane.in_mode else ""
    lines: list[Line] = [line for text in written for line in _fitted(text, cells, look)]
    return [
        *paragraph(place + drawn + mode, cells, "muted", cap=2),
        *[BLANK] * max(0, height - 1 - len(lines)),
        *lines,
    ]


def _fitted(text: str, cells: int, look: Look) -> list[Line]:
    """Return a line of a screen in at most `cells`, without loss of words."""
    if cell_len(text) <= cells:
        return [(Span(text),)]
    first, *rest = wrap(text, cells - 2)
    mark = Span(_CONTINUED[look.glyphs is ASCII], "muted")
    return [(Span(first),), *((mark, Span(line)) for line in rest)]


# ------------------------------------------------------------
# The Evidence tab: all that the state and the verdict of a worker rest on, also what disagrees


_SOURCE_CELLS: Final = 12
_LABEL_CELLS: Final = 16
"""The longest label, `configured then`, and a space."""
_LABELS_BESIDE_FROM_CELLS: Final = 50
"""In a narrower panel labels stand above their texts: settings and paths are not to be torn."""
_FACT_LABEL_CELLS: Final = 9
_VERDICT_MEANINGS: Final[dict[Verdict, str]] = {
    "match": "what was observed agrees with what was configured",
    "mismatch": "it got something else than was configured",
    "unverified": "nothing was observed that could be compared",
}


def evidence_tab(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the lines of the tab: state, verdict with its findings, policies, links, facts."""
    assessment = worker.assessment
    since = f"  since {stamp(assessment.since, look.now)}" if assessment.since is not None else ""
    state = evidence(assessment.evidence, cells, look) or [(Span("There is no evidence.", "muted"),)]
    links = [line for link in worker.links for line in paragraph(f"{link.to}: {link.by}", cells, indent=2)]
    parts = (
        [
            (sign(worker, look.glyphs), Span(since, "muted")),
            *paragraph(assessment.why, cells, indent=2),
            *state,
        ],
        _verdict(worker, cells, look),
        _policies(worker, cells, look),
        [(Span("Linked to", "title"),), *links] if links else [],
        _facts(worker, cells),
    )
    lines = [line for part in parts if part for line in (*part, BLANK)]
    return lines[:-1]


def evidence(items: Iterable[Evidence], cells: int, look: Look) -> list[Line]:
    """Return each piece of evidence with its sign (for or against), source, time, rule and text."""
    lines: list[Line] = []
    items = tuple(items)
    column = stamp_cells((item.at for item in items), look.now)
    for item in items:
        head = (
            Span(f"{look.glyphs.agrees[item.agrees]} ", "ready" if item.agrees else "ask"),
            Span(pad(item.source, _SOURCE_CELLS)),
            Span(pad(stamp(item.at, look.now), column) + "  ", "muted"),
        )
        text = item.text if item.agrees else f"{item.text}  (against)"
        lines += [(*head, Span(item.rule, "muted")), *paragraph(text, cells, indent=2, cap=8)]
    return lines


def _verdict(worker: Worker, cells: int, look: Look) -> list[Line]:
    sandbox = worker.sandbox
    words = f"{look.glyphs.verdicts[sandbox.verdict]} {sandbox.verdict}: {_VERDICT_MEANINGS[sandbox.verdict]}"
    lines = paragraph(words, cells, VERDICT_TONES[sandbox.verdict])
    lines += evidence(sandbox.evidence, cells, look)
    for missing in sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    for cause in causes(worker):
        lines += [BLANK, *cause_details(cause, cells, look)]
        quoted = dict.fromkeys(piece for finding in cause.findings for piece in finding.evidence)
        lines += evidence(quoted, cells, look)
    return lines


def _policies(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the policies that it has had, where it has had several."""
    if len(worker.policies) <= 1:
        return []
    column = stamp_cells((period.since for period in worker.policies), look.now)
    lines: list[Line] = [(Span("Policies", "title"),)]
    for period in worker.policies:
        text = f"{period.policy.brief()}  approval {period.policy.approval or 'not stated'}  {period.place}"
        at = Span(pad(stamp(period.since, look.now), column) + "  ", "muted")
        lines.append(fit((at, Span(text)), cells, look.glyphs.ellipsis))
    return lines


def _facts(worker: Worker, cells: int) -> list[Line]:
    """Return where the worker's data is found, and what it has used."""
    pane = worker.pane
    facts = (
        ("id", worker.id),
        ("in", worker.cwd),
        ("branch", worker.git.in_words() if worker.git else None),
        ("model", worker.model),
        ("turns", str(worker.turns) if worker.turns else None),
        ("file", worker.file),
        ("pane", f"{pane.key} in {pane.session}:{pane.window}" if pane else None),
        ("pids", ", ".join(map(str, worker.pids))),
        ("missing", "; ".join(worker.notes)),
    )
    lines: list[Line] = []
    for label, text in facts:
        if text:
            lines += paragraph(text, cells, head=(Span(pad(label, _FACT_LABEL_CELLS), "muted"),), cap=3)
    return lines


def cause_details(cause: Cause, cells: int, look: Look) -> list[Line]:
    """Return a cause since when, with its meaning, then each finding with both sides; the overview has the
    fix."""
    since = min(finding.since for finding in cause.findings)
    times = sum(finding.count for finding in cause.findings)
    words = f"{look.glyphs.directions[cause.worst.direction]} {cause.words}"
    about = f"since {stamp(since, look.now)}, {times}x {look.glyphs.dot} {', '.join(cause.kinds)}"
    lines = paragraph(words, cells, SEVERITY_TONES[cause.worst.severity])
    lines += paragraph(about, cells, "muted", indent=2)
    for text in dict.fromkeys(finding.message for finding in cause.findings):
        lines += paragraph(text, cells, indent=2)
    values = [_values(field, look) for finding in cause.findings for field in finding.fields]
    quotes = [side for finding in cause.findings for side in sides(finding)]
    for side in dict.fromkeys((*values, *quotes)):  # findings of one command quote the same
        lines += _labelled(side, cells)
    return lines


def _values(field: DifferingField, look: Look) -> Side:
    """Return both values of a cell that differs, with the time, beside its name."""
    expected, actual = difference(field)
    when = f", {stamp(field.actual_at, look.now)}" if field.actual_at is not None else ""
    text = f"{expected.label} {expected.text}, {actual.label} {actual.text}{when}"
    return Side(FIELD_LABELS[field.name], text)


def _labelled(side: Side, cells: int) -> list[Line]:
    """Return a text beside its label, or below it where there is little room."""
    if cells >= _LABELS_BESIDE_FROM_CELLS:
        head = (Span("  " + pad(side.label, _LABEL_CELLS), "muted"),)
        return paragraph(side.text, cells, head=head, cap=3)
    return [(Span(f"  {side.label}", "muted"),), *paragraph(side.text, cells, indent=4, cap=6)]
