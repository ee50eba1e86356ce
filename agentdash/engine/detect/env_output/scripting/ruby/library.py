"""Functions of Ruby: output, the environment, other programs and files."""

from __future__ import annotations

from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import Dump, Style
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.ruby.methods import Methods
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    ExitError,
    FailedError,
    Function,
    Symbol,
    Written,
)
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.word_sets import word_set

LIBRARIES: Final = word_set("json pp socket yaml etc open3 shellwords fileutils tempfile timeout set")
"""Libraries that come with Ruby, and print nothing when they are loaded."""
_QUIET_CONSTANTS: Final = frozenset(("RUBY_VERSION", "RUBY_PLATFORM", "RUBY_ENGINE", "$0", "$$", "__FILE__"))
_OBJECTS: Final = word_set(
    "JSON File STDOUT STDERR $stdout $stderr Process Dir IO Hash Etc FileTest TCPSocket UDPSocket Socket "
    "UNIXSocket FileUtils KeyError RuntimeError ArgumentError StandardError TypeError NameError"
)
_SOCKETS: Final = frozenset(("::TCPSocket", "::UDPSocket", "::Socket", "::UNIXSocket", "::FileUtils"))
_ATTEMPTS: Final = frozenset(
    (
        *(("::File", name) for name in ("write", "delete", "unlink", "rename", "chmod")),
        *(("::Dir", name) for name in ("mkdir", "rmdir", "unlink")),
    )
)
_LINES: Final = Style(
    prefixes=tuple(f'{start}"NAME"{arrow}"' for start in "{ " for arrow in ("=>", " => ")),
    suffix='"',
    closings=(",", "}"),
)
"""Of a hash whose entries `pp` has put on lines of their own."""


