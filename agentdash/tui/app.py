"""The dashboard as an app: the action of every key."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from textual import on
from textual.app import App, SystemCommand
from textual.command import CommandPalette, Hit, Hits, Provider
from textual.content import Content
from textual.events import Event, Key, MouseDown, MouseScrollDown, MouseScrollUp
from textual.screen import Screen
from textual.widgets import Input

from agentdash.model.causes import causes
from agentdash.model.changes import DirectoryDiff
from agentdash.model.conversation import Conversation
from agentdash.model.fact import FactKind
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import Group
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.clock import VirtualClock
from agentdash.tui.base_app import BaseApp
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.header import title
from agentdash.tui.fleet.list import WorkerPointed
from agentdash.tui.fleet.rows import GROUPINGS, SORTS
from agentdash.tui.fleet.screen import HINTS, FleetScreen
from agentdash.tui.keys import HandledBy, bindings, ids
from agentdash.tui.options import Feed, GoToPane, Options
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Tone
from agentdash.tui.theme import Look, state_name
from agentdash.tui.view import View
from agentdash.tui.worker.overview import remedies
from agentdash.tui.worker.panel import EVIDENCE, PANE

if TYPE_CHECKING:
    from agentdash.engine.user_attention import UserAttention

# ------------------------------------------------------------
# The workers in the command palette, which has every action of the key table too


class WorkerProvider(Provider):
    """The workers; running one selects it."""

    async def search(self, query: str) -> Hits:
        """Yield the workers with a matching name or id."""
        app: AgentDash = self.app  # type: ignore[assignment]
        matcher = self.matcher(query)
        for worker in app.snapshot.workers if app.snapshot else ():
            names = matcher.match(f"{worker.label} {worker.name}".strip())
            if (score := max(names, matcher.match(worker.id) / 2)) > 0:
                name = Content(f"{worker.title}  {worker.agent.name}")  # foreign text: not parsed as markup
                go, state = partial(app.select_worker, worker.id), state_name(worker.state)
                yield Hit(score, name, go, text=worker.name, help=f"go to it: {state}")


T = TypeVar("T")
_HOLD_S: Final = 5.0
"""After a key, for which rows keep their places: to read a row, and decide."""
_AWAY_AFTER_S: Final = 300.0
"""Without a key, after which the user counts as having been away."""
_CLOCK_INTERVAL_S: Final = 1.0
"""Young ages are shown in seconds."""
_STILL_INTERVAL_S: Final = 5.0
"""Between two drawings while no line changes with the time: old ages are shown in minutes and hours."""
_REST_S: Final = 0.1
"""After the cursor has moved, until what shows the selected worker follows: to draw it is most of a key."""
_CONVERSATION_INTERVAL_S: Final = 1.0
"""Between two readings of a conversation that goes on: as fast as it can be followed."""
_DIFF_INTERVAL_S: Final = 5.0
"""Between two readings of a diff: git compares the whole working tree."""


def _open_conversation(path: str) -> Callable[[float], Conversation]:
    from agentdash.replay.conversation import ConversationFile  # noqa: PLC0415 - the first picture comes first

    return ConversationFile(Path(path)).read


class Reading(Generic[T]):
    """What was read of one file or directory, that of the selected worker.

    Args:
        open_file: returns a function that reads a path up to a time (unix seconds), and reads on where it
            stopped when it is called again.
        interval: seconds between two readings of one path.
    """

    def __init__(self, open_file: Callable[[str], Callable[[float], T]], interval: float) -> None:
        self._open = open_file
        self._interval = interval
        self._path: str | None = None
        self._read_path: Callable[[float], T] | None = None
        self._found: T | None = None
        self._asked: object = None
        self._read_at = 0.0
        self._is_reading = False

    def found(self, path: str | None) -> T | None:
        """Return what was read of a path; None before."""
        return self._found if path == self._path else None

    def job(self, path: str, until: float, asked: object = None) -> Callable[[], None] | None:
        """Return what reads a path, to be run in a thread; None if it was read just now, or is being read.

        Args:
            until: time up to which (unix seconds).
            asked: what the content depends on: if that is as it was, nothing is read. None: not known.
        """
        if self._is_reading:
            return None
        if path != self._path:
            self._path, self._read_path, self._found = path, None, None
        elif time.monotonic() < self._read_at + self._interval or (asked and asked == self._asked):
            return None
        self._asked = asked
        self._is_reading = True
        return partial(self._read, path, until)

    def _read(self, path: str, until: float) -> None:
        try:
            self._read_path = self._read_path or self._open(path)
            self._found = self._read_path(until)
        finally:
            self._read_at = time.monotonic()
            self._is_reading = False


def _after(names: Iterable[str], name: str) -> str:
    """Return the name after this one, or the first."""
    all_names = [*names]
    return all_names[(all_names.index(name) + 1) % len(all_names)]


class AgentDash(BaseApp[None]):
    """The dashboard.

    Args:
        options: how the app looks.
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
        options: Options = Options(),  # noqa: B008 - it is frozen
        go_to_pane: GoToPane | None = None,
        attention: UserAttention | None = None,
    ) -> None:
        super().__init__(options)
        self.root = FleetScreen(self.glyphs, options.filters)
        self.snapshot: Snapshot | None = None
        self.selected_id: str | None = None
        """Id of the selected worker."""
        self._feed = feed
        self._clock = clock
        self._by_id: dict[str, Worker] = {}
        self._feed_error: str | None = None
        """Why the feed gives no more snapshots."""
        self.attention = attention
        self.last_key_at: float | None = None
        """When the user last pressed a key (unix seconds)."""
        self._has_chosen = False
        """Whether the user has chosen a worker; until then the most urgent one is selected."""
        self._touched_at = -_HOLD_S
        self._drawn_at = 0.0
        self._moved_at = 0.0
        """When the cursor was moved last (monotonic)."""
        self._conversation = Reading(
            options.open_conversation or _open_conversation, _CONVERSATION_INTERVAL_S
        )
        self._diff = Reading[DirectoryDiff | None](
            lambda path: lambda _: options.read_diff(path) if options.read_diff else None, _DIFF_INTERVAL_S
        )
        self._go_to_pane = go_to_pane
        self._labelled = ""
        """Id of the worker whose label is edited."""
        self._copied = ("", 0)
        """The worker whose remedies were copied last, and how many of them."""

    @property
    def worker(self) -> Worker | None:
        """The selected worker."""
        return self._by_id.get(self.selected_id or "")

    @property
    def is_at_rest(self) -> bool:
        """Whether the cursor rests, so that the selected worker is shown in detail."""
        return time.monotonic() - self._moved_at >= _REST_S

    def get_default_screen(self) -> FleetScreen:
        """Return the fleet screen."""
        return self.root

    def on_ready(self) -> None:
        """Start to follow the feed, and to redraw what changes with the time alone."""
        self.draw()
        self.run_worker(self._follow(), name="feed")
        self.set_interval(_CLOCK_INTERVAL_S, self._draw_ages)

    def _draw_ages(self) -> None:
        """Draw what changes with the time alone, unless all was drawn just now."""
        now = time.monotonic()
        changes_at = max(Lines.changed_at, self._touched_at + _HOLD_S)
        is_still = now - changes_at > 1.5 * _CLOCK_INTERVAL_S and not self.root.panel.reads_session
        if now - self._drawn_at > (_STILL_INTERVAL_S if is_still else _CLOCK_INTERVAL_S / 2):
            self.draw()

    async def _follow(self) -> None:
        try:
            async for snapshot in self._feed.snapshots():
                self.take(snapshot)
            self._feed_error = "The feed has ended: what is shown here will not change any more."
        except Exception as error:  # of any type: the screen must show that it is out of date
            reason = clean_line(f"{type(error).__name__}: {error}")
            self._feed_error = f"The feed has broken off, what is shown here is old: {reason}"
        self.draw()

    def take(self, snapshot: Snapshot) -> None:
        """Draw a snapshot, unless it equals the last one."""
        if not snapshot.differs_from(self.snapshot):
            return
        self.snapshot = snapshot
        self.show_title(title(snapshot))
        self._by_id = {worker.id: worker for worker in snapshot.workers}
        self.draw()

    @on(Lines.Resized)
    @on(FleetScreen.FilterChanged)
    def draw(self) -> None:
        """Draw the screen. Lines that have not changed are not painted again."""
        if not self.is_running:  # while the app ends, screens lose their widgets before they leave the stack
            return
        self._drawn_at = time.monotonic()
        if self.snapshot is not None:
            is_held = time.monotonic() - self._touched_at < _HOLD_S
            self.root.order(self.snapshot, is_held=is_held)
            if not self.root.is_zoomed:  # the only one shown is not exchanged for another
                if not self._has_chosen and self.root.rows:
                    self.selected_id = self.root.rows[0].id
                self.selected_id = self.root.selectable(self.selected_id)
        problem = self._feed_error
        if self.snapshot is not None and (failure := self.snapshot.failure) is not None:
            problem = f"engine: {failure.text}: what is shown may be old ({self.options.debug_log_hint})"
        here = self.worker if self.worker and not self.worker.host else None
        view = View(
            Look(self._clock.now(), self.glyphs, self.options.thresholds),
            snapshot=self.snapshot,
            by_id=self._by_id,
            selected_id=self.selected_id,
            is_at_rest=self.is_at_rest,
            banner=self.options.banner,
            caption=self.caption(),
            feed_error=problem,
            conversation=self._conversation.found(here.file) if here else None,
            diff=self._diff.found(here.cwd) if here and here.git else None,
        )
        if self.root.is_mounted:
            self.root.draw(view)
        if view.is_at_rest:
            self._read_session()

    def caption(self) -> str:
        """Return a sentence for the line below the header: none; a hook for subclasses."""
        return ""

    def read_until(self) -> float:
        """Return the time up to which a session is shown (unix seconds); infinite: to its end."""
        return math.inf

    def _read_session(self) -> None:
        """Read the file of the selected worker, if the open tab shows more than the snapshot has."""
        panel, worker = self.root.panel, self.worker
        if worker is None or worker.host or not (panel.display and panel.reads_session):
            return
        jobs = []
        if worker.file is not None and worker.is_thread:
            until = self.read_until()
            jobs.append(self._conversation.job(worker.file, until, asked=(worker, until)))
        if panel.open_tab == "Changes" and self.options.read_diff and worker.git is not None and worker.cwd:
            jobs.append(self._diff.job(worker.cwd, math.inf))
        for job in filter(None, jobs):
            self.run_worker(partial(self._run, job), thread=True, name="session", exit_on_error=False)

    def _run(self, job: Callable[[], None]) -> None:
        """Read what a tab shows. Runs in a thread."""
        job()
        self.call_later(self.draw)

    # ---------------------------------------------------------------- the user looks

    async def on_event(self, event: Event) -> None:
        """Note that the user is here: from then on rows keep their places for a while."""
        if isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp):
            now, before = self._clock.now(), self.last_key_at
            if self.attention is not None and before and now - before > _AWAY_AFTER_S:
                self.attention.look(before)
            self.last_key_at, self._touched_at = now, time.monotonic()
            self._has_chosen = self._has_chosen or isinstance(event, Key | MouseDown)
        await super().on_event(event)

    def select_worker(self, worker: str) -> None:
        """Select a worker; clear the filter if it hides the worker."""
        self._moved_at = time.monotonic()
        self.set_timer(_REST_S * 1.1, self.draw)
        self.selected_id = worker
        if not self.root.is_zoomed and all(row.id != worker for row in self.root.rows):
            self.root.apply_filter(Filter())
        self.draw()

    @on(WorkerPointed)
    def _worker_pointed(self, event: WorkerPointed) -> None:
        self.select_worker(event.worker)

    def _chosen(self) -> Worker | None:
        """Return the selected worker; where there is none, say so."""
        if self.worker is None:
            self.show_message("No worker is selected.")
        return self.worker

    # ---------------------------------------------------------------- find

    def action_attention(self) -> None:
        """Select the next worker that needs the user."""
        rows = self.root.rows
        after = next((index for index, row in enumerate(rows, 1) if row.id == self.selected_id), 0)
        others = ((row, self._by_id[row.id]) for row in (*rows[after:], *rows[:after]))
        needed = [row.id for row, each in others if each.needs_you or (row.folded and each.below)]
        if needed:
            self.select_worker(needed[0])
        else:
            self.show_message("No worker here needs you.")

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

    def action_sort(self, name: str = "") -> None:
        """Sort by this, or by the next of attention, activity, age, tokens, cost and name."""
        order = self.root.arrangement
        name = name or _after(SORTS, order.sort)
        self.root.arrangement = order._replace(sort=name)
        self.show_message(f"Sorted by {name}; s: by {_after(SORTS, name)}.")
        self.draw()

    def action_group(self) -> None:
        """Group by the next of state, project and host."""
        order = self.root.arrangement
        name = _after(GROUPINGS, order.groups)
        self.root.unzoom()
        self.root.arrangement = order._replace(groups=name)
        self.show_message(f"Grouped by {name}; g: by {_after(GROUPINGS, name)}.")
        self.draw()

    def action_fold(self) -> None:
        """Fold the family of the selected worker away, or unfold it."""
        if (worker := self._chosen()) is None:
            return
        while not worker.children and worker.parent in self._by_id:
            worker = self._by_id[worker.parent]
        if worker.children:
            self.selected_id = worker.id
            self.root.toggle_fold(worker)
            self.draw()
        else:
            self.show_message("This worker has no children to fold.")

    def action_past(self) -> None:
        """Show or hide past workers; with the cursor on the first of them, where it was on none."""
        self.root.unzoom()
        if self.snapshot is None or not self.snapshot.counts()["past"]:
            self.show_message("There are no past workers.")
            return
        order = self.root.arrangement
        self.root.arrangement = order._replace(shows_past=not order.shows_past)
        self.draw()

    # ---------------------------------------------------------------- dismiss, know of, label, pin

    def _chosen_live(self) -> tuple[Worker, UserAttention] | None:
        """Return the selected worker, and what keeps a mark of it; where either is missing, say so."""
        if (worker := self._chosen()) is None:
            return None
        if self.attention is None:
            self.show_message("In a replay nothing can be dismissed, known, labelled or pinned.")
            return None
        return worker, self.attention

    def action_acknowledge(self) -> None:
        """Acknowledge what the selected worker needs; acknowledged already: withdraw that."""
        if (chosen := self._chosen_live()) is None:
            return
        worker, attention = chosen
        is_dismissed = worker.state.needs_you or worker.fact.kind is FactKind.CRASHED
        if worker.needs_you:
            done = f"Dismissed {worker.name} until it changes; d again undoes it."
        elif worker.group is Group.DONE and is_dismissed:
            done = f"{worker.name} needs you again."
        else:
            self.show_message(f"{worker.name} does not need you.")
            return
        self._touched_at = -_HOLD_S
        self.show_message(attention.acknowledge(worker, undo=not worker.needs_you) or done)

    def action_known(self) -> None:
        """Mark the worst sandbox problem of the selected worker as known; if all are: withdraw that."""
        if (chosen := self._chosen_live()) is None:
            return
        worker, attention = chosen
        wrong = [cause for cause in causes(worker) if cause.worst.severity != "info"]
        new = next((cause for cause in wrong if not cause.is_known), None)
        if not wrong:
            message = f"{worker.name} has no sandbox problem."
        elif new is None:
            message = attention.know(worker, ()) or f"The sandbox problems of {worker.name} count again."
        elif not worker.place:
            message = f"The directory of {worker.name} is not known, so nothing can be known in it."
        else:
            known = f"{new.words} no longer counts in {worker.place}, until the policy there changes"
            message = attention.know(worker, new.kinds) or f"Known: {known}. `agentdash known` lists it."
        self.show_message(message)

    def action_label(self) -> None:
        """Edit the label of the selected worker."""
        if (chosen := self._chosen_live()) is None:
            return
        worker, _ = chosen
        self._labelled = worker.id
        self.root.label_bar.edit(worker.label)

    @on(FilterBar.Closed, "#label")
    def _label_edited(self, event: FilterBar.Closed) -> None:
        worker = self._by_id.get(self._labelled)
        if event.submitted and worker is not None and self.attention is not None:
            problem = self.attention.mark(worker, event.text, pinned=worker.pinned)
            done = "is labelled" if event.text.strip() else "has no label"
            self.show_message(problem or f"{worker.name} {done}.")

    def action_pin(self) -> None:
        """Pin the selected worker, or undo that."""
        if (chosen := self._chosen_live()) is None:
            return
        worker, attention = chosen
        self._touched_at = -_HOLD_S
        problem = attention.mark(worker, worker.label, pinned=not worker.pinned)
        pinned = f"Pinned {worker.title}: it stands above all groups; P again undoes it."
        self.show_message(problem or (f"{worker.title} is no longer pinned." if worker.pinned else pinned))

    # ---------------------------------------------------------------- look

    def action_why(self) -> None:
        """Show the evidence of the selected worker; if it is shown, go back."""
        if self._chosen() is None:
            return
        if self.root.is_zoomed and self.root.panel.open_tab == EVIDENCE:
            self.root.unzoom()
        else:
            self.root.zoom(EVIDENCE)

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
        if not (found := remedies(worker)):
            self.show_message("This worker has no finding with a remedy.")
            return
        number = self._copied[1] % len(found) if self._copied[0] == worker.id else 0
        self._copied = (worker.id, number + 1)
        self.copy(found[number], f"{number + 1} of {len(found)}, ")

    def action_go_to_pane(self) -> None:
        """Go to the tmux pane of the selected worker."""
        if (worker := self._chosen()) is None:
            return
        # a sub-agent asks in the pane of its session
        shows_it = (each for each in self._by_id.values() if each.assessment.asker == worker.id)
        pane = next((each.pane for each in (worker, *shows_it) if each.pane is not None), None)
        if worker.host and self.options.attach_command:
            command = self.options.attach_command(worker)
            self.copy(command, f"{worker.name} is on {worker.host}: ")
        elif pane is None:
            self.show_message(f"No tmux pane is linked to {worker.name}.")
        elif self._go_to_pane is None:
            self.root.zoom(PANE)
            self.show_message(f"No tmux server here has its pane {pane.window}: this is its recorded screen.")
        else:
            going = self._switch_pane(self._go_to_pane, pane.key, worker.part)
            self.run_worker(going, group="go-to-pane", exclusive=True)

    async def _switch_pane(self, go_to_pane: GoToPane, pane: PaneKey, part: str) -> None:
        became = await go_to_pane(pane)
        self.show_message(f"{became} It is the {part}." if part else became)


# ------------------------------------------------------------


class DemoApp(AgentDash):
    """The dashboard over a scripted day, with captions; it can be paused.

    Args:
        clock: that of the day.
        scenes: what to look at, each from when on (unix seconds).
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
        attention: UserAttention,
    ) -> None:
        super().__init__(feed, clock, options=options, attention=attention)
        self.root = FleetScreen(self.glyphs, options.filters, ("pause", *HINTS))
        self._day = clock
        self._scenes = scenes

    def caption(self) -> str:
        """Return what to look at now."""
        begun = [says for at, says in self._scenes if at <= self._day.now()]
        return begun[-1] if begun else ""

    def action_pause(self) -> None:
        """Pause or play."""
        self._day.set(paused=not self._day.paused)
        self.show_message("Paused; space plays on." if self._day.paused else "Playing.")
