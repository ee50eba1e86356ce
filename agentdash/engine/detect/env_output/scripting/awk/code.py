"""Programs of awk under a hypothesis: rules for lines, and what they leave to `END`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from agentdash.engine.detect.env_output.inputs import lines_of
from agentdash.engine.detect.env_output.patterns import ANY, Part, Parts, concrete
from agentdash.engine.detect.env_output.scripting.awk.library import Library
from agentdash.engine.detect.env_output.scripting.awk.syntax import Rule, Tree
from agentdash.engine.detect.env_output.scripting.scopes import Place
from agentdash.engine.detect.env_output.scripting.values import (
    Count,
    ExitError,
    LastError,
    NextError,
    ReturnError,
    Written,
)
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ENVIRON: Final = "ENVIRON"


class _NextLineError(NextError):
    """The rest of the rules is passed over."""


class Awk(Library):
    """Runs rules: values are texts, numbers, and None for a variable that is not set."""

    rules: tuple[Rule, ...] = ()
    ends_lines = True

    def program(self, content: Parts, *, is_nul: bool) -> None:
        """Run a program on what it reads."""
        self._ran("BEGIN")
        main = [r for r in self.rules if r.parameters is None and r.pattern not in ("BEGIN", "END")]
        ends = [r for r in self.rules if r.parameters is None and r.pattern == "END"]
        if main or ends:
            self._read(main, content, is_nul=is_nul, has_end=bool(ends))
        self._ran("END")

    def _ran(self, place: str) -> None:
        for rule in self.rules:
            if rule.parameters is None and rule.pattern == place:
                with suppress(_NextLineError):
                    self._block(rule.action)

    # ------------------------------------------------------------ lines

    def _read(self, main: list[Rule], content: Parts, *, is_nul: bool, has_end: bool) -> None:
        """Run the rules for lines: on each alone, or on all where they leave something behind."""
        holes = dict(self._holes)
        if not has_end or not self._leaves_something(main):
            try:
                self.out += self._changed(main, content, is_nul=is_nul)
            except UnknownError:
                self._holes.update(holes)
            else:
                return
        if lines_of(content) is None and self._prints(main) and _reads_what_it_leaves(main):
            raise UnknownError  # what a line prints depends on the lines before it, which are not known
        known = None if is_nul else concrete(content)
        if known is None:
            entries = self.entries_of(Written(content), "\0" if is_nul else "\n")
            self.each(entries, lambda line: self._line(main, line))
            return
        lines = known.removesuffix("\n").split("\n") if known else []
        for number, line in enumerate(self.list_of(lines), start=1):
            self.record_number = number
            self._line(main, line)

    def _leaves_something(self, main: list[Rule]) -> bool:
        text = str([(rule.pattern, rule.action) for rule in main])
        return "'assign'" in text or "'step'" in text

    def _prints(self, main: list[Rule]) -> bool:
        return "'print" in str([rule.action for rule in main])

    def _line(self, main: list[Rule], line: str) -> None:
        self.split_fields(line)
        with suppress(_NextLineError):
            for rule in main:
                if not isinstance(rule.pattern, tuple) or self.holds(rule.pattern):
                    self._block(rule.action)
        self.fields = [""]

    def _changed(self, main: list[Rule], content: Parts, *, is_nul: bool) -> Parts:
        """Return what the program writes of each line, if none depends on those before it."""
        self.record_end = "\0" if is_nul else "\n"
        parts = self.changed_lines(content, lambda line: self._line(main, line))
        if ANY in parts:
            raise UnknownError
        return parts

    def _state(self) -> dict[str, Any]:
        """Return the variables that a line can leave to those behind it."""
        return {n: _copied(v) for n, v in self._names.items() if n not in ("RSTART", "RLENGTH")}

    # ------------------------------------------------------------ statements

    def _block(self, statements: tuple[Tree, ...]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Tree) -> None:
        self.step()
        match statement:
            case ("print", arguments, device):
                values = [self.text(self.value(a)) for a in arguments] or [self.fields[0]]
                self._write(self.text(self._names.get("OFS", " ")).join(values) + "\n", device)
            case ("printf", (template, *arguments), device):
                self._write(self.formatted(self.value(template), [self.value(a) for a in arguments]), device)
            case ("if", test, then, otherwise):
                self._block(then if self.holds(test) else otherwise)
            case ("block", inner):
                self._block(inner)
            case ("for", first, test, step, body):
                self._counted(first, test, step, body)
            case ("for in", name, array, body):
                self._rounds(name, self.unordered(self.names_of(self._keyed(array))), body)
            case ("while", test, body):
                self._while(test, body)
            case ("do", body, test):
                self._block(body)
                self._while(test, body)
            case ("next",):
                raise _NextLineError
            case ("continue",):
                raise NextError
            case ("break",):
                raise LastError
            case ("exit", value):
                if any(rule.pattern == "END" for rule in self.rules):
                    raise UnknownError
                status = 0 if value is None else self.value(value)
                raise ExitError(status if isinstance(status, int) else None)
            case ("return", value):
                raise ReturnError(None if value is None else self.value(value))
            case ("expression", expression):
                self.value(expression)
            case _:
                raise UnknownError

    def _write(self, text: str, device: str) -> None:
        streams: dict[str, list[Part]] = {"/dev/stdout": self.out, "/dev/stderr": self.err}
        streams.get(device, []).append(text)

    def _rounds(self, name: str, values: Any, body: tuple[Tree, ...]) -> None:
        def run(item: Any) -> None:
            self._names[name] = item
            self._block(body)

        before = self._names.get(name)
        self.each(values, run)
        self._names[name] = before

    def _counted(self, first: Tree, test: Tree, step: Tree, body: tuple[Tree, ...]) -> None:
        """Run a loop; one over all items that were kept is a loop over those."""
        self.value(first)
        match test:
            case ("compare", "<=", ("name", number), ("name", end)) if isinstance(
                self._names.get(end), Count
            ):
                lists = [n for n, v in self._names.items() if isinstance(v, Selection | Lines)]
                if len(lists) != 1 or step[0] != "step":
                    raise UnknownError
                self._names[f"%item of {lists[0]}"] = number
                self.each(self._names[lists[0]], lambda item: self._with_item(item, body))
            case _:
                self.repeat(lambda: self.holds(test), lambda: self._block(body), lambda: self.value(step))

    def _with_item(self, item: Any, body: tuple[Tree, ...]) -> None:
        self._names["%item"] = item
        self._block(body)

    def _while(self, test: Tree, body: tuple[Tree, ...]) -> None:
        if (read := _getline(test)) is not None:
            command, name = read
            entries = self.entries_of(self.captured(self.value(command)), "\n")
            if name:
                self._rounds(name, entries, body)
                return

            def run(line: str) -> None:
                self.split_fields(line)
                self._block(body)

            self.each(entries, run)
            return
        self.repeat(lambda: self.holds(test), lambda: self._block(body))

    # ------------------------------------------------------------ values

    def value(self, tree: Tree) -> Any:
        """Return the value of an expression."""
        self.step()
        match tree:
            case ("text", text):
                return text
            case ("number", text):
                return int(text) if "." not in text else self.plain(None)
            case ("group", inner):
                return self.value(inner)
            case ("regex", source):
                return int(self.found(source, self.fields[0]))
            case ("field", number):
                return self.field(self.number(self.value(number)))
            case ("name", name):
                return self.variable_of(name)
            case ("item", name, index):
                return self._item(name, self.value(index))
            case ("join", parts):
                return "".join(self.text(self.value(part)) for part in parts)
            case ("not", inner):
                return int(not self.holds(inner))
            case ("and", left, right):
                return int(self.holds(left) and self.holds(right))
            case ("or", left, right):
                return int(self.holds(left) or self.holds(right))
            case ("choice", test, first, second):
                return self.value(first if self.holds(test) else second)
            case ("~" | "!~" as sign, left, right):
                source = right[1] if right[0] == "regex" else self.plain(self.value(right))
                return int(self.found(source, self.text(self.value(left))) is (sign == "~"))
            case ("in", left, name):
                return int(self._is_in(self.value(left), name))
            case ("compare", sign, left, right):
                return int(self.compared(sign, self.value(left), self.value(right)))
            case ("compute", sign, left, right):
                return self.computed(sign, self.value(left), self.value(right))
            case ("assign", sign, target, value):
                return self._assigned(sign, target, self.value(value))
            case ("step", sign, target, is_before):
                before = self.value(target)
                before = before if isinstance(before, Count) else self.number(before)
                after = self._assigned("=", target, self.counted(sign[0], before, 1))
                return after if is_before else before
            case ("call", name, arguments):
                return self._call(name, arguments)
            case ("getline", command, name) if name:
                line = self.first_line(self.captured(self.text(self.value(command))))
                if line is not None:
                    self._names[name] = line
                return int(line is not None)
            case _:
                raise UnknownError

    def _keyed(self, name: str) -> Any:
        """Return an array, which a loop over the environment may have filled."""
        if name == _ENVIRON:
            return Selection((True, True))
        array = self._names.get(name)
        return array if isinstance(array, Selection) else self.array(name)

    def _item(self, name: str, index: Any) -> Any:
        if name == _ENVIRON:
            return self.variable(self.text(index))
        array = self._names.get(name)
        if isinstance(array, Selection | Lines) and f"%item of {name}" in self._names:
            return self._names["%item"]
        return (
            self.item_of(array, index)
            if isinstance(array, Selection)
            else self.array(name).get(self.text(index))
        )

    def _is_in(self, index: Any, name: str) -> bool:
        array = Selection((True, True)) if name == _ENVIRON else self._names.get(name)
        if isinstance(array, Selection):
            return self.is_set(array, index)
        return self.plain(self.text(index)) in self.array(name)

    def _assigned(self, sign: str, target: Tree, value: Any) -> Any:
        if sign != "=":
            value = self.computed(sign[0], self.value(target), value)
        match target:
            case ("name", "RS" | "ORS" | "NF" | "NR" | "IGNORECASE" | "FIELDWIDTHS" | "FPAT"):
                raise UnknownError
            case ("name", name):
                self._names[name] = value
            case ("field", number):
                self._set_field(self.number(self.value(number)), self.text(value))
            case ("item", "PROCINFO", _):
                pass
            case ("item", name, index) if name != _ENVIRON:
                self.array(name)[self.plain(self.text(self.value(index)))] = value
            case _:
                raise UnknownError
        return value

    def _call(self, name: str, trees: tuple[Tree, ...]) -> Any:
        function = next((r for r in self.rules if r.parameters is not None and r.pattern == name), None)
        if function is not None:
            return self._called(function, [self.value(tree) for tree in trees])
        match name, trees:
            case "split", (text, ("name", array), *separator):
                return self.split_into(self.value(text), array, [self.value(each) for each in separator])
            case (("sub" | "gsub"), (pattern, replacement, *target)):
                place = target[0] if target else ("field", ("number", "0"))
                return self._substituted(name, pattern, self.value(replacement), place)
            case "match", (text, pattern):
                source = pattern[1] if pattern[0] == "regex" else self.plain(self.value(pattern))
                return self.located(self.text(self.value(text)), source)
            case _:
                return self.library(name, [self.value(tree) for tree in trees])

    def _called(self, function: Rule, arguments: list[Any]) -> Any:
        def inside() -> None:
            for number, name in enumerate(function.parameters or ()):
                self.declare(name, arguments[number] if number < len(arguments) else None)
            self._block(function.action)

        return self.returned(Place(self._names), inside)

    def _substituted(self, name: str, pattern: Tree, replacement: Any, place: Tree) -> int:
        source = pattern[1] if pattern[0] == "regex" else self.plain(self.value(pattern))
        text, count = self.replaced_by(name, source, self.plain(replacement), self.text(self.value(place)))
        match place:
            case ("field", ("number", "0")):
                self.split_fields(text)
            case ("name", variable):
                self._names[variable] = text
            case _:
                raise UnknownError
        return count


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


def _getline(test: Tree) -> tuple[Tree, str] | None:
    """Return the command and the variable of `(command | getline line) > 0`; None for other conditions."""
    match test:
        case ("getline", command, name):
            return command, name
        case ("compare", ">", left, ("number", "0")):
            return _getline(left)
        case ("group", inner):
            return _getline(inner)
        case _:
            return None


def _reads_what_it_leaves(main: list[Rule]) -> bool:
    """Return whether rules for lines read a variable that earlier lines may have set."""
    left: set[str] = set()
    read: set[str] = set()
    for rule in main:
        _names(rule.pattern, left, read)
        fresh: set[str] = set()
        """Variables that this rule has set for this line."""
        for statement in rule.action or ():
            here: set[str] = set()
            _names(statement, left, here)
            read |= here - fresh
            match statement:
                case ("expression", ("assign", "=", ("name", str(name)), _)):
                    fresh.add(name)
    return not left.isdisjoint(read)


def _names(tree: Any, left: set[str], read: set[str]) -> None:
    """Collect the variables that a tree sets, and those that it reads other than to set them."""
    match tree:
        case ("expression", ("step", _, ("name", _), _)) | ("step", _, ("name", _), _):
            pass  # lines that are not known make it a number that is not known
        case ("expression", ("step" | "assign", _, target, value)):
            left.add(target[1])
            _names((target[2:], value), left, read)
        case ("step" | "assign", _, target, value):
            left.add(target[1])
            read.add(target[1])
            _names((target[2:], value), left, read)
        case ("name" | "item", str(name), *rest):
            read.add(name)
            _names(rest, left, read)
        case tuple() | list():
            for each in tree:
                _names(each, left, read)
