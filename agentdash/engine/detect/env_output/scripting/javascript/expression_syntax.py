"""Parse expressions of JavaScript, and what functions are made of, as nested tuples."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from agentdash.engine.detect.env_output.scripting.javascript.tokens import (
    REGEX,
    hole_end,
    tokenize,
    unescaped,
)
from agentdash.engine.detect.env_output.scripting.token_cursor import TokenCursor
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
ASYNC: Final[Tree] = ("async",)
"""The first statement of a function that gives a promise."""


def words_of(tree: object) -> Iterator[str]:
    """Yield all names and texts in a part of a program."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple | list):
        is_labelled = bool(tree) and isinstance(tree[0], str)  # by its kind
        for each in tree[1:] if is_labelled else tree:
            yield from words_of(each)
    elif isinstance(tree, dict):
        yield from words_of(list(tree.items()))


class ExpressionParser(TokenCursor):
    """Reads an expression, a pattern that a value is bound to, or the parts of a function."""

    @abstractmethod
    def _block(self) -> tuple[Tree, ...]:
        """Return statements in brackets, or one."""

    def _expression(self) -> Tree:
        return self._assignment()

    def _assignment(self) -> Tree:
        if (arrow := self._arrow()) is not None:
            return arrow
        left = self._choice()
        if self._peek() in ("=", "+=", "-=", "||=", "??=", "&&="):
            sign = self._peek()
            self._at += 1
            return ("assign", sign, left, self._assignment())
        return left

    def _arrow(self) -> Tree | None:
        """Return a function `x => …` or `(a, b) => …`; None for other expressions."""
        start = self._at
        is_async = self._take("async")
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
        body = self._block() if self._peek() == "{" else (("return", self._assignment()),)
        return ("arrow", parameters, (ASYNC, *body) if is_async else body)

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
        for sign in ("!", "typeof", "-", "+", "void", "await", "delete"):
            if self._take(sign):
                return ("unary", sign, self._unary())
        for sign in ("++", "--"):
            if self._take(sign):
                return ("step", sign, self._unary(), True)
        if self._take("new"):
            made = self._primary()
            arguments = self._arguments() if self._peek() == "(" else ()
            return self._postfix(("new", made, arguments))
        value = self._postfix(self._primary())
        for sign in ("++", "--"):
            if self._take(sign):
                return ("step", sign, value, False)
        return value

    def _postfix(self, value: Tree) -> Tree:
        while True:
            if self._peek() in (".", "?."):
                kind = "member" if self._peek() == "." else "maybe"
                self._at += 1
                if kind == "maybe" and self._peek() == "(":
                    value = ("maybe call", value, self._arguments())
                    continue
                if self._take("["):
                    value = (kind, value, self._expression())
                    self._need("]")
                    continue
                value = (kind, value, ("text", self._peek()))
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
                return ("template", *self._template(text))
            case "number" if "." not in text:
                return ("number", int(text))
            case "regex":
                match = REGEX.fullmatch(text)
                return ("regex", match[1], match[2]) if match else ("unknown",)
            case "name" if text == "async" and self._peek() == "function":
                _, parameters, body = self._primary()
                return ("arrow", parameters, (ASYNC, *body))
            case "name" if text == "function":
                if self._peek() != "(":
                    self._at += 1
                return ("arrow", self._parameters(), self._body())
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
            if kind == "name" and self._peek() == "(":
                return ("entry", ("text", text), ("arrow", self._parameters(), self._body()))
            key = ("text", text if kind == "name" else unescaped(text[1:-1]))
            if kind == "name" and self._peek() in (",", "}"):
                return ("entry", key, ("name", text))
        self._need(":")
        return ("entry", key, self._assignment())

    def _template(self, text: str) -> list[Tree]:
        """Return the parts of a template: texts and expressions."""
        parts: list[Tree] = []
        at = 0
        while (start := _next_hole(text, at)) >= 0:
            stop = hole_end(text, start + 2)
            inner = type(self)(tokenize(text[start + 2 : stop - 1])).whole_expression()
            parts += [("text", unescaped(text[at:start])), inner]
            at = stop
        return [*parts, ("text", unescaped(text[at:]))]

    def whole_expression(self) -> Tree:
        """Return an expression that is all there is."""
        tree = self._expression()
        while self._take(";"):
            pass
        if not self._is_end():
            raise UnknownError
        return tree

    # ------------------------------------------------------------ functions, patterns

    def _pattern(self) -> Tree:
        """Return what a value is bound to: a name, or names of its parts."""
        if self._take("["):
            names: list[Tree] = []
            while not self._take("]"):
                if self._take(","):
                    names.append(("name", ""))
                    continue
                names.append(self._parameter())
                self._take(",")
            return ("list", tuple(names))
        if self._take("{"):
            keys: list[Tree] = []
            while not self._take("}"):
                key = self._peek()
                self._at += 1
                bound = self._pattern() if self._take(":") else ("name", key)
                keys.append((key, ("default", bound, self._assignment()) if self._take("=") else bound))
                self._take(",")
            return ("object", tuple(keys))
        name = self._peek()
        if not re.fullmatch(r"[A-Za-z_$][\w$]*", name):
            raise UnknownError
        self._at += 1
        return ("name", name)

    def _parameter(self) -> Tree:
        """Return what a value is bound to, also `...rest`."""
        return ("rest", self._pattern()) if self._take("...") else self._pattern()

    def _parameters(self) -> tuple[Tree, ...]:
        self._need("(")
        found: list[Tree] = []
        while not self._take(")"):
            pattern = self._parameter()
            found.append((pattern, self._assignment() if self._take("=") else None))
            self._take(",")
        return tuple(found)

    def _body(self) -> tuple[Tree, ...]:
        if self._peek() != "{":
            raise UnknownError
        return self._block()


def _next_hole(text: str, at: int) -> int:
    start = text.find("${", at)
    while start > 0 and text[start - 1] == "\\":
        start = text.find("${", start + 1)
    return start
