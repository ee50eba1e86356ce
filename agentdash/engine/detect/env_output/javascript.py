"""What Node prints of its environment: programs are run under a hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from agentdash.engine.detect.env_output.hypotheses import Decisions, run_each
from agentdash.engine.detect.env_output.javascript_expressions import Expressions
from agentdash.engine.detect.env_output.javascript_syntax import Tree, parse_expression, parse_script
from agentdash.engine.detect.env_output.javascript_values import (
    ContinueError,
    Function,
    ReturnError,
    ThrownError,
)
from agentdash.engine.detect.env_output.patterns import ANY, Part, joined
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_CODE: Final = 4_000
_MAX_STEPS: Final = 500
_MAX_RUNS: Final = 16
"""Runs of a program that differ in conditions which are not known."""


def run_node(code: str, options: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > _MAX_CODE:
        raise UnknownError
    is_expression = "p" in options
    tree = (parse_expression(code.strip().rstrip(";")),) if is_expression else parse_script(code)

    def run(decisions: Decisions) -> tuple[list[Result], Decisions]:
        program = _Program(call, holes, decisions)
        return [_result(program, tree, is_expression=is_expression)], program.decided

    return run_each(run, _MAX_RUNS)


def _result(program: _Program, tree: tuple[Tree, ...], *, is_expression: bool) -> Result:
    """Return the result of a run of a program."""
    try:
        if is_expression:
            program.print([program.value(tree[0])])
        else:
            program.block(tree)
    except (UnknownError, ThrownError, ReturnError, ContinueError, RecursionError):
        return Result(out=joined((*program.out, ANY)), err=(ANY,), status=None)
    return Result(out=joined(program.out), err=program.err)


class _Program(Expressions):
    """A run of a program under one hypothesis."""

    def block(self, statements: tuple[Tree, ...]) -> None:
        """Run statements."""
        for statement in statements:
            if statement[0] == "function":
                self._names[statement[1]] = Function(statement[2], statement[3])
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Tree) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise UnknownError
        match statement:
            case ("declare", declarations):
                for pattern, value in declarations:
                    self._bind(pattern, self.value(value))
            case ("expression", expression):
                self.value(expression)
            case ("if", test, then, otherwise):
                self.block(then if self._truth(self.value(test)) else otherwise)
            case ("block", inner):
                self.block(inner)
            case ("for of", pattern, values, body):
                self._loop(self.value(values), lambda item: self._bind(pattern, item), body)
            case ("for in", pattern, values, body):
                keys = self._keys(self.value(values))
                self._loop(keys, lambda item: self._bind(pattern, item), body)
            case ("try", body, handler):
                try:
                    self.block(body)
                except ThrownError:
                    self.block(handler)
            case ("return", value):
                raise ReturnError(None if value is None else self.value(value))
            case ("continue",):
                raise ContinueError
            case ("function", *_):
                pass
            case _:
                raise UnknownError

    def _bind(self, pattern: Tree, value: Any) -> None:
        match pattern:
            case ("name", name):
                self._names[name] = value
            case ("list", patterns) if isinstance(value, list):
                for number, inner in enumerate(patterns):
                    self._bind(inner, value[number] if number < len(value) else None)
            case ("object", keys):
                for key, inner in keys:
                    self._bind(inner, self._member(value, key))
            case _:
                raise UnknownError

    def _loop(self, values: Any, bind: Callable[[Any], None], body: tuple[Tree, ...]) -> None:
        def run(item: Any) -> None:
            bind(item)
            with suppress(ContinueError):
                self.block(body)

        self._for_each(values, run)
