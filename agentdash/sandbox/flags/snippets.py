"""Literal one-liners in Python, Node, jq and awk that print variables of their environment."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from agentdash.model.observation import SANDBOX_FLAG
from agentdash.sandbox.flags.parts import (
    ANYTHING,
    FLAGS,
    Dump,
    FlagLine,
    Hole,
    Layout,
    Part,
    Parts,
    Record,
    are_equal,
    joined,
    literal,
)
from agentdash.sandbox.flags.state import Call, Outcome, State

_SHOWING: Final = re.compile(r"env|subprocess|system|CODEX|exec|open|\[::|\\x|chr\(|import_module")
"""A Python program without one of these prints nothing of its environment, nor of files."""
_WARNED: Final = re.compile(r"\\[^nt\\'\"\n]|\d(?:and|else|for|if|in|is|not|or)\b")
"""What Python's parser warns of, on our own terminal."""
_MAX_CODE: Final = 4_000
"""Characters of a program that is read."""
_MODULES: Final = ("os", "sys", "json", "socket", "platform", "getpass")


_OF_OS: Final = ("environ", "getenv")


class _UnknownError(Exception):
    """The program does what is not followed."""


class _MissingError(Exception):
    """The program asks for a variable that is not set, and ends with a traceback."""


def _code(call: Call, *options: str) -> str | None:
    """Return the program behind an option, or in a here-document; None if it is not known."""
    code = literal(call.stdin) if call.texts in ([], ["-"]) else None
    if len(call.texts) == 2 and call.texts[0] in options:
        code = call.texts[1]
    return None if code is None or len(code) > _MAX_CODE else code


def _variable(state: State, name: str) -> Parts | None:
    """Return the value of a variable of the environment; None if it is unset."""
    return state.world.value(name) if name in FLAGS else ANYTHING


# ---------------------------------------------------------------- Python


def _python(call: Call) -> list[Outcome]:
    code = _code(call, "-c")
    if code is None:
        return call.unknown()
    if not _SHOWING.search(code):
        return [Outcome(call.state.changed(written=None), (Hole.QUIET,), None)]
    if _WARNED.search(code):
        return call.unknown()
    try:
        return call.ends(*_Program(call.state).run(ast.parse(code.lstrip("\n")).body))
    except _MissingError:
        return call.ends(Hole.ANY, "Traceback (most recent call last):\n", Hole.ANY, status=1)
    except (_UnknownError, SyntaxError, ValueError, RecursionError, MemoryError):
        return call.unknown()


Value: TypeAlias = "Parts | bool | list[Value] | dict[str, Value] | None"
"""What an expression gives: text, True or False, a list or tuple, a dictionary, None."""


