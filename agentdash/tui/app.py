"""The dashboard as an app: the action of every key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, cast

from textual import on
from textual.app import App, SystemCommand
from textual.command import CommandPalette, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from agentdash.model.causes import causes
from agentdash.model.fact import FactKind
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import Group
from agentdash.model.worker import Worker
from agentdash.replay.clock import VirtualClock
from agentdash.tui.fleet.filter import Filter, matches
from agentdash.tui.fleet.screen import HINTS, FleetScreen
from agentdash.tui.keys import HandledBy, bindings, ids
from agentdash.tui.options import Feed, GoToPane, KeepsAttention, Options
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import Tone
from agentdash.tui.snapshot_app import SnapshotApp
from agentdash.tui.theme import state_name
from agentdash.tui.worker.overview import remedies
from agentdash.tui.worker.panel import EVIDENCE, PANE

# ------------------------------------------------------------
# The workers in the command palette, which has every action of the key table too


class WorkerProvider(Provider):
    """The workers; running one selects it."""

    async def search(self, query: str) -> Hits:
        """Yield the workers with a matching name or id."""
        app: SnapshotApp = self.app  # type: ignore[assignment]
        matcher = self.matcher(query)
        for worker in app.snapshot.workers if app.snapshot else ():
            if (score := max(matcher.match(worker.name), matcher.match(worker.id) / 2)) > 0:
                name = Content(
                    f"{worker.name}  {worker.agent.name}"
                )  # foreign text: `Content` is not parsed as markup
                yield Hit(
                    score,
                    name,
                    partial(app.select_worker, worker.id),
                    text=worker.name,
                    help=f"go to it: {state_name(worker.state)}",
                )


# ------------------------------------------------------------


__all__ = ["AgentDash", "Feed", "GoToPane", "Options"]

_DEFAULT_OPTIONS: Final = Options()


class AgentDash(SnapshotApp):
    """The dashboard.

    Args:
        options: how the app looks, and which worker is selected first.
        go_to_pane: makes a tmux client show a pane; None where there is no client.
        attention: keeps acknowledgements; None: there are none, as in a replay.
    """

    TITLE = "agentdash"
    BINDINGS = bindings(*ids("app"), *ids("fleet"))
    HANDLES: ClassVar[tuple[HandledBy, ...]] = ("lines", "app", "fleet", "textual")
    """Which keys of the table it has."""
    LEGEND: ClassVar[Sequence[tuple[str, Tone, str]]] = ()
    """The signs of its timeline, if it has one."""
    COMMANDS = App.COMMANDS | {WorkerProvider}

    def __init__(
        self,
        feed: Feed,
        clock: Clock,
        *,
        options: Options = _DEFAULT_OPTIONS,
        go_to_pane: GoToPane | None = None,
        attention: KeepsAttention | None = None,
    ) -> None:
        super().__init__(feed, clock, options, attention)
        self._go_to_pane = go_to_pane
        self._copied = ("", 0)
        """The worker whose remedies were copied last, and how many of them."""

    def _chosen(self) -> Worker | None:
        """Return the selected worker; where there is none, say so."""
        if self.worker is None:
            self.show_message("No worker is selected.")
        return self.worker

    # ---------------------------------------------------------------- find

    def _select_next(self, wanted: Callable[[Worker], bool], not_found: str) -> None:
        others = self.root.cycle_from(self.selected_id)
        found = next((worker for worker in others if wanted(self._by_id[worker])), None)
        if found is None:
            self.show_message(not_found)
        else:
            self.select_worker(found)

    def action_attention(self) -> None:
        """Select the next worker that needs the user."""
        self._select_next(lambda worker: worker.needs_you, "No worker here needs you.")

    def action_match(self) -> None:
        """Select the next worker that matches the last filter."""
        text = self.root.last_text
        if text:
            self._select_next(lambda worker: matches(worker, text), f'No worker here matches "{text}".')
        else:
            self.show_message("No filter to repeat yet: / opens it.")

    def action_filter(self) -> None:
        """Edit the filter."""
        self.root.unzoom()
        self.root.bar.edit(self.root.filter.text)

    def action_only(self, bucket: str) -> None:
        """Show one bucket; if it is shown already, show all."""
        self.root.unzoom()
        chosen = self.root.filter
        if chosen.bucket == bucket:
            self.root.apply_filter(chosen._replace(bucket="all"))
        elif self.snapshot is not None and self.snapshot.counts().get(bucket):
            self.root.apply_filter(chosen._replace(bucket=bucket))
        else:
            self.show_message("No sandbox differs from what is configured.")

    # ---------------------------------------------------------------- arrange

    def action_sort(self) -> None:
        """Sort by the next of attention, activity, age, tokens, cost and name."""
        self.action_sort_by(self.root.next_sort())

    def action_sort_by(self, name: str) -> None:
        """Sort by this."""
        self.root.sort_by(name)
        self.show_message(f"Sorted by {name}; s: by {self.root.next_sort()}.")
        self.draw()

    def action_fold(self) -> None:
        """Fold the family of the selected worker away, or unfold it."""
        if (worker := self._chosen()) is None:
            return
        while not worker.children and worker.parent in self._by_id:
            worker = self._by_id[worker.parent]
        if not worker.children:
            self.show_message("This worker has no children to fold.")
            return
        self.selected_id = worker.id
        self.root.toggle_fold(worker)
        self.draw()

    def action_past(self) -> None:
        """Show or hide past workers; with the cursor on the first of them, where it was on none."""
        self.root.unzoom()
        if self.snapshot is None or not self.snapshot.counts()["past"]:
            self.show_message("There are no past workers.")
            return
        if all(row.id != self.selected_id for row in self.root.rows):
            self.selected_id = None
        self.root.toggle_past()
        self.draw()

    # ---------------------------------------------------------------- acknowledge

    def action_acknowledge(self) -> None:
        """Acknowledge what the selected worker needs; acknowledged already: withdraw that."""
        if (worker := self._chosen()) is None:
            return
        if self.attention is None:
            self.show_message("There is nothing to dismiss in a replay.")
        elif worker.needs_you:
            self.let_move()
            problem = self.attention.acknowledge(worker)
            self.show_message(problem or f"Dismissed {worker.name} until it changes; d again undoes it.")
        elif worker.group is Group.DONE and (worker.state.needs_you or worker.fact.kind is FactKind.CRASHED):
            self.let_move()
            problem = self.attention.withdraw(worker)
            self.show_message(problem or f"{worker.name} needs you again.")
        else:
            self.show_message(f"{worker.name} does not need you.")

    def action_known(self) -> None:
        """Mark the worst sandbox problem of the selected worker as known; if all are: withdraw that."""
        if (worker := self._chosen()) is None:
            return
        wrong = [cause for cause in causes(worker) if cause.worst.severity != "info"]
        left = [cause for cause in wrong if not cause.is_known]
        if self.attention is None:
            self.show_message("Nothing can be marked as known in a replay.")
        elif not wrong:
            self.show_message(f"{worker.name} has no sandbox problem.")
        elif not left:
            problem = self.attention.forget(worker)
            self.show_message(problem or f"The sandbox problems of {worker.name} count again.")
        elif not worker.place:
            self.show_message(f"The directory of {worker.name} is not known, so nothing can be known in it.")
        else:
            problem = self.attention.know(worker, left[0].kinds)
            known = f"{left[0].words} counts no more in {worker.place}, until the policy there changes"
            self.show_message(problem or f"Known: {known}. `agentdash known` lists it.")

    # ---------------------------------------------------------------- look

    def action_why(self) -> None:
        """Show the evidence of the selected worker; if it is shown, go back."""
        if self._chosen() is None:
            return
        if self.root.is_zoomed and self.root.panel.open_tab == EVIDENCE:
            self.root.unzoom()
        else:
            self.root.zoom(EVIDENCE)
        self.draw()

    async def action_help(self) -> None:
        """Open the help, with the keys of this screen first."""
        from agentdash.tui.help import HelpScreen, dashboard_help  # noqa: PLC0415 - the first picture comes first

        here, legend = self.root.footer.ids, self.LEGEND
        lines = partial(dashboard_help, here, self.HANDLES, self.keys, self.glyphs, legend)
        await self.push_screen(HelpScreen(self.glyphs, lines))

    @on(Choices.Opened)
    def action_open(self) -> None:
        """Give the selected worker the whole screen."""
        if self._chosen() is not None:
            self.root.zoom()
            self.draw()

    def action_tab(self, step: int) -> None:
        """Open the next (1) or previous (-1) tab of the panel."""
        if self.root.panel.display:
            self.root.panel.switch_tab(step)
        else:
            self.show_message("There are no tabs here: enter opens those of the worker.")
        self.draw()  # a tab may need the session's file

    def action_tab_named(self, name: str) -> None:
        """Open this tab of the panel."""
        self.root.panel.open_tab = name
        self.draw()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the keys, for the palette."""
        del screen
        for key in self.keys.values():
            if key.on in self.HANDLES and key.on not in ("lines", "textual") and key.id != "palette":
                # `Content`, since a str would be parsed as markup, and keys may be brackets
                text = cast("str", Content(f"{'  '.join(key.shown)}  {key.help}"))
                yield SystemCommand(key.label, text, partial(self.run_action, f"app.{key.action}"))

    async def action_command_palette(self) -> None:  # type: ignore[override]
        """Open the command palette, and return when its input has the focus."""
        # without Textual's id: the one closed just before may not be removed yet, and ids are unique
        palette = CommandPalette(placeholder="An action, or the name of a worker")
        await self.push_screen(palette)
        palette.set_focus(palette.query_one(Input))

    @on(CommandPalette.Opened)
    def _palette_opened(self) -> None:
        self.screen.query_one(Input).cursor_blink = False

    async def action_back(self) -> None:
        """Show the list again, else focus it, else clear the filter."""
        if self.root.is_zoomed:
            self.root.unzoom()
            self.draw()
        elif self.focused is not self.root.fleet:
            self.root.fleet.focus()
        elif self.root.filter.active:
            self.root.apply_filter(Filter())
        else:
            self.show_message("No filter to clear; q quits.")

    async def action_leave(self) -> None:
        """Show the list again; from there, quit."""
        if self.root.is_zoomed:
            await self.action_back()
        else:
            self.exit()

    # ---------------------------------------------------------------- copy, go to pane

    def action_copy_id(self) -> None:
        """Copy the id of the selected worker to the clipboard (OSC 52)."""
        if worker := self._chosen():
            self.copy(worker.id)

    def action_copy_remedy(self) -> None:
        """Copy a remedy of the selected worker to the clipboard; the next one each time."""
        if (worker := self._chosen()) is None:
            return
        found = remedies(worker)
        if not found:
            self.show_message("This worker has no finding with a remedy.")
            return
        number = self._copied[1] % len(found) if self._copied[0] == worker.id else 0
        self._copied = (worker.id, number + 1)
        self.copy(found[number], f"{number + 1} of {len(found)}, ")

    def action_go_to_pane(self) -> None:
        """Go to the tmux pane of the selected worker."""
        if (worker := self._chosen()) is None:
            return
        if worker.host and self.options.attach_command:
            command = self.options.attach_command(worker)
            self.copy(command, f"{worker.name} is on {worker.host}: ")
        elif worker.pane is None:
            self.show_message(f"No tmux pane is linked to {worker.name}.")
        elif self._go_to_pane is None:
            self.root.zoom(PANE)
            self.draw()
            self.show_message(f"No tmux here has its pane {worker.pane.window}: this is its screen.")
        else:
            self.run_worker(
                self._switch_pane(self._go_to_pane, worker.pane.key, worker.part),
                group="go-to-pane",
                exclusive=True,
            )

    async def _switch_pane(self, go_to_pane: GoToPane, pane: PaneKey, part: str) -> None:
        try:
            became = await go_to_pane(pane)
        except OSError as error:
            self.show_message(clean_line(str(error)))
        else:
            self.show_message(f"{became} It is the {part}." if part else became)


