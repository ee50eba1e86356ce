"""Calls of Python: functions, and methods of values."""

from __future__ import annotations

import ast
import re
from string import Formatter
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAGS, Dump, Style
from agentdash.engine.detect.env_output.patterns import Parts, Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.python_expressions import Expressions
from agentdash.engine.detect.env_output.python_values import (
    MAX_CODE,
    TEXT_METHODS,
    Captured,
    FailedError,
    File,
    Foreign,
    Function,
    Method,
    Module,
    Pattern,
    Quiet,
    as_bytes,
    stripped,
)
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Methods(Expressions):
    """Calls of Python: functions, and methods of values."""

    def _call(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        if any(keyword.arg is None for keyword in node.keywords):
            raise UnknownError
        starred = [a for a in node.args if isinstance(a, ast.Starred)]
        arguments = [self._value(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        keywords = {k.arg or "": self._value(k.value) for k in node.keywords}
        if starred:
            if len(arguments) != 1 or not isinstance(function, Module) or function.name != "print":
                raise UnknownError
            if isinstance(arguments[0], Lines) and keywords == {"sep": "\n"}:
                arguments = [msgspec.structs.replace(arguments[0], is_text=True)]
                keywords = {}
            elif isinstance(arguments[0], list | tuple):
                arguments = list(arguments[0])
            else:
                raise UnknownError
        if isinstance(function, Method):
            return self._method(function.owner, function.name, arguments, keywords)
        if isinstance(function, Module) and (run := self._library(function.name)) is not None:
            return run(arguments, keywords)
        if isinstance(function, Function) and not keywords:
            return self._called(function.node, arguments)
        if isinstance(function, Quiet):
            if self._tries:
                if self._decide():
                    raise FailedError("?")
            else:
                self._failures.append(self._failure())
            return function
        raise UnknownError

    def _converted(self, template: str, arguments: list[Any]) -> list[str]:
        """Return the texts of the fields of `str.format`."""
        conversions = [
            conversion for _, name, _, conversion in Formatter().parse(template) if name is not None
        ]
        if "!" not in template:
            return [self._text(argument) for argument in arguments]
        if len(conversions) != len(arguments) or set(conversions) - {None, "r"}:
            raise UnknownError
        return [
            self._repr(argument) if conversion == "r" else self._text(argument)
            for conversion, argument in zip(conversions, arguments, strict=True)
        ]

    def _method(self, owner: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(owner, Selection):
            return self._mapping_method(owner, name, arguments, keywords)
        if isinstance(owner, dict) and name != "update":
            if name == "items" and not arguments:
                return list(owner.items())
            if name in ("keys", "values") and not arguments:
                return list(owner.keys() if name == "keys" else owner.values())
            if name == "get" and arguments:
                return owner.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
            raise UnknownError
        if isinstance(owner, list) and name == "append" and len(arguments) == 1:
            owner.append(arguments[0])
            return None
        if isinstance(owner, str) and name == "join" and len(arguments) == 1 and not keywords:
            if isinstance(arguments[0], Lines) and owner == "\n":
                return msgspec.structs.replace(arguments[0], is_text=True)
            listed = arguments[0]
            if isinstance(listed, Selection) and listed.form is Form.ENTRIES and owner == "\n":
                if listed.is_bytes:
                    raise UnknownError
                return Lines(Style(), arguments[0].kept, is_text=True)
            self._require_plain(arguments[0])
            return owner.join(self._joinable(value) for value in arguments[0])
        if isinstance(owner, str) and name == "format" and ("!" not in owner or not keywords):
            texts = self._converted(owner, arguments)
            owner = owner.replace("!r", "")
            if ":" in owner and any(has_placeholder(text) for text in texts):
                layout = [spec for _, field, spec, _ in Formatter().parse(owner) if field is not None]
                if len(layout) != len(texts) or any(
                    spec and has_placeholder(text) for spec, text in zip(layout, texts, strict=True)
                ):
                    raise UnknownError
            try:
                return owner.format(*texts, **{k: self._text(v) for k, v in keywords.items()})
            except (IndexError, KeyError, ValueError, AttributeError) as error:
                raise UnknownError from error
        if isinstance(owner, Bytes):
            found = self._method(owner.text, name, arguments, keywords)
            return found if name == "decode" else as_bytes(found)
        if isinstance(owner, str) and has_placeholder(owner) and not keywords:
            return self._entry_method(owner, name, arguments)
        if isinstance(owner, File | Captured | Pattern):
            return self._method_of_opaque(owner, name, arguments, keywords)
        if isinstance(owner, bytes) and name == "decode":
            return owner.decode(errors="replace")
        if isinstance(owner, dict) and name == "update" and arguments and isinstance(arguments[0], dict):
            owner.update(arguments[0])
            return None
        if isinstance(owner, str) and name in TEXT_METHODS and not has_placeholder(owner):
            self._require_plain(*arguments)
            if any(isinstance(a, int) and abs(a) > MAX_CODE for a in arguments):
                raise UnknownError
            try:
                return getattr(owner, name)(*arguments)
            except (TypeError, ValueError) as error:
                raise UnknownError from error
        raise UnknownError

    def _entry_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        """Return what a method gives of a text of which only the beginning is known."""
        known = owner.partition("Zhole")[0]
        texts = [a.decode(errors="replace") if isinstance(a, bytes) else a for a in arguments]
        match name, texts:
            case "decode" | "strip" | "rstrip" | "lstrip", _ if name == "decode" or not texts:
                return owner
            case "startswith", [str() | tuple() as starts]:
                starts = (starts,) if isinstance(starts, str) else starts
                starts = tuple(s.decode() if isinstance(s, bytes) else s for s in starts)
                if all(isinstance(s, str) and len(s) <= len(known) for s in starts):
                    return owner.startswith(starts)
            case "split", ["=", 1]:
                if "=" in known:
                    return owner.split("=", 1)
            case "partition", ["="]:
                if "=" in known:
                    return owner.partition("=")
            case "split", ["="]:  # no flag's value has an equals sign
                if "=" in known:
                    return owner.split("=", 1)
            case _:
                pass
        raise UnknownError

    def _method_of_opaque(
        self, owner: File | Captured | Pattern, name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        texts = [a.decode(errors="replace") if isinstance(a, bytes) else a for a in arguments]
        match owner, name, texts:
            case File(), "read" | "read_text" | "read_bytes", _:
                return Captured((self._whole(nul=True),), is_bytes=owner.is_bytes or name == "read_bytes")
            case File(), "close", []:
                return None
            case Pattern(pattern=pattern), "search" | "match" | "fullmatch", [str() as text]:
                return self._searched(pattern, name, text)
            case Captured(), "decode", _:
                return msgspec.structs.replace(owner, is_bytes=False)
            case Captured(), "read", _:
                return owner
            case Captured(parts=(Dump(nul=True),)), "strip" | "rstrip", ["\0"] | []:
                return owner
            case Captured(parts=(Dump(nul=True) as dump,)), "replace", ["\0", "\n"] if not keywords:
                return msgspec.structs.replace(owner, parts=(msgspec.structs.replace(dump, nul=False),))
            case Captured(parts=(Dump(nul=True),)), "split", ["\0"]:
                return Selection((True, True), Form.ENTRIES, is_bytes=owner.is_bytes)
            case Captured(parts=parts), "rstrip", []:
                return Captured((Trimmed(parts),))
            case Captured(parts=parts), "strip", []:
                return Captured(stripped(parts))
            case Captured(parts=parts), "splitlines" | "split", [] | ["\n"] if name == "splitlines" or texts:
                return msgspec.structs.replace(self._entries(parts), is_bytes=owner.is_bytes)
            case _:
                raise UnknownError

    def _entries(self, parts: Parts) -> Selection:
        """Return the lines of a dump as texts `NAME=value`."""
        match parts:
            case (Dump(style=style, nul=False, separator="") as dump,) | (
                Trimmed(parts=(Dump(style=style, nul=False, separator="") as dump,)),
            ) if style == ENV_STYLE:
                required = (dump.required(0), dump.required(1))
                absent = [self._environment[name] is None for name in FLAGS]
                if not any(r is None for r in required) and not dump.partial:
                    return Selection(
                        (bool(required[0]) or absent[0], bool(required[1]) or absent[1]), Form.ENTRIES
                    )
                raise UnknownError
            case _:
                raise UnknownError

    def _searched(self, pattern: re.Pattern[str], name: str, text: str) -> bool | None:
        if has_placeholder(text):
            raise UnknownError
        found = {"search": pattern.search, "match": pattern.match, "fullmatch": pattern.fullmatch}[name](text)
        return None if found is None else True

    def _joinable(self, value: Any) -> str:
        if not isinstance(value, str | Foreign):
            raise FailedError
        return str(value)

    def _mapping_method(
        self, owner: Selection, name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        if keywords or owner.items:
            raise UnknownError
        match name, arguments:
            case ("get", [key]) | ("get", [key, _]):
                if isinstance(key, bytes) is not owner.is_bytes:
                    raise UnknownError
                key = key.decode(errors="replace") if isinstance(key, bytes) else key
                default = arguments[1] if len(arguments) > 1 else None
                if key in FLAGS and not owner.kept[FLAGS.index(key)]:
                    return default
                found = self._variable(key, default)
                return Bytes(found) if owner.is_bytes and isinstance(found, str) else found
            case "items", []:
                return Selection(owner.kept, Form.ITEMS, is_bytes=owner.is_bytes)
            case (("copy" | "keys"), []):
                return owner
            case _:
                raise UnknownError