class _Program:
    """A Python program that prints variables: assignments, conditions, and loops over names."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._variables: dict[str, Value] = {}
        self._shown: Parts | None = None
        """What stands for the value of any variable, to see how it is written."""

    def run(self, statements: list[ast.stmt]) -> Parts:
        """Return what statements print."""
        return joined(map(self._statement, statements), "")

    def _statement(self, statement: ast.stmt) -> Parts:
        match statement:
            case ast.Import(names=names) if all(n.name in _MODULES and not n.asname for n in names):
                return ()
            case ast.ImportFrom(module="os", names=names) if all(n.name in _OF_OS for n in names):
                return ()
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in _MODULES + _OF_OS:
                self._variables[name] = self._value(value)
                return ()
            case ast.If(test=test, body=body, orelse=otherwise):
                return self.run(body if self._is_true(test) else otherwise)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=words, keywords=keywords)):
                options = {option.arg: _text(option.value) for option in keywords}
                if not options.keys() <= {"sep", "end"}:
                    raise _UnknownError
                printed = joined((_shown(self._value(word)) for word in words), options.get("sep", " "))
                return (*printed, options.get("end", "\n"))
            case ast.Expr(value=ast.ListComp(elt=element, generators=[loop])):
                return self._looped(loop.target, loop.iter, loop.ifs, [ast.Expr(element)])
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                match body:
                    case [ast.If(test=test, body=inner, orelse=[])]:
                        return self._looped(target, iterable, [test], inner)
                return self._looped(target, iterable, [], body)
            case _:
                raise _UnknownError

    def _looped(
        self, target: ast.expr, iterable: ast.expr, conditions: list[ast.expr], body: list[ast.stmt]
    ) -> Parts:
        """Return what a loop prints."""
        if self._is_environment(iterable):
            return (self._listed(target, "items" in ast.unparse(iterable), conditions, body),)
        return joined((self.run(body) for _ in self._rounds(target, iterable, conditions)), "")

    def _rounds(self, target: ast.expr, iterable: ast.expr, conditions: list[ast.expr]) -> Iterator[None]:
        """Go through a list, with the variable of a loop set."""
        values = self._value(iterable)
        if not isinstance(target, ast.Name) or not isinstance(values, list):
            raise _UnknownError
        for value in values:
            self._variables[target.id] = value
            if all(map(self._is_true, conditions)):
                yield

    def _listed(
        self, target: ast.expr, has_values: bool, conditions: list[ast.expr], body: list[ast.stmt]
    ) -> Dump:
        """Return what a loop over the environment prints, if that is a line for each variable."""
        key, *values = (name.strip("() ") for name in ast.unparse(target).split(","))
        if bool(values) != has_values:
            raise _UnknownError

        def written(name: str, value: Parts) -> Parts:
            self._variables |= {key: (name,), **dict.fromkeys(values, value)}
            return self.run(body)

        self._shown = ("\0",)
        name = SANDBOX_FLAG
        text = literal(written(name, ("\0",))) or ""
        self._shown = None
        match = re.fullmatch(rf"([^\0\n]*){name}([^\0\n]+)\0([^\0\n]*)\n", text)
        if match is None or name in match[0].replace(name, "", 1):
            raise _UnknownError
        before, between, after = match.groups()
        lines = self._chosen(key, conditions)
        for line in lines:
            value = self._state.world.value(line.name) or ()
            entry = ((f"{before}{line.name}{between}",), value, (f"{after}\n",))
            if _merged(written(line.name, value)) != _merged(joined(entry, "")):
                raise _UnknownError
        return Dump(lines, layout=Layout(*map(re.escape, match.groups())))

    def _chosen(self, key: str, conditions: list[ast.expr]) -> tuple[FlagLine, ...]:
        """Return the lines of those flags for whose names conditions hold."""
        lines = self._state.world.lines(*FLAGS)
        return tuple(line for line in lines if all(_holds(c, key, line.name) for c in conditions))

    def _variable(self, key: ast.expr) -> Parts | None:
        """Return the value of a variable of the environment; None if it is unset."""
        value = self._value(key)
        name = literal(value) if isinstance(value, tuple) else None
        return self._shown if self._shown is not None else _variable(self._state, name or "")

    def _is_environment(self, expression: ast.expr) -> bool:
        """Return whether an expression gives the names or the items of the environment."""
        match expression:
            case ast.Call(func=ast.Name(id="sorted"), args=[inner], keywords=[]):
                return self._is_environment(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="items" | "keys"), args=[]):
                return self._is_environment(inner)
            case ast.Name(id=name) if name in self._variables:
                return self._variables[name] == (Record(self._chosen("", [])),)
            case _:
                return ast.unparse(expression) in ("os.environ", "environ")

    def _is_true(self, expression: ast.expr) -> bool:
        """Return whether a condition holds."""
        match expression:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return not self._is_true(inner)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]) if self._is_environment(right):
                value = self._value(left)
                if not isinstance(value, tuple) or (name := literal(value)) not in FLAGS:
                    raise _UnknownError
                return self._state.world.value(name or "") is not None
            case ast.Compare():
                raise _UnknownError
        value = self._value(expression)
        if not isinstance(value, tuple):
            return bool(value)
        if (is_empty := are_equal(value, "")) is None:
            raise _UnknownError
        return not is_empty

    def _value(self, expression: ast.expr) -> Value:
        """Return what an expression gives."""
        match expression:
            case ast.Constant(value=None | True | False as value):
                return value
            case ast.Name(id=name) if name in self._variables:
                return self._variables[name]
            case ast.JoinedStr(values=values):
                return joined(map(self._formatted, values), "")
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                return self._value(first) if self._is_true(first) else self._value(second)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self._value(body if self._is_true(test) else otherwise)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return self._is_true(expression)
            case ast.List(elts=values) | ast.Tuple(elts=values):
                return [self._value(value) for value in values]
            case ast.Dict(keys=keys, values=values):
                names = [_text(key) for key in keys if key is not None]
                return dict(zip(names, map(self._value, values), strict=True))
            case ast.BinOp(op=ast.Add(), left=first, right=second):
                return _concatenated(self._value(first), self._value(second))
            case ast.Subscript(value=inner, slice=key) if self._is_environment(inner):
                if (found := self._variable(key)) is None:
                    raise _MissingError
                return found
            case ast.DictComp(key=key, value=value, generators=[loop]):
                return self._dictionary(key, value, loop)
            case (
                ast.GeneratorExp(elt=element, generators=[loop])
                | ast.ListComp(elt=element, generators=[loop])
            ):
                return [self._value(element) for _ in self._rounds(loop.target, loop.iter, loop.ifs)]
            case ast.Call(func=function, args=words, keywords=options):
                return self._called(function, words, has_options=bool(options))
            case _:
                return self._record(expression)

    def _record(self, expression: ast.expr) -> Parts:
        if self._is_environment(expression):
            return (Record(self._chosen("", [])),)
        return (_text(expression),)

    def _called(self, function: ast.expr, words: list[ast.expr], *, has_options: bool) -> Value:
        """Return what a call gives."""
        match ast.unparse(function), function, words:
            case "os.environ.get" | "environ.get" | "os.getenv" | "getenv", _, [key, *default]:
                value = self._variable(key)
                return self._value(default[0]) if value is None and default else value
            case "repr", _, [inner]:
                return _quoted(self._value(inner))
            case "dict", _, [inner] if self._is_environment(inner):
                return self._record(inner)
            case "json.dumps", _, [inner]:
                dumped = self._value(inner)
                if isinstance(dumped, dict) and not has_options:
                    return _dumped(dumped)
                if isinstance(dumped, tuple) and dumped and isinstance(dumped[0], Record):
                    return dumped
            case _, ast.Attribute(value=ast.Constant(value=str(separator)), attr="join"), [inner]:
                values = self._value(inner)
                if isinstance(values, list) and all(isinstance(value, tuple) for value in values):
                    return joined((value for value in values if isinstance(value, tuple)), separator)
        raise _UnknownError

    def _dictionary(self, key: ast.expr, value: ast.expr, loop: ast.comprehension) -> Value:
        if not self._is_environment(loop.iter):
            rounds = self._rounds(loop.target, loop.iter, loop.ifs)
            pairs = [(self._value(key), self._value(value)) for _ in rounds]
            return {literal(name) or "": value for name, value in pairs if isinstance(name, tuple)}
        pair = f"({ast.unparse(key)}, {ast.unparse(value)})"
        if pair != ast.unparse(loop.target) or "items" not in ast.unparse(loop.iter):
            raise _UnknownError
        return (Record(self._chosen(ast.unparse(key), loop.ifs)),)

    def _formatted(self, piece: ast.expr) -> Parts:
        match piece:
            case ast.FormattedValue(value=value, conversion=-1 | 115, format_spec=None):
                return _shown(self._value(value))
            case ast.FormattedValue(value=value, conversion=114, format_spec=None):
                return _shown(_quoted(self._value(value)))
            case _:
                return (_text(piece),)


def _text(expression: ast.expr) -> str:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    raise _UnknownError


def _shown(value: Value) -> Parts:
    """Return how `print` writes a value."""
    match value:
        case None | True | False:
            return (str(value),)
        case tuple():
            return value
        case dict():
            items = ((f"'{name}': ", *_shown(_quoted(each))) for name, each in value.items())
            return ("{", *joined(items, ", "), "}")
        case _:
            raise _UnknownError


def _quoted(value: Value) -> Value:
    return ("'", *value, "'") if isinstance(value, tuple) else value


def _dumped(value: dict[str, Value]) -> Parts:
    """Return how `json.dumps` writes a dictionary of text."""
    items: list[Parts] = []
    for name, each in value.items():
        words = {None: "null", True: "true", False: "false"}
        if not isinstance(each, tuple | bool | None):
            raise _UnknownError
        items.append((f'"{name}": ', *(('"', *each, '"') if isinstance(each, tuple) else (words[each],))))
    return ("{", *joined(items, ", "), "}")


def _merged(parts: Parts) -> Parts:
    """Return parts with neighbouring texts as one."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(last := found[-1], str):
            found[-1] = last + part
        else:
            found.append(part)
    return tuple(found)


