"""Whether agentdash itself runs inside of a sandbox: from there others cannot be seen, and what is missing proves nothing.

Seen with Codex 0.169.0 on Linux: commands run in a pid namespace whose first process is `codex-linux-sandbox`, with seccomp and
no_new_privs, also where the network is on; connecting to a tmux socket fails with EPERM where it is off. Variables alone decide
nothing: they are inherited by commands that run outside (0.169 leaves them on approved ones).
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

_HELPERS: Final = frozenset(("codex-linux-sandbox", "bwrap"))
_MARKS: Final = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID")
_FILTER: Final = 2
"""`Seccomp: 2` of /proc/PID/status."""


def confinement(socket_path: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """What sandbox agentdash runs in, in a few words; None where it runs in none.

    Args:
        socket_path: of a tmux server of this user, which may be refused.
        environ: agentdash's own environment.
    """
    if sys.platform == "darwin":
        from agentdash.collect.processes.macos import sandboxed  # noqa: PLC0415 - asks libSystem

        return "seatbelt" if sandboxed(os.getpid()) else None
    if sys.platform == "linux" and (why := linux_confinement(*_own_facts(), environ)) is not None:
        return why
    return _refused(socket_path) if socket_path is not None else None


def linux_confinement(kernel: Kernel | None, first: str, environ: Mapping[str, str]) -> str | None:
    """The same by what Linux says.

    Args:
        kernel: agentdash's own facts.
        first: the first argument of process 1.
        environ: agentdash's own environment.
    """
    if kernel is None or kernel.seccomp != _FILTER or not kernel.no_new_privs:
        return None
    if (helper := first.rpartition("/")[2]) in _HELPERS:
        return f"{helper}, with seccomp and no_new_privs"
    if mark := next((name for name in _MARKS if environ.get(name)), None):
        return f"seccomp and no_new_privs, and {mark} is set"
    return None


def _own_facts() -> tuple[Kernel | None, str]:
    from agentdash.collect.processes import linux  # noqa: PLC0415 - of this platform alone

    return linux.kernel(os.getpid()), next(iter(linux.argv(1)), "")


def _refused(path: Path) -> str | None:
    """A socket of our own that may not be connected to."""
    try:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.connect(str(path))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            return clean_line(f"{path} may not be connected to")
    return None
