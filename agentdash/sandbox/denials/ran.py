"""Read which commands a script runs: their arguments, directory and redirections, as far as it sets them."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.sandbox.denials.programs import (
    SELF_CONTAINED,
    Role,
    files_shown,
    role_of,
    shows_files_by_code,
)
from agentdash.sandbox.denials.targets import place
from agentdash.sandbox.shell import Command, Context, Parameter, Redirect, Text, Word, commands

_WRITES: Final = (">", ">>", ">|", "&>", "&>>", "<>")

SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ash", "ksh", "fish", "busybox"))

_SOURCING: Final = (".", "source", "eval")
"""Builtins that may define functions: what they read is not looked at."""

_UNKNOWN: Final = ""

_SHOWN: Final = ("/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2")

_EXIT_CODE: Final = re.compile(r"(\$\?|\$\{PIPESTATUS\[0\]\})")
_STOPS: Final = re.compile(r"-\w*e\w*|errexit")
"""Options of `set` under which a failure ends the script."""
_SURE: Final = frozenset((Context.SUBSHELL, Context.NESTED))
"""Places where a command runs whatever others do."""


class Ran(msgspec.Struct, frozen=True):
    """A simple command of a script."""

    name: str
    words: tuple[str, ...]
    """Its arguments with variables replaced as far as the script sets them; empty for what is known only
    when it runs."""
    role: Role
    cwd: str | None
    """Its working directory; None where it is not known."""
    written: tuple[str, ...]
    """Files that its output is redirected to."""
    unseen: bool
    """Whether its messages are discarded."""
    through_xargs: bool
    raw: str
    conditional: bool
    """Whether it may not have run, or its failure is handled."""
    is_function: bool = False
    """Whether it may be a function of what was sourced before: of any content."""
    decides: bool = False
    """Whether the script ends with 0 only if this command does."""
    code_shown: str = ""
    """A pattern of the line with which the script prints its exit code (`; echo rc=$?`)."""


def looked_at(command: Ran, made: set[str]) -> Ran:
    """Return a command that shows only files which this script has written (`make >log 2>&1; tail log`) as
    a quiet one."""
    shown = files_shown(command.name, command.words)
    if command.role is Role.READER and shown and all(file and file in made for file in shown):
        return msgspec.structs.replace(command, role=Role.QUIET)
    return command


class Reader:
    """Walks through the commands of a script, and keeps its variables and its working directory."""

    def __init__(self, cwd: str | None, home: str | None) -> None:
        self._home = home
        self._outer = cwd
        self._inner: str | None = cwd
        self._isolated = False
        self._variables: dict[str, str] = {}
        self._has_unseen = False
        """Whether functions may be defined that are not in the script."""
        self._functions: set[str] = set()

    def read(self, parsed: tuple[Command, ...]) -> list[Ran]:
        """Return what ran, of the commands of a script."""
        ran: list[Ran] = []
        chain = _last_chain(parsed)
        codes = _codes_shown(parsed)
        self._functions = {command.function for command in parsed if command.function}
        messages_read = {self._text(word) for c in parsed for word in c.argv[1:]}
        for number, command in enumerate(parsed):
            isolated = (
                bool(command.context & {Context.SUBSHELL, Context.SUBSTITUTION, Context.NESTED})
                or command.length > 1
            )
            if not isolated or not self._isolated:
                self._inner = self._outer
            self._isolated = isolated
            words = _traced(tuple(self._text(word) for word in command.argv))
            for assignment in command.assignments:
                value = self._text(assignment.value) if assignment.value is not None else _UNKNOWN
                self._variables[assignment.name] = value if not assignment.append else _UNKNOWN
            if words:
                name = posixpath.basename(words[0])
                self._has_unseen |= name in _SOURCING
                if name in ("cd", "pushd"):
                    self._change(words[1:], isolated=isolated)
                chained = command.pipeline in chain
                found = self._ran(command, name, words[1:], messages_read, chained=chained)
                if number in codes:
                    found[0] = msgspec.structs.replace(found[0], code_shown=codes[number])
                ran += found
            elif command.redirects:
                ran += self._ran(command, ":", (), messages_read, chained=command.pipeline in chain)
        return ran

    def _ran(
        self, command: Command, name: str, words: tuple[str, ...], messages_read: set[str], *, chained: bool
    ) -> list[Ran]:
        piped = command.position > 0
        through_xargs = "xargs" in command.wrappers
        role = role_of(name, words, piped=piped and not through_xargs) if name else Role.PROGRAM
        if name in self._functions - {command.function} or (name == "exec" and not words):
            role = Role.QUIET  # what a function prints is of the commands in its body
        redirects = [r for r in command.redirects if r.operator in _WRITES and r.target is not None]
        written = tuple(self._text(r.target) for r in redirects)
        if role is Role.READER and any(
            r.fd in (None, 1) and self._text(r.target) not in _SHOWN for r in redirects
        ):
            role = Role.QUIET  # what it reads goes to a file
        raw = " ".join(
            (
                *(w.raw for w in command.argv),
                *(r.target.raw for r in command.redirects if r.target is not None),
            )
        )
        if role is Role.PROGRAM and shows_files_by_code(name, words, "\n".join((*words, raw))):
            role = Role.READER
        conditional = not (_SURE | {Context.AND} if chained else _SURE).issuperset(command.context)
        is_function = self._has_unseen and role is Role.PROGRAM and name not in SELF_CONTAINED
        base = Ran(
            name=name,
            words=words,
            role=role,
            cwd=self._directory(name, words),
            written=written,
            unseen=_discards_messages(command.redirects, messages_read, self._text),
            through_xargs=through_xargs,
            raw=raw,
            conditional=conditional,
            is_function=is_function,
            decides=chained
            and not conditional
            and not is_function
            and command.position == command.length - 1,
        )
        return [base, *self._started_by_find(base)]

    def _started_by_find(self, found: Ran) -> list[Ran]:
        if found.name not in ("find", "fd"):
            return []
        for option in ("-exec", "-execdir", "-ok", "-x", "-X"):
            if option in found.words[:-1]:
                at = found.words.index(option) + 1
                name, words = posixpath.basename(found.words[at]), found.words[at + 1 :]
                if name in SHELLS and "-c" in words[:-1]:
                    inner = commands(words[words.index("-c") + 1]) or ()
                    return [ran for command in inner for ran in self._inside(command, found)]
                role = role_of(name, words, piped=False)
                return [_started(found, name, words, role)]
        return []

    def _inside(self, command: Command, outer: Ran) -> list[Ran]:
        """Return a command of a script that `find` starts for each file."""
        words = tuple(self._text(word) for word in command.argv)
        if not words:
            return []
        name = posixpath.basename(words[0])
        role = role_of(name, words[1:], piped=command.position > 0)
        return [_started(outer, name, words[1:], role)]

    def _directory(self, name: str, words: tuple[str, ...]) -> str | None:
        """Return where a command works: `git -C`, `make -C`, `npm --prefix` name another directory."""
        if name not in ("git", "make", "gmake", "ninja", "tar"):
            return self._inner
        named = [following for word, following in itertools.pairwise(words) if word in ("-C", "--directory")]
        named += [word.partition("=")[2] for word in words if word.startswith("--directory=")]
        if not named:
            return self._inner
        return place(named[0], self._inner, self._home) if named[0] else None

    def _change(self, words: tuple[str, ...], *, isolated: bool) -> None:
        named = [word for word in words if not (word.startswith("-") and len(word) > 1)]
        to = named[0] if named else (self._home or _UNKNOWN)
        directory = place(to, self._inner, self._home) if to and to != "-" else None
        self._inner = directory
        if not isolated:
            self._outer = directory

    def _text(self, word: Word | None) -> str:
        """Return the text of a word; empty where it is known only when the script runs."""
        if word is None:
            return _UNKNOWN
        parts: list[str] = []
        for piece in word.pieces:
            if isinstance(piece, Text):
                parts.append(piece.text)
            elif (
                isinstance(piece, Parameter)
                and not piece.operator
                and not piece.prefix
                and (value := self._value(piece.name))
            ):
                parts.append(value)
            else:
                return _UNKNOWN
        return "".join(parts)

    def _value(self, name: str) -> str:
        if name in self._variables:
            return self._variables[name]
        return {"HOME": "~", "PWD": self._inner or _UNKNOWN}.get(name, _UNKNOWN)


def _started(outer: Ran, name: str, words: tuple[str, ...], role: Role) -> Ran:
    """Return what a command starts with other words than the script has."""
    return msgspec.structs.replace(
        outer, name=name, words=words, role=role, through_xargs=True, decides=False
    )


def _traced(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that a tracer starts: it prints its messages as well."""
    if not words or posixpath.basename(words[0]) not in ("strace", "ltrace"):
        return words
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if re.fullmatch(r"-[aeIoOpPsSuX]", rest[0]) else rest[1:]
    return tuple(rest) or words


