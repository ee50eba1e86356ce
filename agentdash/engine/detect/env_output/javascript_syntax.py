"""Parse small programs of JavaScript: statements and expressions as nested tuples."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.javascript_tokens import (
    REGEX,
    tokenize,
    unescaped,
)
from agentdash.engine.detect.env_output.token_cursor import TokenCursor
from agentdash.engine.detect.env_output.unknown import UnknownError

_BINARY: Final[tuple[tuple[str, ...], ...]] = (
    ("??", "||"),
    ("&&",),
    ("===", "!==", "==", "!="),
    ("<", ">", "<=", ">=", "in", "instanceof"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Binary operators, the loosest first."""

Tree = tuple[Any, ...]


def parse_script(code: str) -> tuple[Tree, ...]:
    """Return the statements of a program. Raises `UnknownError` for what is not modelled."""
    return _Parser(tokenize(code)).statements()


def parse_expression(code: str) -> Tree:
    """Return an expression. Raises `UnknownError` for what is not modelled."""
    return _Parser(tokenize(code)).whole_expression()


class _Parser(TokenCursor):
    def whole_expression(self) -> Tree:
        tree = self._expression()
        while self._take(";"):
            pass
        if not self._is_end():
            raise UnknownError
        return tree

    # ------------------------------------------------------------ statements

    def statements(self, end: str = "") -> tuple[Tree, ...]:
        found: list[Tree] = []
        while True:
            while self._take(";"):
                pass
            if (end and self._peek() == end) or self._is_end():
                return tuple(found)
            found.append(self._statement())

    def _block(self) -> tuple[Tree, ...]:
        if self._take("{"):
            inner = self.statements("}")
            self._need("}")
            return inner
        return (self._statement(),)

    def _statement(self) -> Tree:
        match self._peek():
            case "const" | "let" | "var":
                return self._declaration()
            case "for":
                return self._for()
            case "if":
                self._at += 1
                self._need("(")
                test = self._expression()
                self._need(")")
                then = self._block()
                start = self._at
                while self._take(";"):
                    pass
                if self._take("else"):
                    return ("if", test, then, self._block())
                self._at = start
                return ("if", test, then, ())
            case "try":
                return self._try()
            case "function":
                self._at += 1
                name = self._peek()
                self._at += 1
                return ("function", name, self._parameters(), self._body())
            case "return":
                self._at += 1
                return ("return", None if self._peek() in (";", "}") else self._expression())
            case "continue":
                self._at += 1
                return ("continue",)
            case "{":
                return ("block", self._block())
            case "import":
                return self._import()
            case _:
                return ("expression", self._expression())

    def _try(self) -> Tree:
        self._need("try")
        body = self._body()
        while self._take(";"):
            pass
        self._need("catch")
        if self._take("("):
            self._pattern()
            self._need(")")
        handler = self._body()
        if self._peek() == "finally":
            raise UnknownError
        return ("try", body, handler)

    def _import(self) -> Tree:
        """Return `import os from "node:os"` or `import { a } from "b"` as a declaration."""
        self._at += 1
        start = self._at
        pattern = self._pattern() if self._peek() != "*" else None
        if pattern is None or not self._take("from"):
            self._at = start
            raise UnknownError
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind != "string":
            raise UnknownError
        return ("declare", ((pattern, ("call", ("name", "require"), (("text", text[1:-1]),))),))

    def _declaration(self) -> Tree:
        self._at += 1
        found: list[Tree] = []
        while True:
            pattern = self._pattern()
            self._need("=")
            found.append((pattern, self._assignment()))
            if not self._take(","):
                return ("declare", tuple(found))

    def _pattern(self) -> Tree:
        """Return what a value is bound to: a name, or names of its parts."""
        if self._take("["):
            names: list[Tree] = []
            while not self._take("]"):
                names.append(self._pattern())
                self._take(",")
            return ("list", tuple(names))
        if self._take("{"):
            keys: list[Tree] = []
            while not self._take("}"):
                key = self._peek()
                self._at += 1
                keys.append((key, self._pattern() if self._take(":") else ("name", key)))
                self._take(",")
            return ("object", tuple(keys))
        name = self._peek()
        if not re.fullmatch(r"[A-Za-z_$][\w$]*", name):
            raise UnknownError
        self._at += 1
        return ("name", name)

    def _for(self) -> Tree:
        self._need("for")
        self._need("(")
        if self._peek() not in ("const", "let", "var"):
            raise UnknownError
        self._at += 1
        pattern = self._pattern()
        kind = self._peek()
        if kind not in ("of", "in"):
            raise UnknownError
        self._at += 1
        values = self._expression()
        self._need(")")
        return (f"for {kind}", pattern, values, self._block())

    def _parameters(self) -> tuple[Tree, ...]:
        self._need("(")
        found: list[Tree] = []
        while not self._take(")"):
            pattern = self._pattern()
            found.append((pattern, self._assignment() if self._take("=") else None))
            self._take(",")
        return tuple(found)

    def _body(self) -> tuple[Tree, ...]:
        if self._peek() != "{":
            raise UnknownError
        return self._block()

    # ------------------------------------------------------------ expressions

    def _expression(self) -> Tree:
        return self._assignment()

    def _assignment(self) -> Tree:
        if (arrow := self._arrow()) is not None:
            return arrow
        left = self._choice()
        if self._peek() in ("=", "+=", "||=", "??="):
            sign = self._peek()
            self._at += 1
            return ("assign", sign, left, self._assignment())
        return left

    def _arrow(self) -> Tree | None:
        """Return a function `x => …` or `(a, b) => …`; None for other expressions."""
        start = self._at
        self._take("async")
        parameters: tuple[Tree, ...] | None = None
        if re.fullmatch(r"[A-Za-z_$][\w$]*", self._peek()) and self._peek(1) == "=>":
            parameters = (((("name", self._peek())), None),)
            self._at += 1
        elif self._peek() == "(":
            try:
                parameters = self._parameters()
            except UnknownError:
                parameters = None
        if parameters is None or not self._take("=>"):
            self._at = start
            return None
        if self._peek() == "{":
            return ("arrow", parameters, self._block())
        return ("arrow", parameters, (("return", self._assignment()),))

    def _choice(self) -> Tree:
        test = self._binary(0)
        if not self._take("?"):
            return test
        first = self._assignment()
        self._need(":")
        return ("choice", test, first, self._assignment())

    def _binary(self, level: int) -> Tree:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in _BINARY[level]:
            sign = self._peek()
            self._at += 1
            left = ("binary", sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> Tree:
        for sign in ("!", "typeof", "-", "void"):
            if self._take(sign):
                return ("unary", sign, self._unary())
        if self._take("new") and (self._peek(), self._peek(1)) != ("Map", "("):
            raise UnknownError
        return self._postfix(self._primary())

    def _postfix(self, value: Tree) -> Tree:
        while True:
            if self._take(".") or self._take("?."):
                if self._peek() == "(" or self._peek() == "[":
                    continue
                value = ("member", value, ("text", self._peek()))
                self._at += 1
            elif self._take("["):
                value = ("member", value, self._expression())
                self._need("]")
            elif self._peek() == "(":
                value = ("call", value, self._arguments())
            else:
                return value

    def _arguments(self) -> tuple[Tree, ...]:
        self._need("(")
        return self._list(")")

    def _list(self, end: str) -> tuple[Tree, ...]:
        found: list[Tree] = []
        while not self._take(end):
            found.append(("spread", self._assignment()) if self._take("...") else self._assignment())
            if self._peek() != end:
                self._need(",")
        return tuple(found)

    def _primary(self) -> Tree:
        kind, text = self._next()
        match kind:
            case "string":
                return ("text", unescaped(text[1:-1]))
            case "template":
                return ("template", *_template(text))
            case "number" if "." not in text:
                return ("number", int(text))
            case "regex":
                match = REGEX.fullmatch(text)
                return ("regex", match[1], match[2]) if match else ("unknown",)
            case "name":
                return ("name", text)
            case _ if text == "(":
                inner = self._expression()
                self._need(")")
                return inner
            case _ if text == "[":
                return ("list", self._list("]"))
            case _ if text == "{":
                return self._object()
            case _:
                raise UnknownError

    def _object(self) -> Tree:
        entries: list[Tree] = []
        while not self._take("}"):
            if self._take("..."):
                entries.append(("spread", self._assignment()))
            else:
                entries.append(self._entry())
            if self._peek() != "}":
                self._need(",")
        return ("object", tuple(entries))

    def _entry(self) -> Tree:
        if self._take("["):
            key: Tree = self._expression()
            self._need("]")
        else:
            kind, text = self._tokens[self._at]
            self._at += 1
            if kind not in ("name", "string"):
                raise UnknownError
            key = ("text", text if kind == "name" else unescaped(text[1:-1]))
            if kind == "name" and self._peek() in (",", "}"):
                return ("entry", key, ("name", text))
        self._need(":")
        return ("entry", key, self._assignment())


def _template(text: str) -> list[Tree]:
    """Return the parts of a template: texts and expressions."""
    parts: list[Tree] = []
    at = 0
    while (start := _next_hole(text, at)) >= 0:
        stop = _closing(text, start + 2)
        parts += [("text", unescaped(text[at:start])), parse_expression(text[start + 2 : stop])]
        at = stop + 1
    return [*parts, ("text", unescaped(text[at:]))]


def _next_hole(text: str, at: int) -> int:
    start = text.find("${", at)
    while start > 0 and text[start - 1] == "\\":
        start = text.find("${", start + 1)
    return start


def _closing(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        if match := re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"").match(text, at):
            at = match.end()
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    raise UnknownError
