"""Loops and comprehensions of Python, also over the environment."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Style
from agentdash.engine.detect.env_output.patterns import Parts
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.python_base import Base
from agentdash.engine.detect.env_output.python_values import (
    ContinueError,
    Module,
    Quiet,
    is_print,
)
from agentdash.engine.detect.env_output.scripting.variables import Variables
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, MARK, Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Loops(Base):
    """Loops and comprehensions of Python, also over the environment."""

    def _loop(self, target: ast.expr, values: Any, body: Callable[[], None]) -> None:
        if isinstance(values, Selection):
            self.out += self._over_environment(target, values, body)
            return
        if not isinstance(values, list | tuple) or len(values) > 50:
            raise UnknownError
        for value in values:
            self._bind(target, value)
            with suppress(ContinueError):
                body()

    def _over_environment(self, target: ast.expr, selection: Selection, body: Callable[[], None]) -> Parts:
        """Return what a loop over the environment prints: a dump in its own style."""
        styles: list[Style] = []
        kept: list[bool] = []
        variables = Variables(self._names)
        left: list[dict[Any, Any]] = []
        for number, name in enumerate(FLAGS):
            try:
                before, after = self._printed(target, selection, name, body)
            finally:
                left.append(variables.changed(self._names))
                variables.restore(self._names)
            if not before and not after:
                kept.append(False)
                continue
            if after.count("\n") != 1 or not after.endswith("\n") or "\n" in before or name not in before:
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1]))
            kept.append(selection.kept[number])
        self._leave(selection, variables, left)
        if not styles:
            return ()
        style = self._common_style(styles)
        return (
            Dump(shown=self._shown((kept[0], kept[1])), style=style, partial=len(styles) < 2, some=False),
        )

    def _leave(self, selection: Selection, variables: Variables, left: list[dict[Any, Any]]) -> None:
        """Set the variables that a loop over the environment has changed, of what the rounds left in them."""
        for place in {place for changes in left for place in changes}:
            values = [changes.get(place) for changes in left]
            if variables.value(place) == [] and all(v is None or isinstance(v, list) for v in values):
                kept = [keep and v is not None for keep, v in zip(selection.kept, values, strict=True)]
                variables.assign(self._names, place, self._listed(values, (kept[0], kept[1])))
            elif isinstance(variables.value(place), int):
                variables.assign(self._names, place, Quiet())
            else:
                variables.forget(self._names, place)

    def _listed(self, values: list[list[Any] | None], kept: tuple[bool, bool]) -> Any:
        """Return a list to which each round has added one text."""
        styles: list[Style] = []
        for name, value in zip(FLAGS, values, strict=True):
            if value is None:
                continue
            text = value[0] if len(value) == 1 else None
            if not isinstance(text, str) or text.count(MARK) != 1 or "\n" in text:
                return Module("a list that is not known")
            before, _, after = text.partition(MARK)
            if name not in before or has_placeholder(before + after):
                return Module("a list that is not known")
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after))
        return Lines(self._common_style(styles), kept)

    def _printed(
        self, target: ast.expr, selection: Selection, name: str, body: Callable[[], None]
    ) -> tuple[str, str]:
        outer, self.out = self.out, []
        self._bind(target, selection.entry(name))
        environment = self._environment
        self._environment = {**environment, name: LOOP_VALUE}
        try:
            with suppress(ContinueError):
                body()
            text = "".join(part if isinstance(part, str) else "\n\n" for part in self.out)
        finally:  # what was printed before stays known where the body is not
            self._environment = environment
            self.out = outer
        if not text:
            return "", ""
        if text.count(MARK) != 1:
            raise UnknownError
        before, _, after = text.partition(MARK)
        return before, after

    def _comprehension(self, node: ast.DictComp | ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise UnknownError
        generator = node.generators[0]
        values = self._value(generator.iter)
        if isinstance(values, Selection) and isinstance(node, ast.ListComp) and is_print(node.elt):
            element = node.elt
            self.out += self._over_environment(
                generator.target, values, lambda: self._print_where(generator.ifs, element)
            )
            return Module("list of None")
        if isinstance(values, Selection):
            printed = len(self.out)
            try:
                return self._selected(node, generator, values)
            finally:
                del self.out[printed:]
        if not isinstance(values, list | tuple) or len(values) > 50 or isinstance(node, ast.SetComp):
            raise UnknownError
        found: list[Any] = []
        for value in values:
            self._bind(generator.target, value)
            if all(self._truth(test) for test in generator.ifs):
                found.append(
                    (self._value(node.key), self._value(node.value))
                    if isinstance(node, ast.DictComp)
                    else self._value(node.elt)
                )
        return dict(found) if isinstance(node, ast.DictComp) else found

    def _print_where(self, tests: list[ast.expr], element: ast.expr) -> None:
        if all(self._truth(test) for test in tests):
            self._value(element)

    def _selected(
        self,
        node: ast.DictComp | ast.ListComp | ast.GeneratorExp | ast.SetComp,
        generator: ast.comprehension,
        values: Selection,
    ) -> Any:
        """Return a part of the environment, or a text for each variable in it."""
        kept: list[bool] = []
        styles: list[Style] = []
        pairs = 0
        is_mapping = isinstance(node, ast.DictComp)
        for number, name in enumerate(FLAGS):
            self._bind(generator.target, values.entry(name))
            environment = self._environment
            self._environment = {**environment, name: LOOP_VALUE}
            keep = all(self._truth(test) for test in generator.ifs)
            kept.append(keep and values.kept[number])
            if isinstance(node, ast.SetComp):
                raise UnknownError
            text: Any = None
            if isinstance(node, ast.DictComp):
                is_mapping = self._value(node.key) == name and self._value(node.value) == MARK and is_mapping
            else:
                text = self._value(node.elt)
                pair = values.form is Form.ENTRIES and list(
                    text if isinstance(text, list | tuple) else ()
                ) in (
                    [name, MARK],
                    [Bytes(name), Bytes(MARK)],
                )
                if pair or (isinstance(text, tuple) and text == (name, MARK)):
                    pairs += 1
                    text = name
            self._environment = environment
            if isinstance(node, ast.DictComp):
                continue
            if text == name:
                continue
            if isinstance(text, Bytes) and values.form is Form.ENTRIES and text.text == f"{name}={MARK}":
                text = text.text
            if not isinstance(text, str) or text.count(MARK) != 1:
                raise UnknownError
            before, _, after = text.partition(MARK)
            if name not in before or "\n" in text:
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after))
        if isinstance(node, ast.DictComp):
            if not is_mapping:
                raise UnknownError
            return Selection((kept[0], kept[1]))
        if not styles:
            form = Form.ITEMS if pairs else Form.NAMES
            return Selection((kept[0], kept[1]), form, is_bytes=values.is_bytes)
        if isinstance(node.elt, ast.Name) and values.form is Form.ENTRIES:
            return Selection((kept[0], kept[1]), Form.ENTRIES, is_bytes=values.is_bytes)
        return Lines(self._common_style(styles), (kept[0], kept[1]))
