"""Expansions that zsh alone has, in the spelling of bash, whose grammar reads all scripts."""

from __future__ import annotations

import re
from typing import Final

IS_SET: Final = "is_set_"
"""Begins the name of a parameter that is 1 where the variable behind it is set, else 0: `${+name}`."""
IS_SET_OF: Final = "is_set_by_name_"
"""Begins the same for the variable of which another one holds the name: `${+parameters[$name]}`."""
ALL_NAMES: Final = "all_names_"
"""Stands for the beginning of all names: `${(k)parameters}`."""
ZSH_ONLY: Final = re.compile(r"\$\{\([A-Za-z@]+\)|\$\{\+\w|\$\+\w")

_INDIRECT: Final = re.compile(r"\$\{\(P\)(?=\w)")
_SET: Final = re.compile(
    r"\$\{\+(?:(?P<name>[A-Za-z_]\w*)|(?:parameters|envvars)\[(?P<key>\$?[A-Za-z_]\w*)\])\}|\$\+(?P<bare>[A-Za-z_]\w*)"
)
_NAMES: Final = re.compile(
    r"\$\{\([ok]*k[ok]*\)(?:parameters|environ)(?:\[\(I\)(?P<start>[A-Za-z_]\w*)\*\])?\}"
)


def as_bash(script: str) -> str:
    """Return a script with `${(P)name}`, `${+name}` and `${(k)parameters}` in the spelling of bash."""
    script = _INDIRECT.sub("${!", script)
    script = _NAMES.sub(lambda match: f"${{!{match['start'] or ALL_NAMES}@}}", script)
    return _SET.sub(_tested, script)


def _tested(match: re.Match[str]) -> str:
    name = match["name"] or match["key"] or match["bare"]
    return f"${{{IS_SET_OF}{name[1:]}}}" if name.startswith("$") else f"${{{IS_SET}{name}}}"
