"""Loops over the environment, or a part of it: run for each flag, they show how all rounds print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from agentdash.engine.detect.env_output.dump_maps import common_style, squeezed
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Style
from agentdash.engine.detect.env_output.patterns import Hole, Kind
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.conditions import Conditions
from agentdash.engine.detect.env_output.scripting.values import (
    UNKNOWABLE,
    Count,
    LastError,
    NextError,
    Various,
    Written,
)
from agentdash.engine.detect.env_output.scripting.variables import Variables
from agentdash.engine.detect.env_output.selections import MARK, PAD, Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

MAX_ROUNDS: Final = 60
"""Rounds of a loop over known values."""
_OTHER_NAMES: Final = (
    "HOME",
    "PATH",
    "CODEX_HOME",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX_LEVEL",
    "NO_CODEX_SANDBOX",
)
"""Names on which a loop is tried: what they change is not known behind it."""
_SIMILAR_NAMES: Final = tuple(
    {
        before + "_".join(words[start:stop]) + behind: None
        for words in (("CODEX", "SANDBOX", "NETWORK", "DISABLED"),)
        for start in range(4)
        for stop in range(start + 1, 5)
        for before in ("", "X_")
        for behind in ("", "_X")
    }.keys()
    - set(FLAGS)
) + tuple("X" * len(name) for name in FLAGS)
"""Names that share words with those of the flags."""
_QUOTING: Final = " ".join(f"see {name}=1;" for name in FLAGS)
"""A value of another variable that names the flags."""
_MISSING: Final = object()


def line_style(line: str, name: str) -> Style:
    """Return the style of a line about a flag, with the mark in the place of its value."""
    is_padded = PAD in line
    if is_padded:  # where no blank is beside them there may be none at all
        line = re.sub(f"(?<=[ \\t]){PAD}|{PAD}(?=[ \\t\\n])|^{PAD}", "", line)
    before, mark, after = line.partition(MARK)
    if not mark or has_placeholder(after) or name not in before or "\n" in before or has_placeholder(before):
        raise UnknownError
    if after.find("\n") != len(after) - 1:
        raise UnknownError
    style = Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1])
    return squeezed(style) if is_padded else style


class Loops(Conditions):
    """Loops over the environment, or a part of it, and over lists."""

    def entry(self, selection: Selection | Lines, name: str) -> Any:
        """Return what a loop gives of a variable."""
        if isinstance(selection, Lines):
            if selection.style.squeezed:
                raise UnknownError
            return selection.style.prefixes[0].replace("NAME", name) + MARK + selection.style.suffix
        match selection.form:
            case Form.ENTRIES:
                return f"{name}={MARK}"
            case Form.NAMES:
                return name
            case _:
                return [name, MARK]

    def for_flag(self, name: str, run: Callable[[], Any]) -> Any:
        """Return what something gives in a round of a loop that is at a flag."""
        outer = self._looped
        self._looped = name
        try:
            return run()
        finally:
            self._looped = outer

    def each(self, values: Any, run: Callable[[Any], Any]) -> None:
        """Run a loop."""
        if isinstance(values, Selection | Lines):
            self._over_environment(values, run)
            return
        if isinstance(values, dict):
            values = [[key, value] for key, value in values.items()]
        if not isinstance(values, list) or len(values) > MAX_ROUNDS:
            raise UnknownError
        added = {id(values)} - self._looped_lists
        self._looped_lists |= added
        try:
            with suppress(LastError):
                for value in list(values):
                    with suppress(NextError):
                        run(value)
        finally:
            self._looped_lists -= added

    def repeat(
        self, holds: Callable[[], bool], run: Callable[[], Any], step: Callable[[], Any] = lambda: None
    ) -> None:
        """Run a loop as long as its condition holds."""
        with suppress(LastError):
            while holds():
                with suppress(NextError):
                    run()
                step()

    def _over_environment(self, selection: Selection | Lines, run: Callable[[Any], Any]) -> None:
        if self._looped:
            raise UnknownError
        before = Variables(self._names)
        others, is_silent = self._changed_by_others(selection, run, before, _OTHER_NAMES)
        if is_silent and not others and self._is_for_flags_alone(selection, run, before):
            self._over_flags(selection, run)
            return
        written: list[str] = []
        after: list[dict[Any, Any]] = []
        for name in FLAGS:
            written.append(self._round(name, selection, name, run))
            after.append(before.changed(self._names))
            before.restore(self._names)
        changed = {place for changes in after for place in changes} | others
        if changed and any(written):
            written = [self._behind_others(name, selection, run, before, changed) for name in FLAGS]
        self._write_lines(selection, written)
        for place in changed:
            values = [changes.get(place, _MISSING) for changes in after]
            try:
                merged = self._merged(selection, before.value(place), values, is_of_others=place in others)
            except UnknownError:
                merged = UNKNOWABLE
            before.assign(self._names, place, merged)

    def _round(self, flag: str, selection: Selection | Lines, name: str, run: Callable[[Any], Any]) -> str:
        """Return what a round for a variable writes, with the mark as the value of a flag."""
        out, self.out = self.out, []
        err, self.err = self.err, []
        self._present = name
        try:
            with suppress(NextError):
                self.for_flag(flag, lambda: run(self.entry(selection, name)))
            if self.err or not all(isinstance(part, str) for part in self.out):
                raise UnknownError
            return "".join(str(part) for part in self.out)
        finally:
            self.out, self.err = out, err
            self._present = ""

    def _changed_by_others(
        self,
        selection: Selection | Lines,
        run: Callable[[Any], Any],
        before: Variables,
        names: Iterable[str],
    ) -> tuple[set[Any], bool]:
        """Return what rounds for other variables change, and whether they write nothing."""
        found: set[Any] = set()
        is_silent = True
        for name in names:
            for value in (MARK, _QUOTING):
                written = self._round(FLAGS[0], selection, name, lambda item, v=value: run(_valued(item, v)))  # type: ignore[misc]
                is_silent = is_silent and written == ""
                found |= set(before.changed(self._names))
                before.restore(self._names)
        return found, is_silent

    def _is_for_flags_alone(
        self, selection: Selection | Lines, run: Callable[[Any], Any], before: Variables
    ) -> bool:
        """Return whether rounds for variables of similar names do nothing as well."""
        return self._changed_by_others(selection, run, before, _SIMILAR_NAMES) == (set(), True)

    def _over_flags(self, selection: Selection | Lines, run: Callable[[Any], Any]) -> None:
        """Run the rounds for the flags that are set, in one of their orders: other rounds do nothing."""
        with suppress(LastError):
            for item in self.known(selection):
                with suppress(NextError):
                    run(item)

    def known(self, selection: Selection | Lines) -> list[Any]:
        """Return what a loop gives of the flags that are set, in one of their orders."""
        names = [
            name
            for name, keep in zip(FLAGS, selection.kept, strict=True)
            if keep and self._environment[name] is not None
        ]
        if len(names) > 1 and self.decide():
            names.reverse()
        return [_valued(self.entry(selection, name), self.variable(name)) for name in names]

    def _behind_others(
        self,
        name: str,
        selection: Selection | Lines,
        run: Callable[[Any], Any],
        before: Variables,
        changed: set[Any],
    ) -> str:
        """Return what a round for a flag writes behind other rounds: what these count is not known.

        Raises:
            UnknownError: it depends on them otherwise.
        """
        first = self._round(name, selection, name, run)
        before.restore(self._names)
        for other in (*(flag for flag in FLAGS if flag != name), _OTHER_NAMES[0]):
            self._round(other if other in FLAGS else FLAGS[0], selection, other, run)
        for place in changed:
            if isinstance(place, str) and type(before.value(place) or self._names.get(place)) is int:
                self._names[place] = Count(0)
        second = self._round(name, selection, name, run)
        before.restore(self._names)
        pieces = re.split(r"Zhole(?!9999Z)\d+Z", second)
        if not re.fullmatch(r"(?:\d+|Zhole\d+Z)".join(map(re.escape, pieces)), first):
            raise UnknownError
        return second

    def _write_lines(self, selection: Selection | Lines, written: list[str]) -> None:
        """Add the lines that a loop writes to the output."""
        if not any(written):
            return
        kept = [bool(line) and keep for line, keep in zip(written, selection.kept, strict=True)]
        lines = [(self.without_number(line), name) for line, name in zip(written, FLAGS, strict=True) if line]
        style = common_style([line_style(line, name) for line, name in lines])
        if style is None:
            raise UnknownError
        numbered = any(self.without_number(line) != line for line in written)
        self.out.append(Dump(shown=self.shown((kept[0], kept[1])), style=style, numbered=numbered))

    def without_number(self, line: str) -> str:
        """Return a line without a number at its beginning that is not known."""
        match = re.match(r"[ \t]*(Zhole\d+Z)(?:[:.)\]]?[ \t]+|:)", line)
        is_number = match is not None and self.hole(match[1]) == Hole(Kind.DIGITS)
        return line[match.end() :] if match is not None and is_number else line

    def _merged(
        self, selection: Selection | Lines, before: Any, after: list[Any], *, is_of_others: bool
    ) -> Any:
        """Return what a variable holds behind a loop that changed it."""
        kept = [keep and value is not _MISSING for keep, value in zip(selection.kept, after, strict=True)]
        there = (kept[0], kept[1])
        values = [value for value in after if value is not _MISSING]
        if all(type(value) is int for value in values) and (before is None or type(before) is int):
            return Count((before or 0) + self.certain(there))
        if all(isinstance(value, list) and len(value) == 1 for value in values) and not before:
            return self.collected([None if value is _MISSING else value[0] for value in after], there)
        if all(isinstance(value, dict) for value in values) and not before:
            return self._merged_mappings(after, there)
        if before == "" and all(isinstance(value, str) for value in values):
            return self._appended(after, there)
        return self._left_behind(before, after, there, is_of_others=is_of_others)

    def _merged_mappings(self, after: list[Any], kept: tuple[bool, bool]) -> Any:
        """Return what a mapping holds to which rounds have added: by name, or by number."""
        if all(value is _MISSING or list(value) == ["1"] for value in after):
            items = [None if value is _MISSING else value["1"] for value in after]
            return self.collected(items, kept)
        pairs = list(zip(FLAGS, after, strict=True))
        if all(value is _MISSING or list(value) == [name] for name, value in pairs) and all(
            value is _MISSING or value[name] in (MARK, True, 1) for name, value in pairs
        ):
            is_set = any(value is not _MISSING and value[name] != MARK for name, value in pairs)
            return Selection(kept, Form.NAMES if is_set else Form.MAPPING)
        raise UnknownError

    def _appended(self, after: list[Any], kept: tuple[bool, bool]) -> Written:
        """Return text to which each round has added a line."""
        styles = [
            line_style(value, name) for value, name in zip(after, FLAGS, strict=True) if value is not _MISSING
        ]
        if (style := common_style(styles)) is None:
            raise UnknownError
        return Written((Dump(shown=self.shown(kept), style=style),))

    def _left_behind(
        self, before: Any, after: list[Any], kept: tuple[bool, bool], *, is_of_others: bool
    ) -> Any:
        """Return what a variable holds that rounds have given another value."""
        values = [value for value in after if value is not _MISSING]
        if (len(values) > 1 and values[0] != values[1]) or isinstance(before, list | dict):
            raise UnknownError
        if not values:
            raise UnknownError
        if is_of_others and (isinstance(values[0], str) and has_placeholder(values[0])):
            raise UnknownError
        for name, value, keep in zip(FLAGS, after, kept, strict=True):
            if value is not _MISSING and keep and self._environment[name] is not None:
                return self._value_for(name, value)
        return values[0] if is_of_others and self.decide() else before

    def _value_for(self, name: str, value: Any) -> Any:
        """Return a value with that of a flag in the place of the mark."""
        return self.for_flag(name, lambda: self.actual(value)) if isinstance(value, str) else value

    def collected(self, items: list[Any], kept: tuple[bool, bool]) -> Any:
        """Return a list with one item for each variable, of the items for both flags; None for no item."""
        names = [(item, name) for item, name in zip(items, FLAGS, strict=True) if item is not None]
        for form in (Form.NAMES, Form.ENTRIES, Form.ITEMS):
            if names and all(item == self.entry(Selection(kept, form), name) for item, name in names):
                return Selection(kept, form)
        if names and all(isinstance(item, bool | int | Count) for item, _ in names):
            there = [
                keep and self._environment[name] is not None for name, keep in zip(FLAGS, kept, strict=True)
            ]
            return Various(tuple(item for item, is_there in zip(items, there, strict=True) if is_there))
        if not names or not all(isinstance(item, str) for item, _ in names):
            raise UnknownError
        has_breaks = all(item.endswith("\n") for item, _ in names)
        style = common_style([line_style(item.removesuffix("\n") + "\n", name) for item, name in names])
        if style is None:
            raise UnknownError
        lines = Lines(style, kept)
        return Written((self.lines(lines),)) if has_breaks else lines


def _valued(item: Any, value: str) -> Any:
    """Return an item of a loop with another value in the place of the mark."""
    if isinstance(item, list | tuple):
        return type(item)(_valued(each, value) for each in item)
    if isinstance(item, Bytes):
        return Bytes(_valued(item.text, value))
    return item.replace(MARK, value) if isinstance(item, str) else item
