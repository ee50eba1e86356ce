"""Dumps of an environment in an output: which stretches of it can be one, given the two flags.

A dump shows many variables of which only the two flags are known. Each line either shows a flag, and then its
value is known, or something else, and then it can be anything that the filters behind the dumper pass.
"""

from __future__ import annotations

import re
from collections import deque
from enum import Enum
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.regexes import is_quick
from agentdash.model.sandbox_flags import NETWORK_FLAG, SANDBOX_FLAG

FLAGS: Final = (NETWORK_FLAG, SANDBOX_FLAG)
FLAG_STEM: Final = "CODEX_SANDBOX"
"""Text that names either flag."""

Interval = tuple[int, int]
"""The first and the last of some neighbouring offsets."""

_OTHER_SAMPLES: Final = ("0", "other", "2x", "a b", "Zé-9", "none")
"""Values on which a filter is tried that has to let any value through."""


class Presence(Enum):
    """What a dump shows of a variable."""

    ABSENT = "absent"
    EXACT = "exact"
    OTHER = "other"
    """A value that is not empty and none of those that the flag can have."""
    UNKNOWN = "unknown"


class Shown(msgspec.Struct, frozen=True):
    """What a dump shows of one flag: `text` is its exact value, `exclude` what another value is not."""

    presence: Presence
    text: str = ""
    exclude: tuple[str, ...] = ()

    def allows(self, value: str) -> bool:
        """Return whether a printed value can be this one."""
        match self.presence:
            case Presence.ABSENT:
                return False
            case Presence.EXACT:
                return value == self.text
            case Presence.OTHER:
                return value != "" and value not in self.exclude
            case Presence.UNKNOWN:
                return True

    @property
    def samples(self) -> tuple[str, ...]:
        """Values that stand for all that it can be."""
        return (self.text,) if self.presence is Presence.EXACT else _OTHER_SAMPLES


_SHORT: Final = 80
"""Characters of a line in which any search is quick."""
_MAX_STEPS: Final = 100_000
"""Steps of a search in a line: some milliseconds."""


class LineFilter(msgspec.Struct, frozen=True):
    """A filter by line: a regular expression, or lines without it where `inverted`."""

    pattern: re.Pattern[str]
    inverted: bool = False

    def passes(self, line: str) -> bool:
        """Return whether the filter lets a line through; True where a search in it would take too long."""
        if len(line) > _SHORT and not is_quick(self.pattern, line, _MAX_STEPS):
            return True
        return (self.pattern.search(line) is None) is self.inverted

    def may_pass_within(self, line: str) -> bool:
        """Return whether the filter may let the end of a line through; False is certain."""
        relaxed = None if self.inverted else _without_start(self.pattern)
        if relaxed is None or (len(line) > _SHORT and not is_quick(relaxed, line, _MAX_STEPS)):
            return True
        return relaxed.search(line) is not None


_LOOKS_BEHIND: Final = re.compile(r"(?<!\[)\^|\\[AbB]|\(\?<[=!]")


