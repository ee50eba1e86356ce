"""One worker in full: why it is in its state, its sandbox in three layers, its findings, and what it does."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical

from agentdash.model.worker import Worker
from agentdash.tui.format import age, count, elide_middle
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph, width
from agentdash.tui.theme import Look, sign
from agentdash.tui.view import View
from agentdash.tui.worker.evidence import known
from agentdash.tui.worker.findings import in_full
from agentdash.tui.worker.inheritance import inheritance
from agentdash.tui.worker.layers import layers
from agentdash.tui.worker.pane_view import pane_view
from agentdash.tui.worker.timeline import calls, timeline

TABS: Final = ("Timeline", "Screen", "Calls", "Sandbox", "Evidence")


def summary(worker: Worker, parent: str | None, cells: int, look: Look) -> list[Line]:
    """Everything above the tabs.

    Args:
        parent: its parent's name.
    """
    state, dot = sign(worker, look.glyphs), look.glyphs.dot
    agent = " ".join(filter(None, (worker.agent.name, worker.agent.version)))
    about = [agent]
    if parent:
        about.append(f"child of {parent}")
    if worker.pane:
        about.append(str(worker.pane.key))
    since = f" {age(look.now - worker.assessment.since)}" if worker.assessment.since is not None else ""
    head: Line = (state, Span(since + "  ", "muted"))
    lines: list[Line] = [
        fit(
            (Span(worker.name, "strong"), Span("".join(f" {dot} {part}" for part in about))),
            cells,
            look.glyphs.ellipsis,
        )
    ]
    if place := _place(worker, cells, look):
        lines.append(fit((Span(place, "muted"),), cells, look.glyphs.ellipsis))
    if width((*head, Span(worker.assessment.why))) <= cells:
        lines.append((*head, Span(worker.assessment.why)))
    else:
        lines += [head, *paragraph(worker.assessment.why, cells, indent=2, cap=4)]
    if worker.stalled is not None:
        silent = f"no output, no CPU, no I/O for {age(look.now - worker.stalled)}; last: {worker.line or worker.assessment.why}"
        lines += paragraph(silent, cells, head=(Span("stalled: ", "stuck"),), cap=3)
    if worker.below:
        lines += paragraph(", ".join(worker.below), cells, "ask", head=(Span("! below it: ", "ask"),), cap=3)
    lines += [BLANK, *layers(worker.sandbox, cells, look), *in_full(worker.sandbox.findings, cells, look)]
    if worker.notes:
        lines += [
            BLANK,
            *paragraph("; ".join(worker.notes), cells, "muted", head=(Span("missing: ", "muted"),)),
        ]
    return lines


def _place(worker: Worker, cells: int, look: Look) -> str:
    """Where it works and on what: directory, model, turns, how full its context is."""
    tokens, rest = worker.tokens, [worker.model]
    if worker.turns and cells >= 70:
        rest.append(f"{worker.turns} turn{'s' * (worker.turns > 1)}")
    if tokens.context is not None and tokens.window:
        rest.append(f"{100 * tokens.context // tokens.window}% of {count(tokens.window)}")
    elif tokens.total:
        rest.append(f"{count(tokens.total)} tokens")
    dot = f" {look.glyphs.dot} "
    tail = dot.join(filter(None, rest))
    if not worker.cwd:
        return tail
    return dot.join(
        filter(
            None,
            (elide_middle(worker.cwd, max(12, cells - len(tail) - len(dot)), look.glyphs.ellipsis), tail),
        )
    )


def tab_bar(chosen: str, cells: int, look: Look) -> Line:
    """The tabs' names, the chosen one in brackets."""
    spans: list[Span] = []
    for name in TABS:
        action = f"app.tab_named('{name}')"
        spans.append(
            Span(f"[{name}]", "chosen", action) if name == chosen else Span(f" {name} ", "muted", action)
        )
    used = width(spans)
    return (*spans, Span(" " + look.glyphs.rule * max(0, cells - used - 1), "rule"))


class WorkerPanel(Vertical):
    """The panel. Which tab it shows is its own affair; everything else comes with `show`."""

    def __init__(self) -> None:
        super().__init__(id="panel")
        self._tab = TABS[0]
        self._by_hand = False
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Summary above, tabs below."""
        yield Lines(id="summary")
        yield Lines(id="tabs", focusable=False)
        yield Lines(id="tab")

    def show(self, view: View) -> None:
        """Shows the picked worker."""
        before, self._view = self._view, view
        worker, look = view.worker, view.look
        cells = self.query_one("#tabs", Lines).size.width - 2
        top, bar, tab = (self.query_one(f"#{name}", Lines) for name in ("summary", "tabs", "tab"))
        if worker is None or cells < 1:
            gone: list[Line] = [(Span("This worker is not listed any more.", "muted"),)]
            for lines, content in ((top, gone), (bar, []), (tab, [])):
                lines.show(content)
            return
        other = before is None or before.worker is None or before.worker.id != worker.id
        top.show(summary(worker, view.parent, cells, look))
        if not self._by_hand:
            self._tab = "Timeline" if worker.moments else "Screen" if worker.pane else "Evidence"
        bar.show([tab_bar(self._tab, cells, look)])
        if other:
            top.scroll_home(animate=False, immediate=True)
            tab.show([])
        tab.show(_content(self._tab, worker, view, tab.size.height, cells), follow=self._tab == "Screen")

    def turn(self, step: int) -> None:
        """Another tab: the next (1), the previous (-1)."""
        self.choose(TABS[(TABS.index(self._tab) + step) % len(TABS)])

    def choose(self, name: str) -> None:
        """This tab, from now on for every worker."""
        self._tab, self._by_hand = name, True
        if (view := self._view) is not None:
            self._view = None
            self.show(view)


def _content(tab: str, worker: Worker, view: View, height: int, cells: int) -> list[Line]:
    look = view.look
    match tab:
        case "Timeline":
            return timeline(worker, cells, look)
        case "Screen":
            return pane_view(worker.pane, height, look)
        case "Calls":
            return calls(worker, cells, look)
        case "Sandbox":
            return inheritance(
                worker, view.family, view.snapshot.installed if view.snapshot else None, cells, look
            )
        case _:
            return known(worker, cells, look)
