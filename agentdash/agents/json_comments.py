"""JSON with comments and trailing commas, as the settings of Gemini CLI, Qwen Code and OpenCode may be."""

from __future__ import annotations

import re
from typing import Final

_TOKENS: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL
)


def without_comments(text: str) -> str:
    """Return the text as plain JSON: comments and trailing commas become blanks, so that places stay."""
    return _TOKENS.sub(lambda found: found[0] if found[0].startswith('"') else _blank(found[0]), text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
