"""Expressions of Python under a hypothesis."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.python.library import NAMES
from agentdash.engine.detect.env_output.scripting.python.operators import Operators
from agentdash.engine.detect.env_output.scripting.python.values import (
    EXCEPTIONS,
    IGNORE_CASE,
    QUIET,
    Class,
    ExceptionValue,
    File,
    Members,
    Process,
    Quiet,
    Routine,
    decorators,
    flat,
)
from agentdash.engine.detect.env_output.scripting.values import Builtin, FailedError, Method
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Bytes, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_MISSING: Final = object()
YIELDED: Final = "%yielded"
"""The variable that holds what a generator has given so far."""


class Expressions(Operators):
    """Expressions of Python under a hypothesis."""

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give names to a value."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        self.step()
        match node:
            case ast.Constant(value=bytes() as value):
                return Bytes(value.decode(errors="replace"))
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self.value(owner), name)
            case ast.JoinedStr(values=values):
                return "".join(self._formatted(value) for value in values)
            case ast.Subscript(value=owner, slice=ast.Slice() as index):
                return self._slice(self.value(owner), index)
            case ast.Subscript(value=owner, slice=index):
                return self.item(self.value(owner), self.value(index))
            case ast.Call():
                return self._call(node)
            case ast.Lambda(args=parameters, body=body):
                return self.routine(parameters, lambda: self.value(body))
            case ast.List(elts=elements):
                return self._elements(elements)
            case ast.Tuple(elts=elements):
                return tuple(self._elements(elements))
            case ast.Set(elts=elements):
                return self.as_set(self._elements(elements))
            case ast.Dict():
                return self._dict(node)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                found = self._comprehension(node.generators, node.elt)
                return self.as_set(found) if isinstance(node, ast.SetComp) else found
            case ast.DictComp(key=key, value=value):
                pair = ast.Tuple(elts=[key, value])
                return self.mapping_of(self._comprehension(node.generators, pair))
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> Any:
        match node:
            case ast.BoolOp(op=op, values=values):
                result: Any = None
                for each in values:
                    result = self.value(each)
                    if self.truth(result) is isinstance(op, ast.Or):
                        return result
                return result
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.value(body if self.holds(test) else otherwise)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.holds(operand)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return -number
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value)
                self.bind(target, found)
                return found
            case ast.Compare(left=left, ops=ops, comparators=others):
                before = self.value(left)
                for sign, other in zip(ops, others, strict=True):
                    after = self.value(other)
                    if not self._compared(sign, before, after):
                        return False
                    before = after
                return True
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.Await(value=value):
                return self.awaited(self.value(value))
            case ast.Yield(value=value):
                self._names[YIELDED].append(None if value is None else self.value(value))
                return None
            case ast.YieldFrom(value=value):
                return self.extend(self._names[YIELDED], self.value(value))
            case _:
                raise UnknownError

    # ------------------------------------------------------------ names, attributes, items

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        if name == "__name__":
            return "__main__"
        if name == "__file__":
            return self.quiet()
        if name not in NAMES | EXCEPTIONS and name not in ("type", "vars", "logging"):
            raise UnknownError
        return Builtin(name)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a value."""
        match owner:
            case Builtin(name="os") if name in ("environ", "environb"):
                return Selection((True, True), is_bytes=name == "environb")
            case Builtin(name="os") if name in ("linesep", "pathsep"):
                return "\n" if name == "linesep" else ":"
            case Builtin(name="sys") if name == "argv":
                return self.program_arguments()
            case Builtin(name="sys") if name == "stdin":
                return File(self.input())
            case Builtin(name="re") if name in ("I", "IGNORECASE"):
                return IGNORE_CASE
            case Builtin(name=module):
                whole = f"{module}.{name}"
                return Quiet(whole) if QUIET.fullmatch(whole) else Builtin(whole)
            case Instance(of=Class(name="ArgumentParser")) if name in ("add_argument", "parse_args"):
                return Method(owner, name)
            case Instance():
                return self.of_instance(owner, name)
            case Class(members=members) if name in members and not isinstance(members[name], ast.FunctionDef):
                return members[name]
            case Class(members=members) if name in members:
                return self._method_of(owner, owner, members[name])
            case Class() if name == "__name__":
                return owner.name
            case Process(stdout=stdout) if name == "stdout":
                return stdout
            case Process(returncode=status) if name == "returncode" and status is not None:
                return status
            case Process() if name in ("returncode", "stderr"):
                return Quiet("process")
            case Quiet() | ExceptionValue():
                return Quiet(f"{owner.name}.{name}" if isinstance(owner, Quiet) else "exception")
            case _:
                return Method(owner, name)

    def of_instance(self, owner: Instance, name: str) -> Any:
        """Return a method of an object of the program, or another attribute."""
        if name in owner.attributes:
            return owner.attributes[name]
        if name in ("__class__", "__dict__"):
            return owner.of if name == "__class__" else owner.attributes
        member = owner.of.members.get(name, _MISSING)
        if member is _MISSING:
            raise UnknownError
        if not isinstance(member, ast.FunctionDef):
            return member
        found = self._method_of(owner.of, owner, member)
        is_property = decorators(member) & {"property", "cached_property"}
        return self.call(found, [], {}) if is_property else found

    def _method_of(self, made: Class, owner: Any, node: ast.FunctionDef) -> Routine:
        """Return a method with what it belongs to as its first argument."""
        routine = self.defined_by(node)
        names = decorators(node)
        if names - {"property", "cached_property", "staticmethod", "classmethod"}:
            raise UnknownError
        if "staticmethod" in names or (isinstance(owner, Class) and "classmethod" not in names):
            return routine
        first = made if "classmethod" in names else owner
        return Routine(lambda arguments, keywords: routine.run([first, *arguments], keywords))

    def defined_by(self, node: ast.FunctionDef) -> Routine:
        """Return a function of the program."""
        raise NotImplementedError

    def _slice(self, owner: Any, index: ast.Slice) -> Any:
        start, stop = (None if part is None else self.value(part) for part in (index.lower, index.upper))
        if isinstance(owner, Quiet):
            return owner
        if index.step is not None or not all(part is None or type(part) is int for part in (start, stop)):
            raise UnknownError
        if isinstance(owner, list | tuple) and not isinstance(owner, Members):
            return owner[start:stop]
        if isinstance(owner, str) and has_placeholder(owner):
            return self.cut(owner, start or 0, None if stop is None else stop - (start or 0))
        return self.plain(owner)[start:stop]

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.list_of(self.value(node.value))
            else:
                found.append(self.value(node))
        return found

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(value)
                if isinstance(inner, Selection) and len(node.values) == 1:
                    return inner
                found.update(self.mapping_of(inner))
            else:
                found[self.plain(name) if isinstance(name := self.value(key), str) else name] = self.value(
                    value
                )
        return found

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            keywords |= {keyword.arg: value} if keyword.arg else self.mapping_of(value)
        match node.args:
            case [ast.Starred(value=values)] if function == Builtin("print"):
                return self.print_all(self.value(values), keywords)
            case _:
                return self.call(function, self._elements(node.args), keywords)

    def call(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a function."""
        match function:
            case Method(owner=owner, name=name):
                return self.method(owner, name, arguments, keywords)
            case Builtin(name=name):
                return self.library(name, arguments, keywords)
            case Routine():
                return function.run(arguments, keywords)
            case Quiet():
                return self.quiet_call(function)
            case Class():
                return self._made(function, arguments, keywords)
            case _:
                raise UnknownError

    def _made(self, made: Class, arguments: list[Any], keywords: dict[str, Any]) -> Instance:
        if made.is_enum and len(arguments) == 1:
            return self._enumerated(list(made.members.values()), arguments[0])
        found = Instance(made, {})
        if "__init__" in made.members:
            self.call(self.of_instance(found, "__init__"), arguments, keywords)
        elif made.fields:
            given = dict(zip(made.fields, arguments, strict=False)) | keywords
            for name in made.fields:
                found.attributes[name] = given[name] if name in given else made.members[name]
        elif arguments or keywords:
            raise UnknownError
        if "__post_init__" in made.members:
            self.call(self.of_instance(found, "__post_init__"), [], {})
        return found

    def _enumerated(self, values: list[Instance], value: Any) -> Instance:
        """Return the member of an `Enum` with a value."""
        for each in values:
            if self.equal(each.attributes["value"], value):
                return each
        raise FailedError("ValueError")

    def routine(self, parameters: ast.arguments, run: Callable[[], Any]) -> Routine:
        """Return a function of the program with its parameters."""
        names = [argument.arg for argument in (*parameters.posonlyargs, *parameters.args)]
        only = [argument.arg for argument in parameters.kwonlyargs]
        defaults = dict(
            zip(reversed(names), reversed([self.value(d) for d in parameters.defaults]), strict=False)
        )
        defaults |= {
            name: self.value(default)
            for name, default in zip(only, parameters.kw_defaults, strict=True)
            if default is not None
        }

        place = self.place

        def called(arguments: list[Any], keywords: dict[str, Any]) -> Any:
            bound = {**defaults, **dict(zip(names, arguments, strict=False)), **keywords}
            rest = tuple(arguments[len(names) :])
            others = {name: bound.pop(name) for name in list(bound) if name not in (*names, *only)}
            if (
                {*names, *only} - bound.keys()
                or (rest and not parameters.vararg)
                or (others and not parameters.kwarg)
            ):
                raise FailedError("TypeError")
            bound |= {parameters.vararg.arg: rest} if parameters.vararg else {}
            bound |= {parameters.kwarg.arg: others} if parameters.kwarg else {}

            def inside() -> Any:
                for name, value in bound.items():
                    self.declare(name, value)
                return run()

            return self.called(place, inside)

        return Routine(called)

    # ------------------------------------------------------------ comprehensions

    def entry(self, selection: Selection | Lines, name: str) -> Any:
        """Return what a loop gives of a variable."""
        return selection.entry(name) if isinstance(selection, Selection) else super().entry(selection, name)

    def _comprehension(self, generators: list[ast.comprehension], element: ast.expr) -> Any:
        return self.scoped(lambda: self._generated(generators, element))

    def _generated(self, generators: list[ast.comprehension], element: ast.expr) -> Any:
        generator, *inner = generators
        values = self.as_list(self.value(generator.iter))
        if generator.is_async or (inner and not isinstance(values, list)):
            raise UnknownError

        def holds(item: Any) -> bool:
            self.bind(generator.target, item)
            return all(self.holds(test) for test in generator.ifs)

        def given(item: Any) -> Any:
            self.bind(generator.target, item)
            return self._generated(inner, element) if inner else self.value(element)

        if self._is_output(element):
            self.each(values, lambda item: given(item) if holds(item) else None)
            return [None]
        kept = self.kept(values, holds) if generator.ifs else values
        found = self.mapped(kept, given)
        return [each for part in found for each in part] if inner else found

    def _is_output(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")

    def collected(self, items: list[Any], kept: tuple[bool, bool]) -> Any:
        """Return a list with one item for each variable, of the items for both flags; None for no item."""
        is_bytes = any(isinstance(part, Bytes) for item in items for part in flat(item))
        plain = [self.without_bytes(tuple(item) if isinstance(item, list) else item) for item in items]
        found = super().collected(plain, kept)
        if isinstance(found, Selection):
            return msgspec.structs.replace(found, is_bytes=is_bytes)
        if is_bytes:
            raise UnknownError
        return found

    # ------------------------------------------------------------ operators

    def _formatted(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                computed = self.value(value)
                if conversion == ord("r"):
                    computed = self.repr(computed)
                elif conversion == ord("s"):
                    computed = self.text(computed)
                return self.with_spec(computed, "" if spec is None else self.value(spec))
            case _:
                raise UnknownError