def _codes_shown(parsed: tuple[Command, ...]) -> dict[int, str]:
    """Return the numbers of the commands whose exit codes the script prints, with patterns of the lines."""
    codes: dict[int, str] = {}
    for number, (before, command) in enumerate(itertools.pairwise(parsed)):
        text = " ".join(word.raw.strip('"') for word in command.argv[1:])
        parts = _EXIT_CODE.split(text)
        if command.name != "echo" or command.redirects or len(parts) != 3 or "$" in parts[0] + parts[2]:
            continue
        first = number - before.position if parts[1] != "$?" else number
        codes[first] = rf"{re.escape(parts[0])}(\d+){re.escape(parts[2])}"
    return codes


def _last_chain(parsed: tuple[Command, ...]) -> set[int]:
    """Return the pipelines of the `a && b && c` that ends a script, all of them under `set -e`: they ran if
    it ended well."""
    if any(c.name == "set" and any(_STOPS.fullmatch(word.text) for word in c.argv[1:]) for c in parsed):
        return {command.pipeline for command in parsed}
    after_and = {command.pipeline: Context.AND in command.context for command in parsed}
    chain: set[int] = set()
    for pipeline in sorted(after_and, reverse=True):
        chain.add(pipeline)
        if not after_and[pipeline]:
            break
    return chain


def _discards_messages(
    redirects: tuple[Redirect, ...], shown: set[str], text: Callable[[Word | None], str]
) -> bool:
    """Return whether standard error is thrown away, or goes to a file that the script never looks at."""
    for redirect in redirects:
        both = redirect.operator in ("&>", "&>>") or (redirect.operator == ">&" and redirect.fd is None)
        if not (both or (redirect.operator in _WRITES and redirect.fd == 2)) or redirect.target is None:
            continue
        target = text(redirect.target)
        if not target or target in _SHOWN or target == "1":
            return False
        return target not in shown
    return False
