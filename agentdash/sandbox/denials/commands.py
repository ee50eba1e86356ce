"""Read which commands a script runs: their arguments, directory and redirections, as far as it sets them."""

from __future__ import annotations

import itertools
import posixpath
import re
from typing import Final

import msgspec

from agentdash.sandbox.denials.paths import place
from agentdash.sandbox.denials.programs import (
    INTERPRETERS,
    SELF_CONTAINED,
    SHELLS,
    Role,
    files_shown,
    is_filter,
    role_of,
    shows_files_by_code,
)
from agentdash.sandbox.shell import Command, Context, commands
from agentdash.sandbox.shell.syntax import Parameter, Text, Word

_WRITES: Final = (">", ">>", ">|", "&>", "&>>", "<>")
_SOURCING: Final = (".", "source", "eval")
"""Builtins that may define functions: what they read is not looked at."""
_UNKNOWN: Final = ""
_SHOWN: Final = ("/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2")
_STOPS: Final = re.compile(r"-\w*e\w*|errexit")
"""Options of `set` under which a failure ends the script."""
_SURE: Final = frozenset((Context.SUBSHELL, Context.NESTED))
"""Places where a command runs whatever others do."""
_STARTING_OPTIONS: Final = ("-exec", "-execdir", "-ok", "-x", "-X")
"""Of `find` and `fd`."""
_CODE_FILE: Final = re.compile(r"[\w./@+-]+\.(?:py|js|mjs|cjs|ts|rb|pl|php)")


class RunCommand(msgspec.Struct, frozen=True):
    """A simple command of a script."""

    name: str
    words: tuple[str, ...]
    """Its arguments with variables replaced as far as the script sets them; empty for what is known only
    when it runs."""
    role: Role
    cwd: str | None
    """Its working directory, or None if it is not known."""
    written: tuple[str, ...]
    """Files that its output is redirected to."""
    unseen: bool
    """Whether its messages are discarded."""
    raw: str
    conditional: bool = False
    """Whether it may not have run, or its failure is handled."""
    takes_more: bool = False
    """Whether it gets arguments that the script does not have: from `xargs` or `find`."""
    is_function: bool = False
    """Whether it may be a function of what was sourced before: of any content."""
    decides: bool = False
    """Whether the script ends with 0 only if this command does."""
    code_shown: str = ""
    """A pattern of the line with which the script prints its exit code (`; echo rc=$?`)."""

    @property
    def is_inline(self) -> bool:
        """Whether an interpreter gets its program as an argument or as its input."""
        options = itertools.takewhile(lambda word: not _CODE_FILE.fullmatch(word), self.words)
        return any(word in ("-c", "-e", "-p", "-r", "-") for word in options) or "\n" in self.raw

    @property
    def is_code(self) -> bool:
        """Whether it is code that the script shows: its words have the paths of what it does."""
        return self.name.startswith(INTERPRETERS) and self.is_inline


def commands_of(script: str, cwd: str | None, home: str | None) -> tuple[RunCommand, ...] | None:
    """Return the commands of a script, or None if it cannot be parsed or has none."""
    parsed = commands(script)
    if not parsed:
        return None
    ran = _Reader(parsed, cwd, home).read()
    made = {path for c in ran for path in (*c.written, *(c.words if c.name == "tee" else ()))}
    return tuple(_without_own_text(c, made) for c in ran)


def _without_own_text(command: RunCommand, made: set[str]) -> RunCommand:
    """Return a command that shows only files which this script has written (`make >log 2>&1; tail log`) as
    a quiet one."""
    shown = files_shown(command.name, command.words)
    if command.role is Role.READER and shown and all(file and file in made for file in shown):
        return msgspec.structs.replace(command, role=Role.QUIET)
    return command


