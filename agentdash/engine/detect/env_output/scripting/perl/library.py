"""Functions and operators of Perl."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump, Style
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.line_programs import LinePrograms
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    Count,
    ExitError,
    FailedError,
    Written,
)
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.word_sets import word_set

MODULES: Final = word_set(
    "strict warnings utf8 feature v5 POSIX Cwd Data::Dumper JSON::PP Sys::Hostname Socket IO::Socket "
    "IO::Socket::INET IO::Socket::IP IO::Handle IO::File File::Temp File::Spec Time::HiRes List::Util "
    "Scalar::Util Fcntl"
)
"""Modules that come with Perl, and print nothing when they are used."""
_QUIET_FUNCTIONS: Final = word_set("hostname getcwd cwd time getppid localtime getprotobyname")
_SPECIAL: Final = {"$/": "\n", "$,": "", "$\\": "", "$|": 0, "$_": None, "$1": None, "$2": None, "$@": ""}


class Handle(msgspec.Struct, frozen=True):
    """An open file."""

    content: Written


_ATTEMPTS: Final = word_set(
    "unlink mkdir rmdir rename chmod utime symlink link kill opendir socket connect bind listen setsockopt "
    "chdir"
)
"""Functions that change or open something of the system, and give whether they could."""


class Library(LinePrograms):
    """Functions and operators of Perl."""

    zero_is_false = True
    empty_is_false = True
    failed_status = None
    warns = False
    """Values that are not there are reported when they are written."""
    has_say = False

    def text_of_bool(self, value: bool) -> str:
        """Return a truth value as Perl writes it into a text."""
        return "1" if value else ""

    def text_of_none(self) -> str:
        """Return the value of nothing as Perl writes it into a text."""
        if self.warns:
            self.err += ["Use of uninitialized value", Hole(Kind.LINE), "\n"]
        return ""

    def special(self, name: str) -> Any:
        """Return a variable that the program has not set."""
        if name in _SPECIAL:
            return _SPECIAL[name]
        return None if re.fullmatch(r"\$\w+", name) and name != "$0" else self.quiet()

    def set_special(self, name: str, value: Any) -> bool:
        """Return whether a variable means something to Perl; set it if it does."""
        if name == "$/":
            if value not in ("\0", "\n", None):
                raise UnknownError
            self.record_end = value or "\n"
            return True
        if name in ("$,", "$\\"):
            self._names[name] = self.plain(value)
            return True
        if name.startswith("$Data::Dumper::"):
            self._names[name] = value
            return True
        return name in ("$|", "$0")

    def hash_of(self, value: Any) -> Any:
        """Return a mapping of a list of keys and values."""
        if isinstance(value, Selection):
            return self.mapping_of(value)
        if value is None:
            return {}
        items = self.list_of(value)
        if items and all(isinstance(item, list) and len(item) == 2 for item in items):
            return {self.plain(key): inner for key, inner in items}
        if len(items) % 2:
            raise UnknownError
        return {self.plain(key): inner for key, inner in zip(items[::2], items[1::2], strict=True)}

    def chomp(self, text: Any) -> Any:
        """Return a text without the end of its record."""
        if isinstance(text, str):
            return text.removesuffix(self.record_end)
        return self.stripped(text)

    def _sorted(self, values: Any, as_texts: bool) -> Any:
        if isinstance(values, Selection | Lines):
            return values
        if not as_texts:
            raise UnknownError
        return sorted(self.plain(value) for value in self.list_of(values))

    # ------------------------------------------------------------ output

    def write(self, values: Any, stream: str = "STDOUT") -> None:
        """Run `print`."""
        separator = self._names.get("$,", "")
        end = self._names.get("$\\", "\n" if self.ends_lines else "")
        items = values if isinstance(values, list) else [values]
        text = separator.join(self.text(value) for value in items) + end
        (self.out if stream == "STDOUT" else self.err).append(text)

    def printed(self, name: str, arguments: Any, stream: str) -> int:
        """Run `print`, `say` or `printf`."""
        if self._handle_of(stream) is SINK:
            return 1
        if stream not in ("STDOUT", "STDERR"):
            raise UnknownError
        if name == "printf":
            template, *values = self.list_of(arguments)
            (self.out if stream == "STDOUT" else self.err).append(self.formatted(template, values))
            return 1
        if name == "say":
            if not self.has_say:
                raise UnknownError
            self.write([*(arguments if isinstance(arguments, list) else [arguments]), "\n"], stream)
            return 1
        self.write(arguments, stream)
        return 1

    def _handle_of(self, stream: str) -> Any:
        return self._names.get(stream, self._names.get(f"${stream}"))

    # ------------------------------------------------------------ functions

    def call(self, name: str, arguments: Any, *, in_list: bool) -> Any:
        """Run a function."""
        if name in self.functions:
            found = self.functions[name].run(self.list_of(arguments))
            return found if in_list or not isinstance(found, list) else (found or [None])[-1]
        if name in _QUIET_FUNCTIONS:
            return self.quiet()
        match name, arguments:
            case "uname", []:
                return [self.quiet() for _ in range(5)]
            case "sprintf", [template, *values]:
                return self.formatted(template, values)
            case "join", [separator, *values]:
                whole = values[0] if len(values) == 1 and not isinstance(values[0], str) else values
                return self.joined(whole, separator)
            case "length", [value]:
                return self._length(value)
            case "lc" | "uc", [text]:
                return self.plain(text).lower() if name == "lc" else self.plain(text).upper()
            case "index", [text, part]:
                return self.position(text, part)
            case "substr", [text, int() as start, *length]:
                return self.cut(text, start, length[0] if length else None)
            case "Dumper", [value]:
                return self.dumper(value)
            case "encode_json" | "to_json", [value]:
                return self.json(value, frozenset())
            case "system", [script]:
                self.started(script)
                return self.number_word()
            case _, [_, *_] if name in _ATTEMPTS:
                return 0 if self.attempted() is None else 1
            case "gethostbyname" | "inet_aton", [_]:
                return None if self.attempted() is None else self.quiet()
            case "close" | "binmode" | "local", _:
                return 1
            case "exit", [] | [0]:
                raise ExitError(0)
            case "exit", [int() as status]:
                raise ExitError(status & 0xFF)
            case "die", values:
                text = "".join(self.text(value) for value in self.list_of(values))
                raise FailedError("die", text if text.endswith("\n") else None)
            case "warn", [*values]:
                self.err += [*(self.text(value) for value in values), Hole(Kind.LINE), "\n"]
                return 1
            case _:
                raise UnknownError

    def _length(self, value: Any) -> Any:
        if value is None:
            return None
        return self.size(value)

    def opened(self, arguments: list[Any]) -> Any:
        """Return the handle that `open` gives for what stands behind it; None where it fails."""
        match arguments:
            case ["<" | "<:raw", path]:
                return Handle(self.content(path))
            case ["-|", script]:
                return Handle(self.captured(script))
            case [str() as mode, _] if mode.partition(":")[0] in (">", ">>", "+<", "+>"):
                return self.attempted()
            case _:
                raise UnknownError

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        match sign:
            case ".":
                return self.text(left) + self.text(right)
            case "eq" | "ne":
                return self.equal(left or "", right or "") is (sign == "eq")
            case "==" | "!=":
                return self._same_number(left, right) is (sign == "==")
            case "x" if isinstance(right, int) and right <= 200:
                return self.plain(left) * right
            case "+" | "-" | "<" | ">" | "<=" | ">=":
                return self._calculated(sign, left, right)
            case _:
                raise UnknownError

    def _same_number(self, left: Any, right: Any) -> bool:
        for value, other in ((left, right), (right, left)):
            if isinstance(value, str) and isinstance(other, int):
                if has_placeholder(value):
                    return self.decide()
                return self._number(value) == other
        if isinstance(left, Count) or isinstance(right, Count):
            return self.equal(left, right)
        return self._number(left) == self._number(right)

    def _number(self, value: Any) -> int:
        match value:
            case None:
                return 0
            case bool() | int():
                return int(value)
            case str() if value.isdecimal() and not has_placeholder(value):
                return int(value)
            case str() if value[:1].isalpha() and not has_placeholder(value):
                return 0
            case "":
                return 0
            case _:
                raise UnknownError

    def _calculated(self, sign: str, left: Any, right: Any) -> Any:
        if isinstance(left, Count) and right == 0 and sign == ">":
            return self.truth(left)
        if isinstance(left, Count):
            return self.counted(sign, left, right)
        first, second = self._number(left), self._number(right)
        return {
            "+": first + second,
            "-": first - second,
            "<": first < second,
            ">": first > second,
            "<=": first <= second,
            ">=": first >= second,
        }[sign]

    # ------------------------------------------------------------ forms of output

    def dumper(self, value: Any) -> Any:
        """Return what `Data::Dumper` writes."""
        start, inner, end = self._dumper_layout()
        if isinstance(value, Selection) and value.form is Form.MAPPING and inner:
            style = Style(prefixes=(f"{inner}'NAME' => '",), suffix="'", closings=(",",))
            lines = Dump(shown=self.shown(value.kept), style=style, some=True)
            full = (f"{start}{{\n", lines, f"{inner[:-2]}}}{end}")
            return Written(full if self.certain(value.kept) else (Choice((full, (f"{start}{{}}{end}",))),))
        if not isinstance(value, dict) or not value:
            raise UnknownError
        entries = [f"{inner}'{key}' => {self._dumped(value[key])}" for key in self.unordered(list(value))]
        if not inner:
            return f"{start}{{{','.join(entries)}}}{end}"
        return f"{start}{{\n" + ",\n".join(entries) + f"\n{inner[:-2]}}}{end}"

    def _dumper_layout(self) -> tuple[str, str, str]:
        """Return what `Data::Dumper` writes before a value, before each of its keys, and behind it."""
        prefix = "$Data::Dumper::"
        given = {n.removeprefix(prefix): v for n, v in self._names.items() if n.startswith(prefix)}
        indent, is_terse = given.get("Indent", 2), bool(given.get("Terse", 0))
        if given.keys() - {"Sortkeys", "Indent", "Terse"} or indent not in (0, 1, 2):
            raise UnknownError
        inner = {0: "", 1: "  "}.get(indent, "  " if is_terse else " " * 10)
        end = ("" if is_terse else ";") + ("\n" if indent else "")
        return "" if is_terse else "$VAR1 = ", inner, end

    def _dumped(self, value: Any) -> str:
        if value is None:
            return "undef"
        if not isinstance(value, str):
            raise UnknownError
        if self.hole(value) and not has_placeholder(value):
            raise UnknownError
        return f"'{value}'" if "'" not in value else self.plain(None)

    def json(self, value: Any, options: frozenset[str]) -> Any:
        """Return what `JSON::PP` gives."""
        if options - {"canonical", "pretty", "utf8", "allow_nonref"}:
            raise UnknownError
        if isinstance(value, dict):
            keys = sorted(value) if "canonical" in options else self.unordered(list(value))
            value = {key: value[key] for key in keys}
        if "pretty" not in options:
            return json_text(self, value, Layout())
        return json_text(self, value, Layout(indent=3, colon=" : ")) + "\n"
