"""The panel of one worker: its state, its sandbox in three layers, its findings, and tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import MouseScrollDown, MouseScrollUp

from agentdash.model.causes import causes
from agentdash.model.conversation import Conversation
from agentdash.model.fact import WAITING
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.format import age, elide_middle
from agentdash.tui.primitives.content import content
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph, plain, width, without_start
from agentdash.tui.theme import ASCII, Look, sign
from agentdash.tui.view import View
from agentdash.tui.worker.conversation import READING_TABS, absent_words, conversation_tab
from agentdash.tui.worker.evidence import evidence_tab
from agentdash.tui.worker.file_reading import READ_KINDS
from agentdash.tui.worker.findings import cause_details
from agentdash.tui.worker.inheritance import inheritance
from agentdash.tui.worker.layers import layers
from agentdash.tui.worker.pane_view import pane_view
from agentdash.tui.worker.question import question
from agentdash.tui.worker.reach import reach_tab
from agentdash.tui.worker.timeline import calls, timeline
from agentdash.tui.worker.usage import usage_lines

TABS: Final = ("Timeline", "Screen", "Talk", "Commands", "Changes", "Sandbox", "Reach", "Evidence")
_TURNS_FROM_CELLS: Final = 50
_WIDE_TABS: Final = ("Timeline", "Screen", "Commands", "Changes")
"""The tabs with lines that are cut, or wrapped where that tears them apart."""
_SHIFT_CELLS: Final = 16
_MARK_CELLS: Final = 2
"""Of the sign that there are more tabs, and a space."""


def heading(worker: Worker, parent: str | None, cells: int, look: Look) -> Line:
    """Return the title of the panel: the worker's name, its agent, its parent, host and pane."""
    about = [" ".join(filter(None, (worker.agent.name, worker.agent.version)))]
    if parent:
        about.append(f"child of {parent}")
    if worker.host:
        about.append(f"on {worker.host}")
    if worker.pane_there:
        about.append(worker.pane_there)
    if worker.pane:
        about.append(f"shown in {worker.pane.key}" if worker.host else str(worker.pane.key))
    about_text = "".join(f" {look.glyphs.dot} {part}" for part in about)
    spans = (Span(" "), Span(worker.name, "strong"), Span(about_text), Span(" "))
    return fit(spans, cells, look.glyphs.ellipsis)


def summary(worker: Worker, cells: int, look: Look, family: Sequence[Worker] = ()) -> list[Line]:
    """Return everything above the tabs.

    Args:
        cells: width of the panel.
        family: its family, with itself.
    """
    dots = look.glyphs.ellipsis
    lines: list[Line] = []
    if place := _place(worker, cells, look):
        lines.append(fit((Span(place, "muted"),), cells, dots))
    lines += usage_lines(worker, family, cells, look)
    lines += [*_state(worker, cells, look), *question(worker, cells, look)]
    found = causes(worker)
    lines += cause_details((cause for cause in found if cause.blocks), cells, look)
    lines += [BLANK, *layers(worker.sandbox, cells, look)]
    lines += cause_details((cause for cause in found if not cause.blocks), cells, look)
    if worker.notes:
        missing = (Span("missing: ", "muted"),)
        lines += [BLANK, *paragraph("; ".join(worker.notes), cells, "muted", head=missing)]
    return lines


