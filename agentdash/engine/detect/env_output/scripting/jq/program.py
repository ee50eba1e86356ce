"""Programs of jq: each filter gives a list of outputs for an input."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.patterns import Choice, Part
from agentdash.engine.detect.env_output.scripting.jq.library import Library, Many
from agentdash.engine.detect.env_output.scripting.jq.syntax import Tree
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.loops import line_style
from agentdash.engine.detect.env_output.scripting.values import FailedError
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_PRETTY: Final = Layout(indent=2, colon=": ")


class Jq(Library):
    """A run of a program of jq."""

    layout: Layout = _PRETTY
    is_raw = False
    """Texts are written without quotes."""
    line_end = "\n"
    sorts_keys = False
    inputs: Any = None
    """What the program reads besides its input: a list of values, or a part of the environment."""

    def program(self, tree: Tree, value: Any) -> None:
        """Run a program for an input, which may be one of many."""
        for output in self._through([value], lambda each: self.outputs(tree, each)):
            self._write(output)

    def values_of_json(self, text: str) -> list[Any]:
        """Return the values of a text in JSON."""
        decoder = json.JSONDecoder()
        found: list[Any] = []
        at = len(text) - len(text.lstrip())
        while at < len(text):
            try:
                value, at = decoder.raw_decode(text, at)
            except ValueError as error:
                raise UnknownError from error
            found.append(value)
            at += len(text[at:]) - len(text[at:].lstrip())
        return found

    def _sorted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._sorted(value[key]) for key in sorted(value)}
        return [self._sorted(each) for each in value] if isinstance(value, list) else value

    def _write(self, output: Any) -> None:
        if self.sorts_keys:
            output = self._sorted(output)
        if isinstance(output, Many):
            self.out.append(self._written_lines(output.values))
            return
        if isinstance(output, Lines | Selection) and not self._is_mapping(output):
            self.out += self._listed(output)
            return
        if self.is_raw and isinstance(output, str):
            self.out += [output, self.line_end]
            return
        self.out += [json_text(self, output, self.layout), self.line_end]

    def _is_mapping(self, value: Any) -> bool:
        return isinstance(value, Selection) and value.form is Form.MAPPING

    def _line(self, value: Any) -> str:
        """Return an output as it is written, on one line."""
        if isinstance(value, str) and self.is_raw:
            return value
        if not isinstance(value, str):
            raise UnknownError
        return f'"{value}"'

    def _written_lines(self, values: Selection | Lines) -> Dump:
        lines = [self._line(self.entry(values, name)) + "\n" for name in FLAGS]
        style = common_style([line_style(line, name) for line, name in zip(lines, FLAGS, strict=True)])
        if style is None:
            raise UnknownError
        return Dump(shown=self.shown(values.kept), style=style)

    def _listed(self, values: Selection | Lines) -> list[Part]:
        """Return a list of texts, one on each line."""
        if not self.layout.indent or (isinstance(values, Selection) and values.form is Form.ITEMS):
            raise UnknownError
        styles = [line_style(f'  "{self.entry(values, name)}"\n', name) for name in FLAGS]
        if (style := common_style(styles)) is None:
            raise UnknownError
        style = msgspec.structs.replace(style, closings=(",",))
        lines = ("[\n", Dump(shown=self.shown(values.kept), style=style, some=True), "]\n")
        return list(lines) if self.certain(values.kept) else [Choice((lines, ("[]\n",)))]

    # ------------------------------------------------------------ streams

    def _through(self, values: list[Any], run: Callable[[Any], list[Any]]) -> list[Any]:
        """Return the outputs of a filter for several inputs."""
        found: list[Any] = []
        for value in values:
            found += [self._many(value.values, run)] if isinstance(value, Many) else run(value)
        return found

    def _many(self, values: Selection | Lines, run: Callable[[Any], list[Any]]) -> Any:
        """Return the outputs of a filter for one input of each variable of the environment."""
        items: list[Any] = []
        for name in FLAGS:
            outputs = self.for_flag(name, lambda n=name: run(self.entry_of(values, n)))  # type: ignore[misc]
            if len(outputs) > 1 or any(isinstance(output, Many) for output in outputs):
                raise UnknownError
            items.append(self.pair_of(outputs[0]) if outputs else None)
        kept = [keep and item is not None for keep, item in zip(values.kept, items, strict=True)]
        if items == [None, None]:
            return Many(msgspec.structs.replace(values, kept=(False, False)))
        return Many(self.collected(items, (kept[0], kept[1])))

    def outputs(self, tree: Tree, value: Any) -> list[Any]:
        """Return the outputs of a filter for an input."""
        self.step()
        match tree:
            case ("input",):
                return [value]
            case ("text", text) | ("number", text) | ("constant", text):
                return [text]
            case ("template", form, *parts):
                return self._texts(form, list(parts), value)
            case ("pipe", first, second):
                return self._through(self.outputs(first, value), lambda each: self.outputs(second, each))
            case ("comma", first, second):
                return [*self.outputs(first, value), *self.outputs(second, value)]
            case ("default", first, second):
                return self._defaults(first, second, value)
            case ("at", owner, key):
                return self._items(owner, key, value)
            case ("slice", owner, start, stop):
                first = self.one(self.outputs(start, value)[0])
                last = None if stop is None else self.one(self.outputs(stop, value)[0])
                return [self.sliced_at(each, first, last) for each in self.outputs(owner, value)]
            case ("each", owner):
                return [inner for each in self.outputs(owner, value) for inner in self.each_of(each)]
            case ("list", inner):
                return [[] if inner is None else self._list(self.outputs(inner, value))]
            case ("object", entries):
                return self._objects(list(entries), value)
            case ("try", inner):
                try:
                    return self.outputs(inner, value)
                except FailedError:
                    return []
            case ("variable", "$ENV"):
                return [Selection((True, True))]
            case ("variable", name) if name in self._names:
                return [self._names[name]]
            case _:
                return self._control(tree, value)

    def _control(self, tree: Tree, value: Any) -> list[Any]:
        match tree:
            case ("if", test, then, otherwise):
                found: list[Any] = []
                for holds in self.outputs(test, value):
                    found += self.outputs(then if self.truth(self.one(holds)) else otherwise, value)
                return found
            case ("binary", "and" | "or" as sign, left, right):
                return self._logical(sign, left, right, value)
            case ("binary", sign, left, right):
                return [
                    self.computed(sign, self.one(first), self.one(second))
                    for second in self.outputs(right, value)
                    for first in self.outputs(left, value)
                ]
            case ("bind", source, name, body):
                return self._through(
                    self.outputs(source, value), lambda each: self._bound(name, each, body, value)
                )
            case ("reduce", source, name, first, update):
                return self._reduced(source, name, first, update, value)
            case ("def", name, parameters, body, rest):
                self.functions[name, len(parameters)] = (parameters, body)
                return self.outputs(rest, value)
            case ("assign", sign, path, other):
                return self._assigned(sign, path, other, value)
            case ("call", name, arguments):
                return self._called(name, list(arguments), value)
            case _:
                raise UnknownError

    def _bound(self, name: str, item: Any, body: Tree, value: Any) -> list[Any]:
        def inside() -> list[Any]:
            self.declare(name, item)
            return self.outputs(body, value)

        return self.scoped(inside)  # type: ignore[no-any-return]

    def _reduced(self, source: Tree, name: str, first: Tree, update: Tree, value: Any) -> list[Any]:
        state = self.one(self.outputs(first, value)[0])
        for item in self.outputs(source, value):
            results = self._bound(name, self.one(item), update, state)
            state = self.one(results[-1]) if results else None
        return [state]

    def _called(self, name: str, arguments: list[Tree], value: Any) -> list[Any]:
        if (name, len(arguments)) in self.functions:
            parameters, body = self.functions[name, len(arguments)]
            outer = dict(self.functions)
            try:
                for parameter, argument in zip(parameters, arguments, strict=True):
                    self.functions[parameter.removeprefix("$"), 0] = ((), argument)
                    if parameter.startswith("$"):
                        found = self.one(self.outputs(argument, value)[0])
                        body = ("bind", ("constant", found), parameter, body)
                return self.outputs(body, value)
            finally:
                self.functions = outer
        if name in ("inputs", "input") and not arguments:
            if self.inputs is None:
                raise UnknownError
            return [Many(self.inputs)] if isinstance(self.inputs, Selection | Lines) else list(self.inputs)
        return self.library(name, arguments, value)

    # ------------------------------------------------------------ values

    def _texts(self, form: str, parts: list[Tree], value: Any) -> list[Any]:
        found: list[Any] = [""]
        for part in parts:
            is_text = part[0] == "text"
            pieces = (
                [part[1]] if is_text else [self.formed(form, self.one(o)) for o in self.outputs(part, value)]
            )
            found = [before + piece for before in found for piece in pieces]
        return found

    def _defaults(self, first: Tree, second: Tree, value: Any) -> list[Any]:
        try:
            outputs = self.outputs(first, value)
        except FailedError:
            outputs = []
        if any(isinstance(output, Many) for output in outputs):
            raise UnknownError
        there = [output for output in outputs if output is not False and self.defined(output)]
        return there or self.outputs(second, value)

    def _items(self, owner: Tree, key: Tree, value: Any) -> list[Any]:
        keys = [self.one(each) for each in self.outputs(key, value)]
        return self._through(self.outputs(owner, value), lambda each: [self.at(each, k) for k in keys])

    def _list(self, outputs: list[Any]) -> Any:
        if len(outputs) == 1 and isinstance(outputs[0], Many):
            return outputs[0].values
        return [self.one(output) for output in outputs]

    def _objects(self, entries: list[Any], value: Any) -> list[Any]:
        found: list[dict[str, Any]] = [{}]
        for key, inner in entries:
            names = [self.plain(self.one(each)) for each in self.outputs(key, value)]
            values = [self.one(each) for each in self.outputs(inner, value)]
            found = [{**before, name: each} for before in found for name in names for each in values]
        return found

    def _logical(self, sign: str, left: Tree, right: Tree, value: Any) -> list[Any]:
        first = self.truth(self.one(self.outputs(left, value)[0]))
        if first is (sign == "or"):
            return [first]
        return [self.truth(self.one(self.outputs(right, value)[0]))]

    def _assigned(self, sign: str, path: Tree, other: Tree, value: Any) -> list[Any]:
        """Return an object with another value for one of its keys."""
        if path[0] != "at" or path[1] != ("input",) or not isinstance(value, dict):
            raise UnknownError
        name = self.plain(self.one(self.outputs(path[2], value)[0]))
        before = value.get(name)
        if sign == "//=" and before is not False and self.defined(before):
            return [value]
        if sign not in ("=", "//=", "|="):
            raise UnknownError
        given = self.outputs(other, before if sign == "|=" else value)
        return [{**value, name: self.one(given[0])}]
