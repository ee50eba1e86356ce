"""Programs in PHP: statements and expressions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.php.expressions import Expressions
from agentdash.engine.detect.env_output.scripting.values import (
    LEAVING,
    ExitError,
    FailedError,
    LastError,
    NextError,
    ReturnError,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Php(Expressions):
    """A run of a program in PHP."""

    def program(self, root: Node) -> None:
        """Run a program."""
        for child in named(root):
            if child.type in ("function_definition", "class_declaration"):
                self.define(child)
        for child in named(root):
            if child.type == "text":
                self.out.append(text_of(child))
            elif child.type not in ("php_tag", "function_definition", "class_declaration", "php_end_tag"):
                self._statement(child)

    # ------------------------------------------------------------ statements

    def block(self, node: Node) -> None:
        """Run a block, or a statement."""
        if node.type in ("compound_statement", "colon_block"):
            for child in named(node):
                self._statement(child)
        else:
            self._statement(node)

    def _statement(self, node: Node) -> None:
        self.step()
        match node.type:
            case "expression_statement":
                self.value(only_child(node))
            case "echo_statement":
                for each in self._sequence(only_child(node)):
                    self.out.append(self.text(self.value(each)))
            case "if_statement":
                self._if(node)
            case "foreach_statement":
                self._foreach(node)
            case "for_statement":
                self._for(node)
            case "while_statement":
                self._while(node)
            case "compound_statement":
                self.block(node)
            case "return_statement":
                children = named(node)
                raise ReturnError(self.value(children[0]) if children else None)
            case "continue_statement":
                raise NextError
            case "break_statement":
                raise LastError
            case "exit_statement":
                children = named(node)
                status = self.value(children[0]) if children else 0
                raise ExitError(status if isinstance(status, int) else None)
            case "function_definition":
                self.define(node)
            case "declare_statement" | "namespace_use_declaration" | "empty_statement":
                pass
            case "switch_statement":
                self._switch(node)
            case "try_statement":
                self._try(node)
            case _:
                raise UnknownError

    def _sequence(self, node: Node) -> list[Node]:
        """Return the parts of `a, b, c`, which the grammar takes for `a, (b, c)`."""
        if node.type != "sequence_expression":
            return [node]
        return [part for child in named(node) for part in self._sequence(child)]

    def _if(self, node: Node) -> None:
        if self.holds(field(node, "condition")):
            self.block(field(node, "body"))
            return
        for other in node.children_by_field_name("alternative"):
            if other.type == "else_clause":
                self.block(field(other, "body"))
                return
            if self.holds(field(other, "condition")):
                self.block(field(other, "body"))
                return

    def _switch(self, node: Node) -> None:
        subject = self.value(field(node, "condition"))
        cases = named(field(node, "body"))
        tests = [each.child_by_field_name("value") for each in cases]
        fits = (n for n, test in enumerate(tests) if test and self.computed("==", subject, self.value(test)))
        start = next(fits, next((n for n, test in enumerate(tests) if test is None), len(cases)))
        with suppress(LastError):
            for case, test in list(zip(cases, tests, strict=True))[start:]:
                for child in named(case)[0 if test is None else 1 :]:
                    self._statement(child)

    def _try(self, node: Node) -> None:
        handlers = [child for child in named(node) if child.type == "catch_clause"]
        last = next((child for child in named(node) if child.type == "finally_clause"), None)
        if last is None:
            self._guarded(field(node, "body"), handlers)
            return
        try:
            self._guarded(field(node, "body"), handlers)
        except (FailedError, *LEAVING):
            self.block(field(last, "body"))
            raise
        self.block(field(last, "body"))

    def _guarded(self, body: Node, handlers: list[Node]) -> None:
        try:
            self.block(body)
        except FailedError as failed:
            handler = next((each for each in handlers if self._catches(each, failed.kind)), None)
            if handler is None:
                raise
            name = handler.child_by_field_name("name")
            if name is not None:
                self.bind(name, Instance(None, {"getMessage": failed.text, "class": failed.kind}))
            self.block(field(handler, "body"))

    def _catches(self, handler: Node, kind: str) -> bool:
        """Return whether `catch` is for an exception."""
        names = [text_of(each).lstrip("\\") for each in named(field(handler, "type"))]
        general = "Error" if kind.endswith("Error") else "Exception"
        if {"Throwable", general, kind} & {*names}:
            return True
        if kind != general and {*names} - {"Error", "Exception"}:
            raise UnknownError  # it may be a class above this one
        return False

    def _foreach(self, node: Node) -> None:
        source, target, *_ = named(node)
        body = field(node, "body")
        values = self.value(source)
        key, item = named(target) if target.type == "pair" else (None, target)
        is_mapping = isinstance(values, dict | Selection)

        def run(entry: Any) -> None:
            number_or_name, value = entry if is_mapping else (entry[0], entry[1])
            if key is not None:
                self.bind(key, number_or_name)
            self.bind(item, value)
            self.block(body)

        if isinstance(values, Selection):
            values = self.items_or_values(values)
            self.each(values, run if isinstance(self._sample(values), list) else lambda v: run([None, v]))
        elif isinstance(values, dict):
            self.each(values, run)
        else:
            self.each([[n, v] for n, v in enumerate(self.list_of(values))], run)

    def _sample(self, values: Selection) -> Any:
        return self.entry(values, "")

    def _for(self, node: Node) -> None:
        for first in node.children_by_field_name("initialize"):
            for each in self._sequence(first):
                self.value(each)
        self._while(node)

    def _while(self, node: Node) -> None:
        """Run `while`, or `for` behind its beginning."""
        test, body = field(node, "condition"), field(node, "body")
        steps = node.children_by_field_name("update")
        self.repeat(
            lambda: self.holds(test), lambda: self.block(body), lambda: [self.value(step) for step in steps]
        )
