"""Calls of JavaScript: functions, methods, and the library of Node."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.dump_maps import common_style, on_one_line
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Style
from agentdash.engine.detect.env_output.javascript_output import Output
from agentdash.engine.detect.env_output.javascript_values import (
    MODULES,
    NULL,
    Function,
    Method,
    Pairs,
    Path,
    Regex,
    ReturnError,
    Written,
    names_in,
    style_of,
    trimmed,
)
from agentdash.engine.detect.env_output.patterns import ANY, Choice, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.selections import MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import STDERR, STDOUT, only, parts_of
from agentdash.engine.detect.env_output.unknown import UnknownError


class Calls(Output):
    """Calls of JavaScript: functions, methods, and the library of Node."""

    def _call(self, function: Any, arguments: list[Any]) -> Any:
        match function:
            case Function():
                return self._called(function, arguments)
            case Method(owner=Selection() as owner, name=name):
                return self._selection_method(owner, name, arguments)
            case Method(owner=list() as owner, name=name):
                return self._list_method(owner, name, arguments)
            case Method(owner=str() as owner, name=name):
                return self._text_method(owner, name, arguments)
            case Method(owner=Regex(pattern=pattern), name="test"):
                return self._tested(pattern, arguments[0])
            case Method(owner=Lines() as owner, name="join") if arguments == ["\n"]:
                return msgspec.structs.replace(owner, is_text=True)
            case Method(owner=Lines(is_text=False) as owner, name="join") if arguments in (
                [", "],
                [","],
                [" "],
            ):
                lines = Dump(shown=self._shown(owner.kept), style=owner.style)
                return Written(on_one_line(lines, arguments[0]))
            case Method(owner=Lines() as owner, name="sort"):
                return owner
            case Method(owner=Written(parts=(Dump(nul=True),)), name="split") if arguments == ["\0"]:
                return Selection((True, True), Form.ENTRIES)
            case Method(owner=Written(parts=(Dump(nul=True) as dump,)), name="replace" | "replaceAll"):
                return self._in_lines(dump, arguments)
            case Method(owner=Written() as owner, name="toString" | "trim" as name):
                return (
                    owner if name == "toString" else Written((Choice((owner.parts, trimmed(owner.parts))),))
                )
            case Path(name=name):
                return self._library(name.removeprefix("node:"), arguments)
            case _:
                raise UnknownError

    def _in_lines(self, dump: Dump, arguments: list[Any]) -> Written:
        """Return entries that end in NUL with line breaks in place of that."""
        match arguments:
            case [Regex() | str() as pattern, "\n"]:
                source = pattern if isinstance(pattern, str) else pattern.pattern.pattern
                if source in ("\0", "\\0", "\\x00"):
                    return Written((msgspec.structs.replace(dump, nul=False),))
            case _:
                pass
        raise UnknownError

    def _called(self, function: Function, arguments: list[Any]) -> Any:
        outer = self._names
        self._names = dict(outer)
        try:
            for number, (pattern, default) in enumerate(function.parameters):
                given = arguments[number] if number < len(arguments) else None
                self._bind(pattern, self.value(default) if given is None and default is not None else given)
            self.block(function.body)
        except ReturnError as ended:
            return ended.value
        finally:
            own = {name for pattern, _ in function.parameters for name in names_in(pattern)}
            self._names = {n: outer[n] if n in own else self._names[n] for n in outer}
        return None

    def _library(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "console.log" | "console.info" | "console.debug", _:
                return self.print(arguments)
            case "console.dir", [value, *_]:
                return self.print([value])
            case "util.inspect", [value, *rest] if not rest and not isinstance(value, str):
                return Written(joined(self._inspected(value)))
            case "console.error" | "console.warn", _:
                outer, self.out = self.out, []
                self.print(arguments)
                self.err = joined((*self.err, *self.out))
                self.out = outer
                return None
            case "console.table", [value]:
                return self._table(value)
            case "process.stdout.write", [value]:
                self.out += (
                    self._inspected(value) if isinstance(value, Written | Lines) else [self._text(value)]
                )
                return None
            case "require", [str() as module] if module.removeprefix("node:") in MODULES:
                return Path(module.removeprefix("node:"))
            case "JSON.stringify", [value, *layout]:
                return self._json(value, layout)
            case "Object.keys", [value]:
                return self._keys(value)
            case "Object.values", [dict() as value]:
                return list(value.values())
            case "Object.entries", [Selection(form=Form.MAPPING) as value]:
                return Selection(value.kept, Form.ITEMS)
            case "Object.entries", [dict() as value]:
                return [[key, inner] for key, inner in value.items()]
            case "Object.fromEntries", [Selection(form=Form.ITEMS) as value]:
                return Selection(value.kept)
            case "Object.fromEntries", [list() as pairs] if all(
                isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in pairs
            ):
                return {pair[0]: pair[1] for pair in pairs}
            case "Object.assign", [dict() as target, Selection() as value] if not target:
                return value
            case "fs.readFileSync", ["/proc/self/environ", *_]:
                return Written((Dump(shown=self._shown((True, True)), nul=True, whole=True, some=True),))
            case "Map", [list() as pairs] if all(isinstance(pair, list) for pair in pairs):
                return Pairs(pairs)
            case "String", [value]:
                return self._text(value)
            case "Boolean", [value]:
                return self._truth(value)
            case "child_process.execSync", [str() as script, *_]:
                return self._shell(script)
            case "os.hostname" | "os.platform" | "os.type" | "os.release" | "process.cwd", []:
                return self._quiet()
            case "process.exit", _:
                raise UnknownError
            case _:
                raise UnknownError

    def _shell(self, script: str) -> Written:
        """Return what a shell writes to its standard output."""
        if self._run_shell is None or has_placeholder(script):
            raise UnknownError
        outcomes = self._run_shell(script)
        if any(only(outcome.stream, STDERR) for outcome in outcomes) or any(o.status for o in outcomes):
            self.err = (*self.err, Choice(((), (ANY,))))
        options = tuple(dict.fromkeys(parts_of(outcome.stream, STDOUT) for outcome in outcomes))
        return Written(options[0] if len(options) == 1 else (Choice(options),))

    def _selection_method(self, owner: Selection, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "sort", _:
                return owner
            case "join", ["\n"] if owner.form is Form.ENTRIES:
                return Lines(Style(), owner.kept, is_text=True)
            case "filter", [Function() | Path() as test]:
                kept = [
                    self._for_flag(owner, flag, lambda item: self._truth(self._call(test, [item])))
                    and owner.kept[number]
                    for number, flag in enumerate(FLAGS)
                ]
                return Selection((kept[0], kept[1]), owner.form)
            case "map", [Function() as function]:
                return self._mapped(owner, function)
            case "forEach", [Function() as function]:
                self._for_each(owner, lambda item: self._call(function, [item]))
                return None
            case _:
                raise UnknownError

    def _mapped(self, owner: Selection, function: Function) -> Any:
        styles: list[Style] = []
        pairs = 0
        for name in FLAGS:
            value = self._for_flag(owner, name, lambda item: self._call(function, [item]))
            if value == [name, MARK]:
                pairs += 1
            elif isinstance(value, str):
                styles.append(style_of(value + "\n", name))
            else:
                raise UnknownError
        if pairs == 2:
            return Selection(owner.kept, Form.ITEMS)
        if pairs or (style := common_style(styles)) is None:
            raise UnknownError
        return Lines(style, owner.kept)

    def _list_method(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "forEach", [Function() as function]:
                for number, value in enumerate(owner):
                    self._call(function, [value, number])
                return None
            case "map", [Function() as function]:
                return [self._call(function, [value, number]) for number, value in enumerate(owner)]
            case "filter", [Function() | Path() as function]:
                return [value for value in owner if self._truth(self._call(function, [value]))]
            case "join", [str() as separator]:
                return separator.join("" if v is None or v is NULL else self._text(v) for v in owner)
            case "push", [value]:
                owner.append(value)
                return len(owner)
            case "includes", [str() as value] if not any(has_placeholder(str(v)) for v in (*owner, value)):
                return value in owner
            case "sort", [] if all(isinstance(v, str) and not has_placeholder(v) for v in owner):
                return sorted(owner)
            case "reduce", [Function() as function, first]:
                for value in owner:
                    first = self._call(function, [first, value])
                return first
            case _:
                raise UnknownError

    def _text_method(self, owner: str, name: str, arguments: list[Any]) -> Any:
        known = owner.partition("Zhole")[0]
        is_marked = has_placeholder(owner)
        match name, arguments:
            case "startsWith", [str() as start] if not is_marked or len(start) <= len(known):
                return owner.startswith(start)
            case "indexOf", [str() as part] if not is_marked or part in known:
                return owner.find(part)
            case "includes", [str() as part] if not is_marked or part in known:
                return part in owner
            case "match", [Regex(pattern=pattern)]:
                return True if self._tested(pattern, owner) else NULL
            case "padEnd" | "padStart", [int() as width, *rest] if not is_marked and width < 200 and not rest:
                return owner.ljust(width) if name == "padEnd" else owner.rjust(width)
            case "toLowerCase" | "toUpperCase", [] if not is_marked:
                return owner.lower() if name == "toLowerCase" else owner.upper()
            case "repeat", [int() as count] if count <= 200 and not is_marked:
                return owner * count
            case "toString" | "trim", [] if is_marked or name == "toString":
                return owner
            case "split", [str() as separator] if not is_marked and separator:
                return owner.split(separator)
            case "endsWith", [str() as end] if not is_marked:
                return owner.endswith(end)
            case _:
                raise UnknownError

    def _tested(self, pattern: re.Pattern[str], text: Any) -> bool:
        if not isinstance(text, str) or has_placeholder(text):
            raise UnknownError
        return pattern.search(text) is not None
