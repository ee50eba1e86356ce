"""Values in a program of JavaScript that stand for others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Style
from agentdash.engine.detect.env_output.javascript_syntax import Tree
from agentdash.engine.detect.env_output.patterns import Parts, joined
from agentdash.engine.detect.env_output.selections import MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

MODULES: Final = frozenset(("os", "fs", "path", "child_process", "util", "process"))


class ReturnError(Exception):
    """A function ends."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class ThrownError(Exception):
    """An exception that the program may catch."""


class ContinueError(Exception):
    """A round of a loop ends."""


class Pairs(list[Any]):
    """A `Map`: its keys and values, which a loop goes through; it is not written as a list."""


class Null:
    """`null`, where None is `undefined`."""


class Path(msgspec.Struct, frozen=True):
    """A function or an object of Node, by its name."""

    name: str


class Method(msgspec.Struct, frozen=True):
    """A method of a value."""

    owner: Any
    name: str


class Function(msgspec.Struct, frozen=True):
    """A function of the program."""

    parameters: tuple[Tree, ...]
    body: tuple[Tree, ...]


class Regex(msgspec.Struct, frozen=True):
    """A regular expression."""

    pattern: re.Pattern[str]


class Written(msgspec.Struct, frozen=True):
    """Text that is known as parts only: of another program, or a dictionary."""

    parts: Parts


NULL: Final = Null()


UNKNOWN_NUMBER: Final = Path("a number")
"""Of variables that are no flags."""


QUIET_VALUES: Final = frozenset(
    f"process.{name}"
    for name in (
        "pid",
        "ppid",
        "platform",
        "arch",
        "version",
        "title",
        "argv.length",
        "execPath",
        "versions.node",
    )
)
"""Values of Node in which no flag is named."""
OPAQUE: Final = (Path, Method, Function, Regex, Written, Selection, Lines)


def names_in(pattern: Tree) -> list[str]:
    """Return the names that a pattern binds."""
    match pattern:
        case ("name", name):
            return [name]
        case ("list", inner):
            return [name for each in inner for name in names_in(each)]
        case ("object", keys):
            return [name for _, each in keys for name in names_in(each)]
        case _:
            raise UnknownError


def entry(selection: Selection, name: str) -> Any:
    """Return what a loop over a selection gives of a variable."""
    match selection.form:
        case Form.ITEMS:
            return [name, MARK]
        case Form.ENTRIES:
            return f"{name}={MARK}"
        case _:
            return name


def style_of(line: str, name: str) -> Style:
    """Return the style of a line with the mark in the place of the value."""
    before, mark, after = line.partition(MARK)
    if (
        not mark
        or MARK in after
        or name not in before
        or "\n" in before
        or after.find("\n") != len(after) - 1
    ):
        raise UnknownError
    return Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1])


def written_key(key: str) -> str:
    """Return the key of an object as Node writes it."""
    return key if re.fullmatch(r"[A-Za-z_$][\w$]*", key) else f"'{key}'"


def trimmed(parts: Parts) -> Parts:
    """Return a text without the blanks at its end."""
    match parts:
        case (*before, str() as last):
            return joined((*before, last.rstrip()))
        case _:
            return parts


COMPUTED: Final[dict[str, Callable[[int, int], Any]]] = {
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right if max(abs(left), abs(right)) < 10**6 else 0,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
