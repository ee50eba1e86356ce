"""The app: takes snapshots from a feed, keeps what the person chose, and lets the screens draw both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from textual import constants, on
from textual.app import App
from textual.command import CommandPalette
from textual.widgets import Input

from agentdash.clock import Clock
from agentdash.facts.pane import PaneKey
from agentdash.facts.text import clean_line
from agentdash.facts.worker import Snapshot, Worker
from agentdash.tui.commands import Actions, Workers
from agentdash.tui.filter import Filter, matches
from agentdash.tui.keys import bindings, ids
from agentdash.tui.screens.fleet import FleetScreen
from agentdash.tui.screens.help import HelpScreen
from agentdash.tui.screens.why import WhyScreen
from agentdash.tui.screens.worker import WorkerScreen
from agentdash.tui.theme import ASCII, THEMES, UNICODE, Look
from agentdash.tui.view import View
from agentdash.tui.widgets.findings import FindingsStrip, remedies
from agentdash.tui.widgets.fleet_list import FleetList
from agentdash.tui.widgets.footer import Footer
from agentdash.tui.widgets.lines import Lines
from agentdash.tui.widgets.worker_panel import WorkerPanel

Jump = Callable[[PaneKey], Awaitable[str | None]]
"""Goes to a pane; returns None, or on one line what was in the way."""


class Feed(Protocol):
    """Where snapshots come from."""

    def snapshots(self) -> AsyncIterator[Snapshot]:
        """The newest snapshot whenever there is a new one, at most 10 a second. Whoever is slow misses some."""
        ...


@dataclass(frozen=True)
class Options:
    """How it is to look."""

    ascii: bool = False
    """No sign outside of ASCII."""
    theme: str | None = None
    """A name out of `theme.THEMES`, or of Textual's own; None: `TEXTUAL_THEME`, else `dark`."""
    banner: str | None = None
    """A word in the header, `DEMO`."""
    select: str | None = None
    """The worker to start on: a name, a pane id, an id or its beginning."""


@runtime_checkable
class Drawn(Protocol):
    """A screen that is a function of a view."""

    def draw(self, view: View) -> None:
        """Shows what the view says."""


