"""The family that TARGET names, as every command finds it."""

from __future__ import annotations

import click

from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.config import Config
from agentdash.replay.family import Family, find_family


def family_of(target: str, config: Config) -> Family:
    """A thread's family.

    Args:
        target: the thread's id or its beginning, or a rollout file.

    Raises:
        click.UsageError: there is no such thread.
    """
    try:
        return find_family(CodexHome(config.codex_home or default_home()), target)
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
