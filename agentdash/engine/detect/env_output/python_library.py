"""Functions of Python's library that programs print with."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Callable
from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled
from agentdash.engine.detect.env_output.python_processes import Processes
from agentdash.engine.detect.env_output.python_values import (
    IGNORE_CASE,
    ExitError,
    FailedError,
    File,
    Foreign,
    Lambda,
    Module,
    Pattern,
    Quiet,
    flat,
)
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Library(Processes):
    """Functions of Python's library that programs print with."""

    def print(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `print`."""
        separator, end = keywords.get("sep", " "), keywords.get("end", "\n")
        stream = keywords.get("file")
        target = self.out if stream is None or stream == Module("sys.stdout") else self._err
        if stream is not None and stream not in (Module("sys.stdout"), Module("sys.stderr")):
            raise UnknownError
        if not isinstance(separator, str | None) or not isinstance(end, str | None):
            raise UnknownError
        for number, argument in enumerate(arguments):
            if number:
                target.append(" " if separator is None else separator)
            target += self._written(argument, len(arguments) == 1 and end in ("\n", None))
        if not (len(arguments) == 1 and isinstance(arguments[0], Lines)):
            target.append("\n" if end is None else end)

    def open(self, arguments: list[Any], keywords: dict[str, Any]) -> File:
        """Run `open` and `pathlib.Path`: of the process's own environment only."""
        if not arguments or arguments[0] not in ("/proc/self/environ", "/proc/thread-self/environ"):
            raise UnknownError
        if set(keywords) - {"encoding", "errors", "mode"}:
            raise UnknownError
        mode = [*arguments[1:2], keywords.get("mode", "")][0]
        return File(is_bytes=isinstance(mode, str) and "b" in mode)

    def pattern(self, arguments: list[Any], keywords: dict[str, Any]) -> Pattern:
        """Run `re.compile`."""
        if not 1 <= len(arguments) <= 2 or keywords or not isinstance(arguments[0], str):
            raise UnknownError
        ignores_case = arguments[1:] == [IGNORE_CASE]
        found = compiled(arguments[0], "perl", ignores_case=ignores_case)
        if found is None or (len(arguments) == 2 and not ignores_case):
            raise UnknownError
        return Pattern(found)

    def search(self, arguments: list[Any], keywords: dict[str, Any]) -> bool | None:
        """Run `re.search`."""
        flags = [keywords.pop("flags")] if "flags" in keywords else arguments[2:]
        if len(arguments) < 2 or not isinstance(arguments[1], str):
            raise UnknownError
        found = self.pattern([arguments[0], *flags], keywords).pattern
        return self._searched(found, "search", arguments[1])

    def match(self, arguments: list[Any], keywords: dict[str, Any]) -> bool | None:
        """Run `re.match`."""
        if len(arguments) != 2 or keywords or not isinstance(arguments[1], str):
            raise UnknownError
        return self._searched(self.pattern(arguments[:1], {}).pattern, "match", arguments[1])

    def kept(self, arguments: list[Any], keywords: dict[str, Any]) -> Selection:
        """Run `filter` over the environment."""
        if keywords:
            raise UnknownError
        match arguments:
            case [Lambda(node=node), Selection() as selection] if len(node.args.args) == 1:
                found: list[bool] = []
                for number, name in enumerate(FLAGS):
                    self._names[node.args.args[0].arg] = selection.entry(name)
                    found.append(self._truth(node.body) and selection.kept[number])
                form = Form.NAMES if selection.form is Form.MAPPING else selection.form
                return Selection((found[0], found[1]), form)
            case _:
                raise UnknownError

    def pretty(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `pprint.pprint`."""
        match arguments:
            case [Selection(form=Form.MAPPING) as selection]:
                self.out += [self._record(selection, is_python=selection.kept == (True, True)), "\n"]
            case _:
                self.print(arguments, keywords)

    def get_variable(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `os.getenv`."""
        if keywords or not 1 <= len(arguments) <= 2:
            raise UnknownError
        return self._variable(arguments[0], arguments[1] if len(arguments) > 1 else None)

    def dumps(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `json.dumps`."""
        keywords.pop("default", None)
        if len(arguments) != 1 or set(keywords) - {"indent", "sort_keys", "ensure_ascii", "default"}:
            raise UnknownError
        value = arguments[0]
        if isinstance(value, Selection) and not value.items:
            indent = keywords.get("indent") or 0
            return self._record(value, indent=indent if isinstance(indent, int) else 0)
        value = self._marked(value)
        self._require_plain(value, *flat(value))
        text = json.dumps(value, indent=keywords.get("indent"), sort_keys=bool(keywords.get("sort_keys")))
        for word, hole in self._json.items():  # without the quotes of a text
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = hole
            text = text.replace(f'"{word}"', mark)
        return text

    def _marked(self, value: Any) -> Any:
        """Return a value in which numbers that are not known are words that stand for them."""
        match value:
            case dict():
                return {key: self._marked(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._marked(inner) for inner in value]
            case Quiet() | Foreign():
                mark = f"Zjson{len(self._holes)}Z"
                self._json[mark] = Hole(Kind.QUIET_LINE if isinstance(value, Quiet) else Kind.ANY)
                return mark
            case _:
                return value

    def dump(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `json.dump`."""
        if len(arguments) != 2 or arguments[1] != Module("sys.stdout"):
            raise UnknownError
        self.out += self._written(self.dumps(arguments[:1], keywords), alone=False)

    def as_dict(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `dict`."""
        if len(arguments) == 1 and isinstance(arguments[0], Selection):
            if arguments[0].form not in (Form.MAPPING, Form.ITEMS):
                raise UnknownError
            return Selection(arguments[0].kept, is_bytes=arguments[0].is_bytes)
        if not arguments:
            return dict(keywords)
        raise UnknownError

    def sorted(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `sorted`."""
        keywords.pop("key", None)
        keywords.pop("reverse", None)
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], Selection | Lines):
            return arguments[0]
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], list | tuple):
            self._require_plain(*arguments[0])
            if all(isinstance(v, str) and not has_placeholder(v) for v in arguments[0]):
                return sorted(arguments[0])
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], dict):
            return sorted(arguments[0])
        raise UnknownError

    def length(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `len`."""
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], Selection | Lines):
            return Quiet()
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], str | list | tuple | dict):
            raise UnknownError
        if isinstance(arguments[0], str) and has_placeholder(arguments[0]):
            raise UnknownError
        return len(arguments[0])

    def largest(self, arguments: list[Any], keywords: dict[str, Any]) -> int:
        """Run `max`."""
        values = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list | tuple) else arguments
        if keywords or not values or not all(isinstance(value, int) for value in values):
            raise UnknownError
        return int(max(values))

    def numbered(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `enumerate`."""
        start = keywords.pop("start", 0)
        if len(arguments) == 2 and isinstance(arguments[1], int):
            start = arguments.pop()
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], list | tuple):
            raise UnknownError
        return list(enumerate(arguments[0], start=start))

    def zipped(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `zip`."""
        if keywords or not all(isinstance(argument, list | tuple) for argument in arguments):
            raise UnknownError
        return list(zip(*arguments, strict=False))

    def as_text(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `str`."""
        if not arguments and not keywords:
            return ""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        return self._text(arguments[0])

    def as_repr(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `repr`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        return self._repr(arguments[0])

    def as_bool(self, arguments: list[Any], keywords: dict[str, Any]) -> bool:
        """Run `bool`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        self._require_plain(arguments[0])
        return bool(arguments[0])

    def as_list(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `list`."""
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], list | tuple | Selection):
            return arguments[0]
        raise UnknownError

    def write(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.stdout.write`."""
        if len(arguments) != 1 or keywords:
            raise UnknownError
        if not isinstance(arguments[0], str | Foreign):
            raise FailedError
        self.out.append(str(arguments[0]))

    def write_error(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.stderr.write`."""
        outer, self.out = self.out, self._err
        self.write(arguments, keywords)
        self.out = outer

    def mapped(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Run `map` over known values."""
        match arguments:
            case [Lambda(node=node), list() | tuple() as values] if len(node.args.args) == 1 and not keywords:
                found: list[Any] = []
                for value in values:
                    self._names[node.args.args[0].arg] = value
                    found.append(self._value(node.body))
                return found
            case _:
                raise UnknownError

    def dedented(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `textwrap.dedent`: values on a line do not begin it."""
        match arguments:
            case [str() as text] if not keywords and not re.search(r"^[ \t]*Zhole", text, re.MULTILINE):
                return textwrap.dedent(text)
            case _:
                raise UnknownError

    def shell_quoted(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `shlex.quote`."""
        match arguments:
            case [str() as text] if not keywords and not has_placeholder(text):
                return shlex.quote(text)
            case [str() as text] if not keywords:
                mark = f"Zhole{len(self._holes)}Z"
                plain = tuple(refilled((text,), self._holes))
                self._holes[mark] = Choice((plain, ("'", *plain, "'")))
                return mark
            case _:
                raise UnknownError

    def exit(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `sys.exit`."""
        if keywords or not all(isinstance(a, int) for a in arguments):
            raise UnknownError
        raise ExitError(arguments[0] & 0xFF if arguments else 0)

    def _library(self, name: str) -> Callable[[list[Any], dict[str, Any]], Any] | None:
        """Return a function of the library; None where it is not modelled."""
        function = FUNCTIONS.get(name)
        return None if function is None else lambda arguments, keywords: function(self, arguments, keywords)


FUNCTIONS: Final[dict[str, Callable[[Library, list[Any], dict[str, Any]], Any]]] = {
    "print": Library.print,
    "pprint.pprint": Library.pretty,
    "pprint.pp": Library.pretty,
    "subprocess.run": Library.run,
    "subprocess.check_output": Library.run_captured,
    "subprocess.call": Library.run_checked,
    "subprocess.check_call": Library.run_checked,
    "subprocess.getoutput": Library.get_output,
    "os.popen": Library.open_process,
    "os.system": Library.system,
    "open": Library.open,
    "pathlib.Path": Library.open,
    "re.compile": Library.pattern,
    "re.search": Library.search,
    "re.match": Library.match,
    "filter": Library.kept,
    "os.getenv": Library.get_variable,
    "json.dumps": Library.dumps,
    "json.dump": Library.dump,
    "sys.exit": Library.exit,
    "exit": Library.exit,
    "sys.stdout.write": Library.write,
    "sys.stderr.write": Library.write_error,
    "map": Library.mapped,
    "textwrap.dedent": Library.dedented,
    "shlex.quote": Library.shell_quoted,
    "dict": Library.as_dict,
    "collections.OrderedDict": Library.as_dict,
    "sorted": Library.sorted,
    "list": Library.as_list,
    "str": Library.as_text,
    "repr": Library.as_repr,
    "bool": Library.as_bool,
    "len": Library.length,
    "max": Library.largest,
    "enumerate": Library.numbered,
    "zip": Library.zipped,
    "tuple": Library.as_list,
    "builtins.print": Library.print,
}
