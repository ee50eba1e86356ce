"""Operators of Python, and items of its values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.scripting.python.library import Library
from agentdash.engine.detect.env_output.scripting.python.values import (
    Defaults,
    Members,
    Quiet,
)
from agentdash.engine.detect.env_output.scripting.values import Count, FailedError, Unknowable, Written
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ORDERS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Operators(Library):
    """Operators of Python, and items of its values."""

    def truth(self, value: Any) -> bool:
        """Return whether a value counts as true."""
        match value:
            case Quiet():
                return self.decide()
            case tuple():
                return bool(value)
            case Bytes(text=text):
                return self.truth(text)
            case _:
                return super().truth(value)

    def equal(self, left: Any, right: Any) -> bool:
        """Return the truth of `==`."""
        if isinstance(left, Quiet | Count | Unknowable) or isinstance(right, Quiet | Count | Unknowable):
            return self.decide()
        if isinstance(left, list | tuple | dict) or isinstance(right, list | tuple | dict):
            if type(left) is not type(right):
                return False
            self.require_known(left, right)
        return super().equal(self.without_bytes(left), self.without_bytes(right))

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> bool:
        match op:
            case ast.Is() | ast.IsNot():
                if isinstance(left, Unknowable) or isinstance(right, Unknowable):
                    return self.decide()
                if left is not None and right is not None and not isinstance(left, bool):
                    raise UnknownError
                same = self._is_none(left, right) if left is None or right is None else left is right
                return same is isinstance(op, ast.Is)
            case ast.Eq() | ast.NotEq():
                return self.equal(left, right) is isinstance(op, ast.Eq)
            case ast.In() | ast.NotIn():
                return self._is_in(left, right) is isinstance(op, ast.In)
            case _ if isinstance(left, Quiet | Count | Unknowable) or isinstance(right, Quiet | Unknowable):
                return self.decide()
            case _ if isinstance(right, Count):
                return self.decide()
            case _ if type(left) is int and type(right) is int:
                return _ORDERS[type(op)](left, right)
            case _:
                raise UnknownError

    def _is_none(self, left: Any, right: Any) -> bool:
        other = right if left is None else left
        return self.decide() if isinstance(other, Quiet | Unknowable) else not self.defined(other)

    def _is_in(self, left: Any, right: Any) -> bool:
        match right:
            case Selection(form=Form.MAPPING | Form.NAMES):
                return self.is_set(
                    msgspec.structs.replace(right, form=Form.MAPPING), self.without_bytes(left)
                )
            case str() | Bytes(text=str()):
                return self.contains(self.without_bytes(right), self.without_bytes(left))
            case dict() if not isinstance(left, tuple):
                return self.plain(left) in right
            case list() | tuple():
                return any(self.equal(left, each) for each in right)
            case _:
                raise UnknownError

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        if isinstance(left, Unknowable) or isinstance(right, Unknowable):
            raise UnknownError
        match op:
            case ast.Mod() if isinstance(left, str):
                return self.percent(left, right)
            case ast.Add() if isinstance(left, Written | Lines) and isinstance(right, str):
                return self.text(left) + right
            case ast.Add() if isinstance(left, str) or isinstance(right, str):
                if not isinstance(left, str) or not isinstance(right, str | Written):
                    raise FailedError("TypeError")
                return left + self.text(right)
            case ast.Add() if isinstance(left, list | tuple) and type(left) is type(right):
                return type(left)([*left, *right])
            case ast.Add() | ast.Sub() if isinstance(left, int | Count):
                return self.counted("+" if isinstance(op, ast.Add) else "-", left, right)
            case ast.Mult() if isinstance(left, str) and type(right) is int and right <= 200:
                return self.plain(left) * right
            case ast.BitAnd() if isinstance(left, Selection) and isinstance(right, Members):
                mapping = msgspec.structs.replace(left, form=Form.MAPPING)
                return Members(name for name in right if self.is_set(mapping, name))
            case ast.BitOr() if isinstance(left, dict) and isinstance(right, dict):
                return left | right
            case ast.Add() | ast.Sub() | ast.Mult() | ast.Div() if isinstance(left, Quiet | int):
                return Quiet("number")
            case _:
                raise UnknownError

    def item(self, owner: Any, index: Any) -> Any:
        """Return what `owner[index]` gives."""
        match owner:
            case Selection(form=Form.MAPPING):
                key = self.without_bytes(index)
                if not self.is_set(owner, key):
                    raise FailedError("KeyError", repr(key))
                return self.bytes_of(owner, self.item_of(owner, key))
            case Quiet():
                return owner
            case list() | tuple() if type(index) is int:
                if not -len(owner) <= index < len(owner):
                    raise FailedError("IndexError", "list index out of range")
                return owner[index]
            case Defaults(factory=factory) if index not in owner:
                owner[self.plain(index)] = self.call(factory, [], {})
                return owner[index]
            case dict():
                if index not in owner:
                    raise FailedError("KeyError", repr(self.plain(index)))
                return owner[index]
            case Bytes(text=text):
                return self.item(text, index)
            case _:
                raise UnknownError
