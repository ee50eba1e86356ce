"""What a person asked, in a prompt that a custom command expanded to."""

from __future__ import annotations

import re
from typing import Final

_USER_INPUT: Final = re.compile(
    r"\s*(?:---\n.*?\n---\n\s*)?"  # the front matter of the command's file
    r"(?:The user input to [^\n]*\n\s*)?"
    r"(?:#+ )?User input:?[ \t]*\n\s*"
    r"(?:(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<fenced>.*?)\n[ \t]*(?P=fence)|(?P<line>[^\n]+))",
    re.DOTALL | re.IGNORECASE,
)
"""The beginning of a command of Spec Kit, with the text that was typed behind its name."""
_DIRECTIVE: Final = "**MUST** consider"
"""What such a command says of that text, in all versions."""


def asked(prompt: str) -> str:
    """Return what a person typed behind the name of a custom command, of the prompt that it expanded to; any
    other prompt as it is."""
    found = _USER_INPUT.match(prompt) if _DIRECTIVE in prompt else None
    typed = (found["fenced"] or found["line"] or "").strip() if found is not None else ""
    return typed or prompt
