"""The app: what every key does."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.command import CommandPalette
from textual.widgets import Input

from agentdash.model.clock import Clock
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Worker
from agentdash.tui.fleet.filter import Filter, matches
from agentdash.tui.fleet.list import FleetList
from agentdash.tui.help import HelpScreen
from agentdash.tui.keys import bindings, ids
from agentdash.tui.options import Feed, GoToPane, OnSnapshot, Options
from agentdash.tui.palette import Actions, Workers
from agentdash.tui.snapshot_app import SnapshotApp
from agentdash.tui.worker.findings import remedies
from agentdash.tui.worker.panel import WorkerPanel
from agentdash.tui.worker.screen import WorkerScreen
from agentdash.tui.worker.why import WhyScreen

__all__ = ["AgentDash", "Feed", "GoToPane", "OnSnapshot", "Options"]

_USUAL = Options()


class AgentDash(SnapshotApp):
    """The dashboard.

    Args:
        feed: where snapshots come from.
        clock: what ages are counted by.
        jump: goes to a pane; None where there is no way to.
        tell: is shown every snapshot; None where nobody is to be told of anything.
    """

    TITLE = "agentdash"
    BINDINGS = bindings(*ids("app"))
    COMMANDS = {Actions, Workers}  # noqa: RUF012 - Textual declares it as a plain set

    def __init__(
        self,
        feed: Feed,
        clock: Clock,
        *,
        options: Options = _USUAL,
        go_to_pane: GoToPane | None = None,
        on_snapshot: OnSnapshot | None = None,
    ) -> None:
        super().__init__(feed, clock, options, on_snapshot)
        self._go_to_pane = go_to_pane
        self._copied = 0

    # ---------------------------------------------------------------- finding

    def _seek(self, wanted: Callable[[Worker], bool], nobody: str, step: int = 1) -> None:
        ring = self.root.ring(self.picked, step)
        found = next((worker for worker in ring if wanted(self._by_id[worker])), None)
        if found is None:
            self.say(nobody)
        else:
            self.pick(found)

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

    def action_command_palette(self) -> None:
        """All actions, all workers."""
        self.push_screen(
            CommandPalette(placeholder="An action, or the name of a worker", id="--command-palette")
        )

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
        elif self._go_to_pane is None:
            self.say(f"Cannot go to {worker.pane.key}: there is no tmux client here to take along.")
        else:
            self.run_worker(self._go(self._go_to_pane, worker.pane.key), group="jump", exclusive=True)

    async def _go(self, go_to_pane: GoToPane, pane: PaneKey) -> None:
        try:
            problem = await go_to_pane(pane)
        except OSError as error:
            problem = clean_line(str(error))
        self.say(problem or f"Went to {pane}.")
