"""Functions of Python's library that programs print with."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import QUIET_TEXT, Choice, concrete
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.python.processes import Processes
from agentdash.engine.detect.env_output.scripting.python.values import (
    IGNORE_CASE,
    Class,
    Defaults,
    File,
    Members,
    Numbered,
    Pending,
    Quiet,
    Suppressed,
)
from agentdash.engine.detect.env_output.scripting.values import (
    Builtin,
    FailedError,
    Pattern,
    Various,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ENVIRON: Final = ("/proc/self/environ", "/proc/thread-self/environ")


class Library(Processes):
    """Functions of Python's library."""

    def library(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a function of the library."""
        if (of_values := _VALUES.get(name)) is not None and not keywords:
            return of_values(self, *arguments)
        if (function := _FUNCTIONS.get(name)) is not None:
            return function(self, arguments, keywords)
        if name.startswith("logging."):
            return self._log(name.rpartition(".")[2], arguments, keywords)
        raise UnknownError

    # ------------------------------------------------------------ the environment, files, programs

    def get_variable(self, name: Any, default: Any = None) -> Any:
        """Run `os.getenv`."""
        found = self.variable(name)
        return default if found is None else found

    def open(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `open` and `pathlib.Path`: files are read of the process's own environment only."""
        mode = [*arguments[1:2], keywords.get("mode", "r")][0]
        if arguments and arguments[0] in _ENVIRON:
            content = self.content(_ENVIRON[0])
            return File(Bytes(content) if "b" in self.plain(mode) else content)
        if "r" in self.plain(mode):
            raise UnknownError
        return self.quiet_call(Quiet("open"))

    def path(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `pathlib.Path`."""
        return self.open(arguments, keywords) if arguments[0] in _ENVIRON else Quiet("pathlib")

    # ------------------------------------------------------------ values

    def size_of(self, value: Any) -> Any:
        """Run `len`."""
        return len(value) if isinstance(value, tuple) else self.size(self.without_bytes(value))

    def integer(self, value: Any = 0) -> Any:
        """Run `int`."""
        if not isinstance(value, str):
            return int(value)
        text = self.actual(value)
        if has_placeholder(text):
            self.may_fail()
            return Quiet("number")
        try:
            return int(text)
        except ValueError as error:
            raise FailedError("ValueError", f"invalid literal for int() with base 10: {text!r}") from error

    def in_order(self, values: Any, key: Any) -> Any:
        """Return what `sorted` gives."""
        if isinstance(values, Selection):
            return values if values.items else msgspec.structs.replace(values, form=Form.NAMES)
        if isinstance(values, Lines):
            return values
        items = list(values)

        def spelled(item: Any) -> Any:
            found = item if key is None else self.call(key, [item], {})
            found = found[0] if isinstance(found, list | tuple) and found else found
            return found if isinstance(found, int) else self.plain(found)

        return sorted(items, key=spelled)

    def sort(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `sorted`."""
        found = self.in_order(arguments[0], keywords.get("key"))
        if keywords.get("reverse") and isinstance(found, list):
            found.reverse()
        return found

    def numbered(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `enumerate`."""
        start = keywords.get("start", arguments[1] if len(arguments) > 1 else 0)
        if isinstance(arguments[0], Selection | Lines):
            return Numbered(self.as_list(arguments[0]), start)
        return [(start + number, value) for number, value in enumerate(self.list_of(arguments[0]))]

    def largest(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `max`."""
        values = arguments[0] if len(arguments) == 1 else arguments
        if isinstance(values, Various):
            return self.largest_of(values)
        values = self.list_of(values)
        if not values and "default" in keywords:
            return keywords["default"]
        if "key" in keywords:
            return max(values, key=lambda value: self.call(keywords["key"], [value], {}))
        return self.largest_of(values)

    def as_list(self, value: Any = ()) -> Any:
        """Run `list`, `tuple` and `iter`."""
        if isinstance(value, Selection):
            return value if value.items else msgspec.structs.replace(value, form=Form.NAMES)
        return value if isinstance(value, Lines) else list(self.list_of(value))

    def as_set(self, value: Any = ()) -> Any:
        """Run `set`."""
        found = self.as_list(value)
        if not isinstance(found, list):
            return found
        self.require_known(*found)
        return Members(dict.fromkeys(found))

    def as_dict(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `dict`."""
        found = self.mapping_of(arguments[0]) if arguments else {}
        if keywords and not isinstance(found, dict):
            raise UnknownError
        return {**found, **keywords} if isinstance(found, dict) else found

    def named_tuple(self, name: Any, fields: Any) -> Class:
        """Run `collections.namedtuple`."""
        names = fields.replace(",", " ").split() if isinstance(fields, str) else fields
        return Class(self.plain(name), {}, tuple(self.plain(each) for each in names))

    def with_defaults(self, arguments: list[Any]) -> Defaults:
        """Run `collections.defaultdict`."""
        found = Defaults()
        found.factory = arguments[0]
        return found

    def program_arguments(self) -> list[str]:
        """Return `sys.argv`."""
        words = [self.plain(concrete(word)) for word in self._command.arguments]
        if "-c" in words:
            return words[words.index("-c") : words.index("-c") + 1] + words[words.index("-c") + 2 :]
        if not words or words[0].startswith("-"):
            return words or [""]
        return words

    def parser(self) -> Instance:
        """Run `argparse.ArgumentParser`: of options, the values that they have where none is given."""
        if len(self.program_arguments()) > 1:
            raise UnknownError
        return Instance(Class("ArgumentParser", {}), {})

    def add_argument(self, parser: Instance, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `add_argument`."""
        name = self.plain(arguments[-1])
        if not name.startswith("--") or keywords.get("required"):
            raise UnknownError
        default = False if keywords.get("action") == "store_true" else keywords.get("default")
        parser.attributes[keywords.get("dest", name.strip("-").replace("-", "_"))] = default

    def mapping_of(self, pairs: Any) -> Any:
        """Return a mapping of its keys and values."""
        if isinstance(pairs, Selection) and pairs.form in (Form.MAPPING, Form.ITEMS):
            return msgspec.structs.replace(pairs, form=Form.MAPPING)
        if isinstance(pairs, dict):
            return dict(pairs)
        return {self.plain(key): value for key, value in self.list_of(pairs)}

    def list_of(self, values: Any) -> list[Any]:
        """Return a list that is known."""
        if isinstance(values, dict):
            return list(values)
        if isinstance(values, Members):
            return self.unordered(list(values))  # type: ignore[no-any-return]
        return super().list_of(list(values) if isinstance(values, tuple) else values)

    def filtered(self, function: Any, values: Any) -> Any:
        """Run `filter`."""
        values = self.as_list(values)
        return self.kept(
            values, lambda item: self.truth(item if function is None else self.call(function, [item], {}))
        )

    def changed(self, function: Any, values: Any) -> Any:
        """Run `map`."""
        return self.mapped(self.as_list(values), lambda item: self.call(function, [item], {}))

    def tuple_of(self, values: Any) -> Any:
        """Return a known list as a tuple."""
        return tuple(values) if isinstance(values, list) else values

    def as_dictionary(self, value: Any) -> dict[str, Any]:
        """Run `dataclasses.asdict`."""
        if not isinstance(value, Instance) or not isinstance(value.of, Class):
            raise UnknownError
        return {name: value.attributes[name] for name in value.of.fields}

    def awaited(self, value: Any) -> Any:
        """Run `await`, and `asyncio.run`."""
        if not isinstance(value, Pending | Quiet):
            raise UnknownError
        return value.run() if isinstance(value, Pending) else value

    # ------------------------------------------------------------ texts

    def pattern_of(self, arguments: list[Any], keywords: dict[str, Any]) -> Pattern:
        """Run `re.compile`."""
        flags = keywords.get("flags", arguments[1] if len(arguments) > 1 else None)
        if flags not in (None, IGNORE_CASE):
            raise UnknownError
        return self.pattern(self.plain(self.without_bytes(arguments[0])), "i" if flags else "")

    def search(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `re.search`, `re.match` and `re.fullmatch`."""
        pattern = self.pattern_of([arguments[0], *arguments[2:]], keywords)
        return self.method(pattern, name, arguments[1:2], {})

    def dedented(self, text: Any) -> str:
        """Run `textwrap.dedent`: values on a line do not begin it."""
        if not isinstance(text, str) or re.search(r"^[ \t]*Zhole", text, re.MULTILINE):
            raise UnknownError
        return textwrap.dedent(text)

    def shell_quoted(self, text: Any) -> str:
        """Run `shlex.quote`."""
        if isinstance(text, str) and has_placeholder(text):
            plain = tuple(refilled((text,), self._holes))
            return self.word(Choice((plain, ("'", *plain, "'"))))
        return shlex.quote(self.plain(text))

    def dumps(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `json.dumps`."""
        if len(arguments) != 1 or keywords.keys() - {
            "indent",
            "sort_keys",
            "ensure_ascii",
            "default",
            "separators",
        }:
            raise UnknownError
        indent = keywords.get("indent") or 0
        value = self._jsonable(arguments[0], is_sorted=bool(keywords.get("sort_keys")))
        comma, colon = keywords.get("separators") or (", ", ": ")
        return json_text(self, value, Layout(indent=indent, comma=self.plain(comma), colon=self.plain(colon)))

    def _jsonable(self, value: Any, *, is_sorted: bool) -> Any:
        match value:
            case dict():
                keys = sorted(value) if is_sorted else value
                return {key: self._jsonable(value[key], is_sorted=is_sorted) for key in keys}
            case Members():
                raise FailedError("TypeError")
            case list() | tuple():
                return [self._jsonable(each, is_sorted=is_sorted) for each in value]
            case Quiet():
                return self.word(QUIET_TEXT)
            case _:
                return value

    def dump(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `json.dump`."""
        value, stream = arguments
        if stream not in (Builtin("sys.stdout"), Builtin("sys.stderr")):
            raise UnknownError
        self.write_to(stream, self.dumps([value], keywords))


_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "os.getenv": Library.get_variable,
    "os.environ.get": Library.get_variable,
    "os.popen": Library.open_process,
    "os.system": Library.system,
    "subprocess.getoutput": Library.get_output,
    "sys.stdout.write": lambda machine, value: machine.write_to(Builtin("sys.stdout"), value),
    "sys.stderr.write": lambda machine, value: machine.write_to(Builtin("sys.stderr"), value),
    "sys.stdout.flush": lambda _: None,
    "str": lambda machine, value="": machine.text(value),
    "repr": Library.repr,
    "ascii": Library.repr,
    "bool": lambda machine, value=False: machine.truth(value),
    "int": Library.integer,
    "collections.namedtuple": Library.named_tuple,
    "len": Library.size_of,
    "list": Library.as_list,
    "tuple": lambda machine, value=(): machine.tuple_of(machine.as_list(value)),
    "iter": Library.as_list,
    "reversed": lambda machine, value: machine.list_of(value)[::-1],
    "set": Library.as_set,
    "frozenset": Library.as_set,
    "filter": Library.filtered,
    "map": Library.changed,
    "any": Library.any_of,
    "all": Library.all_of,
    "zip": lambda machine, *values: list(zip(*(machine.list_of(each) for each in values), strict=False)),
    "range": lambda _, *numbers: list(range(*numbers)),
    "sum": Library.sum_of,
    "textwrap.dedent": Library.dedented,
    "shlex.quote": Library.shell_quoted,
    "dataclasses.asdict": Library.as_dictionary,
    "vars": Library.as_dictionary,
    "asyncio.run": Library.awaited,
    "contextlib.suppress": lambda _, *kinds: Suppressed(tuple(kind.name for kind in kinds)),
    "type": lambda *_: Quiet("type"),
    "isinstance": lambda *_: Quiet("bool"),
    "callable": lambda *_: Quiet("bool"),
    "re.escape": lambda machine, text: re.escape(machine.plain(text)),
}
"""Functions of values in their order."""
_FUNCTIONS: Final[dict[str, Callable[[Library, list[Any], dict[str, Any]], Any]]] = {
    "print": Library.print,
    "builtins.print": Library.print,
    "pprint.pprint": lambda machine, arguments, keywords: machine.pretty(arguments[0], keywords),
    "pprint.pp": lambda machine, arguments, _: machine.pretty(arguments[0], {"sort_dicts": False}),
    "subprocess.run": Library.run,
    "subprocess.check_output": Library.output_of,
    "subprocess.call": Library.run_unchecked,
    "subprocess.check_call": Library.run_checked,
    "open": Library.open,
    "pathlib.Path": Library.path,
    "re.compile": Library.pattern_of,
    "re.search": lambda machine, arguments, keywords: machine.search("search", arguments, keywords),
    "re.match": lambda machine, arguments, keywords: machine.search("match", arguments, keywords),
    "re.fullmatch": lambda machine, arguments, keywords: machine.search("fullmatch", arguments, keywords),
    "json.dumps": Library.dumps,
    "json.dump": Library.dump,
    "sys.exit": lambda machine, arguments, _: machine.exit(arguments),
    "exit": lambda machine, arguments, _: machine.exit(arguments),
    "quit": lambda machine, arguments, _: machine.exit(arguments),
    "dict": Library.as_dict,
    "collections.OrderedDict": Library.as_dict,
    "sorted": Library.sort,
    "max": Library.largest,
    "enumerate": Library.numbered,
    "collections.defaultdict": lambda machine, arguments, _: machine.with_defaults(arguments),
    "argparse.ArgumentParser": lambda machine, *_: machine.parser(),
}
NAMES: Final = frozenset(name for name in (*_VALUES, *_FUNCTIONS) if "." not in name)
"""Functions that need no import."""
