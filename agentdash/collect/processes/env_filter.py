"""Filter what is kept of processes: variables from an allow-list, arguments without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import SECRET_WORDS, mask_secrets
from agentdash.model.state_paths import DEFAULTS

_KEPT_PREFIXES: Final = ("CODEX_", "TMUX")
_KEPT_NAMES: Final = frozenset(
    (
        *("PWD", "HOME", *DEFAULTS),
        *("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_PROJECT_DIR"),
        *("SANDBOX_RUNTIME", "CLAUDE_CODE_HOST_HTTP_PROXY_PORT", "CLAUDE_CODE_HOST_SOCKS_PROXY_PORT"),
    )
)
"""Directories that place the state paths of a worker; what Claude Code and its sandbox runtime set for
commands. By name: `CLAUDE_CODE_MESSAGING_TOKEN` is a secret."""
_SECRET_NAME: Final = re.compile(r"KEY|SECRET|TOKEN|PASSW|AUTH|CREDENTIAL")
_SECRET_OPTION: Final = re.compile(rf"--?(?:[\w-]*[-_])?(?:{SECRET_WORDS})", re.IGNORECASE)
_MAX_ARGUMENT_CHARS: Final = 16_000
"""A sandbox policy is one argument (`--permission-profile`, `sandbox-exec -p`), and is parsed later."""
_MAX_ARGUMENTS: Final = 1_000
"""bwrap has hundreds."""


def filter_environment(variables: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variables that may be kept: `CODEX_*`, `TMUX*` and those by name, unless the name suggests a
    secret."""
    return {
        clean_line(name): clean_line(mask_secrets(value))
        for name, value in variables
        if (name.startswith(_KEPT_PREFIXES) or name in _KEPT_NAMES) and not _SECRET_NAME.search(name.upper())
    }


def clean_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Return an argument vector, sanitized and capped, with the values of secret options and variables masked
    by `…`."""
    cleaned: list[str] = []
    for arg in argv[:_MAX_ARGUMENTS]:
        after_option = bool(cleaned) and _SECRET_OPTION.fullmatch(cleaned[-1]) is not None
        secret = after_option and not arg.startswith("-")
        cleaned.append("…" if secret else clean_line(mask_secrets(arg), _MAX_ARGUMENT_CHARS))
    return tuple(cleaned)
