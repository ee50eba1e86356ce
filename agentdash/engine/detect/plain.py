"""Decide whether a call can show anything of a sandbox, before it is read. False is always certain."""

from __future__ import annotations

from typing import Final

from agentdash.engine.detect.process_status import is_about_status
from agentdash.model.sanitize import clean_block
from agentdash.sandbox.denials.lines import suspects
from agentdash.sandbox.flags import WORDS, is_about_environment

_TMUX: Final = "tmux"
HINTS: Final = (*WORDS, "/status", _TMUX)
"""One of these is in every script of which `may_show_sandbox` is true."""


def may_show_sandbox(script: str, text: str) -> bool:
    """Return whether a command can print what its process has, or starts others through tmux.

    Args:
        script: as written.
        text: the same on one line.
    """
    return is_about_environment(script) or is_about_status(script) or _TMUX in text


def may_show_denial(printed: str) -> bool:
    """Return whether an output, not cleaned yet, can report a denial, whatever ran."""
    return bool(suspects(clean_block(printed))[1])
