"""What all parts of a run of a JavaScript program share: its environment and its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.javascript_syntax import Tree
from agentdash.engine.detect.env_output.javascript_values import (
    Null,
    Written,
    entry,
    style_of,
)
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Part, Parts
from agentdash.engine.detect.env_output.placeholders import has_placeholder, text_of_value
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, Form, Selection
from agentdash.engine.detect.env_output.streams import Call
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.env_output.world import shown


class Base(ABC):
    """What all parts of a run of a JavaScript program share: its environment and its output."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...] = ()) -> None:
        self._environment = call.environment
        self._run_shell = call.run_shell
        self._holes = holes
        self._names: dict[str, Any] = {}
        self._steps = 0
        self.out: list[Part] = []
        self.err: Parts = ()
        self._decisions = decisions
        self.decided: tuple[bool, ...] = ()
        """The truth of the conditions that are not known, as they came up in this run."""

    def _decide(self) -> bool:
        """Return the truth of a condition that is not known, as this run assumes it."""
        number = len(self.decided)
        truth = number < len(self._decisions) and self._decisions[number]
        self.decided = (*self.decided, truth)
        return truth

    def _quiet(self) -> str:
        """Return a word for a value on one line in which no flag is named."""
        mark = f"Zhole{len(self._holes)}Z"
        self._holes[mark] = Hole(Kind.QUIET_LINE)
        return mark

    def _for_each(self, values: Any, run: Callable[[Any], Any]) -> None:
        if isinstance(values, Selection):
            self.out.append(self._over_environment(values, run))
        elif isinstance(values, list) and len(values) <= 50:
            for value in values:
                run(value)
        else:
            raise UnknownError

    def _over_environment(self, selection: Selection, run: Callable[[Any], Any]) -> Dump:
        """Return what a loop over the environment prints: a dump in its own style."""
        styles: list[Style] = []
        kept: list[bool] = []
        for number, name in enumerate(FLAGS):
            outer, self.out = self.out, []
            with_mark = self._with_mark(name)
            try:
                run(entry(selection, name))
                line = "".join(part if isinstance(part, str) else "\n\n" for part in self.out)
            finally:
                self._environment = with_mark
                self.out = outer
            kept.append(bool(line) and selection.kept[number])
            if line:
                styles.append(style_of(line, name))
        if (style := common_style(styles)) is None:
            raise UnknownError
        return Dump(shown=self._shown((kept[0], kept[1])), style=style, partial=len(styles) < 2)

    def _with_mark(self, name: str) -> Any:
        """Put the mark in the place of a flag's value; return the environment as it was."""
        before = self._environment
        self._environment = {**before, name: LOOP_VALUE}
        return before

    def _shown(self, kept: tuple[bool, bool]) -> tuple[Shown, Shown]:
        absent = Shown(Presence.ABSENT)
        first, second = (
            shown(self._environment[name]) if keep else absent for name, keep in zip(FLAGS, kept, strict=True)
        )
        return first, second

    def _for_flag(self, selection: Selection, name: str, run: Callable[[Any], Any]) -> Any:
        before = self._with_mark(name)
        try:
            return run(entry(selection, name))
        finally:
            self._environment = before

    def _variable(self, selection: Selection, name: Any) -> Any:
        if not isinstance(name, str) or has_placeholder(name):
            raise UnknownError
        if name not in FLAGS:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return mark
        if (value := self._environment[name]) is None or not selection.kept[FLAGS.index(name)]:
            return None
        return text_of_value(value, self._holes)

    def _text(self, value: Any) -> str:
        match value:
            case None:
                return "undefined"
            case Null():
                return "null"
            case bool():
                raise UnknownError  # derived from a value, which it does not show
            case int() | str():
                return str(value)
            case Written(parts=parts):
                mark = f"Zhole{len(self._holes)}Z"
                self._holes[mark] = Choice((parts,))
                return mark
            case list():
                return ",".join("" if v is None else self._text(v) for v in value)
            case _:
                raise UnknownError

    def _keys(self, value: Any) -> Any:
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            return Selection(value.kept, Form.NAMES)
        if isinstance(value, dict):
            return list(value)
        raise UnknownError

    # ------------------------------------------------------------ of other parts

    @abstractmethod
    def block(self, statements: tuple[Tree, ...]) -> None:
        """Run statements."""

    @abstractmethod
    def value(self, tree: Tree) -> Any:
        """Return the value of an expression."""

    @abstractmethod
    def _truth(self, value: Any) -> bool:
        """Return whether a value counts as true."""

    @abstractmethod
    def _bind(self, pattern: Tree, value: Any) -> None:
        """Give names to a value."""