class AgentDash(App[None]):
    """The dashboard.

    Args:
        feed: where snapshots come from.
        clock: what ages are counted by.
        jump: goes to a pane; None where there is no way to.
    """

    TITLE = "agentdash"
    CSS_PATH = "agentdash.tcss"
    BINDINGS = bindings(*ids("app"))
    COMMANDS = {Actions, Workers}  # noqa: RUF012 - Textual declares it as a plain set
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (30, "-narrow"), (60, "-medium"), (100, "-wide"), (160, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-strip"), (14, "-short"), (30, "-tall")]  # noqa: RUF012

    def __init__(self, feed: Feed, clock: Clock, *, options: Options = Options(), jump: Jump | None = None) -> None:
        super().__init__()
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        own = constants.DEFAULT_THEME if constants.DEFAULT_THEME != "textual-dark" else THEMES[0].name
        self.theme = options.theme or own
        self.set_class(options.ascii, "-ascii")
        self.options = options
        self.glyphs = ASCII if options.ascii else UNICODE
        self.root = FleetScreen(self.glyphs)
        self.snapshot: Snapshot | None = None
        self.picked: str | None = None
        self._feed, self._clock, self._jump = feed, clock, jump
        self._by_id: dict[str, Worker] = {}
        self._wanted = options.select
        self._trouble: str | None = None
        self._copied = 0

    def get_default_screen(self) -> FleetScreen:
        """The fleet."""
        return self.root

    def on_ready(self) -> None:
        """Starts to listen, and to count ages."""
        self.draw()
        self.run_worker(self._follow(), name="feed")
        self.set_interval(1.0, self.draw)

    async def _follow(self) -> None:
        try:
            async for snapshot in self._feed.snapshots():
                self.take(snapshot)
            self._trouble = "The feed has ended: what is shown here will not change any more."
        except Exception as error:  # whatever it is: people have to see that what they look at is old
            self._trouble = clean_line(f"The feed has broken off, what is shown here is old: {type(error).__name__}: {error}")
        self.draw()

    # ---------------------------------------------------------------- drawing

    def take(self, snapshot: Snapshot) -> None:
        """Shows a snapshot; one that says nothing new changes nothing."""
        if (old := self.snapshot) is not None and (old.workers, old.sources) == (snapshot.workers, snapshot.sources):
            return
        self.snapshot = snapshot
        self._by_id = {worker.id: worker for worker in snapshot.workers}
        if self._wanted and (found := _find(snapshot, self._wanted)) is not None:
            self.picked, self._wanted = found.id, None
        self.draw()

    @on(Lines.Resized)
    @on(FleetScreen.Narrowed)
    def draw(self) -> None:
        """Lets every screen show what there is now. What has not changed is not painted again."""
        if self.snapshot is not None:
            beside = self.root.order(self.snapshot, self.picked)
            self.picked = beside if self.screen is self.root else self.picked
        look = Look(self._clock.now(), self.glyphs)
        view = View(look, self.snapshot, self._by_id, self.picked, self.options.banner, self._trouble)
        for screen in self.screen_stack:
            if isinstance(screen, Drawn) and screen.is_mounted:
                screen.draw(view)

    def say(self, message: str) -> None:
        """Tells the person in front of the screen something, in the footer."""
        for footer in self.screen.query(Footer):
            footer.say(message)

    # ---------------------------------------------------------------- choosing

    @property
    def worker(self) -> Worker | None:
        """The worker that the cursor is on."""
        return self._by_id.get(self.picked or "")

    def pick(self, worker: str) -> None:
        """Puts the cursor on a worker, out of the filter's way if need be."""
        self.picked, self._wanted, self._copied = worker, None, 0
        if all(row.id != worker for row in self.root.rows):
            self.root.narrow(Filter())
        self.draw()

    @on(FleetList.Moved)
    def _moved(self, event: FleetList.Moved) -> None:
        self.pick(event.worker)

    @on(FindingsStrip.Opened)
    def _finding_opened(self, event: FindingsStrip.Opened) -> None:
        self.pick(event.worker)
        self.root.fleet.focus()

    def _seek(self, wanted: Callable[[Worker], bool], nobody: str, step: int = 1) -> None:
        """Goes to the next row, round and round, whose worker is wanted."""
        workers = [self._by_id[row.id] for row in self.root.rows]
        here = next((i for i, worker in enumerate(workers) if worker.id == self.picked), 0)
        for distance in range(1, len(workers) + 1):
            worker = workers[(here + step * distance) % len(workers)]
            if wanted(worker):
                self.pick(worker.id)
                return
        self.say(nobody)

    def action_attention(self) -> None:
        """To the next worker that needs somebody."""
        self._seek(lambda worker: worker.state.needs_you, "Nobody here needs you.")

    def action_mismatch(self) -> None:
        """To the next mismatch."""
        self._seek(lambda worker: worker.mismatch, "No mismatch here.")

    def action_match(self, step: int) -> None:
        """To the next (1) or previous (-1) worker that the last filter fits."""
        text = self.root.last_text
        if text:
            self._seek(lambda worker: matches(worker, text), f'Nothing here fits "{text}".', step)
        else:
            self.say("Nothing to look for yet: / takes words.")

    def action_filter(self) -> None:
        """Lets somebody type a filter."""
        self._to_root()
        self.root.bar.edit(self.root.filter.text)

    def action_bucket(self) -> None:
        """The next bucket."""
        self._to_root()
        self.root.narrow(self.root.filter.cycled())

    def action_only(self, bucket: str) -> None:
        """One bucket alone; once more: all again."""
        chosen = self.root.filter
        self.root.narrow(chosen._replace(bucket="all" if chosen.bucket == bucket else bucket))

    # ---------------------------------------------------------------- looking

    def action_why(self) -> None:
        """All evidence."""
        if self.worker:
            self.push_screen(WhyScreen(self.glyphs))

    def action_help(self) -> None:
        """Keys and signs."""
        self.push_screen(HelpScreen(self.glyphs))

    @on(FleetList.Opened)
    def action_open(self) -> None:
        """The worker in detail: in the panel, or on the whole screen."""
        panel = self.root.panel
        if self.screen is not self.root or self.worker is None:
            return
        if panel.display and not panel.has_focus_within:
            panel.query_one("#tab").focus()
        else:
            self.push_screen(WorkerScreen(self.glyphs))

    def action_tab(self, step: int) -> None:
        """The panel's next (1) or previous (-1) tab."""
        for panel in self.screen.query(WorkerPanel):
            panel.turn(step)

    def action_tab_named(self, name: str) -> None:
        """This tab of the panel."""
        for panel in self.screen.query(WorkerPanel):
            panel.choose(name)

    def action_theme(self) -> None:
        """The next theme."""
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.say(f"Theme: {self.theme}")

    def action_command_palette(self) -> None:
        """All actions, all workers."""
        self.push_screen(CommandPalette(placeholder="An action, or the name of a worker", id="--command-palette"))

    @on(CommandPalette.Opened)
    def _palette_opened(self) -> None:
        self.screen.query_one(Input).cursor_blink = False

    async def action_back(self) -> None:
        """One step back: off this screen, to the list, out of the filter."""
        if self.screen is not self.root:
            self.pop_screen()
            self.draw()
        elif self.focused is not self.root.fleet:
            self.root.fleet.focus()
        elif self.root.filter.active:
            self.root.narrow(Filter())

    async def action_leave(self) -> None:
        """Back, and from the root: out."""
        if self.screen is self.root:
            self.exit()
        else:
            await self.action_back()

    def _to_root(self) -> None:
        while self.screen is not self.root:
            self.pop_screen()

    # ---------------------------------------------------------------- taking along

    def action_copy_id(self) -> None:
        """The worker's id, to the clipboard (OSC 52)."""
        if self.worker:
            self.copy_to_clipboard(self.worker.id)
            self.say(f"Copied {self.worker.id}")

    def action_copy_remedy(self) -> None:
        """A remedy, to the clipboard; another one each time."""
        found = remedies(self.worker) if self.worker else []
        if not found:
            self.say("It has no finding with a remedy.")
            return
        number = self._copied % len(found)
        self._copied += 1
        self.copy_to_clipboard(found[number])
        self.say(f"Copied {number + 1} of {len(found)}: {found[number]}")

    def action_jump(self) -> None:
        """To the worker's pane."""
        if (worker := self.worker) is None:
            return
        if worker.pane is None:
            self.say(f"No tmux pane is known to be {worker.name}'s.")
        elif self._jump is None:
            self.say(f"Cannot go to {worker.pane.key}: there is no tmux client here to take along.")
        else:
            self.run_worker(self._go(self._jump, worker.pane.key), group="jump", exclusive=True)

    async def _go(self, jump: Jump, pane: PaneKey) -> None:
        try:
            problem = await jump(pane)
        except OSError as error:
            problem = clean_line(str(error))
        self.say(problem or f"Went to {pane}.")


def _find(snapshot: Snapshot, wanted: str) -> Worker | None:
    """The worker of this name, pane or id; else the first whose id begins so."""
    exact = (w for w in snapshot.workers if wanted in (w.name, w.id) or (w.pane and wanted in (w.pane.key.id, str(w.pane.key))))
    return next(exact, next((w for w in snapshot.workers if w.id.startswith(wanted)), None))
