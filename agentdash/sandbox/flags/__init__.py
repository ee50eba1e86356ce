"""What the output of a command proves about the sandbox flags in its environment.

`read_flags` follows the script, without running it, once for each hypothesis about the two flags, and keeps
the hypotheses under which it can have printed what it printed. A flag is read if all of those agree on it.

1. `reader` compares the output with what the script can print.
2. `statements` follows the script (parsed by `sandbox.shell`) under one hypothesis (`state`), with
   `commands`. A program that is not known prints anything; what may change a flag ends the reading.
3. `parts` are what it can print, and finds that in the output.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec


class Flags(msgspec.Struct, frozen=True):
    """The two flags as printed: a value, `unset`, or None if the command did not show it."""

    network: str | None = None
    sandbox: str | None = None
    quote: str = ""
    """The lines of the output that show them."""

    def __bool__(self) -> bool:
        return self.network is not None or self.sandbox is not None


WORDS: Final = ("CODEX_SANDBOX", "env", "set", "export", "declare", "typeset")
_RELEVANT: Final = re.compile(
    r"CODEX_SANDBOX|(?<![\w.-])env\b|printenv"
    r"|\b(?:set|export)\s*(?:-p|$|[;|&>)\n'\"]|\d>)"
    r"|\b(?:declare|typeset)\s*(?:-|$|[;|&>)\n'\"]|\d>)"
)
"""Without one of these a script prints no environment; `WORDS` are looked for first, which is quick."""


def is_about_environment(script: str) -> bool:
    """Return whether a script may print its environment; False is certain."""
    return any(word in script for word in WORDS) and _RELEVANT.search(script) is not None


def read_flags(
    script: str,
    output: str,
    *,
    shell: str = "",
    exit_code: int | None = None,
    truncated: bool = False,
) -> Flags:
    """Read the sandbox flags of a command's environment from what it printed.

    Args:
        script: the shell script as the model gave it, with its newlines.
        output: what it printed, both streams, without header lines of Codex.
        shell: the name of the shell that ran it; empty if it is not known.
        exit_code: its exit code; None if it is not known.
        truncated: the output is not whole, as that of a command that still runs. Texts of Codex and others
            that mark a cut are recognized besides.
    """
    if truncated or not is_about_environment(script):
        return Flags()
    # one-shot commands start faster without the reader
    from agentdash.sandbox.flags.reader import read  # noqa: PLC0415

    return read(script, output, shell=shell, exit_code=exit_code)