class Library(Methods):
    """Functions of Ruby."""

    def constant(self, name: str) -> Any:
        """Return what a name stands for that the program has not set; a function without arguments is run."""
        if name == "ENV":
            return Selection((True, True))
        if name in _QUIET_CONSTANTS:
            return self.quiet()
        if name in _OBJECTS:
            return Symbol(f"::{name}")
        return self.function(name, [], None)

    def word_of_error(self) -> str:
        """Return a word for an exception as text."""
        return self.word(Hole(Kind.LINE))

    # ------------------------------------------------------------ functions

    def function(self, name: str, arguments: list[Any], block: Function | None) -> Any:
        """Run a function."""
        if name in self.functions:
            return self.functions[name].run(arguments)
        match name, arguments:
            case "puts", values:
                self._put(values, self.out)
            case "print", [_, *_] as values:
                self.out += [self.text(value) for value in values]
            case "pp", [Selection(form=Form.MAPPING) as value]:
                lines = Dump(shown=self.shown(value.kept), style=_LINES)
                self.out.append(Choice(((self.record(value), "\n"), (lines,))))
            case "print", [] if "$_" in self._names:
                self.out.append(self.text(self._names["$_"]))
            case "p" | "pp", values:
                self.out += [part for value in values for part in (self.inspected(value), "\n")]
            case "printf", [template, *values]:
                self.out.append(self.formatted(template, values))
            case "warn", values:
                self._put(values, self.err)
            case "format" | "sprintf", [template, *values]:
                return self.formatted(template, values)
            case "require", [str() as library] if library in LIBRARIES:
                return True
            case "system", [script]:
                self.started(script)
                return self.decide()
            case "exit" | "exit!", status:
                raise ExitError(status[0] if status and isinstance(status[0], int) else 0)
            case "raise", [Symbol() as kind, *text] if kind.startswith("::"):
                raise FailedError(kind[2:], text[0] if text else None)
            case "raise", [] | [str()]:
                raise FailedError("RuntimeError", arguments[0] if arguments else None)
            case "abort", _:
                self._put(arguments, self.err)
                raise ExitError(1)
            case "lambda" | "proc", [] if block is not None:
                return block
            case _:
                raise UnknownError
        return None

    def _put(self, values: list[Any], stream: list[Part]) -> None:
        """Run `puts`: lists are written one item a line."""
        for value in values or [""]:
            if isinstance(value, list):
                self._put(value or [""], stream)
            elif isinstance(value, Selection | Lines | Written):
                stream += self._line(value)
            elif isinstance(value, dict):
                stream += [self.inspected(value), "\n"]
            else:
                text = self.text(value)
                stream.append(text if text.endswith("\n") else text + "\n")

    def _line(self, value: Selection | Lines | Written) -> list[Part]:
        match value:
            case Selection(form=Form.MAPPING):
                return [self.inspected(value), "\n"]
            case Selection(form=Form.ENTRIES):
                dump = Dump(shown=self.shown(value.kept))
                return [dump if self.certain(value.kept) else Choice(((dump,), ("\n",)))]
            case Lines(is_text=False):
                dump = self.lines(value)
                return [dump if self.certain(value.kept) else Choice(((dump,), ("\n",)))]
            case Written(parts=(Dump() as dump,)) if not dump.nul:
                return [dump if self.certain((True, True)) else Choice(((dump,), ("\n",)))]
            case Written(parts=parts):
                return [self.word(Choice((parts, (*parts, "\n"))))]  # it may end with a line break
            case Lines():
                return [self.text(value), "\n"]
            case _:
                raise UnknownError

    # ------------------------------------------------------------ objects of the library

    def object_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        """Run a method of an object of the library."""
        match owner, name, arguments:
            case (("::STDOUT" | "::$stdout"), ("puts" | "print" | "printf"), values):
                return self.function(name, values, None)
            case (("::STDOUT" | "::$stdout"), ("write" | "<<"), values):
                return self.function("print", values, None)
            case (("::STDERR" | "::$stderr"), "puts", values):
                return self._put(values, self.err)
            case _, ("sync=" | "flush"), _:
                return None
            case (("::File" | "::Dir" | "::FileTest" | "::Process"), _, _) if name.endswith("?"):
                return self.decide()
            case "::File", "open", [_, str() as mode, *_] if mode[:1] in ("w", "a"):
                return self._tried()
            case _ if (owner, name) in _ATTEMPTS or owner in _SOCKETS:
                return self._tried()
            case "::JSON", ("generate" | "dump"), [value, *_]:
                return json_text(self, value, Layout())
            case "::JSON", "pretty_generate", [value, *_]:
                return self._pretty(value)
            case (("::File" | "::IO"), ("read" | "binread"), [path]):
                return self.content(path)
            case "::IO", "popen", [script, *_]:
                return self.captured(script)
            case "::Process", ("pid" | "ppid" | "uid"), []:
                return self.quiet()
            case "::Dir", "pwd", []:
                return self.quiet()
            case _:
                raise UnknownError

    def _tried(self) -> Any:
        """Open or change something of the system. Raises `FailedError` of no class that is known."""
        if self.attempted() is None:
            raise FailedError
        return SINK

    def _pretty(self, value: Any) -> str:
        """Return what `JSON.pretty_generate` gives."""
        empty = self.word(Choice((("{}",), ("{\n}",))))  # of JSON 2.10 and before it
        layout = Layout(indent=2, colon=": ", empty_map=empty, empty_selection=empty)
        return json_text(self, value, layout)

    def inspected(self, value: Any) -> str:
        """Return a value as `inspect` gives it."""
        match value:
            case None:
                return "nil"
            case bool():
                return str(value).lower()
            case int():
                return str(value)
            case Symbol():
                return f":{value}"
            case str():
                return self._quoted(value)
            case list():
                return "[" + ", ".join(self.inspected(each) for each in value) + "]"
            case dict():
                return self._inspected_hash(value)
            case Selection(form=Form.MAPPING):
                return self.word(self.record(value))
            case _:
                raise UnknownError

    def _inspected_hash(self, value: dict[Any, Any]) -> str:
        """Return a hash as Ruby up to 3.3 writes it, or as later ones do."""
        if not value:
            return "{}"
        old, new = [], []
        for key, each in value.items():
            text = self.inspected(each)
            old.append(f"{self.inspected(key)}=>{text}")
            new.append(f"{key}: {text}" if isinstance(key, Symbol) else f"{self.inspected(key)} => {text}")
        options = tuple(("{" + ", ".join(entries) + "}",) for entries in (old, new))
        return self.word(Choice(options))

    def _quoted(self, value: str) -> str:
        if self.kind_of(value) is Kind.ANY:
            return value  # quoted, or nil
        known = value if not has_placeholder(value) else value.partition("Zhole")[0]
        if any(char in known for char in '"\\#') or not known.isprintable():
            raise UnknownError
        return f'"{value}"'
