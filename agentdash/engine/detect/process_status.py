"""Read the kernel facts that a command printed of itself, from its own `/proc/self/status`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agentdash.sandbox.word_sets import word_set

if TYPE_CHECKING:
    from agentdash.sandbox.shell import Command

_OWN_STATUS: Final = re.compile(r"/proc/(?:self|\$\$|\$BASHPID)/status")
_QUOTED: Final = re.compile(r"(?:Seccomp|NoNewPrivs):\s*\\?t?\d")
"""A script that holds such a line itself."""
_READERS: Final = frozenset(("cat", "grep", "egrep", "head"))
_STDERR: Final = 2
_MAX_GREP_WORDS: Final = 3
"""`grep -E PATTERN`: with more words it can read a file."""
_UNRELATED: Final = word_set("echo printf env printenv uname id pwd whoami date hostname true :") | frozenset(
    ("sleep", "set", "cd", "ls", "touch", "mkdir", "getent", "exit", "export", "test", "[")
)
"""Programs of which no output looks like a status file: what they print begins with a name, or is a name."""
_SECCOMP: Final = re.compile(r"^\s*Seccomp:\s+([012])\s*$", re.MULTILINE)
_NO_NEW_PRIVS: Final = re.compile(r"^\s*NoNewPrivs:\s+([01])\s*$", re.MULTILINE)


class Restraints(NamedTuple):
    """`Seccomp` and `NoNewPrivs` of `/proc/self/status`; None: not printed."""

    seccomp: int | None = None
    no_new_privs: bool | None = None

    def __bool__(self) -> bool:
        return self != (None, None)

    @property
    def sandboxed(self) -> bool | None:
        """Return False if nothing restrains the process: each sandbox of Codex on Linux sets no_new_privs.

        None otherwise: what set it cannot be read from this.
        """
        return False if self == (0, False) else None

    @property
    def quote(self) -> str:
        """Return the lines, joined."""
        shown = zip(("Seccomp", "NoNewPrivs"), self, strict=True)
        return " ".join(f"{name}: {int(value)}" for name, value in shown if value is not None)


def is_about_status(script: str) -> bool:
    """Return whether a script may print kernel facts of its own process; False is certain."""
    return _OWN_STATUS.search(script) is not None


def restraints(script: str, output: str) -> Restraints:
    """Return the kernel facts that `script` printed of its own process.

    Only `cat`, `grep` or `head` of the own status file counts, with nothing behind it but a plain `grep`. Two
    values for one field decide nothing, nor do lines that another command can have printed.
    """
    if not is_about_status(script) or _QUOTED.search(script):
        return Restraints()
    # the grammar is imported by the first script that needs it
    from agentdash.sandbox.shell import commands  # noqa: PLC0415

    found = commands(script) or ()
    own = {command.pipeline for command in found if _is_own_status(command)}
    if not own or not all(_is_harmless(command, own) for command in found):
        return Restraints()
    seccomp, privs = set(_SECCOMP.findall(output)), set(_NO_NEW_PRIVS.findall(output))
    return Restraints(
        int(seccomp.pop()) if len(seccomp) == 1 else None, privs.pop() == "1" if len(privs) == 1 else None
    )


def _is_own_status(command: Command) -> bool:
    """Return whether a command prints the own status file, and no other."""
    is_redirected = any(redirect.fd != _STDERR for redirect in command.redirects)
    if command.position or command.name not in _READERS or is_redirected:
        return False
    files = [word.raw.strip("\"'") for word in command.argv[1:] if not word.raw.startswith("-")]
    if command.name in ("grep", "egrep"):
        files = files[1:]
    elif command.name == "head":
        files = [operand for operand in files if not operand.isdecimal()]
    return len(files) == 1 and _OWN_STATUS.fullmatch(files[0]) is not None


def _is_harmless(command: Command, own: set[int]) -> bool:
    """Return whether a command cannot print the status of another process."""
    if _is_own_status(command):
        return True
    if command.pipeline in own:
        return command.name in ("grep", "egrep") and len(command.argv) <= _MAX_GREP_WORDS
    return command.name in _UNRELATED
