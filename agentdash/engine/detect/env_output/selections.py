"""The environment, or a part of it, as a value in a program."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Style
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts

MARK: Final = "Zhole9999Z"
"""Stands for the value of any variable in a loop over the environment."""
LOOP_VALUE: Final[Parts] = (Hole(Kind.OTHER, key="value in a loop"),)


class Form(Enum):
    """What a part of the environment is in a program."""

    MAPPING = "a mapping"
    ITEMS = "pairs of names and values"
    ENTRIES = "texts `NAME=value`"
    NAMES = "names"


class Selection(msgspec.Struct, frozen=True):
    """The environment, or a part of it, as a mapping; for each flag whether it is in it."""

    kept: tuple[bool, bool]
    form: Form = Form.MAPPING

    @property
    def items(self) -> bool:
        """Return whether it is no mapping."""
        return self.form is not Form.MAPPING

    def entry(self, name: str) -> Any:
        """Return what a loop over it gives of a variable whose value is not known."""
        match self.form:
            case Form.ITEMS:
                return (name, MARK)
            case Form.ENTRIES:
                return f"{name}={MARK}"
            case _:
                return name


class Lines(msgspec.Struct, frozen=True):
    """One text for each variable of the environment."""

    style: Style
    kept: tuple[bool, bool]
