"""Literal one-liners in Python, Node, jq and awk that print variables of their environment."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Final

from agentdash.sandbox.flags.parts import (
    ANYTHING,
    FLAGS,
    Dump,
    FlagLine,
    Hole,
    Parts,
    Record,
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


class _UnknownError(Exception):
    """The program does what is not followed."""


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
        return call.ends(Hole.QUIET, status=None)
    if _WARNED.search(code):
        return call.unknown()
    try:
        return call.ends(*_Program(call.state).run(ast.parse(code.lstrip("\n")).body))
    except (_UnknownError, SyntaxError, ValueError, RecursionError, MemoryError):
        return call.unknown()


class _Program:
    """A Python program that prints variables, in straight lines and in loops over names."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._variables: dict[str, Parts | None] = {}

    def run(self, statements: list[ast.stmt]) -> Parts:
        """Return what statements print."""
        return joined(map(self._statement, statements), "")

    def _statement(self, statement: ast.stmt) -> Parts:
        match statement:
            case ast.Import(names=names) if all(n.name in _MODULES and not n.asname for n in names):
                return ()
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in _MODULES:
                self._variables[name] = self._value(value)
                return ()
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=words, keywords=[])):
                return (*joined(_shown(self._value(word)) for word in words), "\n")
            case ast.For(
                target=target, iter=ast.List(elts=names) | ast.Tuple(elts=names), body=body, orelse=[]
            ):
                return joined((self._round(target, name, body) for name in names), "")
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                return (self._listed(target, ast.unparse(iterable), body),)
            case _:
                raise _UnknownError

    def _round(self, target: ast.expr, name: ast.expr, body: list[ast.stmt]) -> Parts:
        if not isinstance(target, ast.Name):
            raise _UnknownError
        self._variables[target.id] = (_text(name),)
        return self.run(body)

    def _listed(self, target: ast.expr, iterable: str, body: list[ast.stmt]) -> Dump:
        """Return what a loop over the environment prints, if that is `NAME=value` of some variables."""
        conditions: list[ast.expr] = []
        match body:
            case [ast.If(test=test, body=inner, orelse=[])]:
                conditions, body = [test], inner
        key, *values = (name.strip("() ") for name in ast.unparse(target).split(","))
        if not _is_environment(iterable) or bool(values) != ("items" in iterable):
            raise _UnknownError
        lines = self._chosen(key, conditions)
        for line in lines:
            value = self._state.world.value(line.name) or ()
            self._variables |= {key: (line.name,), **dict.fromkeys(values, value)}
            if self.run(body) != joined(((f"{line.name}",), ("=",), value, ("\n",)), ""):
                raise _UnknownError
        return Dump(lines)

    def _chosen(self, key: str, conditions: list[ast.expr]) -> tuple[FlagLine, ...]:
        """Return the lines of those flags for whose names conditions hold."""
        lines = self._state.world.lines(*FLAGS)
        return tuple(line for line in lines if all(_holds(c, key, line.name) for c in conditions))

    def _value(self, expression: ast.expr) -> Parts | None:
        """Return the text of an expression; None is Python's."""
        match expression:
            case ast.Constant(value=None):
                return None
            case ast.Name(id=name) if name in self._variables:
                return self._variables[name]
            case ast.JoinedStr(values=values):
                return joined(map(self._formatted, values), "")
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                value = self._value(first)
                return self._value(second) if value in (None, (), ("",)) else value
            case ast.BinOp(op=ast.Add(), left=first, right=second):
                return _concatenated(self._value(first), self._value(second))
            case ast.Call(func=function, args=[key, *default], keywords=[]) if (
                ast.unparse(function) in _GETTERS
            ):
                value = _variable(self._state, literal(self._value(key)) or "")
                return self._value(default[0]) if value is None and default else value
            case ast.Call(func=ast.Name(id="repr"), args=[inner]):
                return _quoted(self._value(inner))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="dumps"), args=[inner]):
                if (value := self._value(inner)) and isinstance(value[0], Record):
                    return value
                raise _UnknownError
            case ast.Call(func=ast.Name(id="dict"), args=[inner]) if ast.unparse(inner) == "os.environ":
                return (Record(self._chosen("", [])),)
            case ast.DictComp(key=key, value=value, generators=[loop]):
                pair = f"({ast.unparse(key)}, {ast.unparse(value)})"
                if pair != ast.unparse(loop.target) or not _is_environment(ast.unparse(loop.iter)):
                    raise _UnknownError
                return (Record(self._chosen(ast.unparse(key), loop.ifs)),)
            case _:
                return (_text(expression),)

    def _formatted(self, piece: ast.expr) -> Parts:
        match piece:
            case ast.FormattedValue(value=value, conversion=-1 | 115, format_spec=None):
                return _shown(self._value(value))
            case ast.FormattedValue(value=value, conversion=114, format_spec=None):
                return _shown(_quoted(self._value(value)))
            case _:
                return (_text(piece),)


_GETTERS: Final = ("os.environ.get", "os.getenv")


def _is_environment(iterable: str) -> bool:
    return re.fullmatch(r"(?:sorted\()?os\.environ(?:\.(?:items|keys)\(\))?\)?", iterable) is not None


def _text(expression: ast.expr) -> str:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    raise _UnknownError


def _shown(value: Parts | None) -> Parts:
    return ("None",) if value is None else value


def _quoted(value: Parts | None) -> Parts | None:
    return None if value is None else ("'", *value, "'")


def _concatenated(first: Parts | None, second: Parts | None) -> Parts:
    if first is None or second is None:
        raise _UnknownError
    return first + second


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


def awk(call: Call) -> list[Outcome]:
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
}
