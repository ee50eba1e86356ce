"""Python code under a hypothesis: programs that print variables of their environment, nothing more."""

from __future__ import annotations

import ast
import json
import operator
import re
import shlex
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from string import Formatter
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAGS, Dump, Presence, Record, Shown, Style
from agentdash.engine.detect.env_output.expressions import UnknownError
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part, Parts, Trimmed, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled, with_placeholders
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, MARK, Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import STDERR, STDOUT, Call, Result, all_parts, only, parts_of
from agentdash.engine.detect.env_output.world import shown

_MAX_CODE: Final = 4_000
_CONVERSION: Final = re.compile(r"%-?\d{0,2}[sdr%]|%.?")
_IGNORE_CASE: Final = "IGNORECASE"
_MODULES: Final = sys.stdlib_module_names - {"this", "antigravity"}
"""Modules whose import prints nothing; most of what they hold is unknown."""
_QUIET: Final = re.compile(
    r"platform\.\w+|sys\.(?:version|version_info|platform|executable|byteorder)|getpass\.getuser"
    r"|os\.(?:name|sep|getuid|geteuid|getgid|getegid|getpid|getppid|getcwd|uname|cpu_count|getlogin|access|stat)"
    r"|os\.path\.(?:exists|isfile|isdir|islink|getsize)|socket\.\w+|time\.(?:time|strftime|ctime|sleep)"
    r"|datetime\.(?:datetime|date)\.(?:now|utcnow|today)|tempfile\.gettempdir|shutil\.which|pathlib\.Path\.(?:cwd|home)"
)
"""Values, and functions that give values, in which no flag stands."""
_FOREIGN_METHODS: Final = frozenset(
    ("recv", "recvfrom", "recv_into", "read", "readline", "readlines", "makefile")
)
"""Methods of quiet values that give text from elsewhere."""
_MAX_RUNS: Final = 16
"""Runs of a program that differ in conditions which are not known."""
_MAX_STATEMENTS: Final = 500
"""Statements that are run; longer programs are not read."""


