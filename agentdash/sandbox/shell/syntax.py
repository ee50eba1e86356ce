"""The syntax tree of a shell script: frozen nodes, free of the parser that made them."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

_REPLACED: Final = re.compile(r"[*?]|\[.+\]|^~|\{[^{}]*(?:,|\.\.)[^{}]*\}")
"""Unquoted text that the shell may replace: globs, a tilde, braces."""


class Text(msgspec.Struct, frozen=True):
    """Literal text with its quotes and escapes removed."""

    text: str
    quoted: bool


class Parameter(msgspec.Struct, frozen=True):
    """`$name` or `${name…}`.

    `prefix` is `!` for indirection and `#` for the length; `operator` is what follows the name (`:-`, `+`,
    `%`, …) and `argument` the word behind it, None where that is not one plain word.
    """

    name: str
    quoted: bool
    prefix: str = ""
    index: str | None = None
    operator: str = ""
    argument: Word | None = None
    raw: str = ""


class Substitution(msgspec.Struct, frozen=True):
    """`$(…)`, a pair of backticks, `<(…)` or `>(…)`."""

    script: Script
    quoted: bool
    raw: str = ""


class Opaque(msgspec.Struct, frozen=True):
    """An expansion that is kept as written: arithmetic, escapes of a rare kind."""

    raw: str
    quoted: bool


Piece = Text | Parameter | Substitution | Opaque


class Word(msgspec.Struct, frozen=True):
    """One word of a command, as the pieces that make it."""

    pieces: tuple[Piece, ...]
    raw: str

    @property
    def text(self) -> str:
        """Literal text with expansions as written."""
        return "".join(p.text if isinstance(p, Text) else p.raw for p in self.pieces)

    @property
    def literal(self) -> bool:
        """Return whether the shell passes exactly `text`, as one argument."""
        if not all(isinstance(p, Text) for p in self.pieces):
            return False
        unquoted = "".join("\0" if p.quoted else p.text for p in self.pieces if isinstance(p, Text))
        return _REPLACED.search(unquoted) is None


class Assignment(msgspec.Struct, frozen=True):
    """`name=value`, `name=(…)` or `name[index]=value`; `value` is None for the last two."""

    name: str
    value: Word | None
    append: bool = False
    elements: tuple[Word, ...] = ()
    """What is between the brackets of an array; the index and the value of one element."""


class Redirect(msgspec.Struct, frozen=True):
    """A redirection: `2>&1` is fd 2, operator `>&`, target `1`; for `<<` the target is the body."""

    operator: str
    fd: int | None
    target: Word | None
    expands: bool = True
    """False for a here-document with a quoted delimiter."""


class Simple(msgspec.Struct, frozen=True, tag=True):
    """A simple command; `[ … ]`, `[[ … ]]`, `export …` and `unset …` are simple commands too."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Pipeline(msgspec.Struct, frozen=True, tag=True):
    """`a | b`; `stderr` holds for each part but the last whether `|&` follows it."""

    parts: tuple[Node, ...]
    stderr: tuple[bool, ...]


class Not(msgspec.Struct, frozen=True, tag=True):
    """`! pipeline`."""

    body: Node


class AndOr(msgspec.Struct, frozen=True, tag=True):
    """`left && right` or `left || right`."""

    left: Node
    operator: Literal["&&", "||"]
    right: Node


class Item(msgspec.Struct, frozen=True):
    """A statement in a list, and whether `&` follows it."""

    node: Node
    background: bool = False


class Script(msgspec.Struct, frozen=True):
    """Statements in order."""

    items: tuple[Item, ...]


class If(msgspec.Struct, frozen=True, tag=True):
    """`if`/`elif` branches as (condition, body), and the `else` body."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None = None


class For(msgspec.Struct, frozen=True, tag=True):
    """`for name in words`; words is None for `"$@"`."""

    name: str
    words: tuple[Word, ...] | None
    body: Script


class Group(msgspec.Struct, frozen=True, tag=True):
    """`{ … }`, or `( … )` where `subshell` is set."""

    body: Script
    subshell: bool = False


class Compound(msgspec.Struct, frozen=True, tag=True):
    """A compound command with redirections."""

    body: Node
    redirects: tuple[Redirect, ...]


class Function(msgspec.Struct, frozen=True, tag=True):
    """The definition of a function."""

    name: str
    body: Node


class Unsupported(msgspec.Struct, frozen=True, tag=True):
    """What is not modelled (`while`, `case`, `select`, arithmetic), with the statements and words in it."""

    body: Script = Script(())
    words: tuple[Word, ...] = ()


Node = Simple | Pipeline | Not | AndOr | If | For | Group | Compound | Function | Unsupported
