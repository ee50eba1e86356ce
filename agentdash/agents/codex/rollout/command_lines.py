"""Describe command lines: their text, their script and their shell."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from typing import Final

from agentdash.model.sanitize import MAX_BLOCK_CHARS, clean_block, clean_line

_POSIX_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash", "ash", "ksh"))
_SHELLS: Final = _POSIX_SHELLS | {"fish", "pwsh", "powershell", "cmd"}


def command_text(argv: Sequence[str] | str) -> str:
    """Return the command line of an argv; of a shell's, the script alone."""
    if isinstance(argv, str):
        return clean_line(argv)
    return clean_line(argv[-1] if _shell_of(argv) else shlex.join(argv))


def command_script(argv: Sequence[str] | str) -> str:
    """Return the script of a command as written; empty if no POSIX shell runs it, or it is too long."""
    if isinstance(argv, str):
        script = argv
    elif (shell := _shell_of(argv)) is None:
        script = shlex.join(argv)
    elif shell in _POSIX_SHELLS:
        script = argv[-1]
    else:
        return ""
    return clean_block(script) if len(script) <= MAX_BLOCK_CHARS else ""


def shell_name(argv: Sequence[str] | str, path: str = "") -> str:
    """Return the POSIX shell of an argv, or at a path, by its name; empty where there is none."""
    found = posixpath.basename(path) if isinstance(argv, str) else _shell_of(argv)
    return found if found in _POSIX_SHELLS else ""


def posix_shell(name: str) -> str:
    """Return the name of a POSIX shell, empty for that of another shell."""
    return name if name in _POSIX_SHELLS else ""


def _shell_of(argv: Sequence[str]) -> str | None:
    """Return the shell that runs the last argument as a script; None where there is none."""
    if len(argv) < 3 or argv[-2].lower() not in ("-c", "-lc", "-ic", "-command", "/c"):
        return None
    shell = posixpath.basename(argv[0].replace("\\", "/")).removesuffix(".exe")
    return shell if shell in _SHELLS else None