@lru_cache(64)
def _without_start(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return a pattern that need not begin where a line does; None where it depends on what is before."""
    relaxed = pattern.pattern.removeprefix("^")
    return None if _LOOKS_BEHIND.search(relaxed) else re.compile(relaxed, pattern.flags)


class Style(msgspec.Struct, frozen=True):
    """How a dumper writes a variable: text before the value (in place of `NAME` its name), and behind it."""

    prefixes: tuple[str, ...] = ("NAME=",)
    suffix: str = ""
    quoted: bool = False
    """The value can stand in quotes."""
    closings: tuple[str, ...] = ()
    """What may stand at the end of the line besides: a comma, brackets."""
    foreign: tuple[str, ...] = ()
    """Beginnings of lines that other shells write, in place of `prefixes`."""
    inline: bool = False
    """Several entries may stand on one line."""
    squeezed: bool = False
    """Where one blank stands there can be more."""


ENV_STYLE: Final = Style()
JSON_STYLE: Final = Style(prefixes=('  "NAME": "',), suffix='"', closings=(",",))
PYTHON_STYLE: Final = Style(
    prefixes=(" 'NAME': '", "{'NAME': '", "environ({'NAME': '", "'NAME': '"),
    suffix="'",
    closings=(",", "}", "})"),
    inline=True,
)
"""Of a dictionary whose entries were put on lines of their own."""

SET_STYLE: Final = Style(quoted=True)
BASH_STYLE: Final = Style(
    prefixes=("declare -x NAME=", "declare -- NAME="),
    quoted=True,
    foreign=("NAME=", "export NAME=", "typeset -x NAME=", "typeset NAME="),
)
"""Of bash's `declare -p`."""
EXPORTED_STYLE: Final = msgspec.structs.replace(
    BASH_STYLE, prefixes=("declare -x NAME=",), foreign=(*BASH_STYLE.foreign, "declare -- NAME=")
)
SHELL_STYLE: Final = Style(
    prefixes=("NAME=", "declare -x NAME=", "export NAME=", "typeset -x NAME=", "declare -- NAME="),
    quoted=True,
)

_ENTRY: Final = re.compile(
    r"(?:\s*\d+(?:[:\t]| +))?(?:declare -\S+ |export |typeset -\S+ )?[A-Za-z_][\w%()]*\W"
)
"""How the first line of a dump begins: behind text without a line break it is the only way to know it."""
_MAX_PLACES: Final = 1_000
"""Places within lines at which a dump can begin that are looked at one by one."""
_MAX_NAMES: Final = 20
"""Names of flags in a line that are looked at one by one."""
_MAX_PREFIX: Final = 40
"""Characters of an entry before its name: a line number, `declare -x `."""
_STEM: Final = re.compile(FLAG_STEM)
_OF_CODEX: Final = re.compile(r"CODEX_\w*=")
_NUMBER: Final = re.compile(r"[#\[(]?\s*\d+(?:[:.)\]]?[ \t]+|:)")  # tabs of rollouts become blanks


class Dump(msgspec.Struct, frozen=True):
    """Lines that show the environment of a process."""

    shown: tuple[Shown, Shown]
    """Of the network flag and the sandbox flag."""
    style: Style = ENV_STYLE
    filters: tuple[LineFilter, ...] = ()
    partial: bool = False
    """Some lines may be missing (`head`, a filter that is not understood)."""
    numbered: bool = False
    """A line number may stand before each line (`grep -n`)."""
    nul: bool = False
    """Entries end in NUL instead of a line break; such a dump has to be converted before it can be read."""
    separator: str = ""
    """Stands between entries in place of a line break (`xargs -0`, `paste -s`)."""
    some: bool = False
    """At least one line is there."""
    whole: bool = False
    """A dumper wrote it: it has lines, and the first of them holds a variable."""

    def required(self, flag: int) -> bool | None:
        """Return whether a flag's line is shown: yes, no, or possibly."""
        return _required(self, flag)

    def spellings(self, flag: int, value: str) -> list[str]:
        """Return the lines that may show a value of a flag."""
        values = (value, f"'{value}'", f'"{value}"') if self.style.quoted else (value,)
        return [
            prefix.replace("NAME", FLAGS[flag]) + text + self.style.suffix + comma
            for prefix in self.style.prefixes
            for text in values
            for comma in ("", *self.style.closings)
        ]

    def ends(self, text: str, starts: list[Interval], is_prefix: bool) -> tuple[set[Interval], bool]:
        """Return where a dump that begins at `starts` can end, and whether the text can stop in it."""
        return _LineScan(self, text).run(starts, is_prefix=is_prefix)


@lru_cache(1_024)
def _required(dump: Dump, flag: int) -> bool | None:
    """Return whether a flag's line is shown; many outputs are compared with each dump."""
    shown = dump.shown[flag]
    if shown.presence is Presence.ABSENT:
        return False
    lines = [line for sample in shown.samples for line in dump.spellings(flag, sample)]
    passed = {all(f.passes(line) for f in dump.filters) for line in lines}
    if passed == {False}:
        return False
    return True if passed == {True} and not dump.partial and shown.presence is not Presence.UNKNOWN else None


class _State(msgspec.Struct, frozen=True):
    """How much of a dump was seen: each flag at most once."""

    network: bool = False
    sandbox: bool = False
    lines: bool = False

    def seen(self, flag: int | None) -> _State | None:
        if flag is None:
            return _State(self.network, self.sandbox, lines=True)
        if (self.network, self.sandbox)[flag]:
            return None
        return _State(self.network or flag == 0, self.sandbox or flag == 1, lines=True)


_SEEN: Final = ((False, False), (False, True), (True, False), (True, True))


class _LineScan:
    """A walk over the lines of an output with all states in which a dump can be."""

    def __init__(self, dump: Dump, text: str) -> None:
        self._dump = dump
        self._text = text
        self._required = (dump.required(0), dump.required(1))
        self._prefixes = _prefixes(dump.style)
        self._foreign = tuple(p.replace("NAME", name) for p in dump.style.foreign for name in FLAGS)
        self._needs_equals = dump.whole and not (dump.filters or dump.partial or dump.separator)
        self._needs_lines = dump.some or self._needs_equals
        self._places = _MAX_PLACES

    def run(self, starts: list[Interval], *, is_prefix: bool) -> tuple[set[Interval], bool]:
        text, end = self._text, len(self._text)
        ends: set[Interval] = set()
        states: set[_State] = set()
        at = text.rfind("\n", 0, starts[0][0]) + 1
        pending = deque(starts)
        while True:
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
            while pending and pending[0][1] < at:
                pending.popleft()
            if pending and pending[0][0] <= at:
                states.add(_State())
            if any(self._accepts(state) for state in states):
                ends.add((at, at))
            if at >= end:
                break
            following = {after for state in states for after in self._after(state, text[at:stop])}
            reached = list(takewhile(lambda interval: interval[0] <= stop, pending))  # noqa: B023
            if within := [(max(low, at + 1), min(high, stop)) for low, high in reached if high > at]:
                ends.update(within if self._accepts(_State()) else ())
                following |= self._begun(within, stop)
            if stop == end and is_prefix:
                return ends, bool(states or reached)
            if stop == end:
                ends.update([(end, end)] if any(self._accepts(state) for state in following) else ())
                break
            states = following
            at = stop + 1
            if not states and not pending:
                break
        return ends, is_prefix and at >= end and bool(states)

    def _begun(self, within: list[Interval], stop: int) -> set[_State]:
        """Return the states after a line within which a dump can begin.

        Behind many other places they are those that it may have, in a time that does not grow with places.
        """
        rest = self._text[within[0][0] : stop]
        is_as_filtered = not (self._dump.style.squeezed or self._dump.separator)
        if is_as_filtered and not all(f.may_pass_within(rest) for f in self._dump.filters):
            return set()
        if FLAG_STEM not in rest and all(f.inverted for f in self._dump.filters):
            return {_State(lines=not self._needs_equals or "=" in rest)}
        self._places -= sum(high - low for low, high in within)
        if self._places > 0:
            return self._begun_at(within, stop)
        names = list(islice(_STEM.finditer(self._text, within[0][0], stop), _MAX_NAMES))
        if len(names) == _MAX_NAMES or (names and (self._dump.style.inline or self._dump.separator)):
            return {_State(network, sandbox, lines=True) for network, sandbox in _SEEN}
        near = [
            (max(low, name.start() - _MAX_PREFIX), min(high, name.start()))
            for name in names
            for low, high in within
        ]
        return {_State(lines=True), *self._begun_at(near, stop)}

    def _begun_at(self, within: list[Interval], stop: int) -> set[_State]:
        """Return the states after a line, for each place within it at which a dump can begin."""
        return {
            state
            for low, high in within
            for offset in range(low, high + 1)
            if _ENTRY.match(self._text, offset)
            for state in self._after(_State(), self._text[offset:stop])
        }

    def _accepts(self, state: _State) -> bool:
        if (self._required[0] and not state.network) or (self._required[1] and not state.sandbox):
            return False
        return state.lines or not self._needs_lines

    def _after(self, state: _State, line: str) -> list[_State]:
        """Return the states after a line; none where the line cannot be part of the dump."""
        if self._dump.numbered:
            line = _NUMBER.sub("", line, count=1)
        if self._dump.style.squeezed:
            line = " ".join((*line.split(), ""))
        if self._dump.separator:
            return self._after_flat(state, line)
        if self._dump.filters and not all(f.passes(line) for f in self._dump.filters):
            return []
        if closing := max((c for c in self._dump.style.closings if line.endswith(c)), key=len, default=""):
            line = line.removesuffix(closing)
        if FLAG_STEM in line and line.startswith(self._foreign):
            return []
        flag = self._flag(line)
        if self._dump.style.inline and flag is None and FLAG_STEM in line:
            return self._after_inline(state, line)
        current = state.seen(flag)
        if (flag is not None and not self._allows(flag, line)) or current is None:
            return []
        if self._needs_equals and not state.lines and "=" not in line:
            current = msgspec.structs.replace(current, lines=False)
        return [current]

    def _after_inline(self, state: _State, line: str) -> list[_State]:
        """Return the states after a line in which a flag may be shown among others."""
        found = [state.seen(None)]
        for number, name in enumerate(FLAGS):
            if f"{name}'" in line or f'{name}"' in line:
                found += [each.seen(number) for each in found if each is not None]
        return [each for each in found if each is not None]

    def _after_flat(self, state: _State, line: str) -> list[_State]:
        """Return the state after entries on one line.

        Separators stand in values as well, and so may what looks like an entry. Behind variables of Codex
        alone it is one: no value of theirs names a flag.
        """
        current = state.seen(None) or state
        is_certain = not state.lines
        for entry in line.split(self._dump.separator):
            flag = self._flag(entry)
            is_certain = is_certain and (entry == "" or _OF_CODEX.match(entry) is not None)
            following = current.seen(flag) if flag is None or self._allows(flag, entry) else None
            if following is None and is_certain:
                return []
            current = following or current
        return [current]

    def _flag(self, entry: str) -> int | None:
        if FLAG_STEM not in entry:
            return None
        return next((n for n, prefixes in enumerate(self._prefixes) if entry.startswith(prefixes)), None)

    def _allows(self, flag: int, entry: str) -> bool:
        prefix = max((p for p in self._prefixes[flag] if entry.startswith(p)), key=len)
        value = entry.removeprefix(prefix)
        value = value.strip() if self._dump.style.squeezed else value
        if self._dump.style.suffix:
            if not value.endswith(self._dump.style.suffix):
                return (
                    self._dump.shown[flag].presence is not Presence.ABSENT
                )  # a value with a line break in it
            value = value.removesuffix(self._dump.style.suffix)
            quote = self._dump.style.suffix[0]
            if quote in "'\"" and quote in value.replace(f"\\{quote}", ""):
                return False
        if self._dump.style.quoted:
            value = _unquoted(value)
        return self._dump.shown[flag].allows(value)


@lru_cache(64)
def _prefixes(style: Style) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(p.replace("NAME", name) for p in style.prefixes) for name in FLAGS)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


# ---------------------------------------------------------------- dictionaries
