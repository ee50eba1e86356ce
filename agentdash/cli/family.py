"""Find the family of threads that a TARGET argument names."""

from __future__ import annotations

import click

from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.config import Config
from agentdash.replay.family import Family, find_family


def family_of(target: str, config: Config) -> Family:
    """Return the family of a thread.

    Args:
        target: a thread id or its prefix, or the path of a rollout file.

    Raises:
        click.UsageError: no thread matches.
    """
    try:
        return find_family(CodexHome(config.codex_home or default_home()), target)
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
