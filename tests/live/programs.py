"""Programs: written, and run to their ends."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.live.patience import scaled

_LIMIT_S: Final = 120.0
"""On a quiet machine, for what takes some seconds there."""


def write_program(path: Path, script: str) -> Path:
    """Write a program of the shell, with the directories above it; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return path


def run(
    command: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without input; what it writes is kept as text.

    Args:
        command: the program and its arguments.
        check: whether it must end with 0.
        options: more of `subprocess.run`, or others than here.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    usual = {**pipes, "timeout": scaled(_LIMIT_S)}
    return subprocess.run(list(map(str, command)), check=check, **(usual | options))


def restore_defaults() -> None:
    """Give the ending signals their default action; called in the child, before it executes a program: a
    runner may ignore signals, and its children inherit that."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