# ------------------------------------------------------------


class DemoApp(AgentDash):
    """The dashboard over a scripted day, with captions; it can be paused, and played again.

    Args:
        clock: that of the day.
        scenes: what to look at, each from when on (unix seconds); the last one is the end.
        attention: keeps acknowledgements while it runs.
    """

    BINDINGS = bindings("pause")

    def __init__(
        self,
        feed: Feed,
        clock: VirtualClock,
        scenes: Sequence[tuple[float, str]],
        *,
        options: Options,
        attention: KeepsAttention,
    ) -> None:
        super().__init__(feed, clock, options=options, attention=attention)
        self.root = FleetScreen(self.glyphs, options.filters, ("pause", *HINTS))
        self._day = clock
        self._scenes = scenes
        self.is_again = False
        """Whether it was closed to be played again."""

    def caption(self) -> str:
        """Return what to look at now."""
        begun = [says for at, says in self._scenes if at <= self._day.now()]
        return begun[-1] if begun else ""

    def action_pause(self) -> None:
        """Pause or play; at the end, play from the beginning."""
        if self._day.now() >= self._scenes[-1][0]:
            self.is_again = True
            self.exit()
        else:
            self._day.set(paused=not self._day.paused)
            self.show_message("Paused; space plays on." if self._day.paused else "Playing.")
