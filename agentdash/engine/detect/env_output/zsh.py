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
LINES: Final = "lines_of_zsh"
"""Begins a substitution that becomes one argument for each of its lines: `${(f)"$(…)"}`."""
ZSH_ONLY: Final = re.compile(r"\$\{\([A-Za-z@]+\)|\$\{\+\w|\$\+\w|\bfor \w+ \((?!\()")

_INDIRECT: Final = re.compile(r"\$\{\(P\)(?=\w)")
_SET: Final = re.compile(
    r"\$\{\+(?:(?P<name>[A-Za-z_]\w*)|(?:parameters|envvars)\[(?P<key>\$?[A-Za-z_]\w*)\])\}"
    r"|\$\+(?P<bare>[A-Za-z_]\w*)"
)
_NAMES: Final = re.compile(
    r"\$\{\([ok]*k[ok]*\)(?:parameters|environ)(?:\[\(I\)(?P<start>[A-Za-z_]\w*)\*\])?\}"
)
_LINES: Final = re.compile(r"\$\{\(@?f@?\)\"?\$\((?P<script>[^\"\n]*)\)\"?\}")
_SHORT_FOR: Final = re.compile(
    r"(?P<head>\bfor \w+) \((?P<words>[^()\n]*)\)\s*(?P<body>;?\s*do\b|\{|[^\s;{][^\n]*)"
)


def as_bash(script: str) -> str:
    """Return a script with `${(P)name}`, `${+name}` and `${(k)parameters}` in the spelling of bash.

    So are `${(f)"$(…)"}` and `for name (words) …`.
    """
    script = _LINES.sub(rf"$({LINES}; \g<script>)", script)
    script = _with_long_loops(_INDIRECT.sub("${!", script))
    script = _NAMES.sub(lambda match: f"${{!{match['start'] or ALL_NAMES}@}}", script)
    return _SET.sub(_tested, script)


def _with_long_loops(script: str) -> str:
    """Return a script with `for name in words; do …; done` in place of zsh's short forms."""
    at = 0
    while match := _SHORT_FOR.search(script, at):
        body, end = match["body"], match.end()
        if body == "{":
            end = _closing(script, match.end())
            body = script[match.end() : end - 1]
        head = f"{match['head']} in {match['words']}; do"
        if not match["body"].endswith("do"):
            script = script[: match.start()] + f"{head} {body.strip()}\ndone" + script[end:]
        else:
            script = script[: match.start()] + head + script[end:]
        at = match.start() + len(head)
    return script


def _closing(script: str, start: int) -> int:
    """Return the offset behind the brace that closes the one before `start`."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(script, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(script)


def _tested(match: re.Match[str]) -> str:
    name = match["name"] or match["key"] or match["bare"]
    return f"${{{IS_SET_OF}{name[1:]}}}" if name.startswith("$") else f"${{{IS_SET}{name}}}"
