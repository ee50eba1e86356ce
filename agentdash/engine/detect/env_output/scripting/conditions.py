"""Conditions on values of which some are not known: what is true, equal, less."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Parts, Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.values import OPAQUE, SINK, Count, Unknowable, Written
from agentdash.engine.detect.env_output.scripting.ways import Ways
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_HOLE: Final = re.compile(r"Zhole\d+Z")
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Conditions(Ways):
    """Conditions under a hypothesis; where one is not known, this run assumes it."""

    zero_is_false = False
    """The text `0` counts as false."""
    empty_is_false = False
    """The empty text and the number 0 count as false."""

    def value(self, node: Any) -> Any:
        """Return the value of an expression of the program."""
        raise NotImplementedError

    def holds(self, condition: Any) -> bool:
        """Return whether an expression of the program is true."""
        return self.truth(self.value(condition))

    def truth(self, value: Any) -> bool:
        """Return whether a value counts as true."""
        match value:
            case str():
                return self._truth_of_text(self.actual(value))
            case None | bool():
                return bool(value)
            case int():
                return bool(value) or not self.empty_is_false
            case Count(at_least=number):
                return number > 0 or not self.empty_is_false or self.decide()
            case Selection(kept=kept) | Lines(kept=kept):
                return not self.empty_is_false or self.certain(kept) > 0 or self.decide()
            case list() | dict():
                return bool(value) or not self.empty_is_false
            case Written(parts=parts):
                return not self.empty_is_false or is_filled(parts) or (parts != () and self.decide())
            case Unknowable():
                return self.decide()
            case _:
                return True

    def _truth_of_text(self, value: str) -> bool:
        if not self.empty_is_false:
            return self._truth_of_known(value)
        if not has_placeholder(value):
            return value != "" and not (self.zero_is_false and value == "0")
        if self.hole(value) is None:
            return True  # with other text around it
        if self.kind_of(value) is Kind.OTHER and not self.zero_is_false:
            return True
        return self.decide()

    def _truth_of_known(self, value: str) -> bool:
        """Return whether a text is one at all: another variable may be unset."""
        return self.decide() if self.kind_of(value) is Kind.ANY else True

    def defined(self, value: Any) -> bool:
        """Return whether a value is there."""
        if isinstance(value, Unknowable) or self.kind_of(value) is Kind.ANY:
            return self.decide()
        return value is not None

    def equal(self, left: Any, right: Any) -> bool:
        """Return whether two values are the same."""
        left, right = (self.actual(v) if isinstance(v, str) else v for v in (left, right))
        for value, other in ((left, right), (right, left)):
            if isinstance(value, Unknowable):
                return self.decide()
            if isinstance(value, Count):
                return isinstance(other, int) and not 0 <= other < value.at_least and self.decide()
            if isinstance(value, str) and has_placeholder(value):
                return self._may_be(value, other) and self.decide()
        if (left is SINK or right is SINK) and {type(left), type(right)} & {bool, type(None)}:
            return False
        if isinstance(left, OPAQUE) or isinstance(right, OPAQUE):
            raise UnknownError
        return type(left) is type(right) and bool(left == right)

    def _may_be(self, value: str, other: Any) -> bool:
        """Return whether a text that is not known can be another value."""
        match self.hole(value):
            case Hole(kind=Kind.OTHER, exclude=exclude):
                return isinstance(other, str) and other not in ("", *exclude)
            case Hole(kind=Kind.ANY):
                return True
            case _:
                pass
        if not isinstance(other, str) or has_placeholder(other):
            return isinstance(other, str)
        pieces = _HOLE.split(value)
        return other.startswith(pieces[0]) and other.endswith(pieces[-1])

    def counted(self, sign: str, left: Any, right: Any) -> Any:
        """Return a sum or a difference of numbers, of which the first one may not be known."""
        if isinstance(left, Count) and type(right) is int and sign == "+" and right >= 0:
            return Count(left.at_least + right)
        if self._is_quiet(left) or self._is_quiet(right):
            return self.quiet()
        if not isinstance(left, int) or not isinstance(right, int) or sign not in ("+", "-"):
            raise UnknownError
        return left + right if sign == "+" else left - right

    def _is_quiet(self, value: Any) -> bool:
        """Return whether a value is a number, or a text, of the system."""
        return self.kind_of(value) in (Kind.QUIET_LINE, Kind.DIGITS)

    def ordered(self, sign: str, left: Any, right: Any) -> bool:
        """Return the truth of a comparison of two numbers or texts; the first number may not be known."""
        if isinstance(left, Unknowable) or isinstance(right, Unknowable):
            return self.decide()
        if isinstance(left, Count) and type(right) is int:
            is_larger = left.at_least > right if sign in (">", "<=") else left.at_least >= right
            return (is_larger or self.decide()) is (sign in (">", ">="))
        if self._is_quiet(left) or self._is_quiet(right):
            return self.decide()
        if isinstance(left, str) and isinstance(right, str):
            left, right = self.plain(left), self.plain(right)
        elif type(left) is not int or type(right) is not int:
            raise UnknownError
        return bool(_ORDERS[sign](left, right))


def is_filled(parts: Parts) -> bool:
    """Return whether a text holds something for certain."""
    match parts:
        case (Choice(options=options),):
            return all(is_filled(option) for option in options)
        case (Trimmed(parts=inner), *_):
            return is_filled(inner)
        case (Dump() as dump, *_):
            return True in (dump.required(0), dump.required(1))
        case (str() as text, *_):
            return text.strip() != ""
        case _:
            return False