def _concatenated(first: Value, second: Value) -> Parts:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return first + second
    raise _UnknownError


def _holds(condition: ast.expr, key: str, name: str) -> bool:
    """Return whether a condition on the name of a variable holds."""
    if isinstance(condition, ast.BoolOp):
        found = [_holds(value, key, name) for value in condition.values]
        return all(found) if isinstance(condition.op, ast.And) else any(found)
    text = ast.unparse(condition)
    if match := re.fullmatch(rf"'(\w+)' in {key}", text):
        return match[1] in name
    if match := re.fullmatch(rf"{key}\.startswith\('(\w+)'\)", text):
        return name.startswith(match[1])
    if match := re.fullmatch(rf"{key} in [(\[{{]((?:'\w+'(?:, )?)+),?[)\]}}]", text):
        return f"'{name}'" in match[1]
    raise _UnknownError


# ---------------------------------------------------------------- expressions of Node, jq and awk

_STRING: Final = r"(?P<quote>['\"])(?P<text>[^'\"\\\n]*)(?P=quote)"
_NODE: Final = re.compile(
    rf"\s*(?:{_STRING}|process\.env(?:\.(?P<name>\w+)|\[['\"](?P<key>\w+)['\"]\])|(?P<operator>\?\?|\|\||\+|,))\s*"
)
_AWK: Final = re.compile(rf"\s*(?:{_STRING}|ENVIRON\[\"(?P<name>\w+)\"\](?P<key>)|(?P<operator>,))\s*")
_JQ: Final = re.compile(r"\s*(?:env|\$ENV)\.(?P<name>\w+)\s*(?://\s*(?P<default>\"[^\"\\()]*\"))?\s*")
_OBJECT: Final = re.compile(r"\s*JSON\.stringify\(\{([^{}]*)\}\)\s*")
_CALL: Final = re.compile(r"\s*console\.log\(([^;\n]*)\)\s*(?:;|\n|$)\s*")


