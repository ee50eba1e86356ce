"""What decides which calls an audit reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Suspicion(NamedTuple):
    """Which calls can show something of a sandbox. Its functions are certain where they return False."""

    hints: tuple[str, ...]
    """One of these is in every script that can."""
    of_script: Callable[[str, str], bool]
    """By the script of a command, and by its text on one line."""
    of_output: Callable[[str], bool]
    """By what was printed, not cleaned."""
    of_command: Callable[[str, str], bool]
    """By a script, and by what was printed, not cleaned, where that alone does not decide."""
