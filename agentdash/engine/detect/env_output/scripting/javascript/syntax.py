"""Parse small programs of JavaScript: statements and expressions as nested tuples."""

from __future__ import annotations

from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import (
    ASYNC,
    ExpressionParser,
    Tree,
)
from agentdash.engine.detect.env_output.scripting.javascript.tokens import tokenize
from agentdash.engine.detect.env_output.unknown import UnknownError


def parse_script(code: str) -> tuple[Tree, ...]:
    """Return the statements of a program. Raises `UnknownError` for what is not modelled."""
    return _Parser(tokenize(code)).statements()


def parse_expression(code: str) -> Tree:
    """Return an expression. Raises `UnknownError` for what is not modelled."""
    return _Parser(tokenize(code)).whole_expression()


class _Parser(ExpressionParser):
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
        while self._kind() == "line":  # a line break behind the head of a loop ends nothing
            self._at += 1
        return (self._statement(),)

    def _statement(self) -> Tree:
        match self._peek():
            case "const" | "let" | "var":
                return self._declaration()
            case "for":
                return self._for()
            case "if":
                self._at += 1
                test = self._tested()
                then = self._block()
                start = self._at
                while self._take(";"):
                    pass
                if self._take("else"):
                    return ("if", test, then, self._block())
                self._at = start
                return ("if", test, then, ())
            case "while":
                self._at += 1
                return ("while", self._tested(), self._block())
            case "do":
                self._at += 1
                body = self._block()
                self._take(";")
                self._need("while")
                return ("block", (("block", body), ("while", self._tested(), body)))
            case "switch":
                return self._switch()
            case "class":
                return self._class()
            case "try":
                return self._try()
            case "async" if self._peek(1) == "function":
                self._at += 1
                _, name, parameters, body = self._statement()
                return ("function", name, parameters, (ASYNC, *body))
            case "function":
                self._at += 1
                name = self._peek()
                self._at += 1
                return ("function", name, self._parameters(), self._body())
            case "throw":
                self._at += 1
                return ("throw", self._expression())
            case "break":
                self._at += 1
                return ("break",)
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

    def _tested(self) -> Tree:
        self._need("(")
        test = self._expression()
        self._need(")")
        return test

    def _switch(self) -> Tree:
        self._need("switch")
        subject = self._tested()
        self._need("{")
        cases: list[Tree] = []
        while not self._take("}"):
            while self._take(";"):
                pass
            if self._take("}"):
                break
            test = None if self._take("default") else self._case()
            self._need(":")
            body: list[Tree] = []
            while self._peek() not in ("case", "default", "}"):
                if self._take(";"):
                    continue
                body.append(self._statement())
            cases.append((test, tuple(body)))
        return ("switch", subject, tuple(cases))

    def _case(self) -> Tree:
        self._need("case")
        return self._expression()

    def _class(self) -> Tree:
        self._need("class")
        name = self._peek()
        self._at += 1
        self._need("{")
        members: list[Tree] = []
        fields: list[Tree] = []
        while not self._take("}"):
            if self._take(";"):
                continue
            prefix = "static " if self._peek(1) not in ("(", "=") and self._take("static") else ""
            is_async = self._peek(1) not in ("(", "=") and self._take("async")
            kind = "get" if self._peek(1) != "(" and self._take("get") else "function"
            member = self._peek()
            self._at += 1
            if self._peek() == "(":
                parameters, body = self._parameters(), self._body()
                members.append(((prefix + kind, member), (parameters, (ASYNC, *body) if is_async else body)))
            else:
                fields.append((prefix + member, self._assignment() if self._take("=") else None))
        return ("class", name, tuple(members), tuple(fields))

    def _try(self) -> Tree:
        self._need("try")
        body = self._body()
        name: Tree | None = None
        handler: tuple[Tree, ...] = (("throw", ("text", "")),)
        while self._take(";"):
            pass
        if self._take("catch"):
            if self._take("("):
                name = self._pattern()
                self._need(")")
            handler = self._body()
        start = self._at
        while self._take(";"):
            pass
        if self._take("finally"):
            return ("try", body, name, handler, self._body())
        self._at = start
        return ("try", body, name, handler, ())

    def _import(self) -> Tree:
        """Return `import os from "node:os"` or `import { a } from "b"` as a declaration."""
        self._at += 1
        is_bare = self._kind() == "string"
        if self._take("*"):
            self._need("as")
        pattern = ("object", ()) if is_bare else self._pattern()
        if not is_bare:
            self._need("from")
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
            found.append((pattern, self._assignment() if self._take("=") else None))
            if not self._take(","):
                return ("declare", tuple(found))

    def _for(self) -> Tree:
        self._need("for")
        self._need("(")
        if self._peek() not in ("const", "let", "var"):
            raise UnknownError
        start = self._at
        self._at += 1
        pattern = self._pattern()
        kind = self._peek()
        if kind not in ("of", "in"):
            self._at = start
            return self._counted()
        self._at += 1
        values = self._expression()
        self._need(")")
        return (f"for {kind}", pattern, values, self._block())

    def _counted(self) -> Tree:
        first = self._declaration()
        self._need(";")
        test = self._expression()
        self._need(";")
        step = self._expression()
        self._need(")")
        return ("for", (first,), test, step, self._block())
