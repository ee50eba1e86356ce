"""Extract prompts and messages, and drop the copies that several dialects write."""

from __future__ import annotations

import re
from typing import Final

_CONTEXT: Final = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|"
    r"permissions instructions|\w+_instructions|"
    r"collaboration_mode|multi_agent_mode|recommended_plugins|skills?|tools|personality_spec|"
    r"context_window|rollout_budget|token_budget|"
    r"additional_context|user_shell_command|turn_aborted|subagent_notification|internal_model_context|"
    r"codex_internal_context|goal_context|"
    r"hook_prompt|external_\w+|model_switch)[\s>])"
)
"""Messages of the role `user` that Codex writes itself."""
_IDE_REQUEST: Final = "## My request for Codex:"
_STRIPPED_TAGS: Final = re.compile(r"<(?:oai-mem-citation|proposed_plan)>")
_KEY_CHARS: Final = 200
"""Compared of two messages; after these one copy may have lost a citation."""
_MAX_MESSAGES: Final = 500
"""Remembered at once: more than one turn writes."""


def prompt(text: str) -> str | None:
    """Return the text of a user's prompt; None for context and instructions in the form of one."""
    if _CONTEXT.match(text):
        return None
    if text.startswith("# Context from my IDE setup:"):
        text = text.partition(_IDE_REQUEST)[2] or text
    return text.strip() or None


def inter_agent_payload(text: str) -> str | None:
    """Return the payload of a message between agents (`Message Type: NEW_TASK` ... `Payload:`); None where
    encrypted or empty."""
    return text.partition("Payload:\n")[2].strip() or None


class MessageDeduplicator:
    """Separates repeated messages from copies of one message in several dialects.

    A message is written up to once per dialect (`response_item`, `event_msg`, `item_completed`). So it is new
    whenever one dialect has written it more often than any did before: a message that the model repeats after
    a dropped stream counts, a copy does not.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def is_new(self, dialect: str, text: str) -> bool:
        """Return whether this is a new message; counts it."""
        key = _STRIPPED_TAGS.split(text, maxsplit=1)[0].strip()[:_KEY_CHARS]
        counts = self._counts.setdefault(key, {})
        before = max(counts.values(), default=0)
        counts[dialect] = counts.get(dialect, 0) + 1
        if len(self._counts) > _MAX_MESSAGES:
            del self._counts[next(iter(self._counts))]
        return counts[dialect] > before

    def forget(self) -> None:
        """Forget all messages: at a new turn, copies of earlier ones do not follow any more."""
        self._counts.clear()
