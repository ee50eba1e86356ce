"""The library of Node, and methods of values."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from agentdash.engine.detect.env_output.patterns import Hole, Kind, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.javascript.promises import Promise
from agentdash.engine.detect.env_output.scripting.javascript.text_methods import TextMethods
from agentdash.engine.detect.env_output.scripting.javascript.values import (
    ATTEMPTS,
    MODULES,
    NULL,
    QUIET_FUNCTIONS,
    Null,
    Pairs,
)
from agentdash.engine.detect.env_output.scripting.values import (
    Builtin,
    Count,
    ExitError,
    FailedError,
    Function,
    Method,
    Pattern,
    Written,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Calls(TextMethods):
    """The library of Node, and methods of values."""

    def truth(self, value: Any) -> bool:
        """Return whether a value counts as true: objects do, also without content."""
        if isinstance(value, Null):
            return False
        if isinstance(value, Selection | list | dict) or (isinstance(value, Lines) and not value.is_text):
            return True
        return super().truth(value)

    def call(self, function: Any, arguments: list[Any]) -> Any:
        """Run a function."""
        match function:
            case Function():
                return function.run(arguments)
            case Method(owner=owner, name=name):
                return self._method(owner, name, arguments)
            case Builtin(name=name):
                return self._library(name.removeprefix("node:"), arguments)
            case _:
                raise UnknownError

    def _applied(self, function: Any) -> Callable[[Any], Any]:
        return lambda value: self.call(function, [value])

    # ------------------------------------------------------------ the library

    def _library(self, name: str, arguments: list[Any]) -> Any:
        if QUIET_FUNCTIONS.fullmatch(name):
            return self.quiet()
        area, _, function = name.partition(".")
        match area:
            case "console":
                return self._console(function, arguments)
            case "Object":
                return self._of_objects(function, arguments)
            case "fs" | "fs/promises" | "child_process" | "process" | "require":
                return self._of_node(name, arguments)
            case _:
                return self._global(name, arguments)

    def _console(self, function: str, arguments: list[Any]) -> Any:
        match function, arguments:
            case "log" | "info" | "debug", _:
                return self.print(arguments)
            case "dir", [value, *_]:
                return self.print([value])
            case "table", [value, *_]:
                return self.table(value)
            case "error" | "warn", _:
                outer, self.out = self.out, self.err
                try:
                    return self.print(arguments)
                finally:
                    self.out = outer
            case _:
                raise UnknownError

    def _of_objects(self, function: str, arguments: list[Any]) -> Any:
        match function, arguments:
            case "keys" | "getOwnPropertyNames", [value]:
                return self.names_of(self._attributes(value))
            case "values", [dict() as value]:
                return list(value.values())
            case "entries", [value]:
                return self.items_of(self._attributes(value))
            case "fromEntries", [value]:
                return self.mapping_of(value)
            case "assign", [dict() as target, *sources]:
                return self.merged(target, sources)
            case "freeze", [value]:
                return value
            case "hasOwn" | "prototype.hasOwnProperty.call", [value, key]:
                return self.has(value, key)
            case _:
                raise UnknownError

    def _attributes(self, value: Any) -> Any:
        return value.attributes if isinstance(value, Instance) else value

    def merged(self, target: dict[str, Any], sources: list[Any]) -> Any:
        """Return an object with the entries of others in it."""
        if any(isinstance(source, Selection) for source in sources):
            if target or len(sources) > 1:
                raise UnknownError
            return self.mapping_of(sources[0])
        for source in sources:
            target.update({} if source in (None, NULL) else source)
        return target

    def has(self, owner: Any, key: Any) -> bool:
        """Return whether an object has a key."""
        if isinstance(owner, Selection):
            return self.is_set(owner, key)
        if not isinstance(owner, dict):
            raise UnknownError
        return self.plain(key) in owner

    def _of_node(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "process.stdout.write", [value]:
                self.out += self.inspected(value)
            case "process.stderr.write", [value]:
                self.err += self.inspected(value)
            case "process.exit", status:
                raise ExitError(status[0] if status and isinstance(status[0], int) else 0)
            case "require", [str() as module] if module.removeprefix("node:") in MODULES:
                return Builtin(module.removeprefix("node:"))
            case (("fs.promises.readFile" | "fs/promises.readFile"), [path, *_]):
                return self.content(path)
            case "fs.readFileSync", [0 | "/dev/stdin", *_]:
                return self.input()
            case "fs.readFileSync", [path, *_]:
                return self.content(path)
            case "fs.existsSync", [_]:
                return self.decide()
            case _ if ATTEMPTS.fullmatch(name) and not any(isinstance(each, Function) for each in arguments):
                return self._tried() if name.endswith("Sync") else self.promised(self._tried)
            case "child_process.execSync", [script, *options]:
                return self._executed(script, options)
            case (("child_process.execFileSync" | "child_process.spawnSync"), [program, *rest]):
                words = rest.pop(0) if rest and isinstance(rest[0], list) else []
                script = shlex.join(self.plain(word) for word in [program, *words])
                if name.endswith("execFileSync"):
                    return self._executed(script, rest)
                self._check_options(rest)
                written, status = self.ended(script)
                return {"stdout": written, "status": status}
            case _:
                raise UnknownError
        return None

    def _tried(self) -> None:
        """Open or change something of the system."""
        if self.attempted() is None:
            raise FailedError("Error")

    def _executed(self, script: Any, options: list[Any]) -> Any:
        given = self._check_options(options)
        if given.get("stdio") in ("inherit", ["inherit", "inherit", "inherit"]):
            return self.started(script)
        return self.checked(script)

    def _check_options(self, options: list[Any]) -> dict[str, Any]:
        """Return the options of a program that is started. Raises `UnknownError` for its own environment."""
        given = options[0] if options else {}
        if not isinstance(given, dict) or given.keys() & {"env", "input", "shell", "cwd"}:
            raise UnknownError
        return given

    def _global(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "JSON.stringify", [value, *layout]:
                return self.json(value, layout)
            case "util.inspect", [value, *_] if not isinstance(value, str):
                return Written(tuple(self.inspected(value)))
            case "util.format", values:
                outer, self.out = self.out, []
                try:
                    self.print(values)
                    return self.word(*joined(self.out[:-1]))
                finally:
                    self.out = outer
            case "Map", [values]:
                return Pairs(self.list_of(values)) if isinstance(values, list) else self.mapping_of(values)
            case (("Map" | "Set"), []):
                return Pairs()
            case "Set", [list() as values]:
                return list(dict.fromkeys(self.plain(value) for value in values))
            case "Error", [*values]:
                return {"message": values[0] if values else ""}
            case "RegExp", [source, *flags]:
                return self.pattern(self.plain(source), self.plain(flags[0]) if flags else "")
            case "String", [value]:
                return self.text(value)
            case "Number" | "parseInt", [value, *_]:
                return self._number(value)
            case "Boolean", [value]:
                return self.truth(value)
            case "Array.isArray", [value]:
                return isinstance(value, list | Lines) or (
                    isinstance(value, Selection) and value.form is not Form.MAPPING
                )
            case "Array.from", [list() | Lines() | Selection() as values, *change]:
                return self.mapped(values, self._applied(change[0])) if change else values
            case "Math.max", values:
                return self.largest_of(values)
            case "Promise.all", [list() as values]:
                return [self.awaited(value) for value in values]
            case "Promise.resolve", [*values]:
                return values[0] if values else None
            case "Reflect.ownKeys", [value]:
                return self.names_of(self._attributes(value))
            case "Reflect.has", [value, key]:
                return self.has(value, key)
            case _:
                raise UnknownError

    def _number(self, value: Any) -> Any:
        if isinstance(value, str) and has_placeholder(self.actual(value)):
            return self.word(Hole(Kind.LINE))
        if isinstance(value, str) and value.isdecimal():
            return int(value)
        if not isinstance(value, int):
            raise UnknownError
        return value

    # ------------------------------------------------------------ methods

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        match owner:
            case Promise():
                return self.chained(owner, name, arguments)
            case Pattern() if name == "test":
                return self.matches(owner, arguments[0])
            case Pairs():
                return self._of_map(owner, name, arguments)
            case list() | Lines(is_text=False) | Selection() if not (
                isinstance(owner, Selection) and owner.form is Form.MAPPING
            ):
                return self._of_list(owner, name, arguments)
            case str() | Written() | Lines():
                return self.text_method(owner, name, arguments)
            case dict() | Selection() if name == "hasOwnProperty":
                return self.has(owner, arguments[0])
            case Selection() if name in ("get", "has"):  # a `Map` of the environment
                return self.has(owner, arguments[0]) if name == "has" else self.item_of(owner, arguments[0])
            case bool() | int() | Count() if name == "toString":
                return self.text(owner)
            case _:
                raise UnknownError

    def _of_map(self, owner: Pairs, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "get" | "has", [key]:
                found = [pair[1] for pair in owner if self.plain(pair[0]) == self.plain(key)]
                return bool(found) if name == "has" else (found or [None])[-1]
            case "set", [key, value]:
                owner[:] = [pair for pair in owner if self.plain(pair[0]) != self.plain(key)]
                owner.append([key, value])
                return owner
            case "entries", []:
                return list(owner)
            case "keys" | "values", []:
                return [pair[name == "values"] for pair in owner]
            case "forEach", [function]:
                return self.each(list(owner), lambda pair: self.call(function, [pair[1], pair[0]]))
            case _:
                raise UnknownError

    def _of_list(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "forEach", [function]:
                if isinstance(owner, list):
                    return self.each(list(enumerate(owner)), lambda n: self.call(function, [n[1], n[0]]))
                return self.each(owner, lambda item: self.call(function, [item, Count(0)]))
            case "map", [function] if isinstance(owner, list):
                return [self.call(function, [value, number]) for number, value in enumerate(owner)]
            case "map", [function]:
                return self.mapped(owner, self._applied(function))
            case "flatMap", [function] if isinstance(owner, list):
                found = [self.call(function, [value]) for value in owner]
                return [each for value in found for each in (value if isinstance(value, list) else [value])]
            case "filter", [function]:
                return self.kept(owner, lambda item: self.truth(self.call(function, [item])))
            case "some" | "every" | "find", [function]:
                return self._searched(owner, name, function)
            case "reduce", [function, first]:
                return self.reduced(owner, first, lambda before, item: self.call(function, [before, item]))
            case "sort", [function] if isinstance(owner, list):
                owner.sort(key=cmp_to_key(lambda one, other: self._order(function, one, other)))
                return owner
            case "sort" | "reverse", _:
                return self._arranged(owner, name)
            case "join", separator:
                values = ["" if v in (None, NULL) else v for v in owner] if isinstance(owner, list) else owner
                return self.joined(values, separator[0] if separator else ",")
            case "push", values if isinstance(owner, list):
                owner += values
                return len(owner)
            case "concat", [list() as others] if isinstance(owner, list):
                return owner + others
            case "includes" | "has", [value]:
                return any(self.equal(each, value) for each in self.list_of(owner))
            case "indexOf", [value] if isinstance(owner, list):
                return next((n for n, each in enumerate(owner) if self.equal(each, value)), -1)
            case "at", [int() as number] if isinstance(owner, list):
                return owner[number] if -len(owner) <= number < len(owner) else None
            case "flat", [] if isinstance(owner, list):
                return [each for value in owner for each in (value if isinstance(value, list) else [value])]
            case "slice", [] | [0]:
                return list(owner) if isinstance(owner, list) else owner
            case "slice", [int() as start, *stop] if isinstance(owner, list):
                return owner[start : stop[0] if stop else None]
            case "entries", [] if isinstance(owner, list):
                return [[number, value] for number, value in enumerate(owner)]
            case _:
                raise UnknownError

    def _searched(self, owner: Any, name: str, function: Any) -> Any:
        if name == "find":
            return next((v for v in self.list_of(owner) if self.truth(self.call(function, [v]))), None)
        kept = self.kept(owner, lambda item: self.truth(self.call(function, [item])) is (name == "some"))
        is_some = bool(kept) if isinstance(kept, list) else self.certain(kept.kept) > 0 or self.decide()
        return is_some is (name == "some")

    def _order(self, function: Any, one: Any, other: Any) -> int:
        found = self.call(function, [one, other])
        if type(found) is not int:
            raise UnknownError
        return found

    def _arranged(self, owner: Any, name: str) -> Any:
        if not isinstance(owner, list):
            return owner
        if name == "reverse":
            owner.reverse()
        elif all(isinstance(value, list) for value in owner):
            owner.sort(key=lambda value: self.plain(value[0]))
        else:
            owner.sort(key=self.plain)
        return owner
