"""What is kept of what a process was given: the variables that matter here, its arguments, and nothing that looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import SECRET_WORDS, mask_secrets
from agentdash.model.state_paths import DEFAULTS

_KEPT: Final = ("CODEX_", "TMUX")
_KEPT_WHOLE: Final = frozenset(("PWD", "HOME", *DEFAULTS))
"""Directories: where a worker keeps its state is read from these."""
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASSW|AUTH|CREDENTIAL")
_SECRET_OPTION = re.compile(rf"--?(?:[\w-]*[-_])?(?:{SECRET_WORDS})", re.IGNORECASE)
_ARGUMENT: Final = 16_000
"""Characters kept of an argument: sandbox policies stand in one (`--permission-profile`, `sandbox-exec -p`), and are read from there."""
_ARGUMENTS: Final = 1_000
"""Arguments kept of a process: bwrap has hundreds."""


def kept(variables: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables that agentdash may know: `CODEX_*`, `TMUX*` and directories, without any whose name speaks of a secret."""
    return {
        clean_line(name): clean_line(mask_secrets(value))
        for name, value in variables
        if (name.startswith(_KEPT) or name in _KEPT_WHOLE) and not _SECRET_NAME.search(name.upper())
    }


def arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """An argument vector, cleaned and capped, with the values of options and variables that name a secret replaced by `…`."""
    shown: list[str] = []
    for arg in argv[:_ARGUMENTS]:
        secret = bool(shown) and _SECRET_OPTION.fullmatch(shown[-1]) is not None and not arg.startswith("-")
        shown.append("…" if secret else clean_line(mask_secrets(arg), _ARGUMENT))
    return tuple(shown)
