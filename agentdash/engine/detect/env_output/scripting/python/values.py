"""Values in a program of Python that stand for others."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.word_sets import word_set

EXCEPTIONS: Final = frozenset(
    name
    for name, each in vars(builtins).items()
    if isinstance(each, type) and issubclass(each, BaseException)
)
IGNORE_CASE: Final = "IGNORECASE"
PACKAGES: Final = frozenset(("requests", "httpx", "numpy"))
"""Packages that may be there, and print nothing where they are imported."""
MODULES: Final = sys.stdlib_module_names - {"this", "antigravity"}
"""Modules whose import prints nothing; most of what they hold is unknown."""
QUIET: Final = re.compile(
    r"platform\.\w+|sys\.(?:version|version_info|platform|executable|byteorder)|getpass\.getuser"
    r"|os\.(?:name|sep|getuid|geteuid|getgid|getegid|getpid|getppid|getcwd|uname|cpu_count"
    r"|getlogin|access|stat)"
    r"|os\.path\.(?!os$)\w+"
    r"|(?:uuid|random|math|locale|errno|stat|pwd|grp|resource|requests|httpx|numpy)\.\w+"
    r"|socket\.\w+|time\.(?:time|strftime|ctime|sleep)"
    r"|datetime\.(?:datetime|date)\.(?:now|utcnow|today)|tempfile\.\w+"
    r"|shutil\.(?:which|disk_usage|get_terminal_size)|pathlib\.Path\.(?:cwd|home)"
    r"|urllib\.(?:request|error)\.\w+|asyncio\.(?:sleep|open_connection|TimeoutError)|http\.client\.\w+"
    r"|os\.(?:mkdir|makedirs|remove|unlink|listdir)|ssl\.\w+"
)
"""Values, and functions that give values, in which no flag stands."""
SAFE: Final = re.compile(
    r"platform\.\w+|os\.(?:getuid|geteuid|getgid|getegid|getpid|getppid|uname|cpu_count|access)|time\.\w+"
    r"|os\.path\.\w+|datetime\..*|tempfile\.gettempdir|shutil\.which|pathlib\.Path\.home"
)
"""Such functions that do not fail."""
FOREIGN_METHODS: Final = word_set("recv recvfrom recv_into read readline readlines makefile")
"""Methods of quiet values that give text from elsewhere."""


class ExceptionValue(msgspec.Struct, frozen=True):
    """An exception that the program handles; the text of one of the system is not known."""

    kind: str
    text: Any = None


class Routine(msgspec.Struct, frozen=True):
    """A function of the program: gives its value for arguments and keywords."""

    run: Callable[[list[Any], dict[str, Any]], Any]


class Class(msgspec.Struct, frozen=True):
    """A class of the program."""

    name: str
    members: dict[str, Any]
    """Functions as `ast.FunctionDef`, and the values of attributes."""
    fields: tuple[str, ...] = ()
    """Of a data class, those without a default first."""
    is_enum: bool = False


class Suppressed(msgspec.Struct, frozen=True):
    """What `contextlib.suppress` gives: the names of exceptions that end a block without a failure."""

    kinds: tuple[str, ...]


class Pending(msgspec.Struct, frozen=True):
    """A call of a function defined with `async`: it runs where it is awaited."""

    run: Callable[[], Any]


class Process(msgspec.Struct, frozen=True):
    """A program that has ended."""

    stdout: Any
    returncode: Any = None


class File(msgspec.Struct, frozen=True):
    """An open file, or what another program writes."""

    content: Any


class Numbered(msgspec.Struct, frozen=True):
    """What `enumerate` gives of variables of the environment."""

    values: Any
    start: int


class Members(list[Any]):
    """A set, whose order is not known."""


class Defaults(dict[str, Any]):
    """A `defaultdict`: `factory` gives the value of a new key."""

    factory: Any = None


class Quiet(msgspec.Struct, frozen=True):
    """A value, or a function that gives one, in which no flag stands."""

    name: str = ""

    @property
    def can_fail(self) -> bool:
        """Return whether a call of it may raise an exception."""
        return SAFE.fullmatch(self.name) is None


def flat(value: Any) -> list[Any]:
    """Return the values in a value, however deep."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in flat(item)]
    if isinstance(value, list | tuple):
        return [part for item in value for part in flat(item)]
    return [value]


def decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Return the names of what decorates a function or a class."""
    return {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
