"""What Node prints of its environment: programs are run under a hypothesis."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Record, Shown, Style
from agentdash.engine.detect.env_output.javascript_syntax import (
    Tree,
    UnknownScriptError,
    parse_expression,
    parse_script,
)
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part, Parts, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled, with_placeholders
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import STDERR, STDOUT, Call, Result, only, parts_of
from agentdash.engine.detect.env_output.world import shown

_MAX_CODE: Final = 4_000
_MAX_STEPS: Final = 500
_MODULES: Final = frozenset(("os", "fs", "path", "child_process", "util", "process"))


class _ReturnError(Exception):
    """A function ends."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _ContinueError(Exception):
    """A round of a loop ends."""


class _Null:
    """`null`, where None is `undefined`."""


class _Path(msgspec.Struct, frozen=True):
    """A function or an object of Node, by its name."""

    name: str


class _Method(msgspec.Struct, frozen=True):
    owner: Any
    name: str


class _Function(msgspec.Struct, frozen=True):
    parameters: tuple[Tree, ...]
    body: tuple[Tree, ...]


class _Regex(msgspec.Struct, frozen=True):
    pattern: re.Pattern[str]


class _Written(msgspec.Struct, frozen=True):
    """Text that is known as parts only: of another program, or a dictionary."""

    parts: Parts


_NULL: Final = _Null()
_UNKNOWN_NUMBER: Final = _Path("a number")
"""Of variables that are no flags."""
_OPAQUE: Final = (_Path, _Method, _Function, _Regex, _Written, Selection, Lines)


