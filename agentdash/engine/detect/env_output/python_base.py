"""What all parts of a run of a Python program share: its environment, its output, and what is decided."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Part, Parts, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder, text_of_value
from agentdash.engine.detect.env_output.python_values import (
    OPAQUE,
    Captured,
    Foreign,
    Quiet,
)
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.env_output.world import shown


class Base(ABC):
    """What all parts of a run of a Python program share: its environment, its output, and what is decided."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        self._environment = call.environment
        self._run_shell = call.run_shell
        self._holes = holes
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self.out: list[Part] = []
        self._err: list[Part] = []
        self._decisions = decisions
        self.decided: tuple[bool, ...] = ()
        """The truth of the conditions that are not known, as they came up in this run."""
        self._failures: list[Result] = []
        self._json: dict[str, Part] = {}
        """Words for values in JSON that are not known."""
        self._statements = 0
        self._tries = 0

    def _failure(self) -> Result:
        return Result(out=joined(self.out), err=(*self.error(), "Traceback", ANY), status=1)

    def _decide(self) -> bool:
        """Return the truth of a condition that is not known, as this run assumes it."""
        number = len(self.decided)
        truth = number < len(self._decisions) and self._decisions[number]
        self.decided = (*self.decided, truth)
        return truth

    def error(self) -> Parts:
        """Return what it has written to standard error."""
        return joined(self._err)

    def _shown(self, kept: tuple[bool, bool]) -> tuple[Shown, Shown]:
        absent = Shown(Presence.ABSENT)
        network, sandbox = (
            shown(self._environment[name]) if keep else absent for name, keep in zip(FLAGS, kept, strict=True)
        )
        return network, sandbox

    def _variable(self, name: Any, default: Any) -> Any:
        """Return a variable of the environment."""
        if not isinstance(name, str) or has_placeholder(name):
            raise UnknownError
        if name not in FLAGS:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return Foreign(mark)
        value = self._environment[name]
        return default if value is None else text_of_value(value, self._holes)

    def _require_plain(self, *values: Any) -> None:
        if any(isinstance(v, OPAQUE) for v in values):
            raise UnknownError

    def _text(self, value: Any) -> str:
        if isinstance(value, Quiet):
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.QUIET_TEXT)
            return mark
        if isinstance(value, str | Foreign | Bytes):
            return str(value)
        return self._repr(value)

    def _repr(self, value: Any) -> str:
        if isinstance(value, Quiet):
            return self._text(value)
        match value:
            case Foreign() | Bytes():
                return str(value)  # in quotes, or None
            case dict():
                return "{" + ", ".join(f"{self._repr(k)}: {self._repr(v)}" for k, v in value.items()) + "}"
            case list():
                return "[" + ", ".join(self._repr(v) for v in value) + "]"
            case tuple():
                return "(" + ", ".join(self._repr(v) for v in value) + ("," if len(value) == 1 else "") + ")"
            case _ if isinstance(value, OPAQUE):
                raise UnknownError
            case _:
                return repr(value)

    def _common_style(self, styles: list[Style]) -> Style:
        if (style := common_style(styles)) is None:
            raise UnknownError
        return style

    def _whole(self, *, nul: bool) -> Dump:
        """Return a dump of the environment."""
        return Dump(shown=self._shown((True, True)), whole=True, some=True, nul=nul)

    def _record(self, selection: Selection, *, indent: int = 0, is_python: bool = False) -> Record:
        there = [
            self._environment[n] is not None and kept for n, kept in zip(FLAGS, selection.kept, strict=True)
        ]
        return Record(
            shown=self._shown(selection.kept),
            required=(there[0], there[1]),
            indent=indent,
            is_python=is_python,
        )

    def _written(self, value: Any, alone: bool) -> Parts:
        if isinstance(value, Record):
            return (value,)
        if isinstance(value, Selection) and not value.items:
            return (self._record(value),)
        if isinstance(value, Captured):
            return (ANY,) if value.is_bytes else value.parts
        if isinstance(value, Selection):
            return (Hole(Kind.LINE),) if value.form is Form.NAMES else (ANY,)
        if isinstance(value, Lines) and not value.is_text:
            return (ANY,)
        if isinstance(value, Lines) and alone:
            return (Dump(shown=self._shown(value.kept), style=value.style, partial=False, some=False),)
        return (self._text(value),)

    # ------------------------------------------------------------ of other parts

    @abstractmethod
    def block(self, statements: list[ast.stmt]) -> None:
        """Run statements."""

    @abstractmethod
    def _bind(self, target: ast.expr, value: Any) -> None:
        """Give names to a value."""

    @abstractmethod
    def _value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""

    @abstractmethod
    def _truth(self, node: ast.expr) -> bool:
        """Return whether an expression holds."""

    @abstractmethod
    def _call(self, node: ast.Call) -> Any:
        """Run a call."""

    @abstractmethod
    def _called(self, function: ast.FunctionDef, arguments: list[Any]) -> Any:
        """Run a function of the program."""

    @abstractmethod
    def _library(self, name: str) -> Callable[[list[Any], dict[str, Any]], Any] | None:
        """Return a function of the library; None where it is not modelled."""

    @abstractmethod
    def print(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `print`."""
