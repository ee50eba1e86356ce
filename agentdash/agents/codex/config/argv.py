"""Parse the arguments of a `codex` process, as far as they concern the sandbox.

`codex [OPTIONS] [SUBCOMMAND] [OPTIONS]`: options stand before or after the subcommand. The forms `-s X`,
`-sX`, `--sandbox X` and `--sandbox=X` are the same (clap; 0.114 to 0.169).
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from agentdash.model.secrets import MASK

Mode = Literal["tui", "exec", "other"]
"""`exec`: one task, without questions. `other`: servers, and subcommands that run no turn."""

_OPTIONS_WITH_VALUE: Final = {
    "-c": "config",
    "--config": "config",
    "-s": "sandbox",
    "--sandbox": "sandbox",
    "-a": "approval",
    "--ask-for-approval": "approval",
    "-p": "profile",
    "--profile": "profile",
    "-C": "cd",
    "--cd": "cd",
    "--add-dir": "add-dir",
    "--enable": "",
    "--disable": "",
    "--remote": "",
    "--remote-auth-token-env": "",
    "-i": "",
    "--image": "",
    "-m": "",
    "--model": "",
    "--local-provider": "",
    "--thread-source": "",
    "--cyber-access-program": "",
    "--output-schema": "",
    "--color": "",
    "-o": "",
    "--output-last-message": "",
}
"""Options with a value, and the name of those that concern the sandbox (`--help` of 0.114, 0.130, 0.169)."""
_FLAGS: Final = {
    "--dangerously-bypass-approvals-and-sandbox": "bypass",
    "--yolo": "bypass",
    "--full-auto": "full-auto",
    "--approve-for-me": "approve-for-me",
    "--ignore-user-config": "ignore-user-config",
}
"""Options without a value that concern the sandbox. `--full-auto` has left by 0.169; `--approve-for-me` came
after 0.145."""
_EXEC: Final = ("exec", "e")
_TUI: Final = ("resume", "fork")
_OTHER: Final = frozenset(
    (
        *("agents", "review", "login", "logout", "mcp", "mcp-server", "plugin", "app-server", "app"),
        *("remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a", "queue"),
        *("archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud", "cloud-tasks"),
        *("exec-server", "features", "help", "execpolicy", "proto", "responses-api-proxy", "stdio-to-uds"),
    )
)
"""Subcommands that run no turn of their own thread (`--help` of 0.114 to 0.169; some of them are hidden)."""
_PROGRAM: Final = re.compile(r"codex(?:\.js|-(?:x86_64|aarch64)-[\w-]+)?")


class Option(msgspec.Struct, frozen=True):
    """One option that concerns the sandbox."""

    name: str
    """`sandbox`, `approval`, `config`, `profile`, `add-dir`, `cd`, `bypass`, `full-auto` ..."""
    value: str
    """Empty for an option without one."""
    text: str
    """As it was written: `-s read-only`."""
    before: bool = False
    """Whether it stands before the subcommand."""


class Override(msgspec.Struct, frozen=True):
    """A `-c key=value`."""

    keys: tuple[str, ...]
    value: Any
    text: str


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of one `codex` process."""

    mode: Mode
    resumes: bool = False
    """Whether it goes on with an existing thread (`resume`, `exec resume`); a fork is a new one."""
    options: tuple[Option, ...] = ()

    def last(self, *names: str) -> Option | None:
        """Return the last option of these names, which wins over earlier ones."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def all(self, name: str) -> tuple[Option, ...]:
        """Return all options of this name, in their order."""
        return tuple(option for option in self.options if option.name == name)

    def overrides(self) -> Iterator[Override]:
        """Yield the `-c` overrides in their order, the last of which wins."""
        for option in self.options:
            key, equals, value = option.value.partition("=")
            if option.name == "config" and equals:
                keys = tuple(part.strip().strip('"') for part in key.split("."))
                yield Override(keys, _toml_value(value), option.text)


def parse_arguments(argv: Sequence[str]) -> Arguments | None:
    """Parse the argument vector of a process, with its program.

    Returns:
        None where the program is not recognized: `codex`, or a Node that runs `codex.js`; and where the name
        of a profile looked like a secret and was masked before.
    """
    names = (posixpath.basename(arg) for arg in argv[:2])
    start = next((number for number, name in enumerate(names) if _PROGRAM.fullmatch(name)), None)
    found = None if start is None else parse_options(argv[start + 1 :])
    return None if found is None or any(MASK in option.value for option in found.all("profile")) else found


def parse_options(args: Sequence[str]) -> Arguments:
    """Parse arguments after the program, as they would be typed after `codex`."""
    options: list[Option] = []
    words: list[str] = []
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            break
        if not arg.startswith("-") or arg == "-":
            words.append(arg)
            continue
        before = not words
        name, value, text = _option(arg, waiting)
        if name:
            options.append(Option(name, value, text, before))
    mode, resumes = _mode(words)
    if mode == "tui" and not resumes:  # there is no subcommand that options could stand before
        options = [msgspec.structs.replace(option, before=False) for option in options]
    return Arguments(mode, resumes, tuple(options))


def _option(arg: str, waiting: Iterator[str]) -> tuple[str, str, str]:
    """Return the name, value and words of an option, and take its value from the following arguments."""
    head, equals, joined = arg.partition("=")
    if arg in _FLAGS:
        return _FLAGS[arg], "", arg
    if equals and head in _OPTIONS_WITH_VALUE and head.startswith("--"):
        return _OPTIONS_WITH_VALUE[head], joined, arg
    if arg in _OPTIONS_WITH_VALUE:
        value = next(waiting, "")
        return _OPTIONS_WITH_VALUE[arg], value, f"{arg} {value}"
    short = arg[:2]
    if not arg.startswith("--") and short in _OPTIONS_WITH_VALUE:
        return _OPTIONS_WITH_VALUE[short], arg[2:].removeprefix("="), arg
    return "", "", arg


def _mode(words: Sequence[str]) -> tuple[Mode, bool]:
    """Return the mode, and whether an existing thread goes on, by the words that are no options."""
    first = words[0] if words else ""
    if first in _EXEC:
        second = words[1] if len(words) > 1 else ""
        return "exec", second == "resume"
    if first in _TUI:
        return "tui", first == "resume"
    return ("other" if first in _OTHER else "tui"), False


def _toml_value(text: str) -> Any:
    """Return a value as Codex reads it: TOML, or else the words themselves."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip().strip("\"'")