def run_node(code: str, options: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownScriptError` for what is not modelled."""
    if len(code) > _MAX_CODE:
        raise UnknownScriptError
    program = _Program(call, holes)
    if "p" in options:
        value = parse_expression(code.strip().rstrip(";"))
        program.print([program.value(value)])
        return [Result(out=joined(program.out), err=program.err)]
    statements = parse_script(code)
    try:
        program.block(statements)
    except (UnknownScriptError, _ReturnError, _ContinueError, RecursionError):
        return [Result(out=joined((*program.out, ANY)), err=(ANY,), status=None)]
    return [Result(out=joined(program.out), err=program.err)]


class _Program:
    def __init__(self, call: Call, holes: dict[str, Part]) -> None:
        self._environment = call.environment
        self._run_shell = call.run_shell
        self._holes = holes
        self._names: dict[str, Any] = {}
        self._steps = 0
        self.out: list[Part] = []
        self.err: Parts = ()

    # ------------------------------------------------------------ statements

    def block(self, statements: tuple[Tree, ...]) -> None:
        """Run statements."""
        for statement in statements:
            if statement[0] == "function":
                self._names[statement[1]] = _Function(statement[2], statement[3])
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Tree) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise UnknownScriptError
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
            case ("return", value):
                raise _ReturnError(None if value is None else self.value(value))
            case ("continue",):
                raise _ContinueError
            case ("function", *_):
                pass
            case _:
                raise UnknownScriptError

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
                raise UnknownScriptError

    def _loop(self, values: Any, bind: Callable[[Any], None], body: tuple[Tree, ...]) -> None:
        def run(item: Any) -> None:
            bind(item)
            with suppress(_ContinueError):
                self.block(body)

        self._for_each(values, run)

    def _for_each(self, values: Any, run: Callable[[Any], Any]) -> None:
        if isinstance(values, Selection):
            self.out.append(self._over_environment(values, run))
        elif isinstance(values, list) and len(values) <= 50:
            for value in values:
                run(value)
        else:
            raise UnknownScriptError

    def _over_environment(self, selection: Selection, run: Callable[[Any], Any]) -> Dump:
        """Return what a loop over the environment prints: a dump in its own style."""
        styles: list[Style] = []
        kept: list[bool] = []
        for number, name in enumerate(FLAGS):
            outer, self.out = self.out, []
            with_mark = self._with_mark(name)
            try:
                run(_entry(selection, name))
                line = "".join(part if isinstance(part, str) else "\n\n" for part in self.out)
            finally:
                self._environment = with_mark
                self.out = outer
            kept.append(bool(line) and selection.kept[number])
            if line:
                styles.append(_style_of(line, name))
        if (style := common_style(styles)) is None:
            raise UnknownScriptError
        return Dump(shown=self._shown((kept[0], kept[1])), style=style, partial=len(styles) < 2)

    def _with_mark(self, name: str) -> Any:
        """Put the mark in the place of a flag's value; return the environment as it was."""
        before = self._environment
        self._environment = {**before, name: LOOP_VALUE}
        return before

    def _shown(self, kept: tuple[bool, bool]) -> tuple[Shown, Shown]:
        absent = Shown(Presence.ABSENT)
        first, second = (
            shown(self._environment[name]) if keep else absent for name, keep in zip(FLAGS, kept, strict=True)
        )
        return first, second

    # ------------------------------------------------------------ values

    def value(self, tree: Tree) -> Any:
        """Return the value of an expression."""
        match tree:
            case ("text", text) | ("number", text):
                return text
            case ("template", *parts):
                return "".join(self._text(self.value(part)) for part in parts)
            case ("regex", source, flags):
                pattern = compiled(source.replace("\\/", "/"), "perl", ignores_case="i" in flags)
                if pattern is None:
                    raise UnknownScriptError
                return _Regex(pattern)
            case ("name", name):
                return self._named(name)
            case ("member", owner, key):
                return self._member(self.value(owner), self.value(key))
            case ("call", function, arguments):
                return self._call(self.value(function), self._arguments(arguments))
            case ("list", items):
                return self._arguments(items)
            case ("object", entries):
                return self._object(entries)
            case ("arrow", parameters, body):
                return _Function(parameters, body)
            case ("choice", _, ("text" | "number", _), ("text" | "number", _)):
                raise UnknownScriptError  # a word for a value proves nothing
            case ("choice", test, first, second):
                return self.value(first if self._truth(self.value(test)) else second)
            case ("unary", sign, inner):
                return self._unary(sign, self.value(inner))
            case ("binary", sign, left, right):
                return self._binary(sign, left, right)
            case ("assign", sign, ("name", name), value) if sign in ("=", "+="):
                computed = self.value(value)
                if sign == "+=":
                    computed = self._sum(self._named(name), computed)
                self._names[name] = computed
                return computed
            case ("assign", "=", ("member", owner, key), value):
                mapping, name = self.value(owner), self.value(key)
                if not isinstance(mapping, dict) or not isinstance(name, str) or has_placeholder(name):
                    raise UnknownScriptError
                mapping[name] = self.value(value)
                return mapping[name]
            case _:
                raise UnknownScriptError

    def _arguments(self, trees: tuple[Tree, ...]) -> list[Any]:
        found: list[Any] = []
        for tree in trees:
            if tree[0] != "spread":
                found.append(self.value(tree))
            elif isinstance(values := self.value(tree[1]), list):
                found += values
            else:
                raise UnknownScriptError
        return found

    def _object(self, entries: tuple[Tree, ...]) -> Any:
        if len(entries) == 1 and entries[0][0] == "spread":
            value = self.value(entries[0][1])
            return value if isinstance(value, Selection) else dict(value)
        result: dict[str, Any] = {}
        for entry in entries:
            if entry[0] != "entry" or not isinstance(key := self.value(entry[1]), str):
                raise UnknownScriptError
            result[key] = self.value(entry[2])
        return result

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        match name:
            case "undefined":
                return None
            case "null":
                return _NULL
            case "true" | "false":
                return name == "true"
            case "process" | "console" | "JSON" | "Object" | "require" | "String" | "Boolean" | "Array":
                return _Path(name)
            case _:
                raise UnknownScriptError

    def _member(self, owner: Any, key: Any) -> Any:
        match owner:
            case _Path(name="process") if key == "env":
                return Selection((True, True))
            case _Path(name=name) if isinstance(key, str):
                return _Path(f"{name}.{key}")
            case Selection(form=Form.MAPPING):
                return self._variable(owner, key)
            case Selection() if key == "length":
                there = [
                    keep and self._environment[n] is not None
                    for n, keep in zip(FLAGS, owner.kept, strict=True)
                ]
                return sum(there) if any(there) else _UNKNOWN_NUMBER
            case list() if isinstance(key, int):
                return owner[key] if 0 <= key < len(owner) else None
            case list() | str() if key == "length":
                if isinstance(owner, str) and has_placeholder(owner):
                    raise UnknownScriptError
                return len(owner)
            case dict() if isinstance(key, str) and key in owner:
                return owner[key]
            case str() | list() | Selection() | _Regex() | Lines() | _Written():
                return _Method(owner, key)
            case dict() if not isinstance(key, str) or has_placeholder(key):
                raise UnknownScriptError
            case dict():
                return None
            case _:
                raise UnknownScriptError

    def _variable(self, selection: Selection, name: Any) -> Any:
        if not isinstance(name, str) or has_placeholder(name):
            raise UnknownScriptError
        if name not in FLAGS:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return mark
        if (value := self._environment[name]) is None or not selection.kept[FLAGS.index(name)]:
            return None
        if value == LOOP_VALUE:
            return MARK
        if (text := with_placeholders(value, self._holes)) is None:
            raise UnknownScriptError
        return text

    def _unary(self, sign: str, value: Any) -> Any:
        if sign == "!":
            return not self._truth(value)
        if sign == "typeof" and (value is None or isinstance(value, str)):
            return "undefined" if value is None else "string"
        if sign == "void":
            return None
        raise UnknownScriptError

    def _truth(self, value: Any) -> bool:
        if isinstance(value, str) and has_placeholder(value):
            hole = self._holes.get(value)
            if value == MARK or (isinstance(hole, Hole) and hole.kind is Kind.OTHER):
                return True
            if not value.partition("Zhole")[0]:
                raise UnknownScriptError
            return True
        if isinstance(value, _Null):
            return False
        if isinstance(value, _OPAQUE):
            raise UnknownScriptError
        return True if isinstance(value, list | dict) else bool(value)

    def _binary(self, sign: str, left_tree: Tree, right_tree: Tree) -> Any:
        left = self.value(left_tree)
        match sign:
            case "||":
                return left if self._truth(left) else self.value(right_tree)
            case "&&":
                return self.value(right_tree) if self._truth(left) else left
            case "??":
                return self.value(right_tree) if left is None or left is _NULL else left
            case _:
                pass
        right = self.value(right_tree)
        match sign:
            case "+":
                return self._sum(left, right)
            case "===" | "==":
                return self._equal(left, right, is_loose=sign == "==")
            case "!==" | "!=":
                return not self._equal(left, right, is_loose=sign == "!=")
            case "in" if isinstance(right, Selection) and left in FLAGS:
                return self._variable(right, left) is not None
            case "-" | "*" | "<" | ">" | "<=" | ">=" if isinstance(left, int) and isinstance(right, int):
                return _COMPUTED[sign](left, right)
            case _:
                raise UnknownScriptError

    def _sum(self, left: Any, right: Any) -> Any:
        if isinstance(left, bool) or isinstance(right, bool):
            raise UnknownScriptError
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, _Written) and right == "\n":
            return _Written((*left.parts, "\n"))
        if isinstance(left, str) or isinstance(right, str):
            return self._text(left) + self._text(right)
        raise UnknownScriptError

    def _equal(self, left: Any, right: Any, *, is_loose: bool) -> bool:
        for value, other in ((left, right), (right, left)):
            if isinstance(value, str) and has_placeholder(value):
                hole = self._holes.get(value)
                excluded = isinstance(hole, Hole) and hole.kind is Kind.OTHER and other in ("", *hole.exclude)
                if other is None or other is _NULL or excluded:
                    return False
                raise UnknownScriptError
        if is_loose and (left is _NULL or left is None):
            return right is _NULL or right is None
        if (
            isinstance(left, _OPAQUE)
            or isinstance(right, _OPAQUE)
            or (is_loose and type(left) is not type(right))
        ):
            raise UnknownScriptError
        return bool(left == right)

    def _text(self, value: Any) -> str:
        match value:
            case None:
                return "undefined"
            case _Null():
                return "null"
            case bool():
                raise UnknownScriptError  # derived from a value, which it does not show
            case int() | str():
                return str(value)
            case _Written(parts=parts):
                mark = f"Zhole{len(self._holes)}Z"
                self._holes[mark] = Choice((parts,))
                return mark
            case list():
                return ",".join("" if v is None else self._text(v) for v in value)
            case _:
                raise UnknownScriptError

    # ------------------------------------------------------------ calls

    def _call(self, function: Any, arguments: list[Any]) -> Any:
        match function:
            case _Function():
                return self._called(function, arguments)
            case _Method(owner=Selection() as owner, name=name):
                return self._selection_method(owner, name, arguments)
            case _Method(owner=list() as owner, name=name):
                return self._list_method(owner, name, arguments)
            case _Method(owner=str() as owner, name=name):
                return self._text_method(owner, name, arguments)
            case _Method(owner=_Regex(pattern=pattern), name="test"):
                return self._tested(pattern, arguments[0])
            case _Method(owner=Lines() as owner, name="join") if arguments == ["\n"]:
                return msgspec.structs.replace(owner, is_text=True)
            case _Method(owner=Lines() as owner, name="sort"):
                return owner
            case _Method(owner=_Written(parts=(Dump(nul=True),)), name="split") if arguments == ["\0"]:
                return Selection((True, True), Form.ENTRIES)
            case _Method(owner=_Written(parts=(Dump(nul=True) as dump,)), name="replace" | "replaceAll"):
                return self._in_lines(dump, arguments)
            case _Method(owner=_Written() as owner, name="toString" | "trim" as name):
                return (
                    owner if name == "toString" else _Written((Choice((owner.parts, _trimmed(owner.parts))),))
                )
            case _Path(name=name):
                return self._library(name.removeprefix("node:"), arguments)
            case _:
                raise UnknownScriptError

    def _in_lines(self, dump: Dump, arguments: list[Any]) -> _Written:
        """Return entries that end in NUL with line breaks in place of that."""
        match arguments:
            case [_Regex() | str() as pattern, "\n"]:
                source = pattern if isinstance(pattern, str) else pattern.pattern.pattern
                if source in ("\0", "\\0", "\\x00"):
                    return _Written((msgspec.structs.replace(dump, nul=False),))
            case _:
                pass
        raise UnknownScriptError

    def _called(self, function: _Function, arguments: list[Any]) -> Any:
        outer = self._names
        self._names = dict(outer)
        try:
            for number, (pattern, default) in enumerate(function.parameters):
                given = arguments[number] if number < len(arguments) else None
                self._bind(pattern, self.value(default) if given is None and default is not None else given)
            self.block(function.body)
        except _ReturnError as ended:
            return ended.value
        finally:
            own = {name for pattern, _ in function.parameters for name in _names_in(pattern)}
            self._names = {n: outer[n] if n in own else self._names[n] for n in outer}
        return None

    def _library(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "console.log" | "console.info", _:
                return self.print(arguments)
            case "console.error" | "console.warn", _:
                outer, self.out = self.out, []
                self.print(arguments)
                self.err = joined((*self.err, *self.out))
                self.out = outer
                return None
            case "console.table", [value]:
                return self._table(value)
            case "process.stdout.write", [value]:
                self.out += (
                    self._inspected(value) if isinstance(value, _Written | Lines) else [self._text(value)]
                )
                return None
            case "require", [str() as module] if module.removeprefix("node:") in _MODULES:
                return _Path(module.removeprefix("node:"))
            case "JSON.stringify", [value, *layout]:
                return self._json(value, layout)
            case "Object.keys", [value]:
                return self._keys(value)
            case "Object.values", [dict() as value]:
                return list(value.values())
            case "Object.entries", [Selection(form=Form.MAPPING) as value]:
                return Selection(value.kept, Form.ITEMS)
            case "Object.entries", [dict() as value]:
                return [[key, inner] for key, inner in value.items()]
            case "Object.fromEntries", [Selection(form=Form.ITEMS) as value]:
                return Selection(value.kept)
            case "Object.fromEntries", [list() as pairs] if all(
                isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in pairs
            ):
                return {pair[0]: pair[1] for pair in pairs}
            case "Object.assign", [dict() as target, Selection() as value] if not target:
                return value
            case "fs.readFileSync", ["/proc/self/environ", *_]:
                return _Written((Dump(shown=self._shown((True, True)), nul=True, whole=True, some=True),))
            case "String", [value]:
                return self._text(value)
            case "Boolean", [value]:
                return self._truth(value)
            case "child_process.execSync", [str() as script, *_]:
                return self._shell(script)
            case "os.hostname" | "os.platform" | "os.type" | "os.release" | "process.cwd", []:
                mark = f"Zhole{len(self._holes)}Z"
                self._holes[mark] = Hole(Kind.QUIET_LINE)
                return mark
            case "process.exit", _:
                raise UnknownScriptError
            case _:
                raise UnknownScriptError

    def _shell(self, script: str) -> _Written:
        """Return what a shell writes to its standard output."""
        if self._run_shell is None or has_placeholder(script):
            raise UnknownScriptError
        outcomes = self._run_shell(script)
        if any(only(outcome.stream, STDERR) for outcome in outcomes) or any(o.status for o in outcomes):
            self.err = (*self.err, Choice(((), (ANY,))))
        options = tuple(dict.fromkeys(parts_of(outcome.stream, STDOUT) for outcome in outcomes))
        return _Written(options[0] if len(options) == 1 else (Choice(options),))

    def _keys(self, value: Any) -> Any:
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            return Selection(value.kept, Form.NAMES)
        if isinstance(value, dict):
            return list(value)
        raise UnknownScriptError

    def _selection_method(self, owner: Selection, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "sort", _:
                return owner
            case "join", ["\n"] if owner.form is Form.ENTRIES:
                return Lines(Style(), owner.kept, is_text=True)
            case "filter", [_Function() | _Path() as test]:
                kept = [
                    self._for_flag(owner, flag, lambda item: self._truth(self._call(test, [item])))
                    and owner.kept[number]
                    for number, flag in enumerate(FLAGS)
                ]
                return Selection((kept[0], kept[1]), owner.form)
            case "map", [_Function() as function]:
                return self._mapped(owner, function)
            case "forEach", [_Function() as function]:
                self._for_each(owner, lambda item: self._call(function, [item]))
                return None
            case _:
                raise UnknownScriptError

    def _for_flag(self, selection: Selection, name: str, run: Callable[[Any], Any]) -> Any:
        before = self._with_mark(name)
        try:
            return run(_entry(selection, name))
        finally:
            self._environment = before

    def _mapped(self, owner: Selection, function: _Function) -> Any:
        styles: list[Style] = []
        pairs = 0
        for name in FLAGS:
            value = self._for_flag(owner, name, lambda item: self._call(function, [item]))
            if value == [name, MARK]:
                pairs += 1
            elif isinstance(value, str):
                styles.append(_style_of(value + "\n", name))
            else:
                raise UnknownScriptError
        if pairs == 2:
            return Selection(owner.kept, Form.ITEMS)
        if pairs or (style := common_style(styles)) is None:
            raise UnknownScriptError
        return Lines(style, owner.kept)

    def _list_method(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "forEach", [_Function() as function]:
                for number, value in enumerate(owner):
                    self._call(function, [value, number])
                return None
            case "map", [_Function() as function]:
                return [self._call(function, [value, number]) for number, value in enumerate(owner)]
            case "filter", [_Function() | _Path() as function]:
                return [value for value in owner if self._truth(self._call(function, [value]))]
            case "join", [str() as separator]:
                return separator.join("" if v is None or v is _NULL else self._text(v) for v in owner)
            case "push", [value]:
                owner.append(value)
                return len(owner)
            case "includes", [str() as value] if not any(has_placeholder(str(v)) for v in (*owner, value)):
                return value in owner
            case "sort", [] if all(isinstance(v, str) and not has_placeholder(v) for v in owner):
                return sorted(owner)
            case "reduce", [_Function() as function, first]:
                for value in owner:
                    first = self._call(function, [first, value])
                return first
            case _:
                raise UnknownScriptError

    def _text_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        known = owner.partition("Zhole")[0]
        is_marked = has_placeholder(owner)
        match name, arguments:
            case "startsWith", [str() as start] if not is_marked or len(start) <= len(known):
                return owner.startswith(start)
            case "includes", [str() as part] if not is_marked or part in known:
                return part in owner
            case "match", [_Regex(pattern=pattern)]:
                return True if self._tested(pattern, owner) else _NULL
            case "padEnd" | "padStart", [int() as width, *rest] if not is_marked and width < 200 and not rest:
                return owner.ljust(width) if name == "padEnd" else owner.rjust(width)
            case "toLowerCase" | "toUpperCase", [] if not is_marked:
                return owner.lower() if name == "toLowerCase" else owner.upper()
            case "repeat", [int() as count] if count <= 200 and not is_marked:
                return owner * count
            case "toString" | "trim", [] if is_marked or name == "toString":
                return owner
            case "split", [str() as separator] if not is_marked and separator:
                return owner.split(separator)
            case "endsWith", [str() as end] if not is_marked:
                return owner.endswith(end)
            case _:
                raise UnknownScriptError

    def _tested(self, pattern: re.Pattern[str], text: Any) -> bool:
        if not isinstance(text, str) or has_placeholder(text):
            raise UnknownScriptError
        return pattern.search(text) is not None

    # ------------------------------------------------------------ output

    def print(self, values: list[Any]) -> None:
        """Run `console.log`."""
        first = values[0] if values else ""
        if len(values) > 1 and isinstance(first, str) and "%" in first:
            if re.findall(r"%.", first) != ["%s"] * (len(values) - 1):
                raise UnknownScriptError
            pieces = first.split("%s")
            texts = [self._text(value) for value in values[1:]]
            self.out += ["".join(a + b for a, b in zip(pieces, [*texts, ""], strict=True)), "\n"]
            return
        if len(values) == 1 and isinstance(first, Lines) and first.is_text:
            lines = Dump(shown=self._shown(first.kept), style=first.style)
            self.out.append(
                lines if True in (lines.required(0), lines.required(1)) else Choice(((lines,), ("\n",)))
            )
            return
        for number, value in enumerate(values):
            self.out += [" "] if number else []
            self.out += self._inspected(value)
        self.out.append("\n")

    def _inspected(self, value: Any) -> list[Part]:
        """Return what `console.log` writes of a value."""
        match value:
            case Selection(form=Form.MAPPING):
                return [self._record(value)]
            case Lines(is_text=True):
                return [Dump(shown=self._shown(value.kept), style=value.style)]
            case Selection() | Lines():
                return [ANY]
            case _Written(parts=parts):
                return list(parts)
            case list() | dict():
                return [self._listing(value)]
            case _:
                return [self._text(value)]

    def _listing(self, value: list[Any] | dict[str, Any]) -> Part:
        """Return what Node writes of a list or an object: on one line, or on many where it is long."""
        if isinstance(value, list):
            texts, ends = [self._quoted(v) for v in value], "[]"
        else:
            texts = [f"{_key(k)}: {self._quoted(v)}" for k, v in value.items()]
            ends = "{}"
        if not texts:
            return ends
        many = f"{ends[0]}\n  " + ",\n  ".join(texts) + f"\n{ends[1]}"
        return Choice(
            (
                refilled((f"{ends[0]} {', '.join(texts)} {ends[1]}",), self._holes),
                refilled((many,), self._holes),
            )
        )

    def _quoted(self, value: Any) -> str:
        if isinstance(value, str):
            if "'" in value or "\n" in value:
                raise UnknownScriptError
            hole = self._holes.get(value)
            if isinstance(hole, Hole) and hole.kind is Kind.ANY:
                return value  # quoted, or undefined
            return f"'{value}'"
        if isinstance(value, list | dict):
            if isinstance(value, dict):
                inner = ", ".join(f"{_key(k)}: {self._quoted(v)}" for k, v in value.items())
                return f"{{ {inner} }}"
            return "[ " + ", ".join(self._quoted(v) for v in value) + " ]"
        return self._text(value)

    def _record(self, selection: Selection, *, indent: int = 0) -> Record:
        there = [
            self._environment[name] is not None and keep
            for name, keep in zip(FLAGS, selection.kept, strict=True)
        ]
        return Record(shown=self._shown(selection.kept), required=(there[0], there[1]), indent=indent)

    def _json(self, value: Any, layout: list[Any]) -> Any:
        """Run `JSON.stringify`."""
        if layout and (len(layout) != 2 or layout[0] is not _NULL or layout[1] not in (0, 1, 2, 3, 4)):
            raise UnknownScriptError
        indent = layout[1] if layout and layout[1] else None
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            return _Written((self._record(value, indent=indent or 0),))
        if value is None:
            return None
        plain = self._plain(value)
        separators = (",", ": " if indent else ":")
        return json.dumps(plain, separators=separators, indent=indent, ensure_ascii=False)

    def _plain(self, value: Any) -> Any:
        """Return a value as Python's, without what JSON leaves out."""
        match value:
            case _Null():
                return None
            case dict():
                return {key: self._plain(inner) for key, inner in value.items() if inner is not None}
            case list():
                return [None if inner is None else self._plain(inner) for inner in value]
            case str():
                hole = self._holes.get(value)
                if isinstance(hole, Hole) and hole.kind is Kind.ANY:
                    raise UnknownScriptError  # left out where it is unset
                return value
            case int() if not isinstance(value, bool):
                return value
            case _:
                raise UnknownScriptError

    def _table(self, value: Any) -> None:
        """Run `console.table`: a line with the name and the value of each entry."""
        rows = (
            value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else None
        )
        if not rows:
            raise UnknownScriptError
        blank = Hole(Kind.QUIET_LINE)
        self.out += [blank, "\n", blank, "\n", blank, "\n"]
        for key, inner in rows.items():
            cells = (
                list(inner.values())
                if isinstance(inner, dict)
                else inner
                if isinstance(inner, list)
                else [inner]
            )
            self.out += [blank, str(key)]
            for cell in cells:
                self.out += [blank, " ", self._quoted(cell), " "]
            self.out += [blank, "\n"]
        self.out += [blank, "\n"]


def _names_in(pattern: Tree) -> list[str]:
    """Return the names that a pattern binds."""
    match pattern:
        case ("name", name):
            return [name]
        case ("list", inner):
            return [name for each in inner for name in _names_in(each)]
        case ("object", keys):
            return [name for _, each in keys for name in _names_in(each)]
        case _:
            raise UnknownScriptError


def _entry(selection: Selection, name: str) -> Any:
    match selection.form:
        case Form.ITEMS:
            return [name, MARK]
        case Form.ENTRIES:
            return f"{name}={MARK}"
        case _:
            return name


def _style_of(line: str, name: str) -> Style:
    """Return the style of a line with the mark in the place of the value."""
    before, mark, after = line.partition(MARK)
    if (
        not mark
        or MARK in after
        or name not in before
        or "\n" in before
        or after.find("\n") != len(after) - 1
    ):
        raise UnknownScriptError
    return Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1])


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_$][\w$]*", key) else f"'{key}'"


def _trimmed(parts: Parts) -> Parts:
    match parts:
        case (*before, str() as last):
            return joined((*before, last.rstrip()))
        case _:
            return parts


_COMPUTED: Final[dict[str, Callable[[int, int], Any]]] = {
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right if max(abs(left), abs(right)) < 10**6 else 0,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