class _FailedError(Exception):
    """The program ends with a traceback."""

    def __init__(self, error: str = "", text: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.text = text


class _ReturnError(Exception):
    """A function ends."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _ContinueError(Exception):
    """A round of a loop ends."""


class _ExitError(Exception):
    """The program ends with `sys.exit`."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


def run_python(code: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > _MAX_CODE:
        raise UnknownError
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise UnknownError from error
    results: list[Result] = []
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        if len(results) > _MAX_RUNS:
            raise UnknownError
        decisions = pending.pop()
        program = _Program(call, holes, decisions)
        results += program.results(tree.body)
        decided = program.decided
        pending += [(*decided[:number], True) for number in range(len(decisions), len(decided))]
    return list(dict.fromkeys(results))


class _Program:
    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        self._environment = call.environment
        self._run_shell = call.run_shell
        self._holes = holes
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self.out: list[Part] = []
        self._err: list[Part] = []
        self._decisions = decisions
        self.decided: tuple[bool, ...] = ()
        """The truth of the conditions that are not known, as they came up in this run."""
        self._failures: list[Result] = []
        self._json: dict[str, Part] = {}
        """Words for values in JSON that are not known."""
        self._statements = 0
        self._tries = 0

    def results(self, statements: list[ast.stmt]) -> list[Result]:
        """Return the results of a run: its own, and those where a function of the system failed."""
        try:
            self.block(statements)
        except _FailedError:
            return [*self._failures, self._failure()]
        except (UnknownError, RecursionError):  # what came before is known
            return [Result(out=joined((*self.out, ANY)), err=(ANY,), status=None)]
        except _ExitError as ended:
            return [*self._failures, Result(out=joined(self.out), err=self.error(), status=ended.status)]
        return [*self._failures, Result(out=joined(self.out), err=self.error())]

    def _failure(self) -> Result:
        return Result(out=joined(self.out), err=(*self.error(), "Traceback", ANY), status=1)

    def _decide(self) -> bool:
        """Return the truth of a condition that is not known, as this run assumes it."""
        number = len(self.decided)
        truth = number < len(self._decisions) and self._decisions[number]
        self.decided = (*self.decided, truth)
        return truth

    def error(self) -> Parts:
        return joined(self._err)

    # ------------------------------------------------------------ statements

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
                    self._names[name.asname or bound] = _Module(bound)
            case ast.ImportFrom(module=str(module), names=names):
                self._require_known(module)
                for name in names:
                    self._names[name.asname or name.name] = self._attribute(_Module(module), name.name)
            case _:
                return False
        return True

    def _require_known(self, module: str) -> None:
        if module.partition(".")[0] not in _MODULES:
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
                self._names[name] = _Function(statement)
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
            case ast.Continue():
                raise _ContinueError
            case ast.Return(value=value):
                raise _ReturnError(None if value is None else self._value(value))
            case ast.Try(handlers=handlers, orelse=otherwise, finalbody=[]):
                self._try(statement.body, handlers, otherwise)
            case ast.With(items=[ast.withitem(context_expr=opened, optional_vars=ast.Name(id=name))]):
                self._names[name] = self._value(opened)
                if not isinstance(self._names[name], _File):
                    raise UnknownError
                self.block(statement.body)
            case _:
                raise UnknownError

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        while self._truth(test):
            self._statements += 1
            if self._statements > _MAX_STATEMENTS:
                raise UnknownError
            with suppress(_ContinueError):
                self.block(body)

    def _namespace(self, statement: ast.ClassDef) -> _Namespace:
        """Return the attributes of a class that has no methods."""
        outer = self._names
        self._names = dict(outer)
        try:
            self.block(statement.body)
            found = {n: v for n, v in self._names.items() if n not in outer or v is not outer[n]}
        finally:
            self._names = outer
        return _Namespace(found)

    def _try(
        self, body: list[ast.stmt], handlers: list[ast.ExceptHandler], otherwise: list[ast.stmt]
    ) -> None:
        self._tries += 1
        try:
            self.block(body)
        except _FailedError as failed:
            self._tries -= 1
            for handler in handlers:
                if self._catches(handler, failed):
                    if handler.name:
                        self._names[handler.name] = failed.text if failed.error != "?" else _Quiet()
                    self.block(handler.body)
                    return
            raise
        self._tries -= 1
        self.block(otherwise)

    def _catches(self, handler: ast.ExceptHandler, failed: _FailedError) -> bool:
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
        except _ReturnError as ended:
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

    def _loop(self, target: ast.expr, values: Any, body: Callable[[], None]) -> None:
        if isinstance(values, Selection):
            self.out += self._over_environment(target, values, body)
            return
        if not isinstance(values, list | tuple) or len(values) > 50:
            raise UnknownError
        for value in values:
            self._bind(target, value)
            with suppress(_ContinueError):
                body()

    def _over_environment(self, target: ast.expr, selection: Selection, body: Callable[[], None]) -> Parts:
        """Return what a loop over the environment prints: a dump in its own style."""
        styles: list[Style] = []
        kept: list[bool] = []
        for number, name in enumerate(FLAGS):
            before, after = self._printed(target, selection, name, body)
            if not before and not after:
                kept.append(False)
                continue
            if after.count("\n") != 1 or not after.endswith("\n") or "\n" in before or name not in before:
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1]))
            kept.append(selection.kept[number])
        style = self._common_style(styles)
        return (
            Dump(shown=self._shown((kept[0], kept[1])), style=style, partial=len(styles) < 2, some=False),
        )

    def _common_style(self, styles: list[Style]) -> Style:
        if (style := common_style(styles)) is None:
            raise UnknownError
        return style

    def _printed(
        self, target: ast.expr, selection: Selection, name: str, body: Callable[[], None]
    ) -> tuple[str, str]:
        outer, self.out = self.out, []
        self._bind(target, selection.entry(name))
        environment = self._environment
        self._environment = {**environment, name: LOOP_VALUE}
        try:
            with suppress(_ContinueError):
                body()
            text = "".join(part if isinstance(part, str) else "\n\n" for part in self.out)
        finally:  # what was printed before stays known where the body is not
            self._environment = environment
            self.out = outer
        if not text:
            return "", ""
        if text.count(MARK) != 1:
            raise UnknownError
        before, _, after = text.partition(MARK)
        return before, after

    def _shown(self, kept: tuple[bool, bool]) -> tuple[Shown, Shown]:
        absent = Shown(Presence.ABSENT)
        network, sandbox = (
            shown(self._environment[name]) if keep else absent for name, keep in zip(FLAGS, kept, strict=True)
        )
        return network, sandbox

    # ------------------------------------------------------------ expressions

    def _truth(self, node: ast.expr) -> bool:
        value = self._value(node)
        if isinstance(value, Selection):
            shown = [
                n
                for n, keep in zip(FLAGS, value.kept, strict=True)
                if keep and self._environment[n] is not None
            ]
            return True if shown else self._decide()  # other variables may be in it
        if isinstance(value, _Foreign | _Quiet | Lines):
            return self._decide()
        if isinstance(value, Selection | _Module | _Method | _Function):
            raise UnknownError
        return bool(value)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name in self._names:
                    return self._names[name]
                if name in _FUNCTIONS:
                    return _Module(name)
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
                return _Lambda(node)
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
            case _Module(name="os") if name == "environ":
                return Selection((True, True))
            case _Namespace(attributes=attributes) if name in attributes:
                return attributes[name]
            case _Module(name="os") if name == "environb":
                return Selection((True, True), is_bytes=True)
            case _Module(name="re") if name in ("I", "IGNORECASE"):
                return _IGNORE_CASE
            case _File() | _Pattern():
                return _Method(value, name)
            case _Module(name=module) if _QUIET.fullmatch(f"{module}.{name}"):
                return _Quiet()
            case _Module(name=module):
                return _Module(f"{module}.{name}")
            case _Quiet() if name not in _FOREIGN_METHODS:
                return value
            case _Process(stdout=stdout) if name == "stdout":
                return stdout
            case _Process() if name == "returncode":
                return _Quiet()
            case Selection() | _Captured() | Bytes() | str() | bytes() | dict() | list():
                return _Method(value, name)
            case _:
                raise UnknownError

    def _variable(self, name: Any, default: Any) -> Any:
        """Return a variable of the environment."""
        if not isinstance(name, str) or has_placeholder(name):
            raise UnknownError
        if name not in FLAGS:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return _Foreign(mark)
        value = self._environment[name]
        if value is None:
            return default
        if value == LOOP_VALUE:
            return MARK
        text = with_placeholders(value, self._holes)
        if text is None:
            raise UnknownError
        return text

    def _item(self, value: Any, index: Any) -> Any:
        if isinstance(value, Selection) and not value.items:
            found = self._variable(index, _MISSING)
            if found is _MISSING or (index in FLAGS and not value.kept[FLAGS.index(index)]):
                raise _FailedError("KeyError", repr(index))
            return found
        if isinstance(value, _Quiet):
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
            if isinstance(result, _Foreign | Selection | Lines | _Quiet):
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
        if isinstance(left, _Quiet | _Foreign) or isinstance(right, _Quiet | _Foreign):
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
            case ast.In() | ast.NotIn() if _is_in_front(left, right):
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

    def _require_plain(self, *values: Any) -> None:
        if any(isinstance(v, _OPAQUE) for v in values):
            raise UnknownError

    def _binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Mod) and isinstance(left, str):
            arguments = right if isinstance(right, tuple) else (right,)
            return self._percent(left, [self._text_or_number(a) for a in arguments])
        if isinstance(op, ast.Add) and isinstance(left, str | _Foreign) and isinstance(right, str | _Foreign):
            return str(left) + str(right)
        if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
            raise _FailedError  # str + None
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
        specs = [spec for spec in _CONVERSION.findall(template) if spec != "%%"]
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

    def _text(self, value: Any) -> str:
        if isinstance(value, _Quiet):
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.QUIET_TEXT)
            return mark
        if isinstance(value, str | _Foreign | Bytes):
            return str(value)
        return self._repr(value)

    def _repr(self, value: Any) -> str:
        if isinstance(value, _Quiet):
            return self._text(value)
        match value:
            case _Foreign() | Bytes():
                return str(value)  # in quotes, or None
            case dict():
                return "{" + ", ".join(f"{self._repr(k)}: {self._repr(v)}" for k, v in value.items()) + "}"
            case list():
                return "[" + ", ".join(self._repr(v) for v in value) + "]"
            case tuple():
                return "(" + ", ".join(self._repr(v) for v in value) + ("," if len(value) == 1 else "") + ")"
            case _ if isinstance(value, _OPAQUE):
                raise UnknownError
            case _:
                return repr(value)

    def _comprehension(self, node: ast.DictComp | ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise UnknownError
        generator = node.generators[0]
        values = self._value(generator.iter)
        if isinstance(values, Selection) and isinstance(node, ast.ListComp) and _is_print(node.elt):
            element = node.elt
            self.out += self._over_environment(
                generator.target, values, lambda: self._print_where(generator.ifs, element)
            )
            return _Module("list of None")
        if isinstance(values, Selection):
            printed = len(self.out)
            try:
                return self._selected(node, generator, values)
            finally:
                del self.out[printed:]
        if not isinstance(values, list | tuple) or len(values) > 50 or isinstance(node, ast.SetComp):
            raise UnknownError
        found: list[Any] = []
        for value in values:
            self._bind(generator.target, value)
            if all(self._truth(test) for test in generator.ifs):
                found.append(
                    (self._value(node.key), self._value(node.value))
                    if isinstance(node, ast.DictComp)
                    else self._value(node.elt)
                )
        return dict(found) if isinstance(node, ast.DictComp) else found

    def _print_where(self, tests: list[ast.expr], element: ast.expr) -> None:
        if all(self._truth(test) for test in tests):
            self._value(element)

    def _selected(
        self,
        node: ast.DictComp | ast.ListComp | ast.GeneratorExp | ast.SetComp,
        generator: ast.comprehension,
        values: Selection,
    ) -> Any:
        """Return a part of the environment, or a text for each variable in it."""
        kept: list[bool] = []
        styles: list[Style] = []
        pairs = 0
        is_mapping = isinstance(node, ast.DictComp)
        for number, name in enumerate(FLAGS):
            self._bind(generator.target, values.entry(name))
            environment = self._environment
            self._environment = {**environment, name: LOOP_VALUE}
            keep = all(self._truth(test) for test in generator.ifs)
            kept.append(keep and values.kept[number])
            if isinstance(node, ast.SetComp):
                raise UnknownError
            text: Any = None
            if isinstance(node, ast.DictComp):
                is_mapping = self._value(node.key) == name and self._value(node.value) == MARK and is_mapping
            else:
                text = self._value(node.elt)
                pair = values.form is Form.ENTRIES and list(
                    text if isinstance(text, list | tuple) else ()
                ) in (
                    [name, MARK],
                    [Bytes(name), Bytes(MARK)],
                )
                if pair or (isinstance(text, tuple) and text == (name, MARK)):
                    pairs += 1
                    text = name
            self._environment = environment
            if isinstance(node, ast.DictComp):
                continue
            if text == name:
                continue
            if isinstance(text, Bytes) and values.form is Form.ENTRIES and text.text == f"{name}={MARK}":
                text = text.text
            if not isinstance(text, str) or text.count(MARK) != 1:
                raise UnknownError
            before, _, after = text.partition(MARK)
            if name not in before or "\n" in text:
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after))
        if isinstance(node, ast.DictComp):
            if not is_mapping:
                raise UnknownError
            return Selection((kept[0], kept[1]))
        if not styles:
            form = Form.ITEMS if pairs else Form.NAMES
            return Selection((kept[0], kept[1]), form, is_bytes=values.is_bytes)
        if isinstance(node.elt, ast.Name) and values.form is Form.ENTRIES:
            return Selection((kept[0], kept[1]), Form.ENTRIES, is_bytes=values.is_bytes)
        return Lines(self._common_style(styles), (kept[0], kept[1]))

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        if any(keyword.arg is None for keyword in node.keywords):
            raise UnknownError
        starred = [a for a in node.args if isinstance(a, ast.Starred)]
        arguments = [self._value(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        keywords = {k.arg or "": self._value(k.value) for k in node.keywords}
        if starred:
            if len(arguments) != 1 or not isinstance(function, _Module) or function.name != "print":
                raise UnknownError
            if isinstance(arguments[0], Lines) and keywords == {"sep": "\n"}:
                arguments = [msgspec.structs.replace(arguments[0], is_text=True)]
                keywords = {}
            elif isinstance(arguments[0], list | tuple):
                arguments = list(arguments[0])
            else:
                raise UnknownError
        if isinstance(function, _Method):
            return self._method(function.owner, function.name, arguments, keywords)
        if isinstance(function, _Module) and function.name in _FUNCTIONS:
            return _FUNCTIONS[function.name](self, arguments, keywords)
        if isinstance(function, _Function) and not keywords:
            return self._called(function.node, arguments)
        if isinstance(function, _Quiet):
            if self._tries:
                if self._decide():
                    raise _FailedError("?")
            else:
                self._failures.append(self._failure())
            return function
        raise UnknownError

    def _method(self, owner: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(owner, Selection):
            return self._mapping_method(owner, name, arguments, keywords)
        if isinstance(owner, dict) and name != "update":
            if name == "items" and not arguments:
                return list(owner.items())
            if name in ("keys", "values") and not arguments:
                return list(owner.keys() if name == "keys" else owner.values())
            if name == "get" and arguments:
                return owner.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
            raise UnknownError
        if isinstance(owner, list) and name == "append" and len(arguments) == 1:
            owner.append(arguments[0])
            return None
        if isinstance(owner, str) and name == "join" and len(arguments) == 1 and not keywords:
            if isinstance(arguments[0], Lines) and owner == "\n":
                return msgspec.structs.replace(arguments[0], is_text=True)
            listed = arguments[0]
            if isinstance(listed, Selection) and listed.form is Form.ENTRIES and owner == "\n":
                if listed.is_bytes:
                    raise UnknownError
                return Lines(Style(), arguments[0].kept, is_text=True)
            self._require_plain(arguments[0])
            return owner.join(self._joinable(value) for value in arguments[0])
        if isinstance(owner, str) and name == "format" and "!" not in owner:
            texts = [self._text(a) for a in arguments]
            if ":" in owner and any(has_placeholder(text) for text in texts):
                layout = [spec for _, field, spec, _ in Formatter().parse(owner) if field is not None]
                if len(layout) != len(texts) or any(
                    spec and has_placeholder(text) for spec, text in zip(layout, texts, strict=True)
                ):
                    raise UnknownError
            try:
                return owner.format(*texts, **{k: self._text(v) for k, v in keywords.items()})
            except (IndexError, KeyError, ValueError, AttributeError) as error:
                raise UnknownError from error
        if isinstance(owner, Bytes):
            found = self._method(owner.text, name, arguments, keywords)
            return found if name == "decode" else _as_bytes(found)
        if isinstance(owner, str) and has_placeholder(owner) and not keywords:
            return self._entry_method(owner, name, arguments)
        if isinstance(owner, _File | _Captured | _Pattern):
            return self._method_of_opaque(owner, name, arguments, keywords)
        if isinstance(owner, bytes) and name == "decode":
            return owner.decode(errors="replace")
        if isinstance(owner, dict) and name == "update" and arguments and isinstance(arguments[0], dict):
            owner.update(arguments[0])
            return None
        if isinstance(owner, str) and name in _TEXT_METHODS and not has_placeholder(owner):
            self._require_plain(*arguments)
            if any(isinstance(a, int) and abs(a) > _MAX_CODE for a in arguments):
                raise UnknownError
            try:
                return getattr(owner, name)(*arguments)
            except (TypeError, ValueError) as error:
                raise UnknownError from error
        raise UnknownError

    def _entry_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        """Return what a method gives of a text of which only the beginning is known."""
        known = owner.partition("Zhole")[0]
        texts = [a.decode(errors="replace") if isinstance(a, bytes) else a for a in arguments]
        match name, texts:
            case "decode" | "strip" | "rstrip" | "lstrip", _ if name == "decode" or not texts:
                return owner
            case "startswith", [str() | tuple() as starts]:
                starts = (starts,) if isinstance(starts, str) else starts
                starts = tuple(s.decode() if isinstance(s, bytes) else s for s in starts)
                if all(isinstance(s, str) and len(s) <= len(known) for s in starts):
                    return owner.startswith(starts)
            case "split", ["=", 1]:
                if "=" in known:
                    return owner.split("=", 1)
            case "partition", ["="]:
                if "=" in known:
                    return owner.partition("=")
            case "split", ["="]:  # no flag's value has an equals sign
                if "=" in known:
                    return owner.split("=", 1)
            case _:
                pass
        raise UnknownError

    def _method_of_opaque(
        self, owner: _File | _Captured | _Pattern, name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        texts = [a.decode(errors="replace") if isinstance(a, bytes) else a for a in arguments]
        match owner, name, texts:
            case _File(), "read" | "read_text" | "read_bytes", _:
                return _Captured((self._whole(nul=True),), is_bytes=owner.is_bytes or name == "read_bytes")
            case _File(), "close", []:
                return None
            case _Pattern(pattern=pattern), "search" | "match" | "fullmatch", [str() as text]:
                return self._searched(pattern, name, text)
            case _Captured(), "decode", _:
                return msgspec.structs.replace(owner, is_bytes=False)
            case _Captured(), "read", _:
                return owner
            case _Captured(parts=(Dump(nul=True),)), "strip" | "rstrip", ["\0"] | []:
                return owner
            case _Captured(parts=(Dump(nul=True) as dump,)), "replace", ["\0", "\n"] if not keywords:
                return msgspec.structs.replace(owner, parts=(msgspec.structs.replace(dump, nul=False),))
            case _Captured(parts=(Dump(nul=True),)), "split", ["\0"]:
                return Selection((True, True), Form.ENTRIES, is_bytes=owner.is_bytes)
            case _Captured(parts=parts), "rstrip", []:
                return _Captured((Trimmed(parts),))
            case _Captured(parts=parts), "strip", []:
                return _Captured(_stripped(parts))
            case _Captured(parts=parts), "splitlines" | "split", [] | ["\n"] if name == "splitlines" or texts:
                return msgspec.structs.replace(self._entries(parts), is_bytes=owner.is_bytes)
            case _:
                raise UnknownError

    def _entries(self, parts: Parts) -> Selection:
        """Return the lines of a dump as texts `NAME=value`."""
        match parts:
            case (Dump(style=style, nul=False, separator="") as dump,) | (
                Trimmed(parts=(Dump(style=style, nul=False, separator="") as dump,)),
            ) if style == ENV_STYLE:
                required = (dump.required(0), dump.required(1))
                absent = [self._environment[name] is None for name in FLAGS]
                if not any(r is None for r in required) and not dump.partial:
                    return Selection(
                        (bool(required[0]) or absent[0], bool(required[1]) or absent[1]), Form.ENTRIES
                    )
                raise UnknownError
            case _:
                raise UnknownError

    def _searched(self, pattern: re.Pattern[str], name: str, text: str) -> bool | None:
        if has_placeholder(text):
            raise UnknownError
        found = {"search": pattern.search, "match": pattern.match, "fullmatch": pattern.fullmatch}[name](text)
        return None if found is None else True

    def _whole(self, *, nul: bool) -> Dump:
        """Return a dump of the environment."""
        return Dump(shown=self._shown((True, True)), whole=True, some=True, nul=nul)

    def _joinable(self, value: Any) -> str:
        if not isinstance(value, str | _Foreign):
            raise _FailedError
        return str(value)

    def _mapping_method(
        self, owner: Selection, name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        if keywords or owner.items:
            raise UnknownError
        match name, arguments:
            case ("get", [key]) | ("get", [key, _]):
                if isinstance(key, bytes) is not owner.is_bytes:
                    raise UnknownError
                key = key.decode(errors="replace") if isinstance(key, bytes) else key
                default = arguments[1] if len(arguments) > 1 else None
                if key in FLAGS and not owner.kept[FLAGS.index(key)]:
                    return default
                found = self._variable(key, default)
                return Bytes(found) if owner.is_bytes and isinstance(found, str) else found
            case "items", []:
                return Selection(owner.kept, Form.ITEMS, is_bytes=owner.is_bytes)
            case (("copy" | "keys"), []):
                return owner
            case _:
                raise UnknownError

    # ------------------------------------------------------------ functions

    def print(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `print`."""
        separator, end = keywords.get("sep", " "), keywords.get("end", "\n")
        stream = keywords.get("file")
        target = self.out if stream is None or stream == _Module("sys.stdout") else self._err
        if stream is not None and stream not in (_Module("sys.stdout"), _Module("sys.stderr")):
            raise UnknownError
        if not isinstance(separator, str | None) or not isinstance(end, str | None):
            raise UnknownError
        for number, argument in enumerate(arguments):
            if number:
                target.append(" " if separator is None else separator)
            target += self._written(argument, len(arguments) == 1 and end in ("\n", None))
        if not (len(arguments) == 1 and isinstance(arguments[0], Lines)):
            target.append("\n" if end is None else end)

    def _written(self, value: Any, alone: bool) -> Parts:
        if isinstance(value, Record):
            return (value,)
        if isinstance(value, Selection) and not value.items:
            return (self._record(value),)
        if isinstance(value, _Captured):
            return (ANY,) if value.is_bytes else value.parts
        if isinstance(value, Selection):
            return (Hole(Kind.LINE),) if value.form is Form.NAMES else (ANY,)
        if isinstance(value, Lines) and not value.is_text:
            return (ANY,)
        if isinstance(value, Lines) and alone:
            return (Dump(shown=self._shown(value.kept), style=value.style, partial=False, some=False),)
        return (self._text(value),)

    def _record(self, selection: Selection, *, indent: int = 0, is_python: bool = False) -> Record:
        there = [
            self._environment[n] is not None and kept for n, kept in zip(FLAGS, selection.kept, strict=True)
        ]
        return Record(
            shown=self._shown(selection.kept),
            required=(there[0], there[1]),
            indent=indent,
            is_python=is_python,
        )

    def run(self, arguments: list[Any], keywords: dict[str, Any]) -> _Process:
        """Run `subprocess.run`."""
        is_captured = keywords.pop("capture_output", False) is True
        stdout = keywords.pop("stdout", None)
        is_checked = keywords.pop("check", False) is True
        captured = self._captured(arguments, keywords)
        if is_checked:
            self._failures.append(self._failure())
        if is_captured or stdout == _Module("subprocess.PIPE"):
            return _Process(captured)
        if stdout is not None:
            raise UnknownError
        self._write_past(captured.parts)
        return _Process(_Captured(()))

    def run_captured(self, arguments: list[Any], keywords: dict[str, Any]) -> _Captured:
        """Run `subprocess.check_output`."""
        captured = self._captured(arguments, keywords)
        self._failures.append(self._failure())  # a program that fails ends this one
        return captured

    def run_checked(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `subprocess.call` and `subprocess.check_call`."""
        self._write_past(self._captured(arguments, keywords).parts)
        self._failures.append(self._failure())
        return _Quiet()

    def _captured(self, arguments: list[Any], keywords: dict[str, Any]) -> _Captured:
        """Return what a program writes to its standard output."""
        is_shell = keywords.pop("shell", False) is True
        stderr = keywords.pop("stderr", None)
        for name in ("text", "universal_newlines", "encoding", "errors", "timeout", "check"):
            keywords.pop(name, None)
        if keywords or len(arguments) != 1:
            raise UnknownError
        command = arguments[0]
        if isinstance(command, list | tuple) and not is_shell and all(isinstance(c, str) for c in command):
            command = shlex.join(command)
        elif not isinstance(command, str) or (not is_shell and not re.fullmatch(r"[\w./-]+", command)):
            raise UnknownError
        return self._shell(command, quiet_errors=stderr == _Module("subprocess.DEVNULL"))

    def _shell(self, command: str, *, quiet_errors: bool = False) -> _Captured:
        """Run a shell, and return what it writes to its standard output."""
        if self._run_shell is None or has_placeholder(command):
            raise UnknownError
        outcomes = self._run_shell(command)
        if not quiet_errors:
            errors = {only(outcome.stream, STDERR) for outcome in outcomes}
            if errors != {()}:
                self._err.append(Choice(tuple(all_parts(error) for error in errors)))
        options = tuple(dict.fromkeys(parts_of(outcome.stream, STDOUT) for outcome in outcomes))
        return _Captured(options[0] if len(options) == 1 else (Choice(options),))

    def _write_past(self, parts: Parts) -> None:
        """Add what another process writes: before what this one has buffered, or behind it."""
        buffered = tuple(self.out)
        behind, before = joined((*buffered, *parts)), joined((*parts, *buffered))
        self.out = list(behind) if behind == before else [Choice((behind, before))]

    def open_process(self, arguments: list[Any], keywords: dict[str, Any]) -> _Captured:
        """Run `os.popen` and `subprocess.getoutput`."""
        if keywords or len(arguments) != 1 or not isinstance(arguments[0], str):
            raise UnknownError
        return self._shell(arguments[0])

    def get_output(self, arguments: list[Any], keywords: dict[str, Any]) -> _Captured:
        """Run `subprocess.getoutput`."""
        return _Captured((Trimmed(self.open_process(arguments, keywords).parts),))

    def system(self, arguments: list[Any], keywords: dict[str, Any]) -> _Quiet:
        """Run `os.system`."""
        self._write_past(self.open_process(arguments, keywords).parts)
        return _Quiet()

    def open(self, arguments: list[Any], keywords: dict[str, Any]) -> _File:
        """Run `open` and `pathlib.Path`: of the process's own environment only."""
        if not arguments or arguments[0] not in ("/proc/self/environ", "/proc/thread-self/environ"):
            raise UnknownError
        if set(keywords) - {"encoding", "errors", "mode"}:
            raise UnknownError
        mode = [*arguments[1:2], keywords.get("mode", "")][0]
        return _File(is_bytes=isinstance(mode, str) and "b" in mode)

    def pattern(self, arguments: list[Any], keywords: dict[str, Any]) -> _Pattern:
        """Run `re.compile`."""
        if not 1 <= len(arguments) <= 2 or keywords or not isinstance(arguments[0], str):
            raise UnknownError
        ignores_case = arguments[1:] == [_IGNORE_CASE]
        found = compiled(arguments[0], "perl", ignores_case=ignores_case)
        if found is None or (len(arguments) == 2 and not ignores_case):
            raise UnknownError
        return _Pattern(found)

    def search(self, arguments: list[Any], keywords: dict[str, Any]) -> bool | None:
        """Run `re.search`."""
        flags = [keywords.pop("flags")] if "flags" in keywords else arguments[2:]
        if len(arguments) < 2 or not isinstance(arguments[1], str):
            raise UnknownError
        found = self.pattern([arguments[0], *flags], keywords).pattern
        return self._searched(found, "search", arguments[1])

    def match(self, arguments: list[Any], keywords: dict[str, Any]) -> bool | None:
        """Run `re.match`."""
        if len(arguments) != 2 or keywords or not isinstance(arguments[1], str):
            raise UnknownError
        return self._searched(self.pattern(arguments[:1], {}).pattern, "match", arguments[1])

    def kept(self, arguments: list[Any], keywords: dict[str, Any]) -> Selection:
        """Run `filter` over the environment."""
        if keywords:
            raise UnknownError
        match arguments:
            case [_Lambda(node=node), Selection() as selection] if len(node.args.args) == 1:
                found: list[bool] = []
                for number, name in enumerate(FLAGS):
                    self._names[node.args.args[0].arg] = selection.entry(name)
                    found.append(self._truth(node.body) and selection.kept[number])
                form = Form.NAMES if selection.form is Form.MAPPING else selection.form
                return Selection((found[0], found[1]), form)
            case _:
                raise UnknownError

    def pretty(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `pprint.pprint`."""
        match arguments:
            case [Selection(form=Form.MAPPING) as selection]:
                self.out += [self._record(selection, is_python=selection.kept == (True, True)), "\n"]
            case _:
                self.print(arguments, keywords)

    def get_variable(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `os.getenv`."""
        if keywords or not 1 <= len(arguments) <= 2:
            raise UnknownError
        return self._variable(arguments[0], arguments[1] if len(arguments) > 1 else None)

    def dumps(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `json.dumps`."""
        keywords.pop("default", None)
        if len(arguments) != 1 or set(keywords) - {"indent", "sort_keys", "ensure_ascii", "default"}:
            raise UnknownError
        value = arguments[0]
        if isinstance(value, Selection) and not value.items:
            indent = keywords.get("indent") or 0
            return self._record(value, indent=indent if isinstance(indent, int) else 0)
        value = self._marked(value)
        self._require_plain(value, *_flat(value))
        text = json.dumps(value, indent=keywords.get("indent"), sort_keys=bool(keywords.get("sort_keys")))
        for word, hole in self._json.items():  # without the quotes of a text
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = hole
            text = text.replace(f'"{word}"', mark)
        return text

    def _marked(self, value: Any) -> Any:
        """Return a value in which numbers that are not known are words that stand for them."""
        match value:
            case dict():
                return {key: self._marked(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._marked(inner) for inner in value]
            case _Quiet() | _Foreign():
                mark = f"Zjson{len(self._holes)}Z"
                self._json[mark] = Hole(Kind.QUIET_LINE if isinstance(value, _Quiet) else Kind.ANY)
                return mark
            case _:
                return value

    def dump(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `json.dump`."""
        if len(arguments) != 2 or arguments[1] != _Module("sys.stdout"):
            raise UnknownError
        self.out += self._written(self.dumps(arguments[:1], keywords), alone=False)

    def as_dict(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `dict`."""
        if len(arguments) == 1 and isinstance(arguments[0], Selection):
            if arguments[0].form not in (Form.MAPPING, Form.ITEMS):
                raise UnknownError
            return Selection(arguments[0].kept, is_bytes=arguments[0].is_bytes)
        if not arguments:
            return dict(keywords)
        raise UnknownError

    def sorted(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `sorted`."""
        keywords.pop("key", None)
        keywords.pop("reverse", None)
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], Selection | Lines):
            return arguments[0]
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], list | tuple):
            self._require_plain(*arguments[0])
            if all(isinstance(v, str) and not has_placeholder(v) for v in arguments[0]):
                return sorted(arguments[0])
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], dict):
            return sorted(arguments[0])
        raise UnknownError

    def length(self, arguments: list[Any], keywords: dict[str, Any]) -> int:
        """Run `len`."""
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], str | list | tuple | dict):
            raise UnknownError
        if isinstance(arguments[0], str) and has_placeholder(arguments[0]):
            raise UnknownError
        return len(arguments[0])

    def largest(self, arguments: list[Any], keywords: dict[str, Any]) -> int:
        """Run `max`."""
        values = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list | tuple) else arguments
        if keywords or not values or not all(isinstance(value, int) for value in values):
            raise UnknownError
        return int(max(values))

    def numbered(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `enumerate`."""
        start = keywords.pop("start", 0)
        if len(arguments) == 2 and isinstance(arguments[1], int):
            start = arguments.pop()
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], list | tuple):
            raise UnknownError
        return list(enumerate(arguments[0], start=start))

    def zipped(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `zip`."""
        if keywords or not all(isinstance(argument, list | tuple) for argument in arguments):
            raise UnknownError
        return list(zip(*arguments, strict=False))

    def as_text(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `str`."""
        if not arguments and not keywords:
            return ""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        return self._text(arguments[0])

    def as_repr(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `repr`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        return self._repr(arguments[0])

    def as_bool(self, arguments: list[Any], keywords: dict[str, Any]) -> bool:
        """Run `bool`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        self._require_plain(arguments[0])
        return bool(arguments[0])

    def as_list(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `list`."""
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], list | tuple | Selection):
            return arguments[0]
        raise UnknownError

    def write(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.stdout.write`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        if not isinstance(arguments[0], str | _Foreign):
            raise _FailedError
        self.out.append(str(arguments[0]))

    def write_error(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.stderr.write`."""
        outer, self.out = self.out, self._err
        self.write(arguments, keywords)
        self.out = outer

    def mapped(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `map` over known values."""
        match arguments:
            case [_Lambda(node=node), list() | tuple() as values] if (
                len(node.args.args) == 1 and not keywords
            ):
                found: list[Any] = []
                for value in values:
                    self._names[node.args.args[0].arg] = value
                    found.append(self._value(node.body))
                return found
            case _:
                raise UnknownError

    def dedented(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `textwrap.dedent`: values on a line do not begin it."""
        match arguments:
            case [str() as text] if not keywords and not re.search(r"^[ \t]*Zhole", text, re.MULTILINE):
                return textwrap.dedent(text)
            case _:
                raise UnknownError

    def shell_quoted(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `shlex.quote`."""
        match arguments:
            case [str() as text] if not keywords and not has_placeholder(text):
                return shlex.quote(text)
            case [str() as text] if not keywords:
                mark = f"Zhole{len(self._holes)}Z"
                plain = tuple(refilled((text,), self._holes))
                self._holes[mark] = Choice((plain, ("'", *plain, "'")))
                return mark
            case _:
                raise UnknownError

    def exit(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.exit`."""
        if keywords or not all(isinstance(a, int) for a in arguments):
            raise UnknownError
        raise _ExitError(arguments[0] & 0xFF if arguments else 0)


class _Module(msgspec.Struct, frozen=True):
    """A module, or a function of one."""

    name: str


class _Method(msgspec.Struct, frozen=True):
    """A method of a value."""

    owner: Any
    name: str


class _Function(msgspec.Struct, frozen=True):
    """A function of the program."""

    node: ast.FunctionDef


class _Captured(msgspec.Struct, frozen=True):
    """What another program has written, or what was read of a file."""

    parts: Parts
    is_bytes: bool = False


class _Process(msgspec.Struct, frozen=True):
    """A program that has ended."""

    stdout: _Captured


class _File(msgspec.Struct, frozen=True):
    """`/proc/self/environ`."""

    is_bytes: bool = False


class _Pattern(msgspec.Struct, frozen=True):
    """A regular expression."""

    pattern: re.Pattern[str]


class _Namespace(msgspec.Struct, frozen=True):
    """A class whose attributes are read."""

    attributes: dict[str, Any]


class _Lambda(msgspec.Struct, frozen=True):
    """A function without a name."""

    node: ast.Lambda


class _Quiet(msgspec.Struct, frozen=True):
    """A value, or a function that gives one, in which no flag stands."""


class _Foreign(msgspec.Struct, frozen=True):
    """The value of a variable that is no flag: it may be unset."""

    mark: str

    def __str__(self) -> str:
        return self.mark


_MISSING: Final = object()
_OPAQUE: Final = (
    _Namespace,
    _Captured,
    _Process,
    _File,
    _Pattern,
    _Lambda,
    Record,
    Selection,
    Lines,
    _Module,
    _Foreign,
    _Method,
    _Function,
    _Quiet,
)
"""Values that stand for others."""
_TEXT_METHODS: Final = frozenset(
    (
        *("startswith", "endswith", "upper", "lower", "title", "strip", "lstrip", "rstrip", "split"),
        *("ljust", "rjust", "center", "replace", "removeprefix", "removesuffix"),
    )
)
_FUNCTIONS: Final[dict[str, Callable[[_Program, list[Any], dict[str, Any]], Any]]] = {
    "print": _Program.print,
    "pprint.pprint": _Program.pretty,
    "pprint.pp": _Program.pretty,
    "subprocess.run": _Program.run,
    "subprocess.check_output": _Program.run_captured,
    "subprocess.call": _Program.run_checked,
    "subprocess.check_call": _Program.run_checked,
    "subprocess.getoutput": _Program.get_output,
    "os.popen": _Program.open_process,
    "os.system": _Program.system,
    "open": _Program.open,
    "pathlib.Path": _Program.open,
    "re.compile": _Program.pattern,
    "re.search": _Program.search,
    "re.match": _Program.match,
    "filter": _Program.kept,
    "os.getenv": _Program.get_variable,
    "json.dumps": _Program.dumps,
    "json.dump": _Program.dump,
    "sys.exit": _Program.exit,
    "exit": _Program.exit,
    "sys.stdout.write": _Program.write,
    "sys.stderr.write": _Program.write_error,
    "map": _Program.mapped,
    "textwrap.dedent": _Program.dedented,
    "shlex.quote": _Program.shell_quoted,
    "dict": _Program.as_dict,
    "sorted": _Program.sorted,
    "list": _Program.as_list,
    "str": _Program.as_text,
    "repr": _Program.as_repr,
    "bool": _Program.as_bool,
    "len": _Program.length,
    "max": _Program.largest,
    "enumerate": _Program.numbered,
    "zip": _Program.zipped,
    "tuple": _Program.as_list,
    "builtins.print": _Program.print,
}


def _is_in_front(part: Any, text: Any) -> bool:
    """Return whether a text stands in another one, before anything that is not known."""
    return (
        isinstance(part, str)
        and isinstance(text, str)
        and not has_placeholder(part)
        and part in text.partition("Zhole")[0]
    )


def _as_bytes(value: Any) -> Any:
    """Return what a method of bytes gives, of what the same method of a text gives."""
    match value:
        case str():
            return Bytes(value)
        case list():
            return [_as_bytes(each) for each in value]
        case tuple():
            return tuple(_as_bytes(each) for each in value)
        case _:
            return value


def _stripped(parts: Parts) -> Parts:
    """Return a text without the blanks around it."""
    match parts:
        case (Choice(options=options),):
            return (Choice(tuple(_stripped(option) for option in options)),)
        case (str() as first, *rest):
            return (Trimmed((first.lstrip(), *rest)),) if rest else (first.strip(),)
        case (Dump() | Hole(kind=Kind.OTHER), *_):
            return (Trimmed(parts),)
        case _:
            return (ANY,)


def _is_print(node: ast.expr) -> bool:
    """Return whether an expression is `print(…)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in _flat(item)]
    if isinstance(value, list | tuple):
        return [part for item in value for part in _flat(item)]
    return [value]
