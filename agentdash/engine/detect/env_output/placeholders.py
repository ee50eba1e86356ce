"""Words that stand for holes, so that text with holes in it can be parsed as code and put together again."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Excerpt,
    Hole,
    Kind,
    Part,
    Parts,
    Trimmed,
    joined,
)
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, MARK
from agentdash.engine.detect.env_output.unknown import UnknownError

_MARK: Final = re.compile(r"(Zhole\d+Z)")


def with_placeholders(parts: Parts, holes: dict[str, Part]) -> str | None:
    """Return text with a word for each hole, added to `holes`; None where a hole may be more than a word."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        elif isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS, Kind.QUIET_LINE):
            mark = f"Zhole{len(holes)}Z"
            holes[mark] = part
            text += mark
        else:
            return None
    return text


def text_of_value(value: Parts, holes: dict[str, Part]) -> str:
    """Return the value of a variable as text: the mark of a loop over the environment for its value.

    Raises:
        UnknownError: it may be more than words.
    """
    if value == LOOP_VALUE:
        return MARK
    text = with_placeholders(value, holes)
    if text is None:
        raise UnknownError
    return text


def has_placeholder(text: str) -> bool:
    """Return whether a text holds the word of a hole."""
    return "Zhole" in text


def refilled(parts: Parts, holes: dict[str, Part]) -> Parts:
    """Return parts with the words of holes replaced by the holes."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Choice):
            result.append(Choice(tuple(refilled(option, holes) for option in part.options)))
        elif isinstance(part, str):
            result += [holes.get(piece, piece) for piece in _MARK.split(part)]
        elif isinstance(part, Hole | Dump | Record | Trimmed | Excerpt):
            result.append(part)
        else:
            result.append(ANY)
    return joined(result)
