"""Toned text for Textual's own widgets, which take `Content` where ours take spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from agentdash.tui.primitives.signs import ascii_signs
from agentdash.tui.primitives.spans import Span, Tone

_STYLES: Final[dict[Tone, str]] = {
    "ask": "bold $text-warning",
    "stuck": "bold $text-error",
    "live": "$text-success",
    "ready": "$text-secondary",
    "gone": "$foreground 70%",
    "mismatch": "$text-accent",
    "muted": "$foreground 70%",
    "strong": "bold",
    "title": "$foreground 70%",
    "key": "bold $text-primary",
    "chosen": "bold $text-primary",
    "marked": "reverse",
    "rule": "$border-blurred",
    "waited": "$text-warning",
    "stopped": "$text-error",
}
"""The styles of the tones, as in `agentdash.tcss`. `$text-muted` is an `auto` colour, which content draws
white (Textual 8.2.8)."""

_ANSI_STYLES: Final[dict[Tone, str]] = {
    "ask": "bold reverse",
    "stuck": "bold $badge-foreground on $error",
    "mismatch": "underline",
    "live": "",
    "ready": "",
    "muted": "dim",
    "gone": "dim",
    "title": "dim",
    "key": "bold",
    "chosen": "bold",
    "rule": "dim",
    "waited": "",
    "stopped": "",
}
"""The same for a terminal's own colours: readable on light and dark grounds."""


def content(spans: Iterable[Span], *, ascii_only: bool, ansi: bool = False) -> Content:
    """Return spans as content; foreign text is not parsed as markup.

    Args:
        ascii_only: whether signs are replaced by ASCII.
        ansi: whether colours are the terminal's own, on an unknown ground.
    """
    styles = _STYLES | _ANSI_STYLES if ansi else _STYLES
    return Content.assemble(
        *((ascii_signs(span.text) if ascii_only else span.text, styles.get(span.tone, "")) for span in spans)
    )
