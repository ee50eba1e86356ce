"""Where headless commands print: documents for programs, tables for people."""

from __future__ import annotations

import sys

from rich.console import Console


def console(*, soft_wrap: bool = False) -> Console:
    """As wide as the terminal; wide enough for a whole row where the output goes to a file or a program."""
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=soft_wrap)
