"""Which engine a container belongs to, where more than one is installed."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import Final

ENGINES: Final = ("docker", "podman")
"""Programs that run commands in containers by `exec -i NAME`, the preferred one first."""
_LIMIT_S: Final = 10.0
"""For one answer of an engine on a busy machine."""


@cache
def engine_of(container: str) -> str:
    """Return the installed engine that has a container of this name.

    Where none has it: the first that could be asked, so that its message is about the container; a client of
    docker is often installed without its daemon.
    """
    installed = [engine for engine in ENGINES if shutil.which(engine)]
    if len(installed) < 2:
        return installed[0] if installed else ENGINES[0]
    known = {engine: _knows(engine, container) for engine in installed}
    return next(
        (engine for answer in (True, False) for engine in installed if known[engine] is answer), installed[0]
    )


def _knows(engine: str, container: str) -> bool | None:
    """Return whether an engine has a container; None where it does not answer."""
    command = [engine, "container", "inspect", "--format", "{{.Id}}", "--", container]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if b"no such" in done.stderr.lower() else None
