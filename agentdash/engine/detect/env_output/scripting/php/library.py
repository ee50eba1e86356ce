"""Functions and operators of PHP."""

from __future__ import annotations

from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Part
from agentdash.engine.detect.env_output.scripting.php.output import Output
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    UNKNOWABLE,
    Function,
    Pattern,
    Sink,
)
from agentdash.engine.detect.env_output.scripting.variables import Class, Instance
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import Call
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.word_sets import word_set

_QUIET_FUNCTIONS: Final = word_set("phpversion php_uname php_sapi_name getmypid gethostname getcwd date time")
_TESTS: Final = word_set(
    "is_writable is_writeable is_readable is_executable is_file is_dir is_link file_exists extension_loaded "
    "class_exists checkdnsrr"
)
"""Functions that give true or false."""
_ATTEMPTS: Final = word_set("file_put_contents touch mkdir rmdir unlink chmod fopen tempnam tmpfile rename")
_CHANGES: Final = frozenset(("touch", "mkdir", "rmdir", "unlink", "chmod", "rename"))
"""Those that give true where they succeed; others give something that was opened, or a number."""
_USE_KEY: Final = 2
_USE_BOTH: Final = 1


class Library(Output):
    """Functions and operators of PHP."""

    zero_is_false = True
    empty_is_false = True
    failed_status = 255
    is_silent = False
    """`@` stands before what runs: it writes no warnings."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        super().__init__(call, holes, decisions)
        self._classes: dict[str, Class] = {}

    def text_of_bool(self, value: bool) -> str:
        """Return a truth value as PHP writes it into a text."""
        return "1" if value else ""

    def call(self, function: Any, arguments: list[Any]) -> Any:
        """Run a function of the program."""
        if isinstance(function, str) and function not in self.functions:
            return self.library(self.plain(function).lower(), arguments)
        function = self.functions[function] if isinstance(function, str) else function
        if not isinstance(function, Function):
            raise UnknownError
        return function.run(arguments)

    def at(self, owner: Any, key: Any) -> Any:
        """Return an item of an array."""
        match owner:
            case Selection():
                return self.item_of(owner, key)
            case dict() if isinstance(key, str):
                return owner.get(self.plain(key))
            case list() if isinstance(key, int):
                return owner[key] if 0 <= key < len(owner) else None
            case _:
                raise UnknownError

    def items_or_values(self, values: Selection) -> Selection:
        """Return what `foreach` goes through."""
        return self.items_of(values) if values.form is Form.MAPPING else values

    def cast(self, kind: str, value: Any) -> Any:
        """Return a value of another type."""
        match kind:
            case "object" | "array" if isinstance(value, dict | Selection):
                return value
            case "string":
                return self.text(value)
            case "bool" | "boolean":
                return self.truth(value)
            case _:
                raise UnknownError

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        match sign:
            case ".":
                return self.text(left) + self.text(right)
            case "===" | "!==":
                return self.equal(left, right) is (sign == "===")
            case "==" | "!=" | "<>":
                return self._alike(left, right) is (sign == "==")
            case "+" | "-":
                return self.counted(sign, left, right)
            case "<" | ">" | "<=" | ">=":
                return self.ordered(sign, left, right)
            case "|" if isinstance(left, int) and isinstance(right, int):
                return left | right
            case _:
                raise UnknownError

    def _alike(self, left: Any, right: Any) -> bool:
        """Return whether two values are the same after conversion."""
        for value, other in ((left, right), (right, left)):
            if isinstance(value, bool) or value is None:
                return self.truth(other) is self.truth(value)
        for value, other in ((left, right), (right, left)):
            if isinstance(value, str) and isinstance(other, int):
                return self.equal(value, str(other)) if value != "" else False
        return self.equal(left, right)

    def output_lines(self, script: Any) -> Any:
        """Return the lines that a program writes."""
        return self.entries_of(self.captured(script), "\n")

    def in_order(self, values: Any) -> Any:
        """Return what `sort` makes of a list."""
        if isinstance(values, Selection | Lines):
            return values
        return sorted(values, key=self.plain) if isinstance(values, list) else values

    # ------------------------------------------------------------ functions

    def library(self, name: str, arguments: list[Any]) -> Any:
        """Run a function of the library."""
        if name in _QUIET_FUNCTIONS:
            return self.quiet()
        for functions in (self._environment_function, self._written, self._of_texts, self._of_arrays):
            found = functions(name, arguments)
            if found is not UnknownError:
                return found
        raise UnknownError

    def tried(self) -> Any:
        """Return what a function of the system gives: false where it fails, with a warning."""
        found = self.attempted()
        if found is not None:
            return found
        if not self.is_silent:
            warning = Hole(Kind.LINE)
            self.out.append(Choice(((), ("\n", warning, "\n"))))
            self.err.append(Choice(((), (warning, "\n"))))
        return False

    def _environment_function(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "getenv", [] | [None]:
                return Selection((True, True))
            case "getenv", [str() as key, *_]:
                value = self.variable(key)
                return False if value is None else value
            case "shell_exec", [script]:
                return self.captured(script)
            case "system" | "passthru", [script]:
                self.started(script)
                return UNKNOWABLE
            case "file_get_contents", [path]:
                return self.content(path)
            case "error_reporting" | "ini_set" | "set_error_handler", _:
                return None
            case _ if name in _TESTS:
                return self.decide()
            case "fopen", [_, "r" | "rb"]:
                raise UnknownError
            case _ if name in _ATTEMPTS:
                found = self.tried()
                return found is SINK if name in _CHANGES else found
            case "fclose" | "is_resource", [found]:
                return found is SINK
            case "get_class", [Instance(of=None, attributes={"class": str() as kind})]:
                return kind
            case "gethostbyname", [_]:
                return self.quiet()
            case _:
                return UnknownError

    def _written(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "printf", [template, *values]:
                self.out.append(self.formatted(template, values))
            case "fwrite" | "fputs" | "fprintf", ["php://stdout" | "php://stderr" as stream, *values]:
                text = self.formatted(values[0], values[1:]) if name == "fprintf" else self.text(values[0])
                (self.out if stream == "php://stdout" else self.err).append(text)
            case "fwrite" | "fputs" | "fprintf", [Sink(), *_]:
                return self.number_word()
            case "var_dump", values:
                self.out += [part for value in values for part in self._dumped(value, "")]
            case "print_r", [value]:
                self.out += self._readable(value)
            case "print_r", [value, True] if not isinstance(value, Selection | list | dict):
                return self.text(value)
            case "var_export", [value, *rest] if not isinstance(value, Selection | list | dict):
                text = self._exported(value)
                if rest == [True]:
                    return text
                self.out.append(text)
            case "error_log", [value]:
                self.err += [self.text(value), "\n"]
            case _:
                return UnknownError
        return None

    def _of_texts(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "sprintf", [template, *values]:
                return self.formatted(template, values)
            case "str_starts_with", [text, start]:
                return self.starts(text, start)
            case "str_ends_with", [text, end]:
                return self.ends(text, end)
            case "str_contains", [text, part]:
                return self.contains(text, part)
            case "strpos" | "stripos", [text, part]:
                return self._position(name, text, part)
            case "strncmp" | "strncasecmp", [text, other, int() as length]:
                return 0 if self.cut(text, 0, length) == self.plain(other)[:length] else 1
            case "preg_match", [pattern, text]:
                return int(self.matches(self._regex(pattern), text))
            case "json_encode", [value, *flags]:
                return self._json(value, flags[0] if flags else 0)
            case "implode" | "join", [str() as separator, values]:
                return self.joined(values, separator)
            case "explode", [separator, text, *limit]:
                return self.split(text, separator, limit[0] if limit else 0)
            case "str_replace", [part, other, text]:
                return self.replaced(text, part, other)
            case "trim" | "rtrim", [text]:
                return self.stripped(text)
            case "str_pad", [text, int() as width]:
                return self.padded(self.text(text), width)
            case "str_repeat", [text, int() as count] if count <= 200:
                return self.plain(text) * count
            case "strtolower" | "strtoupper", [text]:
                return self.plain(text).lower() if name == "strtolower" else self.plain(text).upper()
            case "strlen", [text]:
                return self.size(text)
            case "substr", [text, int() as start, *length]:
                return self.cut(text, start, length[0] if length else None)
            case "strval", [value]:
                return self.text(value)
            case "boolval", [value]:
                return self.truth(value)
            case _:
                return UnknownError

    def _of_arrays(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "array_filter", [values, function, *mode]:
                return self._filtered(values, function, mode[0] if mode else 0)
            case "array_map", [function, values]:
                return self._mapped(values, function)
            case "array_keys", [values]:
                return self.names_of(values)
            case "array_flip", [list() as names]:
                return {self.plain(each): number for number, each in enumerate(names)}
            case "array_combine", [list() as names, list() as values]:
                return {self.plain(key): value for key, value in zip(names, values, strict=True)}
            case "array_intersect_key", [values, dict() as others]:
                return self.sliced(values, list(others))
            case "array_key_exists" | "key_exists", [key, values]:
                if isinstance(values, Selection):
                    return self.is_set(values, key)
                return self.plain(key) in values
            case "in_array", [value, list() as values, *_]:
                return any(self.equal(value, each) for each in values)
            case "count" | "sizeof", [values]:
                return self.size(values)
            case "function_exists", [_]:
                return self.decide()
            case _:
                return UnknownError

    def _position(self, name: str, text: Any, part: Any) -> Any:
        if name == "stripos":
            text, part = self.plain(text).lower(), self.plain(part).lower()
        at = self.position(text, part)
        return False if at < 0 else at

    def _regex(self, source: Any) -> Pattern:
        text = self.plain(source)
        if not text or text[0] not in "/#~@!%":
            raise UnknownError
        body, end, flags = text[1:].rpartition(text[0])
        if not end:
            raise UnknownError
        return self.pattern(body, flags)

    def _filtered(self, values: Any, function: Any, mode: Any) -> Any:
        def holds(entry: Any) -> bool:
            if not (isinstance(values, dict) or (isinstance(values, Selection) and isinstance(entry, list))):
                return self.truth(self.call(function, [entry]))
            key, value = entry
            arguments = {_USE_KEY: [key], _USE_BOTH: [value, key]}.get(mode, [value])
            return self.truth(self.call(function, arguments))

        return self.kept(values, holds)

    def _mapped(self, values: Any, function: Any) -> Any:
        if isinstance(values, dict) or self._is_environment(values):
            raise UnknownError  # its keys stay
        return self.mapped(values, lambda value: self.call(function, [value]))

    def _is_environment(self, values: Any) -> bool:
        return isinstance(values, Selection) and values.form is Form.MAPPING
