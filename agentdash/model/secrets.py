"""Mask secrets by their shape, wherever foreign text is kept or written."""

from __future__ import annotations

import re
from typing import Final

SECRET_WORDS: Final = r"(?:api[-_]?)?key|secret|token|passw(?:or)?d|passphrase|credentials?"  # noqa: S105 - a pattern, no secret
"""A pattern of the words that name a secret, lower case."""
_SECRET_VALUE: Final = re.compile(
    rf"((?:\b|_)(?:{SECRET_WORDS})=)[^\s;&|]+"  # OPENAI_API_KEY=..., --api-key=...
    r"|(\bbearer\s+)[^\s'\"]+"  # curl -H 'Authorization: Bearer ...'
    r"|((?<=://)[^/@\s:]*:)[^/@\s]+(?=@)",  # https://user:...@host
    re.IGNORECASE,
)


def mask_secrets(text: str) -> str:
    """Return `text` with the values of secrets replaced by `…`."""
    return _SECRET_VALUE.sub(lambda m: f"{m[1] or m[2] or m[3]}…", text)
