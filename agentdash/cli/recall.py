"""What agentdash saw of threads while they ran."""

from __future__ import annotations

from collections.abc import Iterable

import click

from agentdash.agents.codex.home import CodexHome
from agentdash.config import state_folder
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.store.memory import Memory, MemoryFileError


def recalled(home: CodexHome, threads: Iterable[str]) -> dict[str, ThreadMemory]:
    """Return what is remembered of threads of a home; nothing, and a line on stderr, where that cannot be
    read."""
    memory = Memory(state_folder(), home.root.expanduser().resolve())
    try:
        return {each.thread: each for each in memory.threads(threads)}
    except MemoryFileError as error:
        click.echo(f"agentdash: {clean_line(str(error))}", err=True)
        return {}
