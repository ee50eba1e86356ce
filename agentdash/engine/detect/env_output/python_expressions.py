"""Expressions of Python under a hypothesis."""

from __future__ import annotations

import ast
import operator
from typing import Any

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.patterns import Hole
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.python_loops import Loops
from agentdash.engine.detect.env_output.python_values import (
    CONVERSION,
    FOREIGN_METHODS,
    IGNORE_CASE,
    MISSING,
    ORDERS,
    QUIET,
    Captured,
    FailedError,
    File,
    Foreign,
    Function,
    Lambda,
    Method,
    Module,
    Namespace,
    Pattern,
    Process,
    Quiet,
    is_in_front,
)
from agentdash.engine.detect.env_output.selections import Bytes, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Expressions(Loops):
    """Expressions of Python under a hypothesis."""

    def _truth(self, node: ast.expr) -> bool:
        value = self._value(node)
        if isinstance(value, Selection):
            shown = [
                n
                for n, keep in zip(FLAGS, value.kept, strict=True)
                if keep and self._environment[n] is not None
            ]
            return True if shown else self._decide()  # other variables may be in it
        if isinstance(value, Foreign | Quiet | Lines):
            return self._decide()
        if isinstance(value, Selection | Module | Method | Function):
            raise UnknownError
        return bool(value)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name in self._names:
                    return self._names[name]
                if self._library(name) is not None:
                    return Module(name)
                raise UnknownError
            case ast.Attribute(value=value, attr=name):
                return self._attribute(self._value(value), name)
            case ast.JoinedStr(values=values):
                return "".join(self._formatted(value) for value in values)
            case ast.Subscript(value=value, slice=index):
                return self._item(self._value(value), self._value(index))
            case ast.Call():
                return self._call(node)
            case ast.BoolOp(op=op, values=values):
                return self._bool_op(op, values)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self._value(body if self._truth(test) else otherwise)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._truth(operand)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self._names[name] = self._value(value)
                return self._names[name]
            case ast.Lambda():
                return Lambda(node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(op, self._value(left), self._value(right))
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                values = [self._value(element) for element in elements]
                return tuple(values) if isinstance(node, ast.Tuple) else values
            case ast.Dict(keys=[None], values=[value]) if isinstance(
                mapping := self._value(value), Selection
            ):
                return mapping
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {
                    self._value(k): self._value(v) for k, v in zip(keys, values, strict=True) if k is not None
                }
            case ast.DictComp() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node)
            case _:
                raise UnknownError

    def _attribute(self, value: Any, name: str) -> Any:
        match value:
            case Module(name="os") if name == "environ":
                return Selection((True, True))
            case Namespace(attributes=attributes) if name in attributes:
                return attributes[name]
            case Module(name="os") if name == "environb":
                return Selection((True, True), is_bytes=True)
            case Module(name="re") if name in ("I", "IGNORECASE"):
                return IGNORE_CASE
            case File() | Pattern():
                return Method(value, name)
            case Module(name=module) if QUIET.fullmatch(f"{module}.{name}"):
                return Quiet()
            case Module(name=module):
                return Module(f"{module}.{name}")
            case Quiet() if name not in FOREIGN_METHODS:
                return value
            case Process(stdout=stdout) if name == "stdout":
                return stdout
            case Process() if name == "returncode":
                return Quiet()
            case Selection() | Captured() | Bytes() | str() | bytes() | dict() | list():
                return Method(value, name)
            case _:
                raise UnknownError

    def _item(self, value: Any, index: Any) -> Any:
        if isinstance(value, Selection) and not value.items:
            found = self._variable(index, MISSING)
            if found is MISSING or (index in FLAGS and not value.kept[FLAGS.index(index)]):
                raise FailedError("KeyError", repr(index))
            return found
        if isinstance(value, Quiet):
            return value
        if isinstance(value, list | tuple) and isinstance(index, int) and index < len(value):
            return value[index]
        if isinstance(value, dict) and index in value:
            return value[index]
        raise UnknownError

    def _bool_op(self, op: ast.boolop, values: list[ast.expr]) -> Any:
        result: Any = None
        for node in values:
            result = self._value(node)
            if isinstance(result, Lines) and isinstance(op, ast.Or):
                there = [
                    keep and self._environment[n] is not None
                    for n, keep in zip(FLAGS, result.kept, strict=True)
                ]
                if any(there) or self._decide():
                    return result
                continue
            if isinstance(result, Foreign | Selection | Lines | Quiet):
                raise UnknownError
            if bool(result) is isinstance(op, ast.Or):
                return result
        return result

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> bool:
        if isinstance(right, Selection) and isinstance(op, ast.In | ast.NotIn):
            if left not in FLAGS:
                raise UnknownError
            there = self._environment[left] is not None and right.kept[FLAGS.index(left)]
            return there is isinstance(op, ast.In)
        if isinstance(right, Bytes) and isinstance(left, bytes):
            left, right = left.decode(errors="replace"), right.text
        if isinstance(left, int) and isinstance(right, int) and type(op) in ORDERS:
            return ORDERS[type(op)](left, right)
        if isinstance(left, Quiet | Foreign) or isinstance(right, Quiet | Foreign):
            return self._decide()
        self._require_plain(left, right)
        marked = any(isinstance(v, str) and has_placeholder(v) for v in (left, right))
        match op:
            case ast.Is() if None in (left, right):
                return left is right
            case ast.IsNot() if None in (left, right):
                return left is not right
            case ast.Eq() | ast.NotEq():
                if marked and not self._differs(left, right):
                    raise UnknownError
                return (left == right) is isinstance(op, ast.Eq)
            case ast.In() | ast.NotIn() if is_in_front(left, right):
                return isinstance(op, ast.In)
            case ast.In() | ast.NotIn() if not marked and isinstance(right, str | list | tuple | dict):
                return bool((left in right) is isinstance(op, ast.In))
            case _:
                raise UnknownError

    def _differs(self, left: Any, right: Any) -> bool:
        """Return whether another value of a flag is known to differ from what it is compared with."""
        for value, text in ((left, right), (right, left)):
            hole = self._holes.get(value) if isinstance(value, str) else None
            if isinstance(hole, Hole) and (text is None or text == "" or text in hole.exclude):
                return True
        return False

    def _binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Mod) and isinstance(left, str):
            arguments = right if isinstance(right, tuple) else (right,)
            return self._percent(left, [self._text_or_number(a) for a in arguments])
        if isinstance(op, ast.Add) and isinstance(left, str | Foreign) and isinstance(right, str | Foreign):
            return str(left) + str(right)
        if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
            raise FailedError  # str + None
        self._require_plain(left, right)
        compute = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Sub: operator.sub}.get(type(op))
        if (
            compute is None
            or not isinstance(left, int | str | list | tuple)
            or not isinstance(right, int | list | tuple)
        ):
            raise UnknownError
        if isinstance(op, ast.Mult) and (
            not isinstance(right, int) or right > 200 or (isinstance(left, int) and left > 10**6)
        ):
            raise UnknownError
        return compute(left, right)

    def _percent(self, template: str, arguments: list[Any]) -> str:
        """Return `template % arguments`; a value that is not known takes a plain `%s` only."""
        marked = [isinstance(a, str) and has_placeholder(a) for a in arguments]
        specs = [spec for spec in CONVERSION.findall(template) if spec != "%%"]
        if len(specs) != len(arguments) or any(
            is_marked and spec != "%s" for spec, is_marked in zip(specs, marked, strict=True)
        ):
            raise UnknownError
        try:
            return template % tuple(arguments)
        except (TypeError, ValueError, OverflowError, MemoryError) as error:
            raise UnknownError from error

    def _text_or_number(self, value: Any) -> Any:
        return value if isinstance(value, int) and not isinstance(value, bool) else self._text(value)

    def _formatted(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                computed = self._value(value)
                text = self._repr(computed) if conversion == ord("r") else self._text(computed)
                if spec is None:
                    return text
                width = self._value(spec)
                if has_placeholder(text) or not isinstance(width, str) or not isinstance(computed, str):
                    raise UnknownError
                try:
                    return format(text, width)
                except ValueError as error:
                    raise UnknownError from error
            case _:
                raise UnknownError
