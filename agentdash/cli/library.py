"""The library of past sessions: somebody picks one, watches it, and is back where he was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.cli.config import checked_keys
from agentdash.collect.clock import SystemClock
from agentdash.config import Config
from agentdash.replay.library.library import Library
from agentdash.tui.library.app import LibraryApp
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.options import Options


def browse(config: Config, play: Callable[[Path, float | None], None]) -> None:
    """Opens the library, and plays what is picked, until somebody leaves it."""
    clock, shelf = SystemClock(), LibraryModel()
    options = Options(config.ascii, config.theme, keys=checked_keys(config))
    library = Library(CodexHome(config.codex_home or default_home()), clock)
    while (picked := LibraryApp(library, shelf, clock, options).run()) is not None:
        play(picked.path, picked.at)
