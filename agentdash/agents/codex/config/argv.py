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

from agentdash.agents.codex.config.options import OTHER, ROOT, take_apart
from agentdash.model.secrets import MASK

Mode = Literal["tui", "exec", "other"]
"""`exec`: one task, without questions. `other`: servers, and subcommands that run no turn."""

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
        """Yield the overrides of `-c`, `--enable` and `--disable` in their order, the last of which wins."""
        for option in self.options:
            if option.name in ("enable", "disable"):  # the same as -c features.NAME=true
                yield Override(("features", option.value), option.name == "enable", option.text)
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
    level, given, _ = take_apart(args)
    mode: Mode = "exec" if level.startswith("exec") else "other" if level in OTHER else "tui"
    return Arguments(
        mode=mode,
        resumes=level.endswith("resume"),
        options=tuple(
            Option(each.concern, each.value or "", each.text, before=level != ROOT and each.level == ROOT)
            for each in given
            if each.concern
        ),
    )


def _toml_value(text: str) -> Any:
    """Return a value as Codex reads it: TOML, or else the words themselves."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip().strip("\"'")
