"""Find the family of threads that a TARGET argument names."""

from __future__ import annotations

from pathlib import Path

import click

from agentdash.agents.codex.home import CodexHome, default_home, thread_id
from agentdash.config import Config
from agentdash.files import open_regular
from agentdash.model.sanitize import clean_line
from agentdash.replay.family import Family, find_family


def family_of(target: str, config: Config) -> Family:
    """Return the family of a thread.

    Args:
        target: a thread id or its prefix, or the path of a rollout file.

    Raises:
        click.UsageError: no thread matches, or its rollout cannot be read.
    """
    try:
        family = find_family(CodexHome(config.codex_home or default_home()), target)
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
    for path in family.paths:
        if thread_id(path) == family.thread:
            _check_readable(path)
    return family


def _check_readable(path: Path) -> None:
    try:
        with open_regular(path):
            return
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.UsageError(f"{clean_line(str(path))} cannot be read: {reason}") from error
