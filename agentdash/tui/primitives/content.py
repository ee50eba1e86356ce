"""Toned text for Textual's own widgets, which take `Content` where ours take spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from agentdash.tui.primitives.spans import Span, Tone

_STYLES: Final[dict[Tone, str]] = {
    "ask": "bold $text-warning",
    "stuck": "bold $text-error",
    "live": "$text-success",
    "ready": "$text-secondary",
    "gone": "$text-muted",
    "mismatch": "bold $text-accent",
    "muted": "$text-muted",
    "strong": "bold",
    "title": "$text-muted",
    "key": "bold $text-primary",
    "chosen": "bold $text-primary",
    "marked": "reverse",
    "rule": "$border-blurred",
}
"""The styles of the tones, as in `agentdash.tcss`."""


def content(spans: Iterable[Span]) -> Content:
    """Return spans as content; foreign text is not parsed as markup."""
    return Content.assemble(*((span.text, _STYLES.get(span.tone, "")) for span in spans))
