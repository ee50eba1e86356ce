"""Methods of Ruby's texts, lists, hashes, and of its environment."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import Choice
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.line_programs import LinePrograms
from agentdash.engine.detect.env_output.scripting.values import (
    Count,
    FailedError,
    Function,
    Pattern,
    Raised,
    Sink,
    Symbol,
    Written,
)
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.word_sets import word_set

_NOT_OF_NIL: Final = word_set("upcase downcase strip chomp length size start_with? include? empty? split")
"""Methods of texts that fail for `nil`."""


class Methods(LinePrograms):
    """Methods of Ruby's values."""

    regex_dialect = "ruby"

    @abstractmethod
    def inspected(self, value: Any) -> str:
        """Return a value as `inspect` gives it."""

    @abstractmethod
    def object_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        """Run a method of an object of the library."""

    def text(self, value: Any) -> str:
        """Return a value as Ruby writes it into a text."""
        if isinstance(value, list | dict) or (isinstance(value, Selection) and value.form is Form.MAPPING):
            return self.inspected(value)
        return super().text(value)

    def iterable(self, values: Any) -> Any:
        """Return what a loop goes through."""
        if isinstance(values, Selection) and values.form is Form.MAPPING:
            return self.items_of(values)
        return values

    def at(self, owner: Any, keys: list[Any]) -> Any:
        """Return `owner[key]`."""
        match owner, keys:
            case Selection(form=Form.MAPPING), [key]:
                return self.item_of(owner, key)
            case dict(), [key]:
                return owner.get(self._same_key(owner, key))
            case list(), [int() as index]:
                return owner[index] if -len(owner) <= index < len(owner) else None
            case _:
                raise UnknownError

    def _same_key(self, owner: dict[Any, Any], key: Any) -> Any:
        """Return a key; a symbol is no text, though they are equal here."""
        self.plain(key)
        if any(each == key and type(each) is not type(key) for each in owner):
            raise UnknownError
        return key

    def put(self, owner: Any, key: Any, value: Any) -> None:
        """Run `owner[key] = value`."""
        if not isinstance(owner, dict):
            raise UnknownError
        owner[self._same_key(owner, key)] = value

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        match sign:
            case "+" if isinstance(left, str) and isinstance(right, str):
                return left + right
            case "+" if isinstance(left, str) and right is None:
                raise FailedError("TypeError")
            case "+" if isinstance(left, list) and isinstance(right, list):
                return left + right
            case "+" | "-" if isinstance(left, int | Count):
                return self.counted(sign, left, right)
            case "%" if isinstance(left, str):
                return self.formatted(left, right if isinstance(right, list) else [right])
            case "*" if isinstance(left, str) and isinstance(right, int) and right <= 200:
                return self.plain(left) * right
            case "<<" if isinstance(left, list):
                left.append(right)
                return left
            case "<<" if isinstance(left, str):
                return left + self.text(right)
            case "==" | "!=":
                return self.equal(left, right) is (sign == "==")
            case ">" | "<" | ">=" | "<=":
                return self.ordered(sign, left, right)
            case _:
                raise UnknownError

    # ------------------------------------------------------------ methods

    def method(self, owner: Any, name: str, arguments: list[Any], block: Function | None) -> Any:
        """Run a method."""
        match name, arguments:
            case "inspect", []:
                return self.inspected(owner)
            case "to_s", []:
                return self.text(owner)
            case "nil?", []:
                return not self.defined(owner)
            case "freeze" | "dup" | "itself" | "clone", []:
                return owner
            case "to_json", _:
                return json_text(self, owner, Layout())
            case "to_yaml", []:
                return self._yaml(owner)
            case "tap" | "then", [] if block is not None:
                found = block.run([owner])
                return owner if name == "tap" else found
            case _:
                pass
        match owner:
            case Symbol() if owner.startswith("::"):
                found = self.object_method(owner, name, arguments)
                if block is not None and name != "popen" and not isinstance(found, Sink):
                    raise UnknownError
                return found if block is None else block.run([found])
            case Selection() | Lines() | list() | dict():
                return self._of_collection(owner, name, arguments, block)
            case str() | Written() if block is not None and name in ("each_line", "each"):
                return self._with_block(self.with_ends(self.entries_of(owner, "\n"), "\n"), "each", [], block)
            case str() | Written() if block is None:
                return self._of_text(owner, name, arguments)
            case Count():
                return self._of_count(owner, name)
            case None if name in _NOT_OF_NIL:
                raise FailedError("NoMethodError")
            case Raised() if name in ("message", "full_message", "to_s"):
                return owner.text if name != "full_message" else self.quiet()
            case Raised() if name == "class":
                return self.quiet()
            case Sink() if name in ("close", "write", "puts", "print", "<<", "flush", "sync="):
                return None
            case Function() if name == "call":
                return owner.run(arguments)
            case Pattern() if name in ("match?", "match"):
                return self.matches(owner, arguments[0])
            case _:
                raise UnknownError

    def _of_count(self, owner: Count, name: str) -> bool:
        if name not in ("zero?", "positive?"):
            raise UnknownError
        is_some = owner.at_least > 0 or self.decide()
        return is_some is (name == "positive?")

    def _of_text(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "start_with?", prefixes:
                return any(self.starts(owner, prefix) for prefix in prefixes)
            case "end_with?", [suffix]:
                return self.ends(owner, suffix)
            case "include?", [part]:
                return self.contains(owner, part)
            case "match?" | "match", [Pattern() as pattern]:
                return self.matches(pattern, owner)
            case "empty?", []:
                return not self._is_filled(owner)
            case "strip" | "chomp" | "rstrip" | "lstrip", []:
                return self.chomped(owner) if name == "chomp" else self.stripped(owner)
            case "ljust" | "rjust", [int() as width]:
                return self.padded(owner, width, left=name == "ljust")
            case "upcase" | "downcase", []:
                return self.plain(owner).upper() if name == "upcase" else self.plain(owner).lower()
            case "split", [str() as separator, *limit]:
                return self.split(owner, separator, limit[0] if limit else 0)
            case "lines" | "each_line", []:
                return self.with_ends(self.entries_of(owner, "\n"), "\n")
            case "tr" | "gsub", [part, other]:
                source = part.compiled.pattern if isinstance(part, Pattern) else part
                return self.replaced(owner, "\0" if source == "\\0" else source, other)
            case "length" | "size", []:
                return self.size(owner)
            case "read" | "readlines", [] if isinstance(owner, Written):
                return owner if name == "read" else self._of_text(owner, "lines", [])
            case "to_sym", []:
                return Symbol(self.plain(owner))
            case "freeze" | "dup" | "to_str" | "name" | "force_encoding" | "encode" | "scrub", _:
                return owner
            case _:
                raise UnknownError

    def _is_filled(self, text: Any) -> bool:
        if isinstance(text, str):
            actual = self.actual(text)
            if has_placeholder(actual):
                return not self.equal(actual, "")
            return actual != ""
        return self.decide()

    def _of_collection(self, owner: Any, name: str, arguments: list[Any], block: Function | None) -> Any:
        if block is not None:
            return self._with_block(owner, name, arguments, block)
        is_mapping = isinstance(owner, dict) or (isinstance(owner, Selection) and owner.form is Form.MAPPING)
        match name, arguments:
            case "[]", keys:
                return self.at(owner, keys)
            case "to_h" | "to_hash", []:
                return self.mapping_of(owner)
            case "to_a" | "entries" | "each" | "each_pair" | "lazy", []:
                return self.iterable(owner) if isinstance(owner, Selection) else self.list_of(owner)
            case "keys", []:
                return self.names_of(owner)
            case "values", [] if isinstance(owner, dict):
                return list(owner.values())
            case "sort" | "uniq" | "compact" | "flatten", []:
                return self._arranged(owner, name)
            case "slice", names if is_mapping:
                return self.sliced(owner, names)
            case "values_at", names:
                return [self.at(owner, [each]) for each in names]
            case "fetch", [key, *default]:
                return self._fetched(owner, key, default[0] if default else FailedError("KeyError"))
            case "key?" | "has_key?" | "include?" | "member?", [key]:
                return self._is_in(owner, key)
            case "empty?" | "any?" | "none?", []:
                is_some = bool(owner) if isinstance(owner, list | dict) else self._has_some(owner)
                return is_some is (name == "any?")
            case "size" | "length" | "count", []:
                return self.size(owner)
            case "max", [] if isinstance(owner, list) and all(type(value) is int for value in owner):
                return max(owner)
            case "first" | "last", [] if isinstance(owner, list):
                return (owner or [None])[0 if name == "first" else -1]
            case "join", separator:
                return self.joined(owner, separator[0] if separator else "")
            case "grep", [Pattern() as pattern]:
                return self.kept(owner, lambda item: self.matches(pattern, item))
            case "zip", [list() as others] if isinstance(owner, list):
                return [[each, other] for each, other in zip(owner, others, strict=True)]
            case "push" | "append", [value] if isinstance(owner, list):
                owner.append(value)
                return owner
            case "merge", [dict() as other] if isinstance(owner, dict):
                return owner | other
            case _:
                raise UnknownError

    def _has_some(self, owner: Selection | Lines) -> bool:
        return self.certain(owner.kept) > 0 or self.decide()

    def _arranged(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Selection):
            return self.iterable(owner)
        if isinstance(owner, Lines):
            return owner
        values = self.list_of(owner)
        if name == "compact":
            return [value for value in values if self.defined(value)]
        if name == "sort":
            if any(isinstance(value, list) for value in values):
                return sorted(values, key=lambda value: self.plain(value[0]))
            return sorted(self.plain(value) for value in values)
        raise UnknownError

    def _is_in(self, owner: Any, key: Any) -> bool:
        if isinstance(owner, Selection):
            return self.is_set(owner, key)
        if isinstance(owner, dict):
            return self._same_key(owner, key) in owner
        return any(self.equal(each, key) for each in self.list_of(owner))

    def _fetched(self, owner: Any, key: Any, default: Any) -> Any:
        is_there = self._is_in(owner, key)
        if is_there:
            return self.at(owner, [key])
        if isinstance(default, FailedError):
            raise default
        return default

    def _with_block(self, owner: Any, name: str, arguments: list[Any], block: Function) -> Any:
        values = self.iterable(owner)
        match name:
            case "each" | "each_pair" | "each_entry":
                self.each(values, lambda item: block.run([item]))
                return owner
            case "each_with_index" | "each.with_index" | "with_index":
                start = arguments[0] if arguments else 0
                if isinstance(values, list):
                    self.each([[item, number] for number, item in enumerate(values, start=start)], block.run)
                else:
                    self.each(values, lambda item: block.run([item, Count(start)]))
                return owner
            case "select" | "filter" | "reject" | "keep_if":
                kept = self.kept(values, lambda item: self._tested(block, item) is (name != "reject"))
                return (
                    self.mapping_of(kept)
                    if isinstance(owner, dict | Selection) and values is not owner
                    else kept
                )
            case "map" | "collect" | "flat_map":
                return self.mapped(values, lambda item: block.run([item]))
            case "filter_map":
                return self._filter_mapped(values, block)
            case "to_h":
                pairs = self.mapped(values, lambda item: block.run([item]))
                return self.mapping_of(pairs)
            case "each_with_object":
                return self.reduced(values, arguments[0], lambda kept, item: self._changed(block, kept, item))
            case "inject" | "reduce" if arguments:
                return self.reduced(values, arguments[0], lambda kept, item: block.run([kept, item]))
            case "sort_by" | "min_by":
                return values if isinstance(values, Selection | Lines) else self._sorted_by(values, block)
            case "fetch":
                key = arguments[0]
                return self.at(owner, [key]) if self._is_in(owner, key) else block.run([key])
            case "any?" | "none?" | "empty?" | "count" | "find" | "detect":
                return self._searched(self.kept(values, lambda item: self._tested(block, item)), name)
            case _:
                raise UnknownError

    def _searched(self, kept: Any, name: str) -> Any:
        if name == "count":
            return self.size(kept)
        if name in ("find", "detect"):
            if not isinstance(kept, list):
                raise UnknownError
            return kept[0] if kept else None
        is_some = bool(kept) if isinstance(kept, list | dict) else self._has_some(kept)
        return is_some is (name == "any?")

    def _tested(self, block: Function, item: Any) -> bool:
        return self.truth(block.run([item]))

    def _filter_mapped(self, values: Any, block: Function) -> Any:
        if isinstance(values, Selection | Lines):
            return self.mapped(values, lambda item: block.run([item]))
        found = [block.run([item]) for item in self.list_of(values)]
        return [value for value in found if self.truth(value)]

    def _sorted_by(self, values: Any, block: Function) -> Any:
        items = self.list_of(values)
        return sorted(items, key=lambda item: self.plain(block.run([item])))

    def _changed(self, block: Function, kept: Any, item: Any) -> Any:
        """Return what a block may have changed in place."""
        block.run([item, kept])
        return kept

    def _yaml(self, value: Any) -> str:
        """Return a hash of texts as `to_yaml` gives it."""
        if not isinstance(value, dict):
            raise UnknownError
        if not value:
            return "--- {}\n"
        out = "---\n"
        for key, each in value.items():
            out += f":{key}:" if isinstance(key, Symbol) else f"{key}:"
            text = self.text(each) if each is not None else ""
            forms = (("",), (" ",)) if each is None else ((f" {text}",), (f" '{text}'",), (f' "{text}"',))
            out += self.word(Choice(forms)) + "\n"
        return out
