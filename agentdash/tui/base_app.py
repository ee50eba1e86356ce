"""The base of all apps: themes, glyphs, layout breakpoints, remapped keys, messages in the footer."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from textual import constants, events, on
from textual.actions import ActionParseResult
from textual.app import App
from textual.message import Message
from textual.widgets import Input
from textual.worker import WorkerFailed

from agentdash.model.sanitize import clean_line
from agentdash.tui.keys import OPENS_INPUT, bindings, keymap, remapped
from agentdash.tui.options import Options
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.terminal import has_job_control
from agentdash.tui.textual_internals import (
    TerminalDriver,
    discard_prints,
    end_failed,
    failure,
    forget_what_is_shown,
    write_changed_cells_only,
)
from agentdash.tui.theme import ASCII, BADGE_FOREGROUND, TERMINAL_THEME, THEMES, UNICODE

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_TRIPS: Final = 2
"""Of a `KeyHandled`."""
_KEY_HANDLED_WITHIN_S: Final = 1.0
"""A widget that is removed loses the messages that it has not handled: then the next key waits so long."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code of a program that ctrl+c has ended."""


class KeyHandled(Message):
    """Follows a key from the focused widget to the app, and so arrives when the key has been handled.

    Args:
        key: what it follows.
        trips: how often it goes this way still: behind the key, then behind the messages that the key has
            caused.
    """

    def __init__(self, key: events.Key, trips: int) -> None:
        self.key = key
        self.trips = trips
        super().__init__()


