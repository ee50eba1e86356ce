"""A hypothesis about the environment, and the state of a shell that runs under it."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS, Presence, Shown
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Parts, concrete
from agentdash.engine.detect.word_sets import word_set
from agentdash.sandbox.shell import Node

FLAG_VALUES: Final[dict[str, tuple[str, ...]]] = {FLAGS[0]: ("1",), FLAGS[1]: ("seatbelt",)}
"""The values that Codex sets (codex-rs/core: spawn.rs, seatbelt.rs of 0.20 to 0.169); no other is its own."""


class Given(Enum):
    """What a hypothesis assumes of a variable apart from the values that it can have."""

    UNSET = "unset"
    EMPTY = "empty"
    OTHER = "another value"


Assumption = Given | str
"""A `Given`, or the value itself."""


class UnreadableError(Exception):
    """The script does something whose effect on the output is not modelled: nothing is read of it."""


class World(msgspec.Struct, frozen=True):
    """What both flags are when the script starts."""

    network: Assumption
    sandbox: Assumption

    def assumption(self, name: str) -> Assumption:
        """Return what is assumed of a flag."""
        return self.network if name == FLAGS[0] else self.sandbox

    def value(self, name: str) -> Parts | None:
        """Return a flag's value, None where it is unset."""
        assumed = self.assumption(name)
        match assumed:
            case Given.UNSET:
                return None
            case Given.EMPTY:
                return ()
            case Given.OTHER:
                return (Hole(Kind.OTHER, exclude=FLAG_VALUES[name], key=name),)
            case _:
                return (assumed,)


Environment = dict[str, Parts | None]
"""The two flags as a process inherits them; None is unset."""


def shown(value: Parts | None) -> Shown:
    """Return what a dump shows of a flag with this value."""
    if value is None:
        return Shown(Presence.ABSENT)
    if (text := concrete(value)) is not None:
        return Shown(Presence.EXACT, text=text)
    if len(value) == 1 and isinstance(value[0], Hole) and value[0].kind is Kind.OTHER:
        return Shown(Presence.OTHER, exclude=value[0].exclude)
    return Shown(Presence.UNKNOWN)


_MAX_FILES: Final = 20
"""Files that a script writes or reads by `<(…)`; scripts with more are not read."""
Files = tuple[tuple[Parts, Parts], ...]


def _differ(first: Parts, second: Parts) -> bool:
    """Return whether two paths are known to be different ones: `/tmp/a.$$` and `/tmp/b.$$` are."""
    if concrete(first) is not None and concrete(second) is not None:
        return first != second
    starts = [path[0] if path and isinstance(path[0], str) else "" for path in (first, second)]
    return not any(a.startswith(b) for a, b in (starts, starts[::-1]))


def _bounded(files: Files) -> Files:
    if len(files) > _MAX_FILES:
        raise UnreadableError
    return files


