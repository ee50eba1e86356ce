"""A hypothesis about the two flags, and a shell that runs a script under it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from agentdash.sandbox.flags.parts import (
    ANYTHING,
    FLAGS,
    OWN,
    Dump,
    FlagLine,
    Hole,
    Other,
    Part,
    Parts,
    literal,
)
from agentdash.sandbox.shell.syntax import Script

MAX_STEPS: Final = 1_000
"""Statements of one script that are followed, over all hypotheses."""
OTHER: Final = "\0"
"""What a hypothesis says of a flag with a value that Codex never sets."""
ASSUMPTIONS: Final[dict[str, tuple[str | None, ...]]] = {
    name: (None, "", OTHER, value) for name, value in OWN.items()
}
"""What hypotheses say of each flag: None is unset."""
PROTECTED: Final = re.compile(r"CODEX_SANDBOX\w*|PATH|IFS|LD_\w+|BASH_\w+|ENV|ZDOTDIR|POSIXLY_CORRECT")
"""Variables that decide what is read, or what runs: a script that sets one is not followed."""
_ON_ONE_LINE: Final = re.compile(
    r"CODEX_\w+|HOME|PATH|PWD|USER|LOGNAME|SHELL|TERM|LANG|TMPDIR|HOSTNAME|[UEP]+ID|[?$!#]"
)
"""Variables that hold no newline."""

_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*=")
"""Another variable: no environment is empty, and an error is none."""


class UnreadableError(Exception):
    """The script may change the flags, or does what is not followed: nothing is read of it."""


class World:
    """One hypothesis. It records which flags were asked for: a script that never asks for a flag prints the
    same whatever its value."""

    def __init__(self, values: Mapping[str, str | None], steps: Iterator[int]) -> None:
        self._values = values
        self.steps = steps
        """Those that are left, over all hypotheses."""
        self.asked: set[str] = set()

    def value(self, name: str) -> Parts | None:
        """Return the value of a flag; None if it is unset."""
        self.asked.add(name)
        found = self._values[name]
        if found == OTHER:
            return (Other(name),)
        return None if found is None else (found,)

    def lines(self, *names: str) -> tuple[FlagLine, ...]:
        """Return the lines of those flags that are set."""
        values = ((name, self.value(name)) for name in names)
        return tuple(FlagLine(name, literal(value)) for name, value in values if value is not None)


class State(msgspec.Struct, frozen=True):
    """A shell, as far as it bears on what the script prints."""

    world: World
    dialect: str = ""
    """bash, zsh or dash; empty if it is not known."""
    source: str = ""
    """The script."""
    variables: dict[str, Parts | None] = {}
    """Those that the script has set; None: unset."""
    errexit: bool = False
    nounset: bool = False
    pipefail: bool = False
    depth: int = 0
    """Shells around."""

    def changed(self, **fields: object) -> State:
        """Return the state with some fields changed."""
        return msgspec.structs.replace(self, **fields)

    def value(self, name: str) -> Parts | None:
        """Return the value of a variable; None if it is unset."""
        if name in FLAGS:
            return self.world.value(name)
        if name in self.variables:
            return self.variables[name]
        return (Hole.LINE,) if _ON_ONE_LINE.fullmatch(name) else ANYTHING

    def with_variable(self, name: str, value: Parts | None) -> State:
        """Return the state after an assignment.

        Raises:
            UnreadableError: the variable decides what is read.
        """
        if PROTECTED.fullmatch(name):
            raise UnreadableError
        return self.changed(variables={**self.variables, name: value})

    def require(self, *dialects: str) -> None:
        """Check that a shell runs the script of which the meaning of a command is known.

        Raises:
            UnreadableError: it may be another one.
        """
        if self.dialect not in dialects:
            raise UnreadableError

    def require_short_variables(self) -> None:
        """Check that what `env` lists of the script's own variables cannot look like a flag.

        Raises:
            UnreadableError: a variable may hold a line that does.
        """
        for value in self.variables.values():
            if any(map(_may_break, value or ())):
                raise UnreadableError

    def dump(self) -> Dump:
        """Return what `env` lists.

        Raises:
            UnreadableError: a variable of the script may hold a line that looks like a flag's.
        """
        self.require_short_variables()
        return Dump(self.world.lines(*FLAGS), needed=_VARIABLE)


def _may_break(part: Part) -> bool:
    """Return whether there may be a newline in a part of a value."""
    has_break = isinstance(part, str) and "\n" in part
    return has_break or part in (Hole.ANY, Hole.QUIET)


class Outcome(msgspec.Struct, frozen=True):
    """One way in which statements can run."""

    state: State
    printed: Parts = ()
    status: int | None = 0
    """The exit code: 0, or 1 for any failure; None if it is not known."""
    ends: str = ""
    """`exit`, if nothing runs after it."""

    def changed(self, **fields: object) -> Outcome:
        """Return the outcome with some fields changed."""
        return msgspec.structs.replace(self, **fields)

    def around(self, outer: State) -> Outcome:
        """Return the outcome of what ran in a process of its own, for the shell around it."""
        return Outcome(outer, self.printed, self.status)

    def after(self, printed: Parts) -> Outcome:
        """Return the outcome behind what was printed before."""
        return self.changed(printed=printed + self.printed) if printed else self


class Call(msgspec.Struct, frozen=True):
    """A command with its arguments expanded, about to run."""

    words: tuple[Parts, ...]
    state: State
    stdin: Parts | None
    """What it reads; None if that is not known."""
    follow: Callable[[Script, State], list[Outcome]]
    """Runs a script."""

    @property
    def name(self) -> str:
        """The name of the program, without a folder of the system; empty if it is not known."""
        found = literal(self.words[0]) or ""
        return re.sub(r"^(?:/usr|/usr/local)?/bin/", "", found)

    @property
    def texts(self) -> list[str | None]:
        """The arguments as text; None for those that are not known."""
        return [literal(word) for word in self.words[1:]]

    def ends(self, *printed: Part, status: int | None = 0) -> list[Outcome]:
        """Return the one outcome that prints this."""
        return [Outcome(self.state, printed, status)]

    def unknown(self) -> list[Outcome]:
        """Return the outcome of a program that is not known: it prints anything."""
        return self.ends(*ANYTHING, status=None)
