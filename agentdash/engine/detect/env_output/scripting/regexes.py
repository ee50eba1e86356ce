"""Regular expressions of scripting languages in Python's form."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"\\(?P<escape>.)|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<named>\(\?<(?=[A-Za-z_]))|(?P<end>\$)", re.DOTALL
)
_ESCAPES: Final = {"z": r"\Z", "Z": r"(?=\n?\Z)", "/": "/"}
_OTHERS: Final = frozenset("hHRKGQEXNpPkg")
"""Letters behind a backslash that Python does not have, or has in another meaning."""


def translated(source: str, *, ends_at_line_break: bool) -> str | None:
    """Return a pattern of Perl, PHP, Ruby, JavaScript or jq in Python's form; None where there is none.

    `ends_at_line_break`: `$` matches before a line break at the end as well, everywhere but in JavaScript.
    """
    is_foreign = False

    def spelled(match: re.Match[str]) -> str:
        nonlocal is_foreign
        if (escape := match["escape"]) is not None:
            is_foreign = is_foreign or escape in _OTHERS
            return _ESCAPES.get(escape, match[0])
        if match["named"]:
            return "(?P<"
        return r"\Z" if match["end"] and not ends_at_line_break else match[0]

    found = _TOKEN.sub(spelled, source)
    return None if is_foreign else found
