"""Values in a program of Python that stand for others, and errors that end it."""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Parts, Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.selections import Bytes, Lines, Selection

MAX_CODE: Final = 4_000


CONVERSION: Final = re.compile(r"%-?\d{0,2}[sdr%]|%.?")


IGNORE_CASE: Final = "IGNORECASE"


MODULES: Final = sys.stdlib_module_names - {"this", "antigravity"}
"""Modules whose import prints nothing; most of what they hold is unknown."""


QUIET: Final = re.compile(
    r"platform\.\w+|sys\.(?:version|version_info|platform|executable|byteorder)|getpass\.getuser"
    r"|os\.(?:name|sep|getuid|geteuid|getgid|getegid|getpid|getppid|getcwd|uname|cpu_count|getlogin|access|stat)"
    r"|os\.path\.(?:exists|isfile|isdir|islink|getsize)|socket\.\w+|time\.(?:time|strftime|ctime|sleep)"
    r"|datetime\.(?:datetime|date)\.(?:now|utcnow|today)|tempfile\.gettempdir|shutil\.which|pathlib\.Path\.(?:cwd|home)"
)
"""Values, and functions that give values, in which no flag stands."""


FOREIGN_METHODS: Final = frozenset(
    ("recv", "recvfrom", "recv_into", "read", "readline", "readlines", "makefile")
)
"""Methods of quiet values that give text from elsewhere."""


class FailedError(Exception):
    """The program ends with a traceback."""

    def __init__(self, error: str = "", text: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.text = text


class ReturnError(Exception):
    """A function ends."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class ContinueError(Exception):
    """A round of a loop ends."""


class ExitError(Exception):
    """The program ends with `sys.exit`."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class Module(msgspec.Struct, frozen=True):
    """A module, or a function of one."""

    name: str


class Method(msgspec.Struct, frozen=True):
    """A method of a value."""

    owner: Any
    name: str


class Function(msgspec.Struct, frozen=True):
    """A function of the program."""

    node: ast.FunctionDef


class Captured(msgspec.Struct, frozen=True):
    """What another program has written, or what was read of a file."""

    parts: Parts
    is_bytes: bool = False


class Process(msgspec.Struct, frozen=True):
    """A program that has ended."""

    stdout: Captured


class File(msgspec.Struct, frozen=True):
    """`/proc/self/environ`."""

    is_bytes: bool = False


class Pattern(msgspec.Struct, frozen=True):
    """A regular expression."""

    pattern: re.Pattern[str]


class Namespace(msgspec.Struct, frozen=True):
    """A class whose attributes are read."""

    attributes: dict[str, Any]


class Lambda(msgspec.Struct, frozen=True):
    """A function without a name."""

    node: ast.Lambda


class Quiet(msgspec.Struct, frozen=True):
    """A value, or a function that gives one, in which no flag stands."""


class Foreign(msgspec.Struct, frozen=True):
    """The value of a variable that is no flag: it may be unset."""

    mark: str

    def __str__(self) -> str:
        return self.mark


MISSING: Final = object()


OPAQUE: Final = (
    Namespace,
    Captured,
    Process,
    File,
    Pattern,
    Lambda,
    Record,
    Selection,
    Lines,
    Module,
    Foreign,
    Method,
    Function,
    Quiet,
)
"""Values that stand for others."""


TEXT_METHODS: Final = frozenset(
    (
        *("startswith", "endswith", "upper", "lower", "title", "strip", "lstrip", "rstrip", "split"),
        *("ljust", "rjust", "center", "replace", "removeprefix", "removesuffix"),
    )
)


def is_in_front(part: Any, text: Any) -> bool:
    """Return whether a text stands in another one, before anything that is not known."""
    return (
        isinstance(part, str)
        and isinstance(text, str)
        and not has_placeholder(part)
        and part in text.partition("Zhole")[0]
    )


def as_bytes(value: Any) -> Any:
    """Return what a method of bytes gives, of what the same method of a text gives."""
    match value:
        case str():
            return Bytes(value)
        case list():
            return [as_bytes(each) for each in value]
        case tuple():
            return tuple(as_bytes(each) for each in value)
        case _:
            return value


def stripped(parts: Parts) -> Parts:
    """Return a text without the blanks around it."""
    match parts:
        case (Choice(options=options),):
            return (Choice(tuple(stripped(option) for option in options)),)
        case (str() as first, *rest):
            return (Trimmed((first.lstrip(), *rest)),) if rest else (first.strip(),)
        case (Dump() | Hole(kind=Kind.OTHER), *_):
            return (Trimmed(parts),)
        case _:
            return (ANY,)


def is_print(node: ast.expr) -> bool:
    """Return whether an expression is `print(…)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")


def flat(value: Any) -> list[Any]:
    """Return the values in a value, however deep."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in flat(item)]
    if isinstance(value, list | tuple):
        return [part for item in value for part in flat(item)]
    return [value]


ORDERS: Final[dict[type[ast.cmpop], Callable[[int, int], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
