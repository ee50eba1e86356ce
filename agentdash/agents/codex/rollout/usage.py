"""Read the tokens of a rollout alone: only the lines that count them, or set their model, are parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.model.events import TokensCounted
from agentdash.model.tokens import ModelUsage

_MARK: Final = re.compile(
    rb'"(?:token_(?:count|usage_record)|turn_context|thread_settings_applied|session_meta)"'
)
"""What the relevant lines contain; others that quote it are parsed in vain."""
_FORK_MARKS: Final = (b'"forked_from_id"', b'"subagent"')
"""What the first line of a file contains that may begin with copied lines."""


def tokens_by_model(thread: str, lines: Iterable[bytes]) -> tuple[ModelUsage, ...]:
    """Return the tokens that a thread used itself, by model.

    Args:
        thread: its id.
        lines: all lines of its rollout.
    """
    found: tuple[ModelUsage, ...] = ()
    for event in RolloutReader(thread).read(_relevant(lines)):
        if isinstance(event, TokensCounted):
            found = event.by_model
    return found


def _relevant(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines that matter; of a file that may begin with copied lines, all: the times and turns of
    the others show which lines are copied."""
    every = iter(lines)
    first = next(every, b"")
    yield first
    if any(mark in first for mark in _FORK_MARKS):
        yield from every
        return
    yield from filter(_MARK.search, every)
