"""What Node prints of its environment: programs are run under a hypothesis."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from agentdash.engine.detect.env_output.patterns import Hole, Kind, Part
from agentdash.engine.detect.env_output.scripting.grammars import MAX_CODE
from agentdash.engine.detect.env_output.scripting.javascript.effects import Syntax, may_run
from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import Tree, words_of
from agentdash.engine.detect.env_output.scripting.javascript.expressions import Expressions
from agentdash.engine.detect.env_output.scripting.javascript.syntax import parse_expression, parse_script
from agentdash.engine.detect.env_output.scripting.javascript.values import Caught, Class
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.values import (
    UNKNOWABLE,
    UNMODELLED,
    Count,
    ExitError,
    FailedError,
    LastError,
    NextError,
    ReturnError,
)
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError


def run_node(code: str, options: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > MAX_CODE:
        raise UnknownError
    if "p" in options:
        tree: tuple[Tree, ...] = (("print", parse_expression(code.strip().rstrip(";"))),)
    else:
        tree = parse_script(code)

    syntax = Syntax(tree)

    def run(machine: Javascript) -> None:
        machine.syntax = syntax
        machine.program(tree)

    return run_all(Javascript, call, holes, run)


class Javascript(Expressions):
    """A run of a program under one hypothesis."""

    def program(self, statements: tuple[Tree, ...]) -> None:
        """Run a program."""
        self.block(statements)
        self.finish()
        if self.exit_code:
            raise ExitError(self.exit_code)

    syntax: Syntax

    def value(self, tree: Tree) -> Any:
        """Return the value of an expression; that of one which is not modelled is unknown."""
        try:
            return super().value(tree)
        except UNMODELLED:
            self._pass_over(tree)
            return UNKNOWABLE

    def _pass_over(self, part: Tree) -> None:
        """Do what a part of the program that is not modelled may do."""
        holds_functions = any(
            may_run(self._names.get(word)) and not self.syntax.names_function(word) for word in words_of(part)
        )
        self.pass_over(self.syntax.effects(part, holds_functions=holds_functions))

    def block(self, statements: tuple[Tree, ...]) -> None:
        """Run statements."""
        for statement in statements:
            if statement[0] == "function":
                self.declare(statement[1], self.function(statement[2], statement[3]))
        for statement in statements:
            try:
                self._statement(statement)
            except UNMODELLED:
                self._pass_over(statement)

    def _statement(self, statement: Tree) -> None:
        self.step()
        match statement:
            case ("declare", declarations):
                for pattern, value in declarations:
                    self.bind(pattern, None if value is None else self.value(value))
            case ("expression", expression):
                self.value(expression)
            case ("print", expression):
                self.print([self.value(expression)])
            case ("if", test, then, otherwise):
                self._inside(then if self.holds(test) else otherwise)
            case ("block", inner):
                self._inside(inner)
            case ("return", value):
                raise ReturnError(None if value is None else self.value(value))
            case ("continue",):
                raise NextError
            case ("break",):
                raise LastError
            case ("throw", value):
                raise FailedError("thrown", self.value(value))
            case ("async",):
                pass
            case ("class", name, members, fields):
                self.declare(name, Class(dict(members), fields))
            case ("function", *_):
                pass
            case _:
                self._repeat(statement)

    def _inside(self, statements: tuple[Tree, ...]) -> None:
        self.scoped(lambda: self.block(statements))

    def _repeat(self, statement: Tree) -> None:
        match statement:
            case ("for of", pattern, values, body):
                self._rounds(pattern, self.value(values), body)
            case ("for in", pattern, values, body):
                self._rounds(pattern, self.names_of(self._attributes(self.value(values))), body)
            case ("for", first, test, step, body):
                self.scoped(lambda: self._over_indexes(first, test, step, body))
            case ("while", test, body):
                self._counted((), test, None, body)
            case ("switch", subject, cases):
                self._switch(self.value(subject), cases)
            case ("try", body, name, handler, final):
                self.in_each_way(lambda: self._try(body, name, handler, final))
            case _:
                raise UnknownError

    def _rounds(self, pattern: Tree, values: Any, body: tuple[Tree, ...]) -> None:
        def run(item: Any) -> None:
            def inside() -> None:
                self.bind(pattern, item)
                self.block(body)

            self.scoped(inside)

        self.each(values, run)

    def _over_indexes(self, first: tuple[Tree, ...], test: Tree, step: Tree, body: tuple[Tree, ...]) -> None:
        """Run a loop over numbers; one over all indexes of a list of variables is a loop over those."""
        match first, test, step:
            case (
                [("declare", [(("name", number), ("number", 0)), *_])],
                ("binary", "<", ("name", compared), ("member", ("name", values), ("text", "length"))),
                ("step", "++", ("name", stepped), _),
            ) if isinstance(self._names.get(values), Selection | Lines) and number == compared == stepped:
                self.declare(number, Count(0))

                def run(item: Any) -> None:
                    self.item_at = (values, number, item)
                    self._inside(body)

                self.each(self._names[values], run)
                self.item_at = ("", "", None)
            case _:
                self._counted(first, test, step, body)

    def _counted(
        self, first: tuple[Tree, ...], test: Tree, step: Tree | None, body: tuple[Tree, ...]
    ) -> None:
        self.block(first)
        self.repeat(
            lambda: self.holds(test),
            lambda: self._inside(body),
            lambda: None if step is None else self.value(step),
        )

    def _switch(self, subject: Any, cases: tuple[Tree, ...]) -> None:
        start = next(
            (
                n
                for n, (test, _) in enumerate(cases)
                if test is not None and self.equal(subject, self.value(test))
            ),
            next((n for n, (test, _) in enumerate(cases) if test is None), len(cases)),
        )
        with suppress(LastError):
            self._inside(tuple(statement for _, body in cases[start:] for statement in body))

    def caught(self, failed: FailedError) -> Any:
        """Return an exception as a value."""
        if failed.kind == "thrown":
            return failed.text
        found = Caught({part: self.word(Hole(Kind.LINE)) for part in ("message", "code", "name")})
        found |= {} if failed.status is None else {"status": failed.status}
        return found

    def _try(
        self, body: tuple[Tree, ...], name: Tree | None, handler: tuple[Tree, ...], final: tuple[Tree, ...]
    ) -> None:
        def handled(failed: FailedError) -> None:
            if name is not None:
                self.bind(name, self.caught(failed))
            self.block(handler)

        try:
            self.tries += 1
            try:
                self._inside(body)
            finally:
                self.tries -= 1
        except FailedError as failed:
            self.scoped(partial(handled, failed))
        finally:
            self._inside(final)
