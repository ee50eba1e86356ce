"""Read the kernel facts that a command printed of itself, from its own `/proc/self/status`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

_OWN_STATUS: Final = re.compile(r"/proc/(?:self|\$\$|\$BASHPID)/status")
_SECCOMP: Final = re.compile(r"^\s*Seccomp:\s+([012])\s*$", re.MULTILINE)
_NO_NEW_PRIVS: Final = re.compile(r"^\s*NoNewPrivs:\s+([01])\s*$", re.MULTILINE)


class Restraints(msgspec.Struct, frozen=True):
    """`Seccomp` and `NoNewPrivs` of `/proc/self/status`; None where they were not printed."""

    seccomp: int | None = None
    no_new_privs: bool | None = None

    def __bool__(self) -> bool:
        return self.seccomp is not None or self.no_new_privs is not None

    @property
    def sandboxed(self) -> bool | None:
        """Return False where nothing restrains the process: every sandbox of Codex on Linux sets no_new_privs.

        None otherwise: what set it cannot be read from this.
        """
        return False if self.no_new_privs is False and self.seccomp == 0 else None

    @property
    def quote(self) -> str:
        """Return the lines, joined."""
        privs = None if self.no_new_privs is None else int(self.no_new_privs)
        shown = (("Seccomp", self.seccomp), ("NoNewPrivs", privs))
        return " ".join(f"{name}: {value}" for name, value in shown if value is not None)


def restraints(script: str, output: str) -> Restraints:
    """Return the kernel facts that `script` printed of its own process.

    Two values for one field decide nothing: the output quotes another process beside its own.
    """
    if not _OWN_STATUS.search(script):
        return Restraints()
    seccomp = {int(match[1]) for match in _SECCOMP.finditer(output)}
    privs = {match[1] == "1" for match in _NO_NEW_PRIVS.finditer(output)}
    return Restraints(
        seccomp=seccomp.pop() if len(seccomp) == 1 else None,
        no_new_privs=privs.pop() if len(privs) == 1 else None,
    )
