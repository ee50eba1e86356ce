"""What a script can print under one hypothesis about its environment.

A pattern is a sequence of parts: literal text, holes (text that is known by its kind only), dumps of an
environment, choices. `matching` compares one with an output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from itertools import product
from math import prod
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAG_STEM, Dump
from agentdash.engine.detect.env_output.records import Record


class Kind(Enum):
    """What the text of a hole can be."""

    ANY = "any text"
    LINE = "text without a line break"
    QUIET = "whole lines in which no flag is named"
    QUIET_TEXT = "text in which no flag is named"
    ERRORS = "whole lines that name the program of the hole's key, and no flag"
    QUIET_LINE = "one line, or a part of it, in which no flag is named"
    DIGITS = "a number"
    BLANKS = "one blank or more"
    TRACE = "whole lines of `set -x`, which begin with a plus sign, or are the text of the hole's key"
    LONG_TRACE = "whole lines of `set -x`, of which arguments may have line breaks"
    SOURCE = "whole lines of the script that stands in the hole's key"
    MARKED = "whole lines that begin with one of the excluded texts, or with numbers and a letter"
    ENCODED = "text in another form, to the end of a line, that is not one of the excluded texts"
    OTHER = "a value of a flag that Codex does not give it: one word, without quotes and `=`"


class Hole(msgspec.Struct, frozen=True):
    """Text that is known by its kind only.

    `exclude`: texts that it is not; `unlike`: texts that are taken for something else where they are printed;
    `key`: the variable or program that it comes from.
    """

    kind: Kind
    exclude: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    key: str = ""


class Choice(msgspec.Struct, frozen=True):
    """One of several sequences."""

    options: tuple[Parts, ...]


class Names(msgspec.Struct, frozen=True):
    """Names of variables, one a line; `present`: whether each flag is among them, None for possibly."""

    present: tuple[bool | None, bool | None]


class Trimmed(msgspec.Struct, frozen=True):
    """A sequence without its line breaks at the end, as `$(…)` gives it."""

    parts: Parts


class Excerpt(msgspec.Struct, frozen=True):
    """What `head` and `tail` let through of text: all of it, unless it has more lines than `lines`."""

    parts: Parts
    lines: int
    is_start: bool = True
    """The first lines are kept."""


class Words(msgspec.Struct, frozen=True):
    """Arguments of a command, one for each line of a text, as of an array that `mapfile` has filled."""

    parts: Parts
    is_split: bool = False
    """They are the words of the text."""


class Encoded(msgspec.Struct, frozen=True):
    """A sequence in base64."""

    parts: Parts


Part = str | Hole | Choice | Trimmed | Names | Excerpt | Words | Encoded | Dump | Record
Parts = tuple[Part, ...]

ANY: Final = Hole(Kind.ANY)
QUIET: Final = Hole(Kind.QUIET)
QUIET_TEXT: Final = Hole(Kind.QUIET_TEXT)
ONE_LINE: Final[Parts] = (Hole(Kind.QUIET_LINE), "\n")
ERROR_LINE: Final[Parts] = (Hole(Kind.QUIET_LINE), ": ", Hole(Kind.QUIET_LINE), "\n")


def unlike(parts: Parts, *texts: str) -> Parts:
    """Return parts in which another value of a flag is not printed as one of some texts."""
    return tuple(
        msgspec.structs.replace(part, unlike=(*part.unlike, *texts))
        if isinstance(part, Hole) and part.kind is Kind.OTHER
        else part
        for part in parts
    )


def unlike_quoted(parts: Parts) -> Parts:
    """Return parts in which another value of a flag is not a value of it in quotes."""
    values = [text for part in parts if isinstance(part, Hole) for text in part.exclude]
    return unlike(parts, *(f"{quote}{value}{quote}" for value in values for quote in "\"'"))


def errors_of(program: str) -> Parts:
    """Return what a program may write to standard error."""
    return (Hole(Kind.ERRORS, key=program),)


_MAX_ALTERNATIVES: Final = 12
"""Readings of a text that are followed one by one."""


def alternatives(parts: Parts) -> list[Parts]:
    """Return the texts that a text with choices can be; nothing where it has none, or they are too many."""
    options = [_options(part) for part in parts]
    if not 1 < prod(map(len, options)) <= _MAX_ALTERNATIVES:
        return []
    return list(dict.fromkeys(joined(p for option in chosen for p in option) for chosen in product(*options)))


def _options(part: Part) -> tuple[Parts, ...]:
    match part:
        case Choice(options=options):
            return options
        case Trimmed(parts=(Choice(options=options),)):
            return tuple(map(_trimmed_option, options))
        case _:
            return ((part,),)


def _trimmed_option(option: Parts) -> Parts:
    if (text := concrete(option)) is None:
        return (Trimmed(option),)
    return joined((text.rstrip("\n"),))


def concrete(parts: Parts) -> str | None:
    """Return the text of parts without holes."""
    return "".join(parts) if all(isinstance(p, str) for p in parts) else None  # type: ignore[arg-type]


def is_quiet(parts: Parts) -> bool:
    """Return whether no instance of a sequence names a flag."""
    return all(_is_quiet(part) for part in parts)


_QUIET_KINDS: Final = frozenset(
    (Kind.QUIET, Kind.QUIET_TEXT, Kind.QUIET_LINE, Kind.ERRORS, Kind.DIGITS, Kind.BLANKS)
)


def _is_quiet(part: Part) -> bool:
    match part:
        case str():
            return FLAG_STEM not in part
        case Hole(kind=kind):
            return kind in _QUIET_KINDS
        case Choice(options=options):
            return all(is_quiet(option) for option in options)
        case Trimmed(parts=parts) | Excerpt(parts=parts) | Words(parts=parts):
            return is_quiet(parts)
        case Encoded():
            return True
        case _:
            return False


def joined(parts: Iterable[Part]) -> Parts:
    """Return parts with neighbouring literals made one."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)


def either(options: Iterable[Parts]) -> Parts:
    """Return text that is one of several."""
    found = tuple(dict.fromkeys(options))
    return found[0] if len(found) == 1 else (Choice(found),)


_ABSENCE: Final = re.compile(
    r"\W*|.*(?<![a-z])(?:un-?set|not?|none|nothing|null|nil|undef|undefined|missing|absent|empty|blank|na"
    r"|failed|failure|unavailable)"
    r"(?![a-z]).*|\W*n/a\W*",
    re.IGNORECASE,
)
_MAX_ABSENCE: Final = 40


def is_excluded(text: str, exclude: tuple[str, ...]) -> bool:
    """Return whether a value is excluded, or words that scripts print for a variable that is not set."""
    return text in exclude or (len(text) <= _MAX_ABSENCE and _ABSENCE.fullmatch(text) is not None)


def can_be(hole: Hole, text: str) -> bool:
    """Return whether another value of a flag can be a text."""
    return text != "" and not is_excluded(text, (*hole.exclude, *hole.unlike))