def _state(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return state and reason, what stalled, and the descendants that need the user."""
    assessment = worker.assessment
    since = f" {age(look.now - assessment.since)}" if assessment.since is not None else ""
    head = (sign(worker, look.glyphs), Span(since + "  ", "muted"))
    is_quoted = worker.state in (State.WAITING_APPROVAL, State.WAITING_INPUT) and worker.fact.kind in WAITING
    lines: list[Line] = [(*head, Span("" if is_quoted else assessment.why))]  # the question stands below
    if width(lines[0]) > cells:
        lines = [head, *paragraph(assessment.why, cells, indent=2, cap=4)]
    if worker.stalled is not None:
        silence = f"no output, no CPU, no I/O for {age(look.now - worker.stalled)}"
        text = f"{silence}; last: {worker.line or assessment.why}"
        lines += paragraph(text, cells, head=(Span("stalled: ", "stuck"),), cap=3)
    if worker.below:
        lines += paragraph(", ".join(worker.below), cells, "ask", head=(Span("! below it: ", "ask"),), cap=3)
    return lines


def _place(worker: Worker, cells: int, look: Look) -> str:
    """Return directory, branch, model and number of turns."""
    facts = [worker.git.short() if worker.git else None, worker.model]
    if worker.turns and cells >= _TURNS_FROM_CELLS:
        facts.append(f"{worker.turns} turn{'s' * (worker.turns > 1)}")
    dot = f" {look.glyphs.dot} "
    tail = dot.join(filter(None, facts))
    if not worker.cwd:
        return tail
    directory = elide_middle(worker.cwd, max(12, cells - len(tail) - len(dot)), look.glyphs.ellipsis)
    return dot.join(filter(None, (directory, tail)))


def lacks_usage(worker: Worker) -> bool:
    """Return whether a part of a worker's file was not read, whose tokens are therefore of no known model."""
    by_model = worker.tokens.by_model
    return any(each.model is None for each in by_model) or (
        not by_model and worker.tokens.context is not None
    )


def tab_bar(chosen: str, cells: int, look: Look) -> Line:
    """Return the names of the tabs, the open one in brackets."""
    names = _visible_tabs(chosen, cells)
    spans: list[Span] = []
    if names[0] != TABS[0]:
        spans.append(Span(look.glyphs.ellipsis, "muted"))
    for name in names:
        action = f"app.tab_named('{name}')"
        if name == chosen:
            spans.append(Span(f"[{name}]", "chosen", action))
        else:
            spans.append(Span(f" {name} ", "muted", action))
    if names[-1] != TABS[-1]:
        spans.append(Span(look.glyphs.ellipsis, "muted"))
    return (*spans, Span(" " + look.glyphs.rule * max(0, cells - width(spans) - 1), "rule"))


def _visible_tabs(chosen: str, cells: int) -> tuple[str, ...]:
    """Return the tabs that fit, the open one among them; each takes two cells more than its name."""
    room = cells - 2 * _MARK_CELLS
    names = list(TABS)
    while sum(len(name) + 2 for name in names) > room and len(names) > 1:
        del names[0 if names.index(chosen) > (len(names) - 1) / 2 else -1]
    return tuple(names)


class WorkerPanel(Vertical):
    """The panel. It holds which tab is open; everything else comes with `show`.

    Args:
        tab: the tab that the user has chosen elsewhere; None: the first with content.
    """

    def __init__(self, tab: str | None = None) -> None:
        super().__init__(id="panel")
        self._tab = tab or TABS[0]
        self._tab_chosen = tab is not None
        """Whether the user has chosen the tab: then it stays open for every worker."""
        self._view: View | None = None
        self._wrapped: tuple[Conversation, tuple[object, ...], list[Line]] | None = None
        """The newest conversation, what else its lines depend on, and the lines."""
        self._title: Content | None = None
        self._shift = 0
        """Cells by which the tab is scrolled to the right."""
        self._expected_cells = 0
        """Width until the first layout, for a first frame that is not blank."""

    def expect(self, cells: int) -> None:
        """Set the width that the panel will have."""
        self._expected_cells = cells

    def compose(self) -> ComposeResult:
        """Compose the summary, the tab bar, the open tab."""
        yield Lines(id="summary")
        yield Lines(id="tabs", focusable=False)
        yield Lines(id="tab")

    def show(self, view: View) -> None:
        """Draw the selected worker."""
        before, self._view = self._view, view
        worker, look = view.worker, view.look
        self._show_title(view)
        cells = (self.query_one("#tabs", Lines).size.width or self._expected_cells) - 2
        top, bar, tab = (self.query_one(f"#{name}", Lines) for name in ("summary", "tabs", "tab"))
        if worker is None or cells < 1:
            top.show(_absent(view, max(1, cells)))
            bar.show([])
            tab.show([])
            return
        top.show(summary(worker, self._summary_cells or cells, look, view.family))
        if not self._tab_chosen:
            self._tab = _first_tab(worker)
        bar.show([tab_bar(self._tab, cells, look)])
        is_other = before is None or before.worker is None or before.worker.id != worker.id
        if is_other:
            top.scroll_home(animate=False, immediate=True)
            tab.scroll_home(animate=False, immediate=True)  # a tab that was followed to its end is left there
            self._shift = 0
        follow = self._tab in ("Screen", "Talk")
        tab.show(self._shifted(worker, view, tab.size.height, cells), follow=follow, from_end=is_other)

    @property
    def _summary_cells(self) -> int:
        """Width of the summary, which may stand beside the tabs; 0 before the first layout."""
        return max(0, self.query_one("#summary", Lines).size.width - 2)

    def _show_title(self, view: View) -> None:
        """Show the name of the worker in the border."""
        line = heading(view.worker, view.parent, self.size.width - 4, view.look) if view.worker else ()
        shown = content(line, ascii_only=view.look.glyphs is ASCII, ansi=self.app.native_ansi_color)
        if shown != self._title:  # to set it paints the whole panel
            self._title = shown
            self.border_title = shown

    @property
    def chosen_tab(self) -> str | None:
        """The tab that the user has chosen; None: none."""
        return self._tab if self._tab_chosen else None

    @property
    def reads_session(self) -> bool:
        """Whether the open tab shows what is in the worker's session file."""
        return self._tab in READING_TABS

    def switch_tab(self, step: int) -> None:
        """Open the next (1) or the previous (-1) tab."""
        self.show_tab(TABS[(TABS.index(self._tab) + step) % len(TABS)])

    def show_tab(self, name: str) -> None:
        """Open this tab, from now on for every worker."""
        self._tab = name
        self._tab_chosen = True
        self._shift = 0
        if (view := self._view) is not None:
            self._view = None
            self.show(view)

    def on_mouse_scroll_right(self) -> None:
        """Show what is cut at the right."""
        self.shift_tab(1)

    def on_mouse_scroll_left(self) -> None:
        """Go back to the left."""
        self.shift_tab(-1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Show what is cut at the right, with shift."""
        if event.shift:
            self.shift_tab(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Go back to the left, with shift."""
        if event.shift:
            self.shift_tab(-1)

    def shift_tab(self, step: int) -> bool:
        """Show what is cut or wrapped at the right (1), or go back to the left (-1); return whether the tab
        has more there."""
        view, tab = self._view, self.query_one("#tab", Lines)
        if view is None or view.worker is None or self._tab not in _WIDE_TABS:
            return False
        cells, height = tab.size.width - 2, tab.size.height
        wanted = max(0, self._shift + step * _SHIFT_CELLS)
        now = self._content(view.worker, view, height, cells + self._shift)
        if _words(self._content(view.worker, view, height, cells + wanted)) == _words(now):
            return False
        self._shift = wanted
        self.show(view)
        return True

    def _shifted(self, worker: Worker, view: View, height: int, cells: int) -> list[Line]:
        """Return the lines of the open tab: laid out for more room, of which the right part is shown."""
        lines = self._content(worker, view, height, cells + self._shift)
        return [without_start(line, self._shift) for line in lines] if self._shift else lines

    def _conversation_lines(self, found: Conversation, cells: int, look: Look) -> list[Line]:
        """Return the lines of the open tab; wrapping hundreds of messages takes too long for every second."""
        is_running = any(call.outcome is None for call in found.calls)
        minute = look.now // (1 if is_running else 60)
        key = (self._tab, cells, minute, look.glyphs)
        if self._wrapped is None or self._wrapped[0] is not found or self._wrapped[1] != key:
            self._wrapped = (found, key, conversation_tab(self._tab, found, cells, look))
        return self._wrapped[2]

    def _content(self, worker: Worker, view: View, height: int, cells: int) -> list[Line]:
        if self._tab not in READING_TABS:
            return _content(self._tab, worker, view, height, cells)
        if view.conversation is not None:
            return self._conversation_lines(view.conversation, cells, view.look)
        if self._tab == "Commands" and (worker.file is None or worker.host or worker.kind not in READ_KINDS):
            return calls(worker, cells, view.look)
        return paragraph(absent_words(worker), cells, "muted")


def _words(lines: Sequence[Line]) -> list[list[str]]:
    """Return the words of lines: with more room they are others only where something was cut or wrapped."""
    return [plain(line).split() for line in lines]


def _absent(view: View, cells: int) -> list[Line]:
    """Return why no worker is shown: it has gone, or there never was one, and what to do then."""
    if view.snapshot is None:
        return []
    if view.snapshot.workers or view.selected_id is not None:
        gone = (
            "This worker is not listed any more." if view.selected_id is not None else "No worker is chosen."
        )
        return paragraph(gone, cells, "muted")
    return [
        *paragraph("No sessions yet.", cells, "strong"),
        *paragraph("Start codex, or another agent in a tmux pane; or try: agentdash demo", cells, "muted"),
    ]


def _first_tab(worker: Worker) -> str:
    """Return the tab that is opened until the user chooses one: the first with content."""
    is_quoted = worker.state in (State.WAITING_APPROVAL, State.WAITING_INPUT)  # its screen stands above
    if worker.moments or (is_quoted and worker.history):
        return "Timeline"
    return "Screen" if worker.pane else "Evidence"


def _content(tab: str, worker: Worker, view: View, height: int, cells: int) -> list[Line]:
    look = view.look
    match tab:
        case "Timeline":
            return timeline(worker, cells, look)
        case "Screen":
            return pane_view(worker.pane, height, cells, look)
        case "Sandbox":
            return inheritance(worker, view.family, cells, look)
        case "Reach":
            return reach_tab(worker, cells, look)
        case _:
            return evidence_tab(worker, cells, look)
