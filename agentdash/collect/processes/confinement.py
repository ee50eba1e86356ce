"""Detect whether agentdash itself runs inside a sandbox, where other processes are invisible and their
absence proves nothing.

Observed with Codex 0.169.0 on Linux: commands run in a pid namespace whose first process is
`codex-linux-sandbox`, with seccomp and no_new_privs, also with network access; without it, connecting to a
tmux socket fails with EPERM. Variables alone are no evidence: commands that run outside of the sandbox
inherit them (0.169 leaves them set for approved commands).
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentdash.model.process import Kernel
from agentdash.model.sanitize import clean_line

_SANDBOX_HELPERS: Final = frozenset(("codex-linux-sandbox", "bwrap"))
_SANDBOX_VARIABLES: Final = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID")
_SECCOMP_FILTER: Final = 2
"""`Seccomp: 2` of /proc/PID/status."""


def confinement(socket_path: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a short description of the sandbox that agentdash runs in; None where it runs in none.

    Args:
        socket_path: the socket of a tmux server of this user; a refused connection is a sign of a sandbox.
    """
    if sys.platform == "darwin":
        from agentdash.macos import sandboxed  # noqa: PLC0415 - loads libSystem

        return "seatbelt" if sandboxed(os.getpid()) else None
    if sys.platform == "linux" and (found := linux_confinement(*_own_facts(), environ)) is not None:
        return found
    return _refused(socket_path) if socket_path is not None else None


def linux_confinement(kernel: Kernel | None, first_program: str, environ: Mapping[str, str]) -> str | None:
    """Return the same from Linux facts.

    Args:
        first_program: the first argument of process 1 of its pid namespace.
    """
    if kernel is None or kernel.seccomp != _SECCOMP_FILTER or not kernel.no_new_privs:
        return None
    if (helper := first_program.rpartition("/")[2]) in _SANDBOX_HELPERS:
        return f"{helper}, with seccomp and no_new_privs"
    if variable := next((name for name in _SANDBOX_VARIABLES if environ.get(name)), None):
        return f"seccomp and no_new_privs, and {variable} is set"
    return None


def _own_facts() -> tuple[Kernel | None, str]:
    from agentdash.collect.processes import linux  # noqa: PLC0415 - Linux only

    return linux.kernel(os.getpid()), next(iter(linux.argv(1)), "")


def _refused(path: Path) -> str | None:
    """Return a description where connecting to a socket of this user is denied."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            return clean_line(f"{path} may not be connected to")
    return None
