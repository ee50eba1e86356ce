"""A cursor over the tokens of a program, from which the parsers of awk and JavaScript are made."""

from __future__ import annotations

from typing import Final

from agentdash.engine.detect.env_output.unknown import UnknownError

Token = tuple[str, str]
"""Kind and text."""
_LITERALS: Final = ("string", "template", "regex")
"""Kinds of tokens whose text is no sign or word of the program, whatever it is."""


class TokenCursor:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self, ahead: int = 0) -> str:
        """Return the text of a token; empty for a literal, and behind the end."""
        at = self._at + ahead
        if at >= len(self._tokens) or self._tokens[at][0] in _LITERALS:
            return ""
        return self._tokens[at][1]

    def _kind(self, ahead: int = 0) -> str:
        """Return the kind of a token; empty behind the end."""
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _next(self) -> Token:
        """Return the token here, and go on to the next one."""
        if self._is_end():
            raise UnknownError
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is_end(self) -> bool:
        return self._at >= len(self._tokens)

    def _take(self, text: str) -> bool:
        """Return whether this is the token here; if it is, go on to the next one."""
        if self._peek() != text:
            return False
        self._at += 1
        return True

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise UnknownError
