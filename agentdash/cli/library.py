"""Browse the library of past sessions, and play the selected ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.claude.home import default_home as default_claude_home
from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.cli.config import checked_keys
from agentdash.cli.export import exported
from agentdash.cli.recall import recalled
from agentdash.cli.screen import copy_to_tmux, run_app
from agentdash.collect.clock import SystemClock
from agentdash.config import Config, state_folder
from agentdash.replay.library.library import Library
from agentdash.store.digests import DigestStore
from agentdash.tui.library.app import LibraryApp
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.options import Options


def browse(config: Config, journal: Path, play: Callable[[Path, float | None], None]) -> None:
    """Open the library; after each played session open it again, in the same place, until it is closed.

    Args:
        play: plays a session from a time on (unix seconds).
    """
    clock = SystemClock()
    model = LibraryModel()
    options = Options(
        ascii=config.ascii,
        theme=config.theme,
        filters=config.filters,
        keys=checked_keys(config),
        copy_to_tmux=copy_to_tmux,
    )
    library = Library(
        CodexHome(config.codex_home or default_home()),
        clock,
        ClaudeHome(config.claude_home or default_claude_home()),
        recordings=journal,
        digests=DigestStore(state_folder()),
        recall=recalled,
    )
    export = partial(exported, config=config, journal=journal)
    while (picked := run_app(LibraryApp(library, model, clock, options, export))) is not None:
        play(picked.path, picked.at)
