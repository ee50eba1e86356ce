"""What a person asked, in a prompt with what stands around that in the records; and what the model asked."""

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
    r"(?:#+ )?User input:?[ \t]*\n\n?"
    r"(?:(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<fenced>.*?)\n?(?P=fence)|(?P<line>(?!```|~~~)[^\n]*))",
    re.DOTALL | re.IGNORECASE,
)
"""The beginning of a command of Spec Kit, with the text that was typed behind its name."""
_DIRECTIVE: Final = re.compile(r"^.*\*\*MUST\*\* consider.*$", re.MULTILINE)
"""What such a command says of that text, in all versions."""

_QUESTION: Final = re.compile(r"[?\uff1f][\s*_\"'\u201d\u2019\u300d\u300f)\uff09\]]*\Z")
"""A question mark, also the wide one, with what closes emphasis, quotation marks or brackets behind it."""


def without_context(text: str) -> str:
    """Return a prompt without the context before it; an empty text where there is no more."""
    context = _CONTEXT.match(text)
    return text[context.end() :] if context is not None else text


def asked(prompt: str) -> str:
    """Return what a person typed behind a custom command, of the prompt that it expanded to; where
    that is nothing, what the command tells the model. Other prompts are returned as they are."""
    found, directive = _USER_INPUT.match(prompt), _DIRECTIVE.search(prompt)
    if found is None or directive is None:
        return prompt
    typed = (found["fenced"] or found["line"] or "").strip()
    return typed or prompt[max(found.end(), directive.end()) :].strip() or prompt


def question_of(message: str) -> str:
    """Return the last paragraph of a message that ends with a question mark, else nothing."""
    paragraph = message.rstrip().rpartition("\n\n")[2]
    return paragraph if _QUESTION.search(paragraph) else ""
