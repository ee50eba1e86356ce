"""Anthropic's sandbox runtime (`@anthropic-ai/sandbox-runtime`, `srt`), which Claude Code has built in."""

from __future__ import annotations

import re
from typing import Final

_ALWAYS_LISTED: Final = re.compile(r"/dev/.*|(?:/private)?/tmp/claude|.*/\.npm/_logs|.*/\.claude/debug")


def is_always_listed(path: str) -> bool:
    """Return whether the runtime lets every sandbox write a path: it may not exist, and is then not writable,
    which is no difference to a policy."""
    return _ALWAYS_LISTED.fullmatch(path) is not None
