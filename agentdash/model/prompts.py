"""What a person asked, in a prompt with what stands around that in the records."""

from __future__ import annotations

import re
from typing import Final

_CONTEXT: Final = re.compile(
    r"(?:\s*<(ide_\w+|system-reminder|user-prompt-submit-hook)>.*?</\1>)+\s*", re.DOTALL
)
"""What IDEs (`<ide_opened_file>`, `<ide_selection>`), hooks and the CLI itself write before a prompt."""
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


def without_context(text: str) -> str:
    """Return a prompt without the context before it; an empty text where there is no more."""
    context = _CONTEXT.match(text)
    return text[context.end() :] if context is not None else text


def asked(prompt: str) -> str:
    """Return what a person typed behind the name of a custom command, of the prompt that it expanded to; any
    other prompt as it is."""
    found = _USER_INPUT.match(prompt) if _DIRECTIVE in prompt else None
    typed = (found["fenced"] or found["line"] or "").strip() if found is not None else ""
    return typed or prompt