class State(msgspec.Struct, frozen=True):
    """A shell's state, as far as it bears on the two flags."""

    started: tuple[tuple[str, Parts | None], ...]
    """The flags in the environment with which this shell was started."""
    level: int = 0
    """Shells around this one."""
    dialect: str = ""
    """bash, zsh or dash; empty where it is not known."""
    variables: tuple[tuple[str, Parts | None], ...] = ()
    """Variables that the script set (None: unset), by name."""
    exported: frozenset[str] = frozenset(FLAGS)
    arrays: tuple[tuple[str, tuple[Parts, ...]], ...] = ()
    """Arrays that the script set, and the arguments of a function as `@`."""
    functions: tuple[tuple[str, Node], ...] = ()
    source: str = ""
    """The script that the shell runs."""
    is_verbose: bool = False
    """The shell writes the lines of its script as it reads them (`set -v`)."""
    missing: frozenset[str] = frozenset()
    """Commands that are not there, by the output."""
    scopes: tuple[frozenset[str], ...] = ()
    """Variables that each function which runs has declared as its own, the innermost last."""
    numbers: frozenset[str] = frozenset()
    """Variables whose values are computed (`declare -i`)."""
    references: frozenset[str] = frozenset()
    """Variables that stand for another one (`declare -n`)."""
    xtrace: bool = False
    is_rewritten: bool = False
    """The script was written for zsh: its expansions were put into the spelling of bash."""
    files: Files = ()
    """What the script wrote to files, by path."""
    bare: bool = False
    """Programs are started by `env -i`: with nothing but the variables known."""
    on_exit: str = ""
    """The trap for the end of the shell."""
    reports_errors: bool = False
    """A trap for errors may write lines without a flag."""
    errexit: bool = False
    nounset: bool = False
    pipefail: bool = False
    allexport: bool = False
    stdin: Parts | None = None
    """What its commands read that are fed with nothing else; None where that names no flag."""
    status: int | None = 0

    def flag(self, name: str) -> Parts | None:
        """Return the value with which the shell was started."""
        return dict(self.started)[name]

    def value(self, name: str) -> Parts | None:
        """Return a variable's value; None where it is unset, a hole where it is not known."""
        variables = dict(self.variables)
        if name in variables:
            return variables[name]
        if name in FLAGS:
            return self.flag(name)
        return (_inherited(name),)

    def with_variable(self, name: str, value: Parts | None) -> State:
        """Return the state after an assignment; `None` unsets.

        Raises:
            UnreadableError: the name stands for another variable, which it sets.
        """
        if name in self.references:
            raise UnreadableError
        variables = {**dict(self.variables), name: value}
        exported = self.exported
        if value is None or (name in FLAGS and self.value(name) is None and not self.allexport):
            exported -= {name}
        elif self.allexport:
            exported |= {name}
        return msgspec.structs.replace(
            self, variables=tuple(sorted(variables.items(), key=lambda entry: entry[0])), exported=exported
        )

    def with_restored(self, name: str, variables: dict[str, Parts | None]) -> State:
        """Return the state with a variable as it is among others, where it may be missing."""
        kept = {n: v for n, v in self.variables if n != name}
        kept |= {name: variables[name]} if name in variables else {}
        return msgspec.structs.replace(
            self, variables=tuple(sorted(kept.items(), key=lambda entry: entry[0]))
        )

    def with_own(self, name: str) -> State:
        """Return the state in which a variable is the function's own, or the shell's outside of functions."""
        if not self.scopes:
            return self
        *outer, own = self.scopes
        return msgspec.structs.replace(self, scopes=(*outer, own | {name}))

    def without_own(self, outer: State) -> State:
        """Return the state after a function that was called in the state `outer`."""
        state = msgspec.structs.replace(self, scopes=outer.scopes)
        variables, arrays = dict(outer.variables), dict(outer.arrays)
        for name in self.scopes[-1]:
            state = state.with_restored(name, variables).with_array(name, arrays.get(name))
            state = state.with_exported(name, exported=name in outer.exported)
        return state

    def array(self, name: str) -> tuple[Parts, ...] | None:
        """Return the elements of an array, None where they are not known."""
        return dict(self.arrays).get(name)

    def with_array(self, name: str, elements: tuple[Parts, ...] | None) -> State:
        """Return the state after an array was set; None for something that is no array."""
        if elements is None and name not in dict(self.arrays):
            return self
        arrays = {**dict(self.arrays)}
        arrays.pop(name, None)
        if elements is not None:
            arrays[name] = elements
        return msgspec.structs.replace(self, arrays=tuple(sorted(arrays.items(), key=lambda entry: entry[0])))

    def with_positional_of(self, other: State) -> State:
        """Return the state after a function: the arguments are those of another state again."""
        variables = {name: value for name, value in self.variables if not name.isdecimal()}
        variables |= {name: value for name, value in other.variables if name.isdecimal()}
        restored = msgspec.structs.replace(
            self, variables=tuple(sorted(variables.items(), key=lambda entry: entry[0]))
        )
        return restored.with_array("@", other.array("@"))

    def with_exported(self, name: str, *, exported: bool = True) -> State:
        """Return the state after `export name`."""
        names = self.exported | {name} if exported else self.exported - {name}
        return msgspec.structs.replace(self, exported=names)

    def with_file(self, path: Parts, content: Parts) -> State:
        """Return the state after a file was written."""
        others = [(p, c) for p, c in self.files if _differ(p, path)]
        return msgspec.structs.replace(self, files=_bounded((*others, (path, content))))

    def with_process(self, path: Parts, content: Parts) -> State:
        """Return the state with the output of `<(…)` as a file."""
        return msgspec.structs.replace(self, files=_bounded((*self.files, (path, content))))

    def environment(self) -> Environment:
        """Return the flags that a program started now inherits."""
        return {name: self.value(name) if name in self.exported else None for name in FLAGS}


_ONE_LINE_VARIABLES: Final = word_set(
    "HOME PATH PWD OLDPWD USER LOGNAME SHELL TERM LANG TMPDIR HOSTNAME UID EUID PPID BASHPID SHLVL OSTYPE "
    "MACHTYPE HOSTTYPE BASH_VERSION ZSH_VERSION SECONDS LINENO RANDOM"
)


def _inherited(name: str) -> Hole:
    if name in _ONE_LINE_VARIABLES or name.startswith(("CODEX_", "XDG_", "LC_")):
        return Hole(Kind.QUIET_LINE, key=name)
    return Hole(ANY.kind, key=name)
