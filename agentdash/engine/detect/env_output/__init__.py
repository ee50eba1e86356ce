"""What the output of a command proves about the sandbox flags in its environment.

`read_flags` interprets the script, without running it, once for each hypothesis about the two flags, and
keeps the hypotheses under which it can have printed what it printed. A flag is read where all of those agree
on it.

1. `reader` compares the output with what the script can print; `flags` holds the result.
2. `interpreter` follows the statements of the script (parsed by `sandbox.shell`) under one hypothesis
   (`world`): `simple` runs commands, `pipelines` and `loops` (`repetition`, `environment_loops`) the rest;
   `expansion`, `arithmetic`, `conditions` and `redirects` are theirs, `zsh` spells what only zsh has.
3. Commands are known by name: `builtins` (`declarations`, `options`, `reading`, `printing`), `launchers`
   (`xargs`), `programs`, `filters` (`grep`, `editors`, `line_maps`, `columns`, `dump_maps`).
4. Programs in other languages are parsed and run as well: `python_code`, `javascript`, `awk`, and Perl, Ruby,
   PHP, Lua and jq in `scripting`. `languages` finds their code.
5. `streams` and `patterns` are what it can print, `dumps` and `records` the stretches of an output that list
   an environment.
"""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.flags import Flags

__all__ = ["Flags", "is_about_environment", "read_flags"]

WORDS: Final = (
    "CODEX_SANDBOX",
    "{!CODEX_",
    "env",
    "ENV",
    "_SERVER",
    "set",
    "export",
    "declare",
    "typeset",
    "compgen",
)
_RELEVANT: Final = re.compile(
    r"CODEX_SANDBOX|\{!CODEX_|(?<![\w.-])env\b|process\.env\b|printenv|getenv|\$_SERVER"
    r"|environb?\b|\bENV(?:IRON)?\b|compgen"
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
    quoted: bool = True,
) -> Flags:
    """Read the sandbox flags of a command's environment from what it printed.

    Args:
        script: the shell script as the model gave it, with its newlines.
        output: what it printed, both streams, without header lines of Codex.
        shell: the name of the shell that ran it; empty where it is not known.
        exit_code: its exit code; None where it is not known.
        truncated: the output is not whole, as that of a command that still runs. Texts of Codex and others
            that mark a cut are recognized besides.
        quoted: whether the lines that show them are looked for, which takes longer than all else.
    """
    if not is_about_environment(script):
        return Flags()
    # the interpreter is twenty modules: one-shot commands start faster without them
    from agentdash.engine.detect.env_output.reader import read  # noqa: PLC0415

    return read(script, output, shell=shell, exit_code=exit_code, truncated=truncated, quoted=quoted)
