"""What was said: prompts and messages, each once, though several dialects tell it."""

from __future__ import annotations

import re
from typing import Final

_CONTEXT: Final = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|\w+_instructions|"
    r"collaboration_mode|multi_agent_mode|recommended_plugins|skills?|tools|personality_spec|context_window|rollout_budget|token_budget|"
    r"additional_context|user_shell_command|turn_aborted|subagent_notification|internal_model_context|codex_internal_context|goal_context|"
    r"hook_prompt|external_\w+|model_switch)[\s>])"
)
"""What Codex itself puts into the user's mouth."""
_IDE_REQUEST: Final = "## My request for Codex:"
_STRIPPED: Final = re.compile(r"<(?:oai-mem-citation|proposed_plan)>")
_KEY: Final = 200
"""Characters that two tellings of one message have in common; behind them one may have lost a citation."""
_ROOM: Final = 500


def prompt(text: str) -> str | None:
    """What the user really asked; None for context and instructions that only look like a user's message."""
    if _CONTEXT.match(text):
        return None
    if text.startswith("# Context from my IDE setup:"):
        text = text.partition(_IDE_REQUEST)[2] or text
    return text.strip() or None


def letter(text: str) -> str | None:
    """The payload of a message from one agent to another (`Message Type: NEW_TASK` ... `Payload:`); None where it is encrypted or empty."""
    return text.partition("Payload:\n")[2].strip() or None


class MessageDeduplicator:
    """Tells a message that is said again from one that is told again.

    A message is in a file up to once per dialect (`response_item`, `event_msg`, `item_completed`). So it is new whenever one dialect has
    told it more often than any before: the model that repeats itself after a dropped stream is heard each time, an echo never.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def is_new(self, dialect: str, text: str) -> bool:
        """Whether this telling is a message of its own."""
        key = _STRIPPED.split(text, maxsplit=1)[0].strip()[:_KEY]
        counts = self._counts.setdefault(key, {})
        before = max(counts.values(), default=0)
        counts[dialect] = counts.get(dialect, 0) + 1
        if len(self._counts) > _ROOM:
            del self._counts[next(iter(self._counts))]
        return counts[dialect] > before

    def forget(self) -> None:
        """A new turn: echoes of what was said before do not come any more."""
        self._counts.clear()
