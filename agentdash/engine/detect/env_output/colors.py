"""Colors of terminals, which are taken out of an output, and of what a script can print."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Excerpt,
    Part,
    Parts,
    Trimmed,
    Words,
    joined,
)

COLORS: Final = re.compile(r"\x1b\[[0-9;]*[mK]")
_ESCAPE: Final = "\x1b"


def without_colors(parts: Parts) -> Parts:
    """Return a sequence without colors; any text in the place of other control sequences."""
    return joined(_plain(part) for part in parts)


def _plain(part: Part) -> Part:
    match part:
        case str():
            plain = COLORS.sub("", part).replace("\r\n", "\n")  # as in the output
            return ANY if _ESCAPE in plain else plain
        case Choice(options=options):
            return Choice(tuple(map(without_colors, options)))
        case Trimmed(parts=parts) | Excerpt(parts=parts) | Words(parts=parts):
            return msgspec.structs.replace(part, parts=without_colors(parts))
        case Dump(style=style) if any(_ESCAPE in text for text in (*style.prefixes, style.suffix)):
            prefixes = tuple(COLORS.sub("", prefix) for prefix in style.prefixes)
            plain_style = msgspec.structs.replace(
                style, prefixes=prefixes, suffix=COLORS.sub("", style.suffix)
            )
            is_plain = not any(_ESCAPE in text for text in (*prefixes, plain_style.suffix))
            return msgspec.structs.replace(part, style=plain_style) if is_plain else ANY
        case _:
            return part
