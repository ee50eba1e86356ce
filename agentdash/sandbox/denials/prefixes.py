"""The name with which a message begins: that of the program which reports its own failure."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from agentdash.sandbox.denials.ran import SHELLS

_PREFIX: Final = re.compile(r"^\s{0,4}(?P<name>-?[\w./+@~-]+|\(eval\))(?:\[\d+\]|:? ?line \d+|:\d+)?: ")
"""What a message begins with: `touch: `, `bash: line 1: `, `zsh:1: `, `/bin/sh: 1: `, `make[1]: `."""
_SHELL_SCRIPT: Final = re.compile(
    r"^\s{0,4}(?:\S+: (?:line )?\d+: |\S+\.sh: |\(eval\):\d+: "
    r"|(?:warning|fish): An error occurred while redirecting file )"
)
"""A shell names the script that it runs, or the NAME of `bash -c '…' NAME`; fish what it opens."""
_NPM: Final = re.compile(r"^(?P<name>p?npm|zip) (?:ERR!|I/O error:|error:?|warn|WARN|notice) ")
_GENERIC: Final = re.compile(
    r"(?:fatal|error|warning|warn|note|hint|info|debug|critical|exception|panic|err!?|e|w|uncaught|unknown"
    r"|notfound|caused by|cause|failed"
    r"|\d.*|socket|bind|open|mkdir|unlink(?:at)?|rename|remove|connect|listen|E[A-Z]{3,}"
    r"|.*(?:error|exception|warning)|[~/.].*)",
    re.IGNORECASE,
)
"""First words that are no program's name, or a path (which may be one: then the name is compared as well)."""


def is_shells(line: str) -> bool:
    """Return whether a message is a shell's own."""
    return prefix_of(line) in SHELLS or _SHELL_SCRIPT.match(line) is not None


def prefix_of(line: str, known: frozenset[str] = frozenset()) -> str | None:
    """Return the name of the program with which a message begins; None where it begins with none.

    Args:
        line: the message.
        known: names that are programs, whatever else they may be.
    """
    match = _NPM.match(line) or _PREFIX.match(line)
    if match is None:
        return None
    name = posixpath.basename(match["name"].lstrip("-"))
    if name in known:
        return name
    is_path = _GENERIC.fullmatch(match["name"]) and "." in name and not name.endswith(".sh")
    return None if is_path or _GENERIC.fullmatch(name) else name