class _Reader:
    """Walks through the commands of a script, and keeps its variables and its working directory."""

    def __init__(self, parsed: tuple[Command, ...], cwd: str | None, home: str | None) -> None:
        self._parsed = parsed
        self._home = home
        self._outer = cwd
        self._inner: str | None = cwd
        self._isolated = False
        self._variables: dict[str, str] = {}
        self._has_unseen_functions = False
        self._functions = {command.function for command in parsed if command.function}
        self._chain = _last_chain(parsed)
        self._read = {self._text(word) for c in parsed for word in c.argv[1:]}
        """Arguments: files among them may be looked at."""

    def read(self) -> list[RunCommand]:
        """Return what ran."""
        ran: list[RunCommand] = []
        isolating = {Context.SUBSHELL, Context.SUBSTITUTION, Context.NESTED}
        for command, following in itertools.zip_longest(self._parsed, self._parsed[1:]):
            isolated = not isolating.isdisjoint(command.context) or command.length > 1
            if not isolated or not self._isolated:
                self._inner = self._outer
            self._isolated = isolated
            words = tuple(self._text(word) for word in command.argv)
            for assignment in command.assignments:
                value = self._text(assignment.value) if assignment.value is not None else _UNKNOWN
                self._variables[assignment.name] = value if not assignment.append else _UNKNOWN
            if not words and not command.redirects:
                continue
            name = posixpath.basename(words[0]) if words else ":"
            self._has_unseen_functions |= name in _SOURCING
            if name in ("cd", "pushd"):
                self._change(words[1:], isolated=isolated)
            found = self._commands(command, name, words[1:])
            found[0] = msgspec.structs.replace(found[0], code_shown=_code_shown(following))
            ran += found
        return ran

    def _commands(self, command: Command, name: str, words: tuple[str, ...]) -> list[RunCommand]:
        """Return a command, and the one that it starts for each file (`find -exec`)."""
        takes_more = "xargs" in command.wrappers
        redirects = [r for r in command.redirects if r.operator in _WRITES and r.target is not None]
        targets = (r.target for r in command.redirects if r.target is not None)
        raw = " ".join(word.raw for word in (*command.argv, *targets))
        role = role_of(name, words, piped=command.position > 0 and not takes_more) if name else Role.PROGRAM
        if role is Role.PROGRAM and shows_files_by_code(name, words, "\n".join((*words, raw))):
            role = Role.READER
        if name in self._functions - {command.function} or (name == "exec" and not words):
            role = Role.QUIET  # what a function prints is of the commands in its body
        if is_filter(name) and any(
            r.fd in (None, 1) and self._text(r.target) not in _SHOWN for r in redirects
        ):
            role = Role.QUIET  # what it reads goes to a file
        chained = command.pipeline in self._chain
        conditional = not (_SURE | {Context.AND} if chained else _SURE).issuperset(command.context)
        is_function = self._has_unseen_functions and role is Role.PROGRAM and name not in SELF_CONTAINED
        is_last = command.position == command.length - 1
        found = RunCommand(
            name=name,
            words=words,
            role=role,
            cwd=self._directory(name, words),
            written=tuple(self._text(r.target) for r in redirects),
            unseen=self._discards_messages(command),
            raw=raw,
            conditional=conditional,
            takes_more=takes_more,
            is_function=is_function,
            decides=chained and not conditional and not is_function and is_last,
        )
        option = next((word for word in words[:-1] if word in _STARTING_OPTIONS), None)
        if name not in ("find", "fd") or option is None:
            return [found]
        inner, *rest = words[words.index(option) + 1 :]
        inner = posixpath.basename(inner)
        role = Role.READER if inner in SHELLS else role_of(inner, tuple(rest), piped=False)
        started = {"name": inner, "words": tuple(rest), "role": role, "takes_more": True, "decides": False}
        return [found, msgspec.structs.replace(found, **started)]

    def _directory(self, name: str, words: tuple[str, ...]) -> str | None:
        """Return where a command works: `git -C`, `make -C` name another directory."""
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
        self._inner = place(to, self._inner, self._home) if to and to != "-" else None
        if not isolated:
            self._outer = self._inner

    def _text(self, word: Word | None) -> str:
        """Return the text of a word; empty where it is known only when the script runs."""
        parts: list[str] = []
        for piece in word.pieces if word is not None else ():
            if isinstance(piece, Text):
                parts.append(piece.text)
            elif isinstance(piece, Parameter) and not piece.operator and not piece.prefix:
                if not (value := self._value(piece.name)):
                    return _UNKNOWN
                parts.append(value)
            else:
                return _UNKNOWN
        return "".join(parts)

    def _value(self, name: str) -> str:
        if name in self._variables:
            return self._variables[name]
        return {"HOME": "~", "PWD": self._inner or _UNKNOWN}.get(name, _UNKNOWN)

    def _discards_messages(self, command: Command) -> bool:
        """Return whether standard error is thrown away, or goes to a file that the script never looks at."""
        for redirect in command.redirects:
            both = redirect.operator in ("&>", "&>>") or (redirect.operator == ">&" and redirect.fd is None)
            if not (both or (redirect.operator in _WRITES and redirect.fd == 2)) or redirect.target is None:
                continue
            target = self._text(redirect.target)
            return bool(target) and target not in (*_SHOWN, "1") and target not in self._read
        return False


def _code_shown(command: Command | None) -> str:
    """Return a pattern of the line by which a command prints the exit code of the one before it, or ""."""
    if command is None or command.name != "echo" or command.redirects:
        return ""
    before, shown, behind = " ".join(word.raw.strip('"') for word in command.argv[1:]).partition("$?")
    if not shown or "$" in before + behind:
        return ""
    return rf"{re.escape(before)}(\d+){re.escape(behind)}"


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
