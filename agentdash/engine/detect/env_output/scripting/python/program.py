"""Python code under a hypothesis: statements of programs that print variables of their environment."""

from __future__ import annotations

import ast
from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import ANY, Part
from agentdash.engine.detect.env_output.scripting.grammars import MAX_CODE
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.python.effects import Syntax, syntax_of
from agentdash.engine.detect.env_output.scripting.python.expressions import YIELDED, Expressions
from agentdash.engine.detect.env_output.scripting.python.values import (
    MODULES,
    PACKAGES,
    Class,
    ExceptionValue,
    File,
    Numbered,
    Pending,
    Quiet,
    Routine,
    Suppressed,
    decorators,
)
from agentdash.engine.detect.env_output.scripting.values import (
    UNKNOWABLE,
    UNMODELLED,
    Builtin,
    Count,
    FailedError,
    LastError,
    NextError,
    ReturnError,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError


def run_python(code: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > MAX_CODE:
        raise UnknownError
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise UnknownError from error

    def run(machine: Python) -> None:
        machine.syntax = syntax_of(code)
        machine.block(tree.body)

    return run_all(Python, call, holes, run)


_PARENTS: Final = {
    "KeyError": "LookupError",
    "IndexError": "LookupError",
    "ModuleNotFoundError": "ImportError",
}
"""Classes of exceptions above those that are raised here."""
_SHARED: Final = "%shared"
"""The variable that holds the names of a function which belong to the code around it."""


class Python(Expressions):
    """A run of a program under one hypothesis."""

    failure = ("Traceback (most recent call last):\n", ANY)
    syntax: Syntax

    def block(self, statements: list[ast.stmt]) -> None:
        """Run statements."""
        for statement in statements:
            self.step()
            try:
                if not (self._imports(statement) or self._binds(statement)):
                    self._flows(statement)
            except UNMODELLED:
                self.pass_over(self.syntax.effects(statement))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression; that of one which is not modelled is unknown."""
        try:
            return super().value(node)
        except UNMODELLED:
            self.pass_over(self.syntax.effects(node))
            return UNKNOWABLE

    def _imports(self, statement: ast.stmt) -> bool:
        """Run an import; return False for other statements."""
        match statement:
            case ast.Import(names=names):
                for name in names:
                    self._require_module(name.name)
                    bound = name.name if name.asname else name.name.partition(".")[0]
                    self.declare(name.asname or bound, Builtin(bound))
            case ast.ImportFrom(module=str(module), names=names):
                self._require_module(module)
                for name in names:
                    self.declare(name.asname or name.name, self.attribute(Builtin(module), name.name))
            case _:
                return False
        return True

    def _require_module(self, module: str) -> None:
        package = module.partition(".")[0]
        if package not in MODULES | PACKAGES:
            raise UnknownError
        if package in PACKAGES and self.decide():
            raise FailedError("ModuleNotFoundError")

    def _binds(self, statement: ast.stmt) -> bool:
        """Run a statement that gives names to values; return False for other statements."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value)
                for target in targets:
                    self.bind(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value))
            case ast.AnnAssign(value=None):
                pass
            case ast.AugAssign(target=target, op=op, value=value):
                before, added = self.value(target), self.value(value)
                if isinstance(before, list) and isinstance(op, ast.Add):
                    self.extend(before, added)
                else:
                    self.bind(target, self.binary(op, before, added))
            case ast.ClassDef(name=name):
                self.declare(name, self._class(statement))
            case (
                ast.FunctionDef(name=name, decorator_list=[])
                | ast.AsyncFunctionDef(name=name, decorator_list=[])
            ):
                self.declare(name, self.defined_by(statement))
            case _:
                return False
        return True

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give names to a value."""
        match target:
            case ast.Name(id=name):
                if name in self._names.get(_SHARED, ()):
                    self._names[name] = value
                else:
                    self.declare(name, value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._bind_all(elements, value)
            case ast.Subscript(value=owner, slice=index):
                mapping, key = self.value(owner), self.value(index)
                if not isinstance(mapping, dict):
                    raise UnknownError
                mapping[self.plain(key) if isinstance(key, str) else key] = value
            case ast.Attribute(value=owner, attr=name) if isinstance(found := self.value(owner), Instance):
                found.attributes[name] = value
            case _:
                raise UnknownError

    def _bind_all(self, targets: list[ast.expr], value: Any) -> None:
        values = self.list_of(value)
        if any(isinstance(target, ast.Starred) for target in targets):
            raise UnknownError
        if len(values) != len(targets):
            raise FailedError("ValueError")
        for target, each in zip(targets, values, strict=True):
            self.bind(target, each)

    def _class(self, statement: ast.ClassDef) -> Class:
        known = {"dataclass"} if statement.decorator_list else set()
        bases = {ast.unparse(base).rpartition(".")[2] for base in statement.bases}
        if decorators(statement) != known or statement.keywords or bases - {"object", "NamedTuple", "Enum"}:
            raise UnknownError
        members: dict[str, Any] = {}
        fields: list[str] = []
        for each in statement.body:
            match each:
                case ast.FunctionDef(name=name):
                    members[name] = each
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    fields.append(name)
                    members |= {name: self.value(value)} if value is not None else {}
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    members[name] = self.value(value)
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise UnknownError
        if "Enum" in bases:
            members = {
                name: Instance(Class(statement.name, {}), {"name": name, "value": value})
                for name, value in members.items()
            }
        is_tuple = bool(known or bases & {"NamedTuple"})
        return Class(statement.name, members, tuple(fields) if is_tuple else (), "Enum" in bases)

    def defined_by(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Routine:
        """Return a function of the program; what a generator gives is a list."""
        is_generator = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))
        is_async = isinstance(node, ast.AsyncFunctionDef)

        def run() -> Any:
            written = len(self.out) + len(self.err)
            self.declare(_SHARED, ())
            self.declare(YIELDED, [])
            value: Any = None
            try:
                self.block(node.body)
            except ReturnError as ended:
                value = ended.value
            if is_generator and (is_async or len(self.out) + len(self.err) != written):
                raise UnknownError  # it writes where its values are used
            return self._names[YIELDED] if is_generator else value

        found = self.routine(node.args, run)
        if any(isinstance(each, ast.Try | ast.With) for each in ast.walk(node)):
            inner = found.run
            found = Routine(lambda arguments, keywords: self.in_each_way(lambda: inner(arguments, keywords)))
        if not is_async:
            return found
        return Routine(lambda arguments, keywords: Pending(lambda: found.run(arguments, keywords)))

    # ------------------------------------------------------------ what runs next

    def _flows(self, statement: ast.stmt) -> None:
        """Run a statement that decides what runs next, or an expression."""
        match statement:
            case ast.Pass():
                pass
            case ast.Expr(value=value):
                self.value(value)
            case ast.If(test=test, body=body, orelse=otherwise):
                self.block(body if self.holds(test) else otherwise)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.declare(_SHARED, (*self._names.get(_SHARED, ()), *names))
            case ast.Assert(test=test):
                if not self.holds(test):
                    raise FailedError("AssertionError")
            case ast.Delete(targets=[ast.Name(id=name)]):
                self.declare(name, UNKNOWABLE)
            case ast.For(target=target, iter=values, body=body, orelse=[]):
                self._for(target, self.value(values), body)
            case ast.While(test=test, body=body, orelse=[]):
                self.repeat(lambda: self.holds(test), lambda: self.block(body))
            case ast.Match(subject=subject, cases=cases):
                self._match(self.value(subject), cases)
            case ast.Continue():
                raise NextError
            case ast.Break():
                raise LastError
            case ast.Return(value=value):
                raise ReturnError(None if value is None else self.value(value))
            case ast.Raise(exc=ast.Call(func=ast.Name(id="SystemExit"), args=arguments)):
                self.exit([self.value(each) for each in arguments])
            case ast.Raise(exc=ast.Name(id="SystemExit")):
                self.exit([])
            case ast.Raise(exc=ast.Call(func=ast.Name(id=kind), args=[text])):
                raise FailedError(kind, self.value(text))
            case ast.Raise(exc=ast.Call(func=ast.Name(id=kind), args=[]) | ast.Name(id=kind)):
                raise FailedError(kind)
            case ast.Try():
                self.in_each_way(lambda: self._try(statement))
            case ast.With(items=items) | ast.AsyncWith(items=items):
                self._with(items, statement.body)
            case _:
                raise UnknownError

    def _for(self, target: ast.expr, values: Any, body: list[ast.stmt]) -> None:
        def run(item: Any) -> None:
            self.bind(target, item)
            self.block(body)

        if isinstance(values, File):
            values = self.method(values, "readlines", [], {})
        if isinstance(values, Numbered):
            self.each(values.values, lambda item: run((Count(values.start), item)))
        else:
            self.each(self.as_list(values), run)

    def _with(self, items: list[ast.withitem], body: list[ast.stmt]) -> None:
        first = self.value(items[0].context_expr) if len(items) == 1 else None
        if isinstance(first, Suppressed):
            try:
                self._guarded(body)
            except FailedError as failed:
                if not self._is_one_of(failed, {*first.kinds}):
                    raise
            return
        for item in items:
            opened = first if first is not None else self.value(item.context_expr)
            if not isinstance(opened, File | Quiet):
                raise UnknownError
            if item.optional_vars is not None:
                self.bind(item.optional_vars, opened)
        self.block(body)

    def _match(self, subject: Any, cases: list[ast.match_case]) -> None:
        for case in cases:
            if self._fits(subject, case.pattern) and (case.guard is None or self.holds(case.guard)):
                self.block(case.body)
                return

    def _fits(self, subject: Any, pattern: ast.pattern) -> bool:
        match pattern:
            case ast.MatchSingleton(value=value):
                return not self.defined(subject) if value is None else subject is value
            case ast.MatchValue(value=value):
                return self.equal(subject, self.value(value))
            case ast.MatchOr(patterns=patterns):
                return any(self._fits(subject, each) for each in patterns)
            case ast.MatchAs(pattern=None, name=name):
                if name is not None:
                    self.declare(name, subject)
                return True
            case _:
                raise UnknownError

    def _try(self, statement: ast.Try) -> None:
        try:
            self._guarded(statement.body)
        except FailedError as failed:
            handler = self._handler(statement.handlers, failed)
            if handler is None:
                self.block(statement.finalbody)
                raise
            if handler.name:
                self.declare(handler.name, ExceptionValue(failed.kind, failed.text))
            self.block(handler.body)
        else:
            self.block(statement.orelse)
        self.block(statement.finalbody)

    def _guarded(self, body: list[ast.stmt]) -> None:
        """Run a block of which exceptions are handled."""
        self.tries += 1
        try:
            self.block(body)
        finally:
            self.tries -= 1

    def _handler(self, handlers: list[ast.ExceptHandler], failed: FailedError) -> ast.ExceptHandler | None:
        """Return the handler of an exception; where it is one of the system, the last may not be for it."""
        if failed.kind != "?" or self.tries or not handlers:
            return next((each for each in handlers if self._catches(each, failed)), None)
        self.may_end()
        *others, last = handlers
        return next((each for each in others if self._catches(each, failed)), last)

    def _catches(self, handler: ast.ExceptHandler, failed: FailedError) -> bool:
        names = {"Exception"}
        if handler.type is not None:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            names = {ast.unparse(each).rpartition(".")[2] for each in types}
        return self._is_one_of(failed, names)

    def _is_one_of(self, failed: FailedError, names: set[str]) -> bool:
        if names & {"Exception", "BaseException"}:
            return True
        if failed.kind == "?":  # of the system
            return self.decide()
        return failed.kind in names or _PARENTS.get(failed.kind) in names
