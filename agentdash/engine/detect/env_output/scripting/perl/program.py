"""Programs in Perl: statements, and the loops of `-n` and `-p`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.patterns import Parts
from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.perl.expressions import Expressions
from agentdash.engine.detect.env_output.scripting.perl.library import MODULES
from agentdash.engine.detect.env_output.scripting.values import (
    FailedError,
    Function,
    LastError,
    NextError,
    ReturnError,
    Written,
)
from agentdash.engine.detect.env_output.selections import Form, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_WITHOUT_VALUE: Final = ("postfix_conditional_expression", "postfix_for_expression", "return_expression")
"""Statements whose value is not looked at where they end a block."""


class Perl(Expressions):
    """A run of a program in Perl."""

    def program(self, root: Node) -> None:
        """Run a program."""
        for child in named(root):
            if child.type == "subroutine_declaration_statement":
                self._define(child)
        for child in named(root):
            self.statement(child)

    def over_lines(self, root: Node, content: Parts, *, prints: bool, split: Callable[[str], Any]) -> None:
        """Run a program for each line of its input, as `-n` and `-p` do."""
        bodies = [child for child in named(root) if not self._is_phase(child)]
        for child in named(root):
            if text_of(child).startswith("BEGIN"):
                self.block(field(child, "body") if child.child_by_field_name("body") else named(child)[-1])
        ends = [child for child in named(root) if text_of(child).startswith("END")]

        def run(line: str) -> None:
            self._names["$_"] = line
            self._names["@F"] = split(line)
            with suppress(NextError):
                for child in bodies:
                    self.statement(child)
            if prints:
                self.write([self._names["$_"]])

        if ends:
            chomps = self.ends_lines
            entries = self.entries_of(Written(content), "\0" if self.record_end == "\0" else "\n")
            self.each(entries, lambda line: run(line if chomps else line + self.record_end))
            for child in ends:
                self.block(named(child)[-1])
            return
        self.out += self.changed_lines(content, run)

    def over_whole(self, root: Node, content: Parts, *, prints: bool) -> None:
        """Run a program for its whole input, as `-0777` does."""
        self._names["$_"] = Written(content)
        self.program(root)
        if prints:
            self.write([self._names["$_"]])

    def _is_phase(self, node: Node) -> bool:
        return node.type == "phaser_statement" or text_of(node).startswith(("BEGIN {", "END {"))

    # ------------------------------------------------------------ statements

    def block(self, node: Node) -> None:
        """Run a block."""

        def run() -> None:
            for child in named(node):
                self.statement(child)

        self.scoped(run)

    def statement(self, node: Node) -> None:
        """Run a statement."""
        self.step()
        match node.type:
            case "expression_statement":
                for child in named(node):
                    self._expression(child)
            case "use_statement":
                module = text_of(field(node, "module")) if node.child_by_field_name("module") else "v5"
                if module not in MODULES:
                    raise UnknownError
                self.warns = self.warns or module == "warnings"
                self.has_say = self.has_say or module in ("feature", "v5")
            case "conditional_statement":
                self._conditional(node)
            case "for_statement":
                self._for(node)
            case "cstyle_for_statement":
                self._counted(node)
            case "loop_statement":
                self._while(node)
            case "block_statement" | "block":
                self.block(named(node)[-1] if node.type == "block_statement" else node)
            case "subroutine_declaration_statement":
                self._define(node)
            case _:
                raise UnknownError

    def _expression(self, node: Node) -> None:
        """Run an expression whose value is not used, with what stands behind it: `if`, `for`."""
        match node.type:
            case "postfix_conditional_expression":
                holds = self.holds(field(node, "condition"))
                if holds is (node.children[1].type == "if"):
                    self._expression(node.children[0])
            case "postfix_for_expression":
                self._rounds(
                    "$_", self.values(field(node, "list")), lambda: self._expression(node.children[0])
                )
            case "loopex_expression":
                raise NextError if text_of(node) == "next" else LastError
            case "return_expression":
                children = named(node)
                raise ReturnError(self.values(children[0]) if children else [])
            case _:
                self.value(node)

    def _conditional(self, node: Node) -> None:
        holds = self.holds(field(node, "condition"))
        if holds is (node.children[0].type == "if"):
            self.block(field(node, "block"))
            return
        other = next((child for child in named(node) if child.type in ("elsif", "else")), None)
        while other is not None:
            if other.type == "else" or self.holds(field(other, "condition")):
                self.block(field(other, "block"))
                return
            other = next((child for child in named(other) if child.type in ("elsif", "else")), None)

    def _for(self, node: Node) -> None:
        variable = node.child_by_field_name("variable")
        name = "$_" if variable is None else text_of(variable)
        body = field(node, "block")
        self._rounds(name, self.values(field(node, "list")), lambda: self.block(body))

    def _rounds(self, name: str, values: Any, run: Callable[[], Any]) -> None:
        def round_(item: Any) -> None:
            self.declare(name, item)
            run()

        if isinstance(values, Selection) and values.form in (Form.MAPPING, Form.ITEMS):
            raise UnknownError
        self.scoped(lambda: self.each(values, round_))

    def _counted(self, node: Node) -> None:
        initial = node.children_by_field_name("initialiser")
        condition = node.children_by_field_name("condition")

        def run() -> None:
            self._expression(only_child(initial[0]))
            self.repeat(
                lambda: self.holds(only_child(condition[0])),
                lambda: self.block(field(node, "block")),
                lambda: self._expression(field(node, "iterator")),
            )

        self.scoped(run)

    def _while(self, node: Node) -> None:
        condition, body = field(node, "condition"), field(node, "block")
        if (source := self.lines_read(condition)) is not None:
            name, entries = source
            self._rounds(name, entries, lambda: self.block(body))
            return
        if (pair := self.pair_read(condition)) is not None:
            names, mapping = pair

            def run(item: Any) -> None:
                for name, value in zip(names, item, strict=True):
                    self.declare(name, value)
                self.block(body)

            self.scoped(lambda: self.each(self.items_of(mapping), run))
            return
        self.repeat(lambda: self.holds(condition), lambda: self.block(body))

    def _define(self, node: Node) -> None:
        body = field(node, "body")
        place = self.place

        def run(arguments: list[Any]) -> Any:
            def inside() -> Any:
                self.declare("@_", list(arguments))
                return self._body(body)

            return self.returned(place, inside)

        self.functions[text_of(field(node, "name"))] = Function(run)

    def _body(self, node: Node) -> Any:
        """Run a block, and return the values of its last statement."""
        *before, last = named(node) or [node]
        for child in before:
            self.statement(child)
        if last.type == "expression_statement" and len(named(last)) == 1:
            inner = only_child(last)
            if inner.type not in _WITHOUT_VALUE:
                return self.values(inner)
        if last is not node:
            self.statement(last)
        return []

    def evaluated(self, node: Node) -> Any:
        """Run `eval` with a block: an exception ends it, and becomes `$@`."""
        self._names["$@"] = ""
        try:
            found = self.scoped(lambda: self._body(node))
        except ReturnError as ended:
            found = ended.value
        except FailedError as failed:
            self._names["$@"] = failed.text or self.quiet() + "\n"
            return None
        return found[-1] if isinstance(found, list) and found else found
