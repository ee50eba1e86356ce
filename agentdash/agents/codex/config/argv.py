"""Parse the arguments of a `codex` process.

`codex [OPTIONS] [SUBCOMMAND] [OPTIONS]`: options stand before or after the subcommand. The forms `-s X`,
`-sX`, `--sandbox X` and `--sandbox=X` are the same (clap; 0.114 to 0.171). What a version refuses is not
looked at: such a process does not live to be seen.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from agentdash.model.secrets import MASK

Mode = Literal["tui", "exec", "other"]
"""`exec`: one task, without questions. `other`: servers, and subcommands that run no turn."""

_PROGRAM: Final = re.compile(r"codex(?:\.js|-(?:x86_64|aarch64)-[\w-]+)?")
_ROOT: Final = ""
"""The level of options before any subcommand."""
_SUBCOMMANDS: Final = {
    _ROOT: {"exec": "exec", "e": "exec", "resume": "resume", "fork": "fork"},
    "exec": {"resume": "exec resume", "fork": "exec fork", "review": "exec review", "help": "exec help"},
}
"""Subcommands of each level, and the level of their own options."""
_WITHOUT_TURN: Final = frozenset(
    (
        *("agents", "review", "login", "logout", "mcp", "mcp-server", "plugin", "app-server"),
        *("app", "remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply"),
        *("a", "queue", "archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive"),
        *("cloud", "cloud-tasks", "exec-server", "features", "help", "execpolicy", "proto"),
        *("responses-api-proxy", "stdio-to-uds"),
    )
)
"""Subcommands that run no turn of their own thread (`--help` of 0.114 to 0.171; some of them are hidden)."""
_CONCERNS: Final = {
    **dict.fromkeys(("-s", "--sandbox"), "sandbox"),
    **dict.fromkeys(("-a", "--ask-for-approval"), "approval"),
    **dict.fromkeys(("-c", "--config"), "config"),
    **dict.fromkeys(("-p", "--profile"), "profile"),
    **dict.fromkeys(("-C", "--cd"), "cd"),
    **dict.fromkeys(("--dangerously-bypass-approvals-and-sandbox", "--yolo"), "bypass"),
    **{f"--{name}": name for name in ("enable", "disable", "add-dir", "remote")},
    **{f"--{name}": name for name in ("full-auto", "approve-for-me", "ignore-user-config")},
}
"""Options that concern the sandbox."""
_WITH_VALUE: Final = frozenset(
    (
        *("-s", "--sandbox", "-a", "--ask-for-approval", "-c", "--config", "-p", "--profile", "-C"),
        *("--cd", "--enable", "--disable", "--add-dir", "--remote", "--profile-v2"),
        *("--local-provider", "-m", "--model", "--remote-auth-token-env", "--color", "-o"),
        *("--output-last-message", "--output-schema", "--thread-source", "--cyber-access-program"),
    )
)
_WITH_VALUES: Final = ("-i", "--image")
"""Options whose values are all words up to the next option."""
_PLAIN: Final = frozenset(
    (
        *("--ignore-rules", "--dangerously-bypass-hook-trust", "--strict-config", "--worktree"),
        *("--oss", "--search", "--no-alt-screen", "--no-daemon", "--last", "--all"),
        *("--include-non-interactive", "--skip-git-repo-check", "--ephemeral", "--json"),
        *("--experimental-json", "--trust", "--progress-cursor", "-h", "--help", "-V", "--version"),
    )
)
"""Other options without a value (`--help` of 0.114 to 0.171, and hidden ones)."""


class Option(msgspec.Struct, frozen=True):
    """One option among arguments."""

    name: str
    """What it concerns of the sandbox: `sandbox`, `approval`, `config` ...; empty: nothing."""
    value: str
    """Empty for an option without one."""
    text: str
    """All of its words, as written: `-s read-only`."""


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of one `codex` process."""

    mode: Mode
    resumes: bool = False
    """Whether it goes on with an existing thread (`resume`, `exec resume`); a fork is a new one."""
    options: tuple[Option, ...] = ()
    """Those that concern the sandbox."""
    unknown: tuple[str, ...] = ()
    """Options that no version has, as written."""

    def last(self, *names: str) -> Option | None:
        """Return the last option of these names, which wins over earlier ones."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def all(self, name: str) -> tuple[Option, ...]:
        """Return all options of this name, in their order."""
        return tuple(option for option in self.options if option.name == name)


def parse_arguments(argv: Sequence[str]) -> Arguments | None:
    """Parse the argument vector of a process, with its program.

    Returns:
        None if the program is neither `codex` nor a Node that runs `codex.js`, or if the name of a profile
        looked like a secret and was masked before.
    """
    names = (posixpath.basename(arg) for arg in argv[:2])
    start = next((number for number, name in enumerate(names) if _PROGRAM.fullmatch(name)), None)
    found = None if start is None else parse_options(argv[start + 1 :])
    return None if found is None or any(MASK in option.value for option in found.all("profile")) else found


def parse_options(args: Sequence[str]) -> Arguments:
    """Parse arguments after the program, as they would be typed after `codex`."""
    level = _ROOT
    options: list[Option] = []
    unknown: list[str] = []
    position = 0
    while position < len(args):
        arg = args[position]
        position += 1
        if arg == "--":
            break
        if arg.startswith("-") and arg != "-":
            option, values = _take_option(arg, args[position:])
            position += values
            if option is None:
                unknown.append(arg)
            elif option.name:
                options.append(option)
        elif level == _ROOT and arg in _WITHOUT_TURN:
            return Arguments("other", options=tuple(options), unknown=tuple(unknown))
        elif (below := _SUBCOMMANDS.get(level, {}).get(arg)) is not None:
            level = below
            if level in ("exec review", "exec help"):
                break
    mode: Mode = "exec" if level.startswith("exec") else "tui"
    return Arguments(mode, level.endswith("resume"), tuple(options), tuple(unknown))


def _take_option(arg: str, following: Sequence[str]) -> tuple[Option | None, int]:
    """Return an option, None if it is unknown, and how many of the following arguments are its values."""
    word, equals, joined = arg.partition("=")
    if not arg.startswith("--"):
        word, joined = arg[:2], arg[2:].removeprefix("=")
        equals = joined
    name = _CONCERNS.get(word, "")
    if word not in _WITH_VALUE and word not in _WITH_VALUES:
        is_known = bool(name) or word in _PLAIN
        return Option(name, joined, arg) if is_known else None, 0
    if equals:
        return Option(name, joined, arg), 0
    values: list[str] = []
    for value in following:
        if value.startswith("-") and value != "-":
            break
        values.append(value)
        if word not in _WITH_VALUES:
            break
    return Option(name, values[0] if values else "", " ".join((arg, *values))), len(values)
