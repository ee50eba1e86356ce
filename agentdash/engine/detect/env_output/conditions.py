"""`test`, `[ … ]` and `[[ … ]]` under a hypothesis."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from typing import Final

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.emptiness import is_empty
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts, can_be, concrete
from agentdash.engine.detect.env_output.world import State

_FILE_TESTS: Final = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOS")


def condition(words: list[Parts], state: State, *, glob: bool) -> bool | None:
    """Return the truth of a test, None where it is not known; with `glob`, `==` compares with a pattern."""
    return _Test(words, state, glob=glob).read()


class _Test:
    """A recursive-descent reader: or, and, not, primaries."""

    def __init__(self, words: list[Parts], state: State, *, glob: bool) -> None:
        self._words = words
        self._state = state
        self._glob = glob
        self._at = 0

    def read(self) -> bool | None:
        if not self._words:
            return False
        if not self._glob and len(self._words) == 1:
            return _negated(is_empty(self._words[0]))
        value = self._or()
        return value if self._at == len(self._words) else None

    def _word(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return concrete(self._words[at]) if at < len(self._words) else ""

    def _or(self) -> bool | None:
        value = self._and()
        while self._word() in ("-o", "||") and self._at < len(self._words):
            self._at += 1
            value = _either(value, self._and())
        return value

    def _and(self) -> bool | None:
        value = self._not()
        while self._word() in ("-a", "&&") and self._at < len(self._words):
            self._at += 1
            value = _negated(_either(_negated(value), _negated(self._not())))
        return value

    def _not(self) -> bool | None:
        if self._word() == "!" and self._at + 1 < len(self._words):
            self._at += 1
            return _negated(self._not())
        if self._word() == "(":
            self._at += 1
            value = self._or()
            if self._word() != ")":
                return None
            self._at += 1
            return value
        return self._primary()

    def _primary(self) -> bool | None:
        if self._at >= len(self._words):
            return None
        sign = self._word(1)
        if self._at + 2 < len(self._words) and sign in _BINARY:
            left, right = self._words[self._at], self._words[self._at + 2]
            self._at += 3
            return _BINARY[sign](left, right, self._glob)
        unary = self._word()
        if (
            self._at + 1 < len(self._words)
            and unary is not None
            and (unary in ("-z", "-n", "-v") or unary in _FILE_TESTS)
        ):
            operand = self._words[self._at + 1]
            self._at += 2
            return self._unary(unary, operand)
        self._at += 1
        return _negated(is_empty(self._words[self._at - 1]))

    def _unary(self, operator: str, operand: Parts) -> bool | None:
        match operator:
            case "-z":
                return is_empty(operand)
            case "-n":
                return _negated(is_empty(operand))
            case "-s" | "-e" | "-f" | "-r" if (content := dict(self._state.files).get(operand)) is not None:
                return _negated(is_empty(content)) if operator == "-s" else True
            case "-v" if (name := concrete(operand)) in FLAGS and name is not None:
                return self._state.value(name) is not None
            case _:
                return None


def matches_pattern(subject: Parts, pattern: str) -> bool | None:
    """Return whether a text matches a pattern of `case` or `[[`; None where it is not known."""
    if re.search(r"[\[\\()|]", pattern):
        return None
    if pattern == "*":
        return True
    if (text := concrete(subject)) is not None:
        return fnmatch.fnmatchcase(text, pattern)
    wildcard = re.search(r"[*?]", pattern)
    fixed = pattern[: wildcard.start()] if wildcard else pattern
    first = subject[0] if isinstance(subject[0], str) else ""
    shared = min(len(fixed), len(first))
    if fixed[:shared] != first[:shared] or (wildcard is None and len(first) > len(fixed)):
        return False
    if pattern == f"{fixed}*" and len(first) >= len(fixed):
        return True
    if all(fnmatch.fnmatchcase(_filled(subject, text), pattern) for text in _FOREIGN):
        return True
    match subject:
        case (Hole(kind=Kind.OTHER) as hole,) if wildcard is None and not can_be(hole, pattern):
            return False
        case _:
            return None


_FOREIGN: Final = ("", "\ue000", "\ue001\ue002\ue003")
"""Texts of characters that no pattern has: one that matches all of them has a star in their place."""


def _filled(subject: Parts, text: str) -> str:
    return "".join(part if isinstance(part, str) else text for part in subject)


def _equal(left: Parts, right: Parts, glob: bool) -> bool | None:
    a, b = concrete(left), concrete(right)
    if a is not None and b is not None:
        return matches_pattern(left, b) if glob else a == b
    if glob and b is not None:
        return matches_pattern(left, b)
    for value, text in ((left, b), (right, a)):
        if (
            text is not None
            and len(value) == 1
            and isinstance(value[0], Hole)
            and value[0].kind is Kind.OTHER
        ):
            return None if can_be(value[0], text) else False
    return None


def _different(left: Parts, right: Parts, glob: bool) -> bool | None:
    return _negated(_equal(left, right, glob))


def _by_number(compare: Callable[[int, int], bool]) -> Callable[[Parts, Parts, bool], bool | None]:
    """Return a comparison of two numbers."""

    def compared(left: Parts, right: Parts, _glob: bool) -> bool | None:
        a, b = concrete(left), concrete(right)
        return compare(int(a), int(b)) if a and b and a.isdecimal() and b.isdecimal() else None

    return compared


def _unknown(_left: Parts, _right: Parts, _glob: bool) -> bool | None:
    return None


_BINARY: Final[dict[str | None, Callable[[Parts, Parts, bool], bool | None]]] = {
    "=": _equal,
    "==": _equal,
    "!=": _different,
    "-eq": _by_number(operator.eq),
    "-ne": _by_number(operator.ne),
    "-lt": _by_number(operator.lt),
    "-le": _by_number(operator.le),
    "-gt": _by_number(operator.gt),
    "-ge": _by_number(operator.ge),
    **dict.fromkeys(("=~", "-nt", "-ot", "-ef", "<", ">"), _unknown),
}


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False