class BaseApp(App[Result]):
    """An app in the looks of agentdash."""

    BINDINGS = bindings("suspend")
    CSS_PATH = Path(__file__).with_name("agentdash.tcss")
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares them
        (0, "-tiny"),
        (30, "-narrow"),
        (60, "-medium"),
        (100, "-wide"),
        (160, "-roomy"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-strip"), (14, "-short"), (30, "-tall")]  # noqa: RUF012 - as Textual declares them

    def __init__(self, options: Options) -> None:
        super().__init__(driver_class=TerminalDriver)
        discard_prints(self)
        write_changed_cells_only()
        self.quit_requested = False
        """Whether the program is to end, and not this app alone."""
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = options.theme or self._default_theme()
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_class(options.ascii, "-ascii")
        self.options = options
        self._typed: deque[events.Key] = deque()
        """The key that is being handled, and those typed since."""
        self._first_batch = ExitStack()
        """Until the first picture is drawn nothing is painted: Textual would paint it three times, empty."""
        self.painted = asyncio.Event()
        """Set when the first picture is painted."""
        self.keys = remapped(options.keys)
        """The key table by id, with the user's keys."""
        self.set_keymap(keymap(options.keys))
        self.glyphs = ASCII if options.ascii else UNICODE

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the stylesheet; a theme's own colours of text replace Textual's tints."""
        own = self.current_theme.variables.items()
        return super().get_css_variables() | {name: of for name, of in own if name.startswith("text-")}

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the stylesheet again; not while nothing is styled, as Textual does for the first screen."""
        if any(screen.children for screen in self.screen_stack):
            super().refresh_css(animate)

    @property
    def failure(self) -> Exception | None:
        """Return the exception that has ended the app; None if there was none."""
        return failure(self)

    def _fatal_error(self) -> None:
        """End without Textual's traceback, which shows the values of variables: the caller has `failure`."""
        end_failed(self)

    async def run_action(self, action: str | ActionParseResult, *more: Any, **named: Any) -> bool:
        """Run the action of a key, a click or the palette; one that fails becomes a message."""
        try:
            return await super().run_action(action, *more, **named)
        except Exception as error:  # of any type: whoever watches keeps the screen
            self._show_failure(error)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """End the app, unless what has failed runs beside it: that becomes a message."""
        if isinstance(error, WorkerFailed):
            self._show_failure(error.error)
        else:
            super()._handle_exception(error)

    def _show_failure(self, error: BaseException) -> None:
        log.error("an action failed", exc_info=error)
        reason = clean_line(f"{type(error).__name__}: {error}")
        self.show_message(f"That failed: {reason} ({self.options.debug_log_hint})")

    def on_resize(self) -> None:
        """Paint all: a terminal may move its rows when its size changes."""
        forget_what_is_shown()

    def on_load(self) -> None:
        """Paint nothing yet."""
        self._first_batch.enter_context(self.batch_update())

    def on_ready(self) -> None:
        """Paint what was drawn, and note when that is done."""
        self._first_batch.close()
        self.call_after_refresh(self.painted.set)

    def show_title(self, title: str) -> None:
        """Show a title of the terminal, where it is wanted."""
        if self.options.title and isinstance(self._driver, TerminalDriver):
            self._driver.set_title(title)

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; a key when the key before it has been handled."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._typed.append(event)
            if len(self._typed) == 1:
                await self._handle_typed()
            return
        await super().on_event(event)
        if isinstance(event, events.Key):  # it came back: no widget has handled it
            self._send_behind(KeyHandled(event, trips=1))

    async def _handle_typed(self) -> None:
        """Handle the keys that wait, up to one that is to be waited for: an input takes text in order."""
        while self._typed:
            key = self._typed[0]
            if key.is_printable and isinstance(self.focused, Input):
                await super().on_event(key)
                self._typed.popleft()
                continue
            self.set_timer(_KEY_HANDLED_WITHIN_S, partial(self._end_typed, key))
            await super().on_event(key)
            self._send_behind(KeyHandled(key, trips=_TRIPS))
            return

    def _send_behind(self, message: KeyHandled) -> None:
        if not (self.focused or self.screen).post_message(message):
            self.call_later(self._end_typed, message.key)  # what had the focus is being closed

    @on(KeyHandled)
    async def _key_handled(self, message: KeyHandled) -> None:
        if message.trips > 1:
            self._send_behind(KeyHandled(message.key, trips=message.trips - 1))
        else:
            await self._end_typed(message.key)

    async def _end_typed(self, key: events.Key) -> None:
        """Handle the key behind this one, unless that has been done."""
        if self._typed and self._typed[0] is key:
            self._typed.popleft()
            await self._handle_typed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action may run: none that opens an input while one has the focus, or a box is
        open."""
        if action in OPENS_INPUT and (isinstance(self.focused, Input) or self.screen.is_modal):
            return False
        return super().check_action(action, parameters)

    def _default_theme(self) -> str:
        """Return `TEXTUAL_THEME`; else the terminal's own colours where it has 16: others would be merged."""
        if constants.DEFAULT_THEME != "textual-dark":
            return constants.DEFAULT_THEME
        claimed = Console(force_terminal=True).color_system if os.environ.get("TERM") else None
        return TERMINAL_THEME if claimed == "standard" else THEMES[0].name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of the style sheet that only the terminal's own colours need."""
        return {"badge-foreground": BADGE_FOREGROUND}

    def show_message(self, message: str) -> None:
        """Show a message in the footer for a few seconds."""
        for footer in self.screen.query(Footer):
            footer.show_message(message)

    def copy(self, text: str, label: str = "") -> None:
        """Copy a text, and show what has become of it.

        Args:
            label: stands before the text in the message.
        """
        self.copy_to_clipboard(text, label + text.partition("\n")[0])

    def copy_to_clipboard(self, text: str, shown: str = "") -> None:
        """Copy by OSC 52, and inside tmux, which may ignore that, by tmux; without `shown`, what was selected
        with the mouse."""
        super().copy_to_clipboard(text)
        self.run_worker(self._copy_to_tmux(text, shown), group="copy", exclusive=True)

    async def _copy_to_tmux(self, text: str, shown: str) -> None:
        copied = await self.options.copy_to_tmux(text) if self.options.copy_to_tmux else None
        how = copied or "Sent to the terminal's clipboard"
        self.show_message(f"{how}: {shown}" if shown else f"{how}.")

    def export(self, write: Callable[[Path], str], file: str) -> None:
        """Write a file in a thread by a function that returns what has become of it, and show that."""
        self.show_message(f"Writing {file} ...")

        def run() -> None:
            self.call_later(self.show_message, write(Path(file).expanduser()))

        self.run_worker(run, thread=True, name="export", exclusive=True)

    async def action_quit(self) -> None:
        """End the program."""
        self.quit_requested = True
        self.exit()

    def action_help_quit(self) -> None:
        """End the program, as ctrl+c does everywhere: no text is selected that it could copy."""
        self.quit_requested = True
        self.exit(return_code=_INTERRUPTED)

    def action_suspend_process(self) -> None:
        """Stop the program, as ctrl+z does in a shell; `fg` continues it."""
        if has_job_control():
            super().action_suspend_process()
        else:
            self.show_message("Cannot be suspended: no shell has started it that could continue it.")

    def action_theme(self) -> None:
        """Switch to the next theme."""
        names = [theme.name for theme in THEMES]
        after = names.index(self.theme) + 1 if self.theme in names else 0
        self.theme = names[after % len(names)]
        self.show_message(f"Theme: {self.theme}")
