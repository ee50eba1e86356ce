"""Parse programs of jq: nested tuples."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.scripting.token_cursor import Token, TokenCursor
from agentdash.engine.detect.env_output.unknown import UnknownError

Tree = tuple[Any, ...]

_TOKEN: Final = re.compile(
    r"(?P<blank>\s+|#[^\n]*)"
    r"|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<variable>\$[A-Za-z_]\w*)"
    r"|(?P<format>@[a-z]\w*)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\?//|//=|\|=|\+=|-=|==|!=|<=|>=|//|\.\.|[|,=<>+\-*/%.:;()\[\]{}?])"
)
_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("or",),
    ("and",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Binary operators behind `|`, `,`, `//` and assignments, the loosest first."""
_ASSIGNMENTS: Final = ("=", "|=", "+=", "//=")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_KEYWORDS: Final = frozenset(("then", "elif", "else", "end", "as", "and", "or", "def", "reduce", "foreach"))
_RESERVED: Final = _KEYWORDS | {"if", "try", "catch", "label", "import", "include", "__loc__"}
"""Words that name no variable before jq 1.7."""
_MAX_TOKENS: Final = 500


def parse_jq(code: str) -> Tree:
    """Return the filter of a program. Raises `UnknownError` for what is not modelled."""
    return _Parser(_tokens(code)).whole()


