"""Values in a program that stand for others, and what ends its statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import Parts
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class ReturnError(Exception):
    """A function ends."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class NextError(Exception):
    """A round of a loop ends."""


class LastError(Exception):
    """A loop ends."""


class ExitError(Exception):
    """The program ends."""

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status


class FailedError(Exception):
    """The program raises an exception that it may handle; `kind` is its class, `text` what it says."""

    def __init__(self, kind: str = "", text: Any = None, status: Any = None) -> None:
        super().__init__()
        self.kind = kind
        self.text = text
        self.status = status
        """The exit code of the program that has failed."""


class Raised(msgspec.Struct, frozen=True):
    """An exception that the program handles, and its message."""

    text: Any


LEAVING: Final = (ReturnError, NextError, LastError)
"""What ends a part of a program."""
SURPRISES: Final = (
    *LEAVING,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    OverflowError,
)
"""What a program can raise here that does something no part of a machine expects: it is not modelled."""
UNMODELLED: Final = (UnknownError, *SURPRISES[len(LEAVING) :])
"""What is raised for a part of a program that is not modelled."""


class Function(msgspec.Struct, frozen=True):
    """A function, a block or a closure of the program: gives its value for arguments."""

    run: Callable[[list[Any]], Any]


class Builtin(msgspec.Struct, frozen=True):
    """A module, an object or a function that comes with the language, by its name."""

    name: str


class Method(msgspec.Struct, frozen=True):
    """A method of a value."""

    owner: Any
    name: str


class Pattern(msgspec.Struct, frozen=True):
    """A regular expression."""

    compiled: re.Pattern[str]


class Written(msgspec.Struct, frozen=True):
    """Text that is known as parts only: of another program, a file, or a dictionary."""

    parts: Parts


class Count(msgspec.Struct, frozen=True):
    """A number of variables of the environment, of which the flags alone are known."""

    at_least: int


class Various(msgspec.Struct, frozen=True):
    """A number or a truth value for each variable of a part of the environment: known are those for flags."""

    known: tuple[Any, ...]
    """Of the flags that are in it."""


class Unknowable:
    """What a variable holds behind a loop that left something unknown in it: it cannot be used."""


UNKNOWABLE: Final = Unknowable()


class Sink(msgspec.Struct, frozen=True):
    """An open file or socket to which a program writes; what it reads of it is not known."""


SINK: Final = Sink()


class Symbol(str):
    """A symbol of Ruby, which is inspected in another way than a text."""

    __slots__ = ()


OPAQUE: Final = (Function, Pattern, Written, Count, Various, Selection, Lines, Unknowable, Sink)
"""Values that are not compared and have no text of their own."""
