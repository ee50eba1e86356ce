"""The environment, or a part of it, as a value in a program."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Style
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts

MARK: Final = "Zhole9999Z"
"""Stands for the value of any variable in a loop over the environment."""
PAD: Final = "Zhole9998Z"
"""Stands for the blanks that fill a column whose width is not known."""
LOOP_VALUE: Final[Parts] = (Hole(Kind.OTHER, key="value in a loop"),)


class Form(Enum):
    """What a part of the environment is in a program."""

    MAPPING = "a mapping"
    ITEMS = "pairs of names and values"
    ENTRIES = "texts `NAME=value`"
    NAMES = "names"


class Bytes(msgspec.Struct, frozen=True):
    """A text as bytes, which Python writes as `b'…'`."""

    text: Any

    def __str__(self) -> str:
        return f"b'{self.text}'"


class Selection(msgspec.Struct, frozen=True):
    """The environment, or a part of it, as a mapping; for each flag whether it is in it."""

    kept: tuple[bool, bool]
    form: Form = Form.MAPPING
    is_bytes: bool = False
    """Its names and values are bytes."""

    @property
    def items(self) -> bool:
        """Return whether it is no mapping."""
        return self.form is not Form.MAPPING

    def entry(self, name: str) -> Any:
        """Return what a loop over it gives of a variable whose value is not known."""
        match self.form:
            case Form.ITEMS:
                return (Bytes(name), Bytes(MARK)) if self.is_bytes else (name, MARK)
            case Form.ENTRIES:
                return Bytes(f"{name}={MARK}") if self.is_bytes else f"{name}={MARK}"
            case _:
                return Bytes(name) if self.is_bytes else name


class Lines(msgspec.Struct, frozen=True):
    """One text for each variable of the environment."""

    style: Style
    kept: tuple[bool, bool]
    is_text: bool = False
    """They were joined."""
