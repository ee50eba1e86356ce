"""Values in a program of JavaScript that stand for others."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import Tree
from agentdash.engine.detect.word_sets import word_set

MODULES: Final = word_set("os fs fs/promises path child_process util process url net dns http")


class Pairs(list[Any]):
    """A `Map`: its keys and values, which a loop goes through; it is not written as a list."""


class Caught(dict[str, Any]):
    """An exception that the program handles; other attributes than those in it are not known."""


class Null:
    """`null`, where None is `undefined`."""


class Class(msgspec.Struct, frozen=True):
    """A class of the program: its functions by kind and name, and the values of its fields."""

    members: dict[tuple[str, str], Tree]
    fields: tuple[tuple[str, Tree | None], ...]


NULL: Final = Null()
QUIET_VALUES: Final = frozenset(
    f"process.{name}"
    for name in (
        *("pid", "ppid", "platform", "arch", "version", "title", "argv.length", "execPath"),
        *("versions.node", "versions.v8", "argv0"),
    )
)
"""Values of Node in which no flag is named."""
QUIET_FUNCTIONS: Final = re.compile(
    r"os\.(?!EOL|constants)\w+|path\.(?:\w+\.)?\w+|process\.(?:cwd|getuid|getgid|geteuid|uptime|hrtime)"
    r"|Date\.now"
)
"""Functions of Node that give such values."""
ATTEMPTS: Final = re.compile(
    r"fs\.(?:writeFile|appendFile|access|unlink|mkdir|rm|rmdir)Sync"
    r"|fs[./]promises\.(?:writeFile|appendFile|access|unlink|mkdir|rm|rmdir)"
)
"""Functions that change or open something of the system, and give nothing."""

TEXT_METHODS: Final = word_set(
    "at charAt charCodeAt codePointAt concat endsWith includes indexOf match lastIndexOf localeCompare "
    "matchAll normalize padEnd padStart repeat replace replaceAll search slice split startsWith substring "
    "substr toLowerCase toUpperCase toString trim trimEnd trimStart valueOf toLocaleUpperCase"
)
"""Functions that every text has."""


def written_key(key: str) -> str:
    """Return the key of an object as Node writes it."""
    return key if re.fullmatch(r"[A-Za-z_$][\w$]*", key) else f"'{key}'"