def _terms(expression: str, token: re.Pattern[str], state: State) -> Iterator[Parts | str | None]:
    """Yield text, values of variables (None: unset) and operators of an expression."""
    at = 0
    while at < len(expression):
        if (found := token.match(expression, at)) is None:
            raise _UnknownError
        at = found.end()
        if found["operator"] or found["quote"]:
            yield found["operator"] or (found["text"],)
        else:
            yield _variable(state, found["name"] or found["key"])


def _logged(arguments: str, state: State) -> Parts:
    """Return what `console.log` prints of its arguments."""
    if arguments.strip() in ("process.env", "JSON.stringify(process.env)"):
        return (Record(state.world.lines(*FLAGS)),)
    if members := _OBJECT.fullmatch(arguments):
        return _stringified(members[1].split(","), state)
    if template := re.fullmatch(r"\s*`([^`\\]*)`\s*", arguments):
        pieces = re.split(r"\$\{([^{}]*)\}", template[1])
        return joined(((p,) if not n % 2 else _logged(p, state) for n, p in enumerate(pieces)), "")
    words: list[Parts] = []
    operator: Parts | str | None = ","
    before: Parts | None = None
    for number, term in enumerate(_terms(arguments, _NODE, state)):
        if isinstance(term, str) != bool(number % 2):
            raise _UnknownError
        if number % 2:
            operator = term if operator == "," or term in (",", operator) else "?"
            continue
        value = ("undefined",) if term is None or isinstance(term, str) else term
        if operator == ",":
            words.append(value)
        elif operator == "+":
            words[-1] += value
        elif operator == "?" or before == ANYTHING:
            raise _UnknownError
        elif before is None or (operator == "||" and before == ("",)):
            words[-1] = value
        before = None if isinstance(term, str) else term
    return joined(words)


