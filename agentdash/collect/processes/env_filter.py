"""Filter what is kept of processes: variables from an allow-list, arguments without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final

from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import MASK, is_secret_name, mask_secrets
from agentdash.model.state_paths import DEFAULTS

_KEPT_NAMES: Final = frozenset(
    (
        *("PWD", "HOME", *DEFAULTS),  # directories that place the state paths of a worker
        *("TMUX", "TMUX_PANE", "TMUX_TMPDIR"),
        *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_PERMISSION_PROFILE", "CODEX_CI"),
        *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "CODEX_SQLITE_HOME"),
        *("CODEX_NETWORK_PROXY_ACTIVE", "CODEX_NETWORK_ALLOW_LOCAL_BINDING"),
        *("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_PROJECT_DIR"),
        *("CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"),
        *("SANDBOX_RUNTIME", "CLAUDE_CODE_HOST_HTTP_PROXY_PORT", "CLAUDE_CODE_HOST_SOCKS_PROXY_PORT"),
        *("SANDBOX", "GEMINI_SANDBOX", "QWEN_SANDBOX", "GEMINI_CLI", "QWEN_CODE"),
        *("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH"),
        *("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_MANAGED_BY_NPM", "CODEX_MANAGED_PACKAGE_ROOT"),
    )
)
"""An allow-list: other variables, also ones that begin with `CODEX_` or `CLAUDE_`, may hold anything
(`CLAUDE_CODE_MESSAGING_TOKEN`)."""
_SEPARATOR: Final = "\x1f"
"""White space to patterns, and in no sanitized argument."""
_MAX_LINE_CHARS: Final = 64_000
"""Longer command lines have scripts and policies in them, which are masked one by one."""
_MAX_ARGUMENT_CHARS: Final = 16_000
"""A sandbox policy is one argument (`--permission-profile`, `sandbox-exec -p`), and is parsed later."""
_SCRIPT_OPTION: Final = re.compile(r"-\w*c")
_PARTLY_MASKED: Final = re.compile(r"\A((?:-*[\w.-]+=|[\w.@-]+:)?…)[^;&|…]+\Z")
"""An argument whose secret has blanks or quotation marks: no shell takes them for its end."""
_MAX_ARGUMENTS: Final = 1_000
"""bwrap has hundreds."""


def filter_environment(variables: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variables of the allow-list, sanitized, with secrets in their values masked."""
    return {clean_line(name): clean_line(_masked(value)) for name, value in variables if name in _KEPT_NAMES}


def _masked(value: str) -> str:
    """Return a value with secrets masked. The path of a file that exists stays, whatever it looks like:
    logs and settings are looked for in it."""
    masked = mask_secrets(value)
    is_path = masked != value and value.startswith("/") and os.path.lexists(value)
    return value if is_path else masked


def clean_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Return an argument vector, sanitized and capped, with the values of secret options and variables masked
    by `…`."""
    cleaned: list[str] = []
    for arg in argv[:_MAX_ARGUMENTS]:
        option = cleaned[-1].lstrip("-") if cleaned and cleaned[-1].startswith("-") else ""
        is_secret = is_secret_name(option) and not arg.startswith("-")
        cleaned.append(MASK if is_secret else clean_line(mask_secrets(arg), _MAX_ARGUMENT_CHARS))
    return _mask_across(cleaned)


def _mask_across(arguments: list[str]) -> tuple[str, ...]:
    """Mask secrets that only the arguments before them give away: `mysql`, `-p`, `...`."""
    line = _SEPARATOR.join(arguments)
    masked = mask_secrets(line).split(_SEPARATOR) if len(line) <= _MAX_LINE_CHARS else arguments
    masked = masked if len(masked) == len(arguments) else arguments
    return tuple(
        argument if _SCRIPT_OPTION.fullmatch(before) else _PARTLY_MASKED.sub(r"\1", argument)
        for before, argument in zip(("", *arguments), masked, strict=False)
    )
