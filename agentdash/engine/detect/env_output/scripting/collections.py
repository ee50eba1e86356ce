"""Lists and mappings, of which the environment may be one: filtering, changing and joining them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import on_one_line
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAGS, Style
from agentdash.engine.detect.env_output.patterns import Kind
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.loops import MAX_ROUNDS, Loops
from agentdash.engine.detect.env_output.scripting.machine import dump_parts
from agentdash.engine.detect.env_output.scripting.values import Count, Various, Written
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_ORDERED: Final = 3
"""Keys of a mapping whose orders are all tried."""


class Collections(Loops):
    """Lists and mappings, of which the environment may be one."""

    def kept(self, values: Any, test: Callable[[Any], bool]) -> Any:
        """Return the values of which something is true."""
        if isinstance(values, Selection | Lines):
            kept = [
                keep and self.for_flag(name, lambda n=name: test(self.entry(values, n)))  # type: ignore[misc]
                for name, keep in zip(FLAGS, values.kept, strict=True)
            ]
            return msgspec.structs.replace(values, kept=(kept[0], kept[1]))
        if isinstance(values, dict):
            return {key: value for key, value in values.items() if test([key, value])}
        return [value for value in self.list_of(values) if test(value)]

    def mapped(self, values: Any, change: Callable[[Any], Any]) -> Any:
        """Return what something gives of each value."""
        if isinstance(values, Selection | Lines):
            items = [
                self.for_flag(name, lambda n=name: change(self.entry(values, n)))  # type: ignore[misc]
                for name in FLAGS
            ]
            kept = [keep and item is not None for keep, item in zip(values.kept, items, strict=True)]
            return self.collected(items, (kept[0], kept[1]))
        if isinstance(values, dict):
            return [change([key, value]) for key, value in values.items()]
        return [change(value) for value in self.list_of(values)]

    def reduced(self, values: Any, first: Any, change: Callable[[Any, Any], Any]) -> Any:
        """Return what is left of a value that something changes for each of others."""
        if isinstance(values, list):
            for value in values:
                first = change(first, value)
            return first
        self._names["%accumulator"] = first

        def run(item: Any) -> None:
            self._names["%accumulator"] = change(self._names["%accumulator"], item)

        try:
            self.each(values, run)
            return self._names["%accumulator"]
        finally:
            self._names.pop("%accumulator", None)

    def list_of(self, values: Any) -> list[Any]:
        """Return a list that is known."""
        if isinstance(values, dict):
            return [[key, value] for key, value in values.items()]
        if not isinstance(values, list) or len(values) > MAX_ROUNDS:
            raise UnknownError
        return values

    def unordered(self, keys: Any) -> Any:
        """Return keys in one of the orders that they may have."""
        if not isinstance(keys, list) or len(keys) < 2:
            return keys
        if len(keys) > _MAX_ORDERED:
            raise UnknownError
        rest, found = list(keys), []
        while rest:
            at = next((number for number in range(len(rest) - 1) if self.decide()), len(rest) - 1)
            found.append(rest.pop(at))
        return found

    def any_of(self, values: Any) -> bool:
        """Return whether one of some values is true."""
        if isinstance(values, Various):
            return any(self.truth(value) for value in values.known) or self.decide()
        return any(self.truth(value) for value in self.list_of(values))

    def all_of(self, values: Any) -> bool:
        """Return whether all of some values are true."""
        if isinstance(values, Various):
            return all(self.truth(value) for value in values.known) and self.decide()
        return all(self.truth(value) for value in self.list_of(values))

    def sum_of(self, values: Any) -> Any:
        """Return the sum of numbers and truth values, none of them below 0."""
        known = values.known if isinstance(values, Various) else self.list_of(values)
        if not all(isinstance(value, int) and value >= 0 for value in known):
            raise UnknownError
        return Count(sum(known)) if isinstance(values, Various) else sum(known)

    def largest_of(self, values: Any) -> Any:
        """Return the largest of some numbers."""
        if isinstance(values, Various):
            return Count(0)
        if not all(type(value) is int for value in self.list_of(values)):
            raise UnknownError
        return max(self.list_of(values))

    def names_of(self, mapping: Any) -> Any:
        """Return the keys of a mapping."""
        if isinstance(mapping, Selection) and mapping.form is Form.MAPPING:
            return Selection(mapping.kept, Form.NAMES)
        if isinstance(mapping, dict):
            return list(mapping)
        raise UnknownError

    def items_of(self, mapping: Any) -> Any:
        """Return the keys and values of a mapping."""
        if isinstance(mapping, Selection) and mapping.form in (Form.MAPPING, Form.ITEMS):
            return Selection(mapping.kept, Form.ITEMS)
        return self.list_of(mapping)

    def mapping_of(self, pairs: Any) -> Any:
        """Return a mapping of its keys and values."""
        if isinstance(pairs, Selection) and pairs.form in (Form.MAPPING, Form.ITEMS):
            return Selection(pairs.kept)
        if isinstance(pairs, dict):
            return pairs
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in self.list_of(pairs)):
            raise UnknownError
        return {self.plain(pair[0]): pair[1] for pair in pairs}

    def sliced(self, mapping: Any, names: list[Any]) -> Any:
        """Return the part of a mapping with some keys; the environment becomes a known one."""
        if isinstance(mapping, dict):
            return {name: mapping[name] for name in names if name in mapping}
        return {name: self.item_of(mapping, name) for name in names if self.is_set(mapping, name)}

    def size(self, values: Any) -> Any:
        """Return how many values there are, or how long a text is."""
        match values:
            case Selection(kept=kept) | Lines(kept=kept, is_text=False):
                return Count(self.certain(kept))
            case Various(known=known):
                return Count(len(known))
            case list() | dict():
                return len(values)
            case str() if not has_placeholder(values):
                return len(values)
            case str():
                is_filled = bool(values.partition("Zhole")[0]) or self.kind_of(values) is Kind.OTHER
                return Count(int(is_filled))
            case _:
                raise UnknownError

    def joined(self, values: Any, separator: Any) -> Any:
        """Return values as one text."""
        between = self.plain(separator)
        if isinstance(values, Lines) and between == "" and values.style.suffix.endswith("\n"):
            return Written((self.lines(values),))
        if isinstance(values, Written) and between == "":
            return values
        if isinstance(values, Selection) and values.form is Form.ENTRIES:
            values = Lines(ENV_STYLE, values.kept)
        if isinstance(values, Lines):
            if between == "\n":
                return msgspec.structs.replace(values, is_text=True)
            return Written(on_one_line(self.lines(values), between))
        return between.join(self.text(value) for value in self.list_of(values))

    def with_ends(self, entries: Any, end: str) -> Any:
        """Return lines with what ends them."""
        if isinstance(entries, Selection):
            return Lines(Style(suffix=end), entries.kept)
        lines = self.list_of(entries)
        return [line + end for line in (lines if lines[-1:] != [""] else lines[:-1])]

    def entries_of(self, text: Any, separator: str) -> Any:
        """Return the lines of a text that lists the environment, or its entries that end in NUL."""
        if isinstance(text, str) and not has_placeholder(separator):
            return text.split(separator)
        dump = dump_parts(text.parts) if isinstance(text, Written) else None
        if dump is None or dump.partial or dump.style != ENV_STYLE or dump.separator or dump.numbered:
            raise UnknownError
        if dump.nul is not (separator == "\0") or separator not in ("\0", "\n"):
            raise UnknownError
        required = dump.required(0), dump.required(1)
        return Selection((required[0] is not False, required[1] is not False), Form.ENTRIES)
