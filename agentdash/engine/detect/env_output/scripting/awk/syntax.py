"""Parse programs of awk: rules with statements and expressions as nested tuples."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.scripting.token_cursor import Token, TokenCursor
from agentdash.engine.detect.env_output.unknown import UnknownError

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n|\#[^\n]*)"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<number>\d+(?:\.\d+)?)"""
    r"""|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<sign>&&|\|\||!~|[=!<>+*/%-]=|\+\+|--|[\n;{}()\[\],$~!<>=+*/%?:|-])"""
)

_REGEX: Final = re.compile(r"/((?:[^/\\\n]|\\.)+)/")

_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "/": "/"}

_MAX_TOKENS: Final = 400

Tree = tuple[Any, ...]


class Rule(msgspec.Struct, frozen=True):
    """A pattern (None: every line; `BEGIN`, `END`), and statements."""

    pattern: Tree | str | None
    action: tuple[Tree, ...]
    parameters: tuple[str, ...] | None = None
    """Of a function, whose name is the pattern."""


def parse_awk(program: str) -> tuple[Rule, ...]:
    """Return the rules of a program. Raises `UnknownError` for what is not modelled."""
    return _Parser(_tokens(program)).rules()


def _tokens(program: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(program):
        before = found[-1] if found else ("sign", "\n")
        is_operand = before[0] in ("string", "number") or before[1] in (")", "]")
        is_operand = is_operand or (before[0] == "name" and before[1] not in ("print", "return", "in"))
        if program[at] == "/" and not is_operand and (match := _REGEX.match(program, at)):
            found.append(("regex", match[1]))
        elif match := _TOKEN.match(program, at):
            if match.lastgroup != "blank":
                found.append((match.lastgroup or "", match[0]))
        else:
            raise UnknownError
        at = match.end()
    if len(found) > _MAX_TOKENS:
        raise UnknownError
    return found


class _Parser(TokenCursor):
    def _skip(self, *texts: str) -> None:
        while not self._is_end() and self._peek() in texts:
            self._at += 1

    def rules(self) -> tuple[Rule, ...]:
        found: list[Rule] = []
        self._skip("\n", ";")
        while not self._is_end():
            pattern: Tree | str | None = None
            if self._peek() in ("function", "func"):
                found.append(self._function())
                self._skip("\n", ";")
                continue
            if self._peek() in ("BEGIN", "END"):
                pattern = self._peek()
                self._at += 1
            elif self._peek() != "{":
                pattern = self._expression()
            action: tuple[Tree, ...] = (("print", (), "/dev/stdout"),)
            if self._peek() == "{":
                action = self._block()
            found.append(Rule(pattern, action))
            self._skip("\n", ";")
        return tuple(found)

    def _function(self) -> Rule:
        self._at += 1
        name = self._next()[1]
        self._need("(")
        parameters: list[str] = []
        while not self._take(")"):
            parameters.append(self._next()[1])
            self._take(",")
        self._skip("\n")
        return Rule(name, self._block(), tuple(parameters))

    def _block(self) -> tuple[Tree, ...]:
        self._need("{")
        statements: list[Tree] = []
        self._skip("\n", ";")
        while not self._take("}"):
            if self._is_end():
                raise UnknownError
            statements.append(self._statement())
            self._skip("\n", ";")
        return tuple(statements)

    def _body(self) -> tuple[Tree, ...]:
        self._skip("\n")
        return self._block() if self._peek() == "{" else (self._statement(),)

    def _statement(self) -> Tree:
        match self._peek():
            case "{":
                return ("block", self._block())
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "print" | "printf" as name:
                self._at += 1
                arguments: tuple[Tree, ...] = ()
                if self._peek() not in ("\n", ";", "}") and not self._is_end():
                    arguments = self._printed()
                return (name, arguments, self._destination())
            case "while":
                self._at += 1
                self._need("(")
                test = self._expression()
                self._need(")")
                return ("while", test, self._body())
            case "do":
                self._at += 1
                body = self._body()
                self._skip("\n", ";")
                self._need("while")
                return ("do", body, self._expression())
            case "return" | "exit" as name:
                self._at += 1
                is_bare = self._is_end() or self._peek() in ("\n", ";", "}")
                return (name, None if is_bare else self._expression())
            case "next" | "break" | "continue" as name:
                self._at += 1
                return (name,)
            case _:
                return ("expression", self._expression())

    def _destination(self) -> str:
        """Return the device that `print` writes to."""
        if not self._is_end() and self._peek() == "|":
            raise UnknownError
        if not self._take(">"):
            return "/dev/stdout"
        kind, path = self._next()
        if kind != "string" or path[1:-1] not in ("/dev/stdout", "/dev/stderr", "/dev/null"):
            raise UnknownError
        return path[1:-1]

    def _printed(self) -> tuple[Tree, ...]:
        """Return the arguments of `print`, which may stand in brackets."""
        start = self._at
        if self._take("("):
            arguments = self._list()
            if self._take(")") and (self._is_end() or self._peek() in ("\n", ";", "}")):
                return arguments
            self._at = start
        return self._list()

    def _list(self) -> tuple[Tree, ...]:
        found = [self._expression(in_print=True)]
        while self._take(","):
            self._skip("\n")
            found.append(self._expression(in_print=True))
        return tuple(found)

    def _if(self) -> Tree:
        self._need("if")
        self._need("(")
        test = self._expression()
        self._need(")")
        then = self._body()
        start = self._at
        self._skip("\n", ";")
        if self._take("else"):
            return ("if", test, then, self._body())
        self._at = start
        return ("if", test, then, ())

    def _for(self) -> Tree:
        self._need("for")
        self._need("(")
        if self._peek(1) == "in":
            name, array = self._peek(), self._peek(2)
            self._at += 3
            self._need(")")
            return ("for in", name, array, self._body())
        first = self._expression()
        self._need(";")
        test = self._expression()
        self._need(";")
        step = self._expression()
        self._need(")")
        return ("for", first, test, step, self._body())

    # ------------------------------------------------------------ expressions

    def _expression(self, *, in_print: bool = False) -> Tree:
        left = self._choice(in_print=in_print)
        if self._peek() == "|" and self._peek(1) == "getline":
            self._at += 2
            is_named = not self._is_end() and self._tokens[self._at][0] == "name"
            return ("getline", left, self._next()[1] if is_named else "")
        if self._peek() in ("=", "+=", "-="):
            sign = self._peek()
            self._at += 1
            if left[0] not in ("name", "item", "field"):
                raise UnknownError
            return ("assign", sign, left, self._expression(in_print=in_print))
        return left

    def _choice(self, *, in_print: bool) -> Tree:
        test = self._or(in_print=in_print)
        if not self._take("?"):
            return test
        first = self._choice(in_print=in_print)
        self._need(":")
        return ("choice", test, first, self._choice(in_print=in_print))

    def _or(self, *, in_print: bool) -> Tree:
        left = self._and(in_print=in_print)
        while self._take("||"):
            self._skip("\n")
            left = ("or", left, self._and(in_print=in_print))
        return left

    def _and(self, *, in_print: bool) -> Tree:
        left = self._in(in_print=in_print)
        while self._take("&&"):
            self._skip("\n")
            left = ("and", left, self._in(in_print=in_print))
        return left

    def _in(self, *, in_print: bool) -> Tree:
        left = self._matched(in_print=in_print)
        while self._take("in"):
            left = ("in", left, self._peek())
            self._at += 1
        return left

    def _matched(self, *, in_print: bool) -> Tree:
        left = self._compared(in_print=in_print)
        while self._peek() in ("~", "!~"):
            sign = self._peek()
            self._at += 1
            left = (sign, left, self._compared(in_print=in_print))
        return left

    def _compared(self, *, in_print: bool) -> Tree:
        left = self._joined()
        signs = ("==", "!=", "<", "<=", ">=") if in_print else ("==", "!=", "<", "<=", ">=", ">")
        if self._peek() in signs:
            sign = self._peek()
            self._at += 1
            return ("compare", sign, left, self._joined())
        return left

    def _joined(self) -> Tree:
        parts = [self._sum()]
        while not self._is_end() and self._begins_operand():
            parts.append(self._sum())
        return parts[0] if len(parts) == 1 else ("join", tuple(parts))

    def _begins_operand(self) -> bool:
        kind, text = self._tokens[self._at]
        if kind == "name":
            return text not in ("in", "else", "getline")
        return kind in ("string", "number") or text in ("(", "$")

    def _sum(self) -> Tree:
        left = self._unary()
        while self._peek() in ("+", "-", "*", "/", "%"):
            sign = self._peek()
            self._at += 1
            left = ("compute", sign, left, self._unary())
        return left

    def _unary(self) -> Tree:
        if self._take("!"):
            return ("not", self._unary())
        if self._take("-"):
            return ("compute", "-", ("number", "0"), self._unary())
        if self._peek() in ("++", "--"):
            sign = self._peek()
            self._at += 1
            return ("step", sign, self._unary(), True)
        value = self._primary()
        if self._peek() in ("++", "--"):
            sign = self._peek()
            self._at += 1
            return ("step", sign, value, False)
        return value

    def _primary(self) -> Tree:
        kind, text = self._next()
        match kind:
            case "string":
                return ("text", _unescaped(text[1:-1]))
            case "number" | "regex":
                return (kind, text)
            case "name":
                return self._named(text)
            case _ if text == "(":
                inner = self._expression()
                if self._peek() == ",":
                    raise UnknownError
                self._need(")")
                return ("group", inner)
            case _ if text == "$":
                return ("field", self._primary())
            case _:
                raise UnknownError

    def _named(self, name: str) -> Tree:
        if self._take("("):
            arguments: tuple[Tree, ...] = ()
            if not self._take(")"):
                arguments = self._list()
                self._need(")")
            return ("call", name, arguments)
        if self._take("["):
            index = self._expression()
            self._need("]")
            return ("item", name, index)
        if name in ("getline", "function", "delete", "do", "switch"):
            raise UnknownError
        return ("call", name, ()) if name == "length" else ("name", name)


def _unescaped(text: str) -> str:
    if re.search(r"\\[^nt\\\"/]", text):
        raise UnknownError
    return re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], text)
