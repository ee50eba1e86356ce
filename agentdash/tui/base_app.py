"""How every app of ours looks: themes, signs, the sizes at which its layout changes, and a line to say things in."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from textual import constants
from textual.app import App

from agentdash.tui.keys import keymap, remapped
from agentdash.tui.options import Options
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.theme import ASCII, THEMES, UNICODE

Result = TypeVar("Result")


class BaseApp(App[Result]):
    """An app with our looks."""

    CSS_PATH = Path(__file__).with_name("agentdash.tcss")
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (30, "-narrow"), (60, "-medium"), (100, "-wide"), (160, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-strip"), (14, "-short"), (30, "-tall")]  # noqa: RUF012 - as Textual declares them

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        own = constants.DEFAULT_THEME if constants.DEFAULT_THEME != "textual-dark" else THEMES[0].name
        self.theme = options.theme or own
        self.set_class(options.ascii, "-ascii")
        self.options = options
        self.keys = remapped(options.keys)
        """The table of keys, by id, as its user has it."""
        self.set_keymap(keymap(options.keys))
        self.glyphs = ASCII if options.ascii else UNICODE

    def say(self, message: str) -> None:
        """Tells the person in front of the screen something, in the footer."""
        for footer in self.screen.query(Footer):
            footer.say(message)

    def action_theme(self) -> None:
        """The next theme."""
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.say(f"Theme: {self.theme}")
