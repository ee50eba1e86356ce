"""Python code under a hypothesis: programs that print variables of their environment, nothing more."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any, Final

from agentdash.engine.detect.env_output.hypotheses import Decisions, run_each
from agentdash.engine.detect.env_output.patterns import ANY, Part, joined
from agentdash.engine.detect.env_output.python_library import Library
from agentdash.engine.detect.env_output.python_values import (
    MAX_CODE,
    MODULES,
    ContinueError,
    ExitError,
    FailedError,
    File,
    Function,
    Module,
    Namespace,
    Quiet,
    ReturnError,
)
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_RUNS: Final = 16
"""Runs of a program that differ in conditions which are not known."""
_MAX_STATEMENTS: Final = 500
"""Statements that are run; longer programs are not read."""


def run_python(code: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > MAX_CODE:
        raise UnknownError
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise UnknownError from error

    def run(decisions: Decisions) -> tuple[list[Result], Decisions]:
        program = _Program(call, holes, decisions)
        return program.results(tree.body), program.decided

    return run_each(run, _MAX_RUNS)


class _Program(Library):
    """A run of a program under one hypothesis."""

    def results(self, statements: list[ast.stmt]) -> list[Result]:
        """Return the results of a run: its own, and those where a function of the system failed."""
        try:
            self.block(statements)
        except FailedError:
            return [*self._failures, self._failure()]
        except (UnknownError, RecursionError):  # what came before is known
            return [Result(out=joined((*self.out, ANY)), err=(ANY,), status=None)]
        except ExitError as ended:
            return [*self._failures, Result(out=joined(self.out), err=self.error(), status=ended.status)]
        return [*self._failures, Result(out=joined(self.out), err=self.error())]

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        self._statements += 1
        if self._statements > _MAX_STATEMENTS:
            raise UnknownError
        if not (self._imports(statement) or self._binds(statement)):
            self._flows(statement)

    def _imports(self, statement: ast.stmt) -> bool:
        """Run an import; return False for other statements."""
        match statement:
            case ast.Import(names=names):
                for name in names:
                    self._require_known(name.name)
                    bound = name.name if name.asname else name.name.partition(".")[0]
                    self._names[name.asname or bound] = Module(bound)
            case ast.ImportFrom(module=str(module), names=names):
                self._require_known(module)
                for name in names:
                    self._names[name.asname or name.name] = self._attribute(Module(module), name.name)
            case _:
                return False
        return True

    def _require_known(self, module: str) -> None:
        if module.partition(".")[0] not in MODULES:
            raise UnknownError

    def _binds(self, statement: ast.stmt) -> bool:
        """Run a statement that gives names to values; return False for other statements."""
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, self._value(value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._names[name] = self._value(value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                self._names[name] = self._binary(op, self._value(ast.Name(name)), self._value(value))
            case ast.ClassDef(name=name, bases=[], keywords=[], decorator_list=[]):
                self._names[name] = self._namespace(statement)
            case ast.FunctionDef(name=name, decorator_list=[]):
                self._names[name] = Function(statement)
            case _:
                return False
        return True

    def _flows(self, statement: ast.stmt) -> None:
        """Run a statement that decides what runs next, or an expression."""
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._value(value)
            case ast.If(test=test, body=body, orelse=otherwise):
                self.block(body if self._truth(test) else otherwise)
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                self._loop(target, self._value(iterable), lambda: self.block(body))
            case ast.While(test=test, body=body, orelse=[]):
                self._while(test, body)
            case ast.Match(subject=subject, cases=cases):
                self._match(self._value(subject), cases)
            case ast.Continue():
                raise ContinueError
            case ast.Return(value=value):
                raise ReturnError(None if value is None else self._value(value))
            case ast.Try(handlers=handlers, orelse=otherwise, finalbody=[]):
                self._try(statement.body, handlers, otherwise)
            case ast.With(items=[ast.withitem(context_expr=opened, optional_vars=ast.Name(id=name))]):
                self._names[name] = self._value(opened)
                if not isinstance(self._names[name], File):
                    raise UnknownError
                self.block(statement.body)
            case _:
                raise UnknownError

    def _match(self, subject: Any, cases: list[ast.match_case]) -> None:
        """Run `match` over None and names."""
        for case in cases:
            match case.pattern:
                case ast.MatchSingleton(value=None) if case.guard is None:
                    if subject is None:
                        return self.block(case.body)
                case ast.MatchAs(pattern=None, name=name) if case.guard is None:
                    if name is not None:
                        self._names[name] = subject
                    return self.block(case.body)
                case _:
                    raise UnknownError
        return None

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        while self._truth(test):
            self._statements += 1
            if self._statements > _MAX_STATEMENTS:
                raise UnknownError
            with suppress(ContinueError):
                self.block(body)

    def _namespace(self, statement: ast.ClassDef) -> Namespace:
        """Return the attributes of a class that has no methods."""
        outer = self._names
        self._names = dict(outer)
        try:
            self.block(statement.body)
            found = {n: v for n, v in self._names.items() if n not in outer or v is not outer[n]}
        finally:
            self._names = outer
        return Namespace(found)

    def _try(
        self, body: list[ast.stmt], handlers: list[ast.ExceptHandler], otherwise: list[ast.stmt]
    ) -> None:
        self._tries += 1
        try:
            self.block(body)
        except FailedError as failed:
            self._tries -= 1
            for handler in handlers:
                if self._catches(handler, failed):
                    if handler.name:
                        self._names[handler.name] = failed.text if failed.error != "?" else Quiet()
                    self.block(handler.body)
                    return
            raise
        self._tries -= 1
        self.block(otherwise)

    def _catches(self, handler: ast.ExceptHandler, failed: FailedError) -> bool:
        names = {"Exception"}
        if handler.type is not None:
            names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
        if failed.error == "?":  # an error of the system
            return bool(names & {"Exception", "BaseException"}) or self._decide()
        return bool(failed.error) and bool(
            names & {"Exception", "BaseException", "LookupError", failed.error}
        )

    def _called(self, function: ast.FunctionDef, arguments: list[Any]) -> Any:
        """Run a function of the program."""
        names = function.args
        if names.vararg or names.kwarg or names.kwonlyargs or names.posonlyargs:
            raise UnknownError
        missing = len(names.args) - len(arguments)
        if not 0 <= missing <= len(names.defaults):
            raise UnknownError
        defaults = (
            [self._value(d) for d in names.defaults[len(names.defaults) - missing :]] if missing else []
        )
        outer = self._names
        bound = zip(names.args, [*arguments, *defaults], strict=True)
        self._names = {**outer, **{argument.arg: value for argument, value in bound}}
        try:
            self.block(function.body)
        except ReturnError as ended:
            return ended.value
        finally:
            self._names = outer
        return None

    def _bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self._names[name] = value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = list(value) if isinstance(value, tuple | list) else None
                if values is None or len(values) != len(elements):
                    raise UnknownError
                for element, part in zip(elements, values, strict=True):
                    self._bind(element, part)
            case ast.Subscript(value=owner, slice=index) if isinstance(mapping := self._value(owner), dict):
                key = self._value(index)
                self._require_plain(key)
                mapping[key] = value
            case _:
                raise UnknownError
