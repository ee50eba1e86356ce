"""Arithmetic of the shell: `$((…))`, `((…))` and the header of `for ((…))`, over whole numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

from agentdash.engine.detect.env_output.dumps import FLAG_STEM, FLAGS
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts, concrete
from agentdash.engine.detect.env_output.world import State
from agentdash.engine.detect.env_output.zsh import IS_SET, IS_SET_OF

_TOKEN: Final = re.compile(
    r"\s*(?P<token>\d+|\$?[A-Za-z_]\w*|\$\{[^{}]*\}|\$[#?\d]|\+\+|--|[-+*/%<>=!]=|&&|\|\||[-+*/%<>=!?:(),])"
)
_MAX_DIGITS: Final = 9
"""Of a number that is computed with."""
_ASSIGNMENTS: Final = ("=", "+=", "-=", "*=")
_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Binary operators, the loosest first."""
_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class UnknownNumberError(Exception):
    """The expression holds something that is not modelled."""


def evaluated(text: str, state: State) -> tuple[int | None, State]:
    """Return the value of an expression, None where it is not known, and the state after its assignments."""
    try:
        tokens = _tokens(text)
        reader = _Reader(tokens, state)
        value = reader.comma()
        if reader.at != len(tokens):
            raise UnknownNumberError
    except (UnknownNumberError, RecursionError):
        return None, _unknown_after(text, state)
    return (None if value is None else int(value)), reader.state


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        if (match := _TOKEN.match(text, at)) is None:
            raise UnknownNumberError
        tokens.append(match["token"])
        at = match.end()
    return tokens


def _unknown_after(text: str, state: State) -> State:
    """Return the state in which variables that an expression may assign are not known."""
    for match in re.finditer(
        r"([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%]?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", text
    ):
        state = state.with_variable(match[1] or match[2], (Hole(Kind.DIGITS),))
    return state


def sets_flag(subscript: str) -> bool:
    """Return whether a subscript of an array, which is an expression, may set a flag."""
    return FLAG_STEM in subscript and re.search(r"=|\+\+|--", subscript) is not None


class _Reader:
    """A recursive-descent reader that computes; None is a value that is not known."""

    def __init__(self, tokens: list[str], state: State) -> None:
        self._tokens = tokens
        self.at = 0
        self.state = state

    def _peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def comma(self) -> int | None:
        value = self._assignment()
        while self._peek() == ",":
            self.at += 1
            value = self._assignment()
        return value

    def _assignment(self) -> int | None:
        name = self._peek()
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or self._peek(1) not in _ASSIGNMENTS:
            return self._choice()
        sign = self._peek(1)
        self.at += 2
        right = self._assignment()
        if sign != "=":
            left = self._variable(name)
            right = None if left is None or right is None else _OPERATIONS[sign[0]](left, right)
        self._assign(name, right)
        return right

    def _choice(self) -> int | None:
        test = self._binary(0)
        if self._peek() != "?":
            return test
        self.at += 1
        before = self.state
        first = self._assignment()
        if self._peek() != ":":
            raise UnknownNumberError
        self.at += 1
        second = self._assignment()
        if self.state != before:
            raise UnknownNumberError
        return None if test is None else first if test else second

    def _binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (sign := self._peek()) in _LEVELS[level]:
            self.at += 1
            before = self.state
            right = self._binary(level + 1)
            if sign in ("&&", "||") and self.state != before:
                raise UnknownNumberError  # the right side runs or does not
            left = _computed(sign, left, right)
        return left

    def _unary(self) -> int | None:
        token = self._peek()
        self.at += 1
        match token:
            case "!":
                value = self._unary()
                return None if value is None else int(not value)
            case "-" | "+" as sign:
                value = self._unary()
                return value if value is None or sign == "+" else -value
            case "++" | "--":
                name = self._peek()
                self.at += 1
                return self._step(name, token)
            case "(":
                value = self.comma()
                if self._peek() != ")":
                    raise UnknownNumberError
                self.at += 1
                return value
            case _ if token.isdecimal():
                if len(token) > _MAX_DIGITS or (token[0] == "0" and len(token) > 1):
                    raise UnknownNumberError
                return int(token)
            case _ if re.fullmatch(r"[A-Za-z_]\w*", token):
                value = self._variable(token)
                if self._peek() in ("++", "--"):
                    self._step(token, self._peek())
                    self.at += 1
                return value
            case _ if token.startswith("$"):
                return self._expansion(token)
            case _:
                raise UnknownNumberError

    def _step(self, name: str, sign: str) -> int | None:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UnknownNumberError
        value = self._variable(name)
        stepped = None if value is None else value + (1 if sign == "++" else -1)
        self._assign(name, stepped)
        return stepped

    def _assign(self, name: str, value: int | None) -> None:
        parts: Parts = (Hole(Kind.DIGITS),) if value is None else (str(value),)
        self.state = self.state.with_variable(name, parts)

    def _variable(self, name: str) -> int | None:
        value = self.state.value(name)
        text = "0" if value in (None, ()) else concrete(value or ())
        if text is None or not re.fullmatch(rf"-?\d{{1,{_MAX_DIGITS}}}", text):
            return None
        return int(text)

    def _expansion(self, token: str) -> int | None:
        name = token[1:].removeprefix("{").removesuffix("}")
        if name.startswith(IS_SET_OF):
            name = IS_SET + (concrete(self.state.value(name.removeprefix(IS_SET_OF)) or ()) or "")
        if name.startswith(IS_SET) and (flag := name.removeprefix(IS_SET)) in FLAGS:
            return int(self.state.value(flag) is not None)
        if re.fullmatch(r"[A-Za-z_]\w*|\d", name):
            return self._variable(name)
        if match := re.fullmatch(r"#(\w+)(?:\[[@*]\])?", name):
            elements = self.state.array(match[1])
            if name.endswith("]") and elements is not None and all(map(_is_one, elements)):
                return len(elements)
            text = None if name.endswith("]") else concrete(self.state.value(match[1]) or ())
            return None if text is None else len(text)
        elements = self.state.array("@")
        if name == "#" and elements is not None:
            return len(elements)
        return self.state.status if name == "?" else None


def _is_one(element: Parts) -> bool:
    return all(isinstance(part, str | Hole) for part in element)


def _computed(sign: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        known = left if left is not None else right
        if known is not None and ((sign == "||" and known) or (sign == "&&" and not known)):
            return int(sign == "||")
        return None
    if sign in ("/", "%"):
        if right == 0:
            raise UnknownNumberError
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if sign == "/" else left - quotient * right
    return int(_OPERATIONS[sign](left, right))
