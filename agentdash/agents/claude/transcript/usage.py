"""The tokens of a session, by the answers of the model."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.agents.claude.transcript.records import Message
from agentdash.model.sanitize import clean_line
from agentdash.model.tokens import ModelUsage, TokenUsage, merged_usage

_REMEMBERED_ANSWERS: Final = 1_000
"""Records of one answer may stand apart."""


class UsageOfAnswers:
    """Sums the tokens of answers. Every block of an answer is a record that states the tokens so far."""

    def __init__(self) -> None:
        self.by_model: tuple[ModelUsage, ...] = ()
        self._answers: dict[str, TokenUsage] = {}

    @property
    def total(self) -> int:
        """Return the sum of all tokens."""
        return sum(each.usage.total for each in self.by_model)

    def add(self, answer: str | None, stated: ModelUsage) -> bool:
        """Add what a record states of an answer with this id; return whether it is more than before."""
        counted = self._answers.get(answer or "", TokenUsage())
        if stated.usage.total <= counted.total:
            return False
        if answer:
            if len(self._answers) >= _REMEMBERED_ANSWERS:
                self._answers.pop(next(iter(self._answers)))
            self._answers[answer] = stated.usage
        newest = replace(stated, usage=stated.usage - counted)
        self.by_model = merged_usage((*self.by_model, newest))
        return True


def stated_usage(message: Message) -> ModelUsage | None:
    """Return the tokens that a record states of its answer; None where it states none, or no model gave it
    (`<synthetic>`)."""
    usage, model = message.usage, message.model or ""
    if usage is None or model.startswith("<"):
        return None
    return ModelUsage(
        model=clean_line(model) if model else None,
        usage=usage.parts,
        tier=clean_line(usage.speed) if usage.speed not in (None, "", "standard") else None,
        longest_prompt=usage.parts.prompt,
    )