def _tokens(code: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(code):
        if code[at] == '"':
            stop = _string_end(code, at)
            found.append(("string", code[at + 1 : stop - 1]))
            at = stop
            continue
        match = _TOKEN.match(code, at)
        if match is None or len(found) > _MAX_TOKENS or (match["variable"] or "")[1:] in _RESERVED:
            raise UnknownError
        if match.lastgroup != "blank":
            found.append((match.lastgroup or "", match[0]))
        at = match.end()
    return found


def _string_end(code: str, start: int) -> int:
    """Return the offset behind a text that may hold expressions with texts in them."""
    at = start + 1
    while at < len(code):
        if code.startswith("\\(", at):
            at = _closing(code, at + 2)
        elif code[at] == "\\":
            at += 2
        elif code[at] == '"':
            return at + 1
        else:
            at += 1
    raise UnknownError


def _closing(code: str, start: int) -> int:
    """Return the offset behind the bracket that closes one that was opened before `start`."""
    depth, at = 1, start
    while at < len(code):
        if code[at] == '"':
            at = _string_end(code, at)
            continue
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
        if depth == 0:
            return at
    raise UnknownError


class _Parser(TokenCursor):
    def whole(self) -> Tree:
        tree = self._pipe()
        if not self._is_end():
            raise UnknownError
        return tree

    def _pipe(self) -> Tree:
        if self._take("def"):
            return self._definition()
        left = self._comma()
        if self._peek() == "as":
            raise UnknownError
        if self._take("|"):
            return ("pipe", left, self._pipe())
        return left

    def _definition(self) -> Tree:
        _, name = self._next()
        parameters: list[str] = []
        if self._take("("):
            while not self._take(")"):
                parameters.append(self._next()[1])
                self._take(";")
        self._need(":")
        body = self._pipe()
        self._need(";")
        return ("def", name, tuple(parameters), body, self._pipe())

    def _comma(self) -> Tree:
        left = self._default()
        while self._take(","):
            left = ("comma", left, self._default())
        return left

    def _default(self) -> Tree:
        left = self._assignment()
        if self._take("//"):
            return ("default", left, self._default())
        return left

    def _assignment(self) -> Tree:
        left = self._binary(0)
        if self._peek() in _ASSIGNMENTS:
            sign = self._next()[1]
            return ("assign", sign, left, self._default())
        return left

    def _binary(self, level: int) -> Tree:
        if level == len(_LEVELS):
            return self._postfix()
        left = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            sign = self._next()[1]
            left = ("binary", sign, left, self._binary(level + 1))
        return left

    def _postfix(self) -> Tree:
        tree = self._term()
        while True:
            if self._is_field():
                tree = ("at", tree, ("text", self._next()[1][1:]))
            elif self._peek() == "." and self._peek(1) == "[":
                self._at += 1
            elif self._peek() == "." and self._kind(1) == "string":
                self._at += 1
                tree = ("at", tree, self._text(self._next()[1], ""))
            elif self._take("["):
                tree = self._subscript(tree)
            elif self._take("?"):
                tree = ("try", tree)
            elif self._take("as"):
                parts = self._pattern(("variable", "$__whole"))
                self._need("|")
                body = self._pipe()
                for source, name in reversed(parts):
                    body = ("bind", source, name, body)
                return ("bind", tree, "$__whole", body)
            else:
                return tree

    def _pattern(self, whole: Tree) -> list[tuple[Tree, str]]:
        """Return what a value is bound to: parts of it, and variables."""
        kind, text = self._next()
        found: list[tuple[Tree, str]] = []
        number = 0
        if kind == "variable":
            return [(whole, text)]
        if text not in ("{", "["):
            raise UnknownError
        while not self._take("}" if text == "{" else "]"):
            if text == "[":
                found += self._pattern(("at", whole, ("number", number)))
                number += 1
            else:
                kind, name = self._next()
                part = ("at", whole, ("text", name.removeprefix("$")))
                if kind not in ("name", "string", "variable") or "\\" in name:
                    raise UnknownError
                found += [(part, name)] if kind == "variable" else []
                found += self._pattern(part) if self._take(":") else []
            self._take(",")
        return found

    def _is_field(self) -> bool:
        return not self._is_end() and self._kind(0) == "field"

    def _subscript(self, tree: Tree) -> Tree:
        if self._take("]"):
            return ("each", tree)
        key = ("number", 0) if self._peek() == ":" else self._pipe()
        if self._take(":"):
            stop = None if self._peek() == "]" else self._pipe()
            self._need("]")
            return ("slice", tree, key, stop)
        self._need("]")
        return ("at", tree, key)

    def _term(self) -> Tree:
        kind, text = self._next()
        match kind:
            case "string":
                return self._text(text, "")
            case "format":
                if self._kind(0) == "string":
                    return self._text(self._next()[1], text)
                return ("call", text, ())
            case "number" if "." not in text:
                return ("number", int(text))
            case "variable":
                return ("variable", text)
            case "field":
                return ("at", ("input",), ("text", text[1:]))
            case "name":
                return self._named(text)
            case _ if text == ".":
                if self._kind(0) == "string":
                    return ("at", ("input",), self._text(self._next()[1], ""))
                return ("input",)
            case _ if text == "(":
                inner = self._pipe()
                self._need(")")
                return inner
            case _ if text == "[":
                if self._take("]"):
                    return ("list", None)
                inner = self._pipe()
                self._need("]")
                return ("list", inner)
            case _ if text == "{":
                return self._object()
            case _ if text == "-":
                return ("binary", "-", ("number", 0), self._postfix())
            case _:
                raise UnknownError

    def _named(self, name: str) -> Tree:
        match name:
            case "if":
                return self._if()
            case "reduce":
                source = self._term_of_reduce()
                variable = self._next()[1]
                self._need("(")
                first = self._pipe()
                self._need(";")
                update = self._pipe()
                self._need(")")
                return ("reduce", source, variable, first, update)
            case "null" | "true" | "false":
                return ("constant", {"null": None, "true": True, "false": False}[name])
            case _ if name in _KEYWORDS:
                raise UnknownError
            case _:
                return ("call", name, self._arguments())

    def _term_of_reduce(self) -> Tree:
        tree = self._term()
        while not self._take("as"):
            if self._take("["):
                tree = self._subscript(tree)
            elif self._is_field():
                tree = ("at", tree, ("text", self._next()[1][1:]))
            else:
                raise UnknownError
        return tree

    def _arguments(self) -> tuple[Tree, ...]:
        found: list[Tree] = []
        if self._take("("):
            while not self._take(")"):
                found.append(self._pipe())
                self._take(";")
        return tuple(found)

    def _if(self) -> Tree:
        test = self._pipe()
        self._need("then")
        then = self._pipe()
        if self._take("elif"):
            return ("if", test, then, self._if())
        otherwise: Tree = ("input",)
        if self._take("else"):
            otherwise = self._pipe()
        self._need("end")
        return ("if", test, then, otherwise)

    def _object(self) -> Tree:
        entries: list[Tree] = []
        while not self._take("}"):
            entries.append(self._entry())
            self._take(",")
        return ("object", tuple(entries))

    def _entry(self) -> Tree:
        kind, text = self._next()
        match kind:
            case "name":
                key: Tree = ("text", text)
                short: Tree = ("at", ("input",), key)
            case "variable":
                key, short = ("text", text[1:]), ("variable", text)
            case "string":
                key = self._text(text, "")
                short = ("at", ("input",), key)
            case _ if text == "(":
                key = self._pipe()
                self._need(")")
                short = ()
            case _:
                raise UnknownError
        if not self._take(":"):
            if not short:
                raise UnknownError
            return (key, short)
        value = self._postfix()
        while self._take("//"):
            value = ("default", value, self._postfix())
        while self._take("|"):
            value = ("pipe", value, self._postfix())
        return (key, value)

    def _text(self, source: str, form: str) -> Tree:
        """Return a text with the expressions in it."""
        parts: list[Tree] = []
        plain, at = "", 0
        while at < len(source):
            if source.startswith("\\(", at):
                stop = _closing(source, at + 2)
                inner = parse_jq(source[at + 2 : stop - 1])
                parts += [("text", plain), inner]
                plain, at = "", stop
            elif source[at] == "\\":
                if source[at + 1 : at + 2] not in _ESCAPES:
                    raise UnknownError
                plain += _ESCAPES[source[at + 1]]
                at += 2
            else:
                plain += source[at]
                at += 1
        return ("template", form, *parts, ("text", plain)) if parts else ("text", plain)