def _stringified(members: list[str], state: State) -> Parts:
    """Return what `JSON.stringify({key: value, …})` gives: what is undefined is left out."""
    found: list[Parts] = []
    for member in members:
        if (match := re.fullmatch(r"\s*(['\"]?)(\w+)\1\s*:(.*)", member)) is None:
            raise _UnknownError
        value = _logged(match[3], state)
        found += [] if value == ("undefined",) else [(f'"{match[2]}":"', *value, '"')]
    return ("{", *joined(found, ","), "}")


def _node(call: Call) -> list[Outcome]:
    code = _code(call, "-e", "-p", "-pe")
    if code is None:
        return call.unknown()
    is_value = call.texts[:1] in (["-p"], ["-pe"])
    if not is_value and _CALL.sub("", code).strip():
        return call.unknown()
    calls = [code] if is_value else _CALL.findall(code)
    try:
        return call.ends(*joined(((*_logged(each, call.state), "\n") for each in calls), ""))
    except _UnknownError:
        return call.unknown()


def _jq(call: Call) -> list[Outcome]:
    """Run `jq -n env.NAME`, or `jq -n env`."""
    options, program = call.texts if len(call.texts) == 2 else ("", "")
    if not re.fullmatch(r"-r?nr?", options or "") or program is None:
        return call.unknown()
    if program.strip() in ("env", "$ENV"):
        return call.ends(Record(call.state.world.lines(*FLAGS)), "\n")
    if (match := _JQ.fullmatch(program)) is None or match["name"] not in FLAGS:
        return call.unknown()
    quote = "" if "r" in (options or "") else '"'
    if (value := call.state.world.value(match["name"])) is not None:
        return call.ends(quote, *value, quote, "\n")
    default = match["default"] or "null"
    return call.ends(default if quote else default.strip('"'), "\n")


def _awk(call: Call) -> list[Outcome]:
    """Run `awk 'BEGIN { print … }'`."""
    match = re.fullmatch(
        r"\s*BEGIN\s*\{\s*print\b([^{};|>]*);?\s*\}\s*", "".join(t or "" for t in call.texts)
    )
    if match is None or len(call.texts) != 1:
        return call.unknown()
    words: list[Parts] = [()]
    try:
        for term in _terms(match[1], _AWK, call.state):
            if term == ",":
                words.append(())
            else:
                words[-1] += term if isinstance(term, tuple) else ()
    except _UnknownError:
        return call.unknown()
    return call.ends(*joined(words), "\n")


SNIPPETS: Final[dict[str, Callable[[Call], list[Outcome]]]] = {
    **dict.fromkeys(("python", "python3"), _python),
    "node": _node,
    "jq": _jq,
    "awk": _awk,
}
