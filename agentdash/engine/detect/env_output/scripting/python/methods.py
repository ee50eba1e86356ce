"""Methods of values in programs of Python."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.patterns import Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.python.texts import PythonTexts
from agentdash.engine.detect.env_output.scripting.python.values import (
    FOREIGN_METHODS,
    Class,
    File,
    Members,
    Quiet,
)
from agentdash.engine.detect.env_output.scripting.values import Count, Pattern, Written
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Methods(PythonTexts):
    """Methods of values."""

    @abstractmethod
    def of_instance(self, owner: Instance, name: str) -> Any:
        """Return a method of an object of the program, or another attribute."""

    @abstractmethod
    def add_argument(self, parser: Instance, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `add_argument` of a parser of the command line."""

    @abstractmethod
    def call(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a function."""

    def method(self, owner: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a method of a value."""
        match owner:
            case Instance(of=Class(name="ArgumentParser")) if name == "add_argument":
                return self.add_argument(owner, arguments, keywords)
            case Instance(of=Class(name="ArgumentParser")) if name == "parse_args":
                return owner
            case Instance(of=Class()):
                return self.call(self.of_instance(owner, name), arguments, keywords)
            case str() if name == "format":
                return self.format(owner, arguments, keywords)
            case Quiet():
                return self._of_quiet(owner, name)
            case _ if keywords and name not in ("split", "update", "get", "decode", "read_text", "sort"):
                raise UnknownError
            case Bytes():
                return self._of_bytes(owner, name, arguments)
            case Selection():
                return self._of_selection(owner, name, arguments)
            case dict():
                return self._of_mapping(owner, name, arguments, keywords)
            case list() | tuple():
                return self._of_list(owner, name, arguments)
            case str() | Written() | Lines():
                return self._of_text(owner, name, [*arguments, *keywords.values()])
            case File():
                return self._of_file(owner, name)
            case Pattern():
                return self._searched(owner, name, arguments)
            case _:
                raise UnknownError

    def _of_quiet(self, owner: Quiet, name: str) -> Any:
        if name in FOREIGN_METHODS:
            raise UnknownError
        return self.quiet_call(msgspec.structs.replace(owner, name=f"{owner.name}.{name}"))

    def quiet_call(self, function: Quiet) -> Quiet:
        """Run a function that gives a value without a flag, and may fail."""
        self._may_have_written = True
        if function.can_fail:
            self.may_fail()
        return Quiet()

    def _of_file(self, owner: File, name: str) -> Any:
        if name in ("read", "read_text", "read_bytes"):
            content = owner.content
            return Bytes(content) if name == "read_bytes" and not isinstance(content, Bytes) else content
        if name in ("readlines", "splitlines"):
            return self.with_ends(self.entries_of(owner.content, "\n"), "\n")
        if name == "close":
            return None
        raise UnknownError

    # ------------------------------------------------------------ bytes

    def _of_bytes(self, owner: Bytes, name: str, arguments: list[Any]) -> Any:
        if name == "decode":
            return owner.text
        found = self.method(owner.text, name, [self.without_bytes(each) for each in arguments], {})
        return self._as_bytes(found)

    def without_bytes(self, value: Any) -> Any:
        """Return the texts of bytes."""
        match value:
            case Bytes(text=text):
                return text
            case bytes():
                return value.decode(errors="replace")
            case tuple():
                return tuple(self.without_bytes(each) for each in value)
            case _:
                return value

    def _as_bytes(self, value: Any) -> Any:
        match value:
            case str() | Written():
                return Bytes(value)
            case list() | tuple():
                return type(value)(self._as_bytes(each) for each in value)
            case Selection():
                return msgspec.structs.replace(value, is_bytes=True)
            case _:
                return value

    # ------------------------------------------------------------ texts

    def _of_text(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "startswith" | "endswith", [start]:
                test = self.starts if name == "startswith" else self.ends
                return any(test(owner, each) for each in (start if isinstance(start, tuple) else (start,)))
            case "join", [values]:
                return self.joined(values, owner)
            case "splitlines", []:
                return self.entries_of(owner, "\n")
            case "split" | "rsplit", []:
                return self.plain(owner).split()
            case "split" | "rsplit", [separator, *limit]:
                return self.split(owner, separator, limit[0] + 1 if limit else 0)
            case "partition", [separator]:
                parts = self.split(owner, separator, 2)
                return (parts[0], separator if len(parts) > 1 else "", "".join(parts[1:]))
            case "strip" | "rstrip" | "lstrip", [] | ["\0"] | ["\n"]:
                return self._stripped(owner, name, arguments)
            case "strip" | "rstrip" | "lstrip", [chars]:
                return getattr(self.plain(owner), name)(self.plain(chars))
            case "replace", [part, other]:
                return self.replaced(owner, part, other)
            case "ljust" | "rjust" | "center", [int() | Count() as width, *fill]:
                align = {"ljust": "<", "rjust": ">", "center": "^"}[name]
                return self.aligned(owner, width, align, fill[0] if fill else " ")
            case "encode", _:
                return Bytes(owner)
            case "removeprefix", [start]:
                return owner[len(start) :] if self.starts(owner, start) else owner
            case "find" | "index", [part]:
                return self.position(owner, part)
            case "count", [part]:
                return self.plain(owner).count(self.plain(part))
            case "isdigit" | "isdecimal" | "isupper" | "islower", []:
                return getattr(self.plain(self.actual(owner)), name)()
            case (("upper" | "lower" | "title" | "capitalize" | "swapcase" | "casefold"), []):
                return getattr(self.plain(owner), name)()
            case _:
                raise UnknownError

    def _stripped(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        if arguments == ["\0"]:
            return owner if isinstance(owner, Written) else self.plain(owner).strip("\0")
        if isinstance(owner, str) and not has_placeholder(owner):
            return getattr(owner, name)(*arguments)
        if isinstance(owner, str) and name == "rstrip":
            return owner.rstrip("\n")
        if isinstance(owner, Written) and name == "rstrip":
            return Written((Trimmed(owner.parts),))
        return owner if isinstance(owner, Lines) else self.stripped(owner)

    def _searched(self, owner: Pattern, name: str, arguments: list[Any]) -> Any:
        if name not in ("search", "match", "fullmatch") or len(arguments) != 1:
            raise UnknownError
        source = owner.compiled.pattern
        anchored = {"search": source, "match": f"^(?:{source})", "fullmatch": f"^(?:{source})$"}[name]
        pattern = Pattern(re.compile(anchored, owner.compiled.flags))
        return True if self.matches(pattern, self.without_bytes(arguments[0])) else None

    # ------------------------------------------------------------ collections

    def _of_selection(self, owner: Selection, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case ("get", [key, *default]) if owner.form is Form.MAPPING:
                if isinstance(key, bytes | Bytes) is not owner.is_bytes:
                    raise UnknownError
                found = self.item_of(owner, self.without_bytes(key))
                return (default or [None])[0] if found is None else self.bytes_of(owner, found)
            case "items", []:
                return msgspec.structs.replace(owner, form=Form.ITEMS)
            case "copy", []:
                return owner
            case "keys", []:
                return msgspec.structs.replace(owner, form=Form.NAMES)
            case "sort" | "reverse", [] if owner.items:
                return None  # in which order they are written is not looked at
            case _:
                raise UnknownError

    def bytes_of(self, owner: Selection, value: Any) -> Any:
        """Return a value of a mapping as bytes, where those are in it."""
        return Bytes(value) if owner.is_bytes else value

    def _of_mapping(
        self, owner: dict[Any, Any], name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        match name, arguments:
            case "items", []:
                return list(owner.items())
            case "keys", []:
                return list(owner)
            case "values", []:
                return list(owner.values())
            case "pop", [key, *default]:
                return owner.pop(self.plain(key), (default or [None])[0])
            case "get", [key, *default]:
                return next((v for k, v in owner.items() if self.equal(k, key)), (default or [None])[0])
            case "setdefault", [key, value]:
                return owner.setdefault(self.plain(key), value)
            case "update", values if all(isinstance(value, dict) for value in values):
                owner.update({k: v for value in (*values, keywords) for k, v in value.items()})
                return None
            case "copy", []:
                return dict(owner)
            case _:
                raise UnknownError

    def _of_list(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "append" | "add", [value] if isinstance(owner, list):
                if not isinstance(owner, Members) or value not in owner:
                    owner.append(value)
            case "extend", [values] if isinstance(owner, list):
                self.extend(owner, values)
            case "sort", [] if isinstance(owner, list):
                owner[:] = self.in_order(owner, None)
            case _:
                raise UnknownError

    def extend(self, owner: list[Any], values: Any) -> None:
        """Run `list.extend`."""
        self.each(values, owner.append)

    @abstractmethod
    def in_order(self, values: Any, key: Any) -> Any:
        """Return what `sorted` gives."""
