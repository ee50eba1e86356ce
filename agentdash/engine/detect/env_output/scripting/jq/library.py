"""Functions of jq."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.jq.syntax import Tree
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.values import Count, FailedError
from agentdash.engine.detect.env_output.selections import MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Many(msgspec.Struct, frozen=True):
    """One output for each variable of the environment, or of a part of it."""

    values: Selection | Lines


class Library(Texts):
    """Functions of jq."""

    failed_status = 5

    @abstractmethod
    def outputs(self, tree: Tree, value: Any) -> list[Any]:
        """Return the outputs of a filter for an input."""

    def text_of_none(self) -> str:
        """Return `null` as text."""
        return "null"

    def one(self, output: Any) -> Any:
        """Return an output that is one value."""
        if isinstance(output, Many):
            raise UnknownError
        return output

    def entry_of(self, values: Selection | Lines, name: str) -> Any:
        """Return what is given of a variable: its name and value as an object."""
        entry = self.entry(values, name)
        return {"key": name, "value": MARK} if isinstance(entry, list) else entry

    def pair_of(self, value: Any) -> Any:
        """Return an object of a name and a value as a pair of them."""
        if isinstance(value, dict):
            if list(value) != ["key", "value"]:
                raise UnknownError
            return [value["key"], value["value"]]
        return value

    def each_of(self, value: Any) -> list[Any]:
        """Return the values of a list or an object."""
        match value:
            case Selection(form=Form.MAPPING):
                raise UnknownError
            case Selection() | Lines():
                return [Many(value)]
            case list():
                return value
            case dict():
                return list(value.values())
            case _:
                raise FailedError

    def at(self, owner: Any, key: Any) -> Any:
        """Return an item of a value."""
        match owner:
            case Selection(form=Form.MAPPING):
                return self.item_of(owner, key)
            case None:
                return None
            case dict() if isinstance(key, str):
                return owner.get(self.plain(key))
            case list() if isinstance(key, int):
                return owner[key] if -len(owner) <= key < len(owner) else None
            case Selection() | Lines():
                raise UnknownError
            case _:
                raise FailedError

    def sliced_at(self, owner: Any, start: Any, stop: Any) -> Any:
        """Return a part of a list or a text."""
        if isinstance(owner, list):
            return owner[start:stop]
        return self.cut(owner, start, None if stop is None else stop - start)

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        match sign:
            case "==" | "!=":
                return self.equal(left, right) is (sign == "==")
            case "+":
                return self._sum(left, right)
            case ">" | "<" if isinstance(left, Count) and right == 0:
                return sign == ">" and (left.at_least > 0 or self.decide())
            case "-" | "<" | ">" | "<=" | ">=" if isinstance(left, int) and isinstance(right, int):
                values = {"-": left - right, "<": left < right, ">": left > right, "<=": left <= right}
                return values.get(sign, left >= right)
            case _:
                raise UnknownError

    def _sum(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        if isinstance(left, str) and isinstance(right, str):
            if not self.defined(left) or not self.defined(right):
                raise UnknownError
            return left + right
        if isinstance(left, dict) and isinstance(right, dict):
            return left | right
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, str | dict | list | int) and isinstance(right, str | dict | list | int):
            raise FailedError
        raise UnknownError

    def formed(self, form: str, value: Any) -> str:
        """Return a value in a text, in the form of `@json` and others."""
        match form, value:
            case (("" | "@text"), str()):
                return value
            case (("" | "@text" | "@json"), _):
                return json_text(self, value, Layout())
            case (("@tsv" | "@csv"), list()):
                return ("\t" if form == "@tsv" else ",").join(self._cell(form, each) for each in value)
            case _:
                raise UnknownError

    def _cell(self, form: str, value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            return self.text(value)
        if not self.defined(value):
            raise UnknownError
        return f'"{value}"' if form == "@csv" else value

    # ------------------------------------------------------------ functions

    def library(self, name: str, arguments: list[Tree], value: Any) -> list[Any]:
        """Return the outputs of a function of the library."""
        match name, arguments:
            case "empty", []:
                return []
            case "env", []:
                return [Selection((True, True))]
            case "select", [test]:
                return [value for holds in self.outputs(test, value) if self.truth(self.one(holds))]
            case "map", [change]:
                return self.outputs(("list", ("pipe", ("each", ("input",)), change)), value)
            case "with_entries", [change]:
                steps = ("pipe", ("call", "map", (change,)), ("call", "from_entries", ()))
                return self.outputs(("pipe", ("call", "to_entries", ()), steps), value)
            case "sort_by" | "unique_by", [key]:
                return [self._sorted_by(value, key)]
            case "error", _:
                raise FailedError
            case _, [argument]:
                return [self._of_one(name, value, self.one(each)) for each in self.outputs(argument, value)]
            case _, [first, second] if name in ("test", "sub", "gsub"):
                given = self.one(self.outputs(first, value)[0]), self.one(self.outputs(second, value)[0])
                return [self._of_two(name, value, *given)]
            case _, []:
                return [self.formed(name, value) if name.startswith("@") else self._of_none(name, value)]
            case _:
                raise UnknownError

    def _of_none(self, name: str, value: Any) -> Any:
        match name:
            case "to_entries":
                return self._entries(value)
            case "from_entries":
                return self._object(value)
            case "keys" | "keys_unsorted":
                found = self.names_of(value)
                return sorted(found) if isinstance(found, list) and name == "keys" else found
            case "length":
                return 0 if value is None else self.size(value)
            case "not":
                return not self.truth(value)
            case "tostring":
                return value if isinstance(value, str) else json_text(self, value, Layout())
            case "tojson":
                return json_text(self, value, Layout())
            case "add":
                return self._added(value)
            case "sort" | "reverse" | "unique" if isinstance(value, Selection | Lines):
                return value
            case "sort" if isinstance(value, list):
                return sorted(self.plain(each) for each in value)
            case "ascii_downcase" | "ascii_upcase":
                text = self.plain(value)
                return text.lower() if name == "ascii_downcase" else text.upper()
            case "any":
                return any(self.truth(each) for each in self.list_of(value))
            case "all":
                return all(self.truth(each) for each in self.list_of(value))
            case "type":
                return self._type(value)
            case "now" | "input_filename":
                return self.quiet()
            case _:
                raise UnknownError

    def _of_one(self, name: str, value: Any, given: Any) -> Any:
        match name:
            case "startswith":
                return self.starts(value, given)
            case "endswith":
                return self.ends(value, given)
            case "contains" if isinstance(value, str):
                return self.contains(value, given)
            case "test":
                return self.matches(self.pattern(self.plain(given)), value)
            case "has" if isinstance(value, Selection):
                return self.is_set(value, given)
            case "has" if isinstance(value, dict):
                return self.plain(given) in value
            case "join":
                return self._joined(value, given)
            case "split":
                return self.split(value, given)
            case "ltrimstr":
                return self.cut(value, len(given)) if self.starts(value, given) else value
            case "IN":
                return self.equal(value, given)
            case _:
                raise UnknownError

    def _of_two(self, name: str, value: Any, first: Any, second: Any) -> Any:
        match name:
            case "test":
                return self.matches(self.pattern(self.plain(first), self.plain(second)), value)
            case "sub" | "gsub" if len(self.plain(first)) == 1 and self.plain(first).isalnum() is False:
                if name == "sub":
                    raise UnknownError
                return self.replaced(value, first, second)
            case _:
                raise UnknownError

    def _sorted_by(self, value: Any, key: Tree) -> Any:
        if isinstance(value, Selection | Lines):
            return value
        return sorted(self.list_of(value), key=lambda each: self.plain(self.one(self.outputs(key, each)[0])))

    def _joined(self, value: Any, separator: Any) -> Any:
        if isinstance(value, list):
            value = ["" if each is None else each for each in value]
            if any(not self.defined(each) for each in value):
                raise UnknownError
        return self.text(self.lines_text(self.joined(value, separator)))

    def _entries(self, value: Any) -> Any:
        if isinstance(value, Selection):
            return self.items_of(value)
        return [{"key": key, "value": inner} for key, inner in self.list_of(value)]

    def _object(self, value: Any) -> Any:
        if isinstance(value, Selection):
            return self.mapping_of(value)
        return {self.plain(each["key"]): each["value"] for each in self.list_of(value)}

    def _added(self, value: Any) -> Any:
        total: Any = None
        for each in self.list_of(value):
            total = self._sum(total, each)
        return total

    def _type(self, value: Any) -> str:
        if isinstance(value, str) and has_placeholder(value) and not self.defined(value):
            return "null"
        names = {str: "string", bool: "boolean", int: "number", list: "array", dict: "object"}
        return "null" if value is None else names.get(type(value), "object")
