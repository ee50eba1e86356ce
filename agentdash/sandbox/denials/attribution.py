"""Decide which command of a script can have printed a line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

import msgspec

from agentdash.sandbox.denials.programs import (
    INTERPRETERS,
    WRITING_TOOLS,
    Role,
    agent_of,
    asks_service,
    files_of_options,
    is_build_tool,
    is_query,
    is_served,
    reads_remotely,
    shows_pages,
)
from agentdash.sandbox.denials.ran import (
    SHELLS,
    Ran,
    Reader,
    looked_at,
)
from agentdash.sandbox.denials.targets import place
from agentdash.sandbox.denials.ties import (
    connects_by_code,
    is_about,
    is_foreign,
    is_in,
    is_inline,
    mentions,
    opens_connection,
    prints_data,
    prints_no_others,
    reads_page,
    runs,
    shell_message_fits,
    stays_here,
)
from agentdash.sandbox.shell import commands

_SHOWN_TEXT: Final = re.compile(
    # a place in a source, unless a compiler reports a failure with it
    r"^\s*(?:\S+\.[A-Za-z]\w*[:(]\d+(?:[:,]\d+)?\)?:? (?!.*\b(?:warning|error)(?: [A-Z]+\d+)?: )"
    r"|(?:\[\w+\]\s+)?>?\s*\d+\s*[|│┆┃]\s|\+|\$ "  # a numbered line, an added one, a trace or a prompt
    r"|\d+:\d+\s+(?:error|warning|suggestion|info|hint|note)\s"  # what a linter reports of a file named above
    r"|(?:> ?)?(?:echo|printf) "  # a command that make, npm or a trace shows before it runs
    r"|\[[^\]]+ [0-9a-f]{7,}\] |HEAD is now at |Applying: |[0-9a-f]{7,} "  # the subject of a commit
    r"|stash@\{\d+\}: |\* \S+ +[0-9a-f]{7,} "
    r"|# |`{3}"  # a document
    r"|['\"].*\\n"  # a text as code writes it
    r"|(?:not )?ok \d+ |(?:expected|received|actual|got|want)\b.{0,20}['\"`])"  # a test's result
    r"|^\d+:\s",  # a numbered line; the numbers of causes are indented
    re.IGNORECASE,
)
"""Lines which programs show of a text, besides their own messages."""
_UNKNOWN_TO_GRAMMAR: Final = re.compile(r"(?<![\w-])time (?:-p )?(?=[({])|\s*2>&1(?=\s*(?:[|;)&\n]|$))")
"""What the grammar cannot parse everywhere (`a && b 2>&1 | c`): of no matter for which command it was."""

_ERROR_IMITATED: Final = re.compile(
    r"\$!\s*=[^=~]|\b(?:OS|IO|Permission)Error\(\s*(?:\d|errno\.)|\bstrerror\("
)
"""Inline code which makes an error of a number, without an operation that failed with it."""
_CLIENT_FAILS: Final = re.compile(
    r"dial unix|^Unable to connect to the server: |^The connection to the server "
    r"|^\s+\[\d+\] (?:Could not resolve|Couldn't connect)|^E\d{4} [\d:.]+ +\d+ \S+\.go:\d+\]"
)
"""How docker, kubectl and cargo report that they reach no server: nothing of it can be shown, then."""

_OF_ANSIBLE: Final = re.compile(r"\[(?:ERROR|WARNING)\]: ")
"""How ansible begins an account of its own: what other hosts print has their names before it."""
_OF_QUERY: Final = re.compile(r"(?:sqlite3\.\w+|[\w. ]{0,30}\b)?(?:error|fatal)\b", re.IGNORECASE)
"""How programs that print what is stored begin an account of their own failure."""
_INNER_TOOL: Final = re.compile(rf": ({'|'.join(sorted(WRITING_TOOLS))}): ")
"""A message of a simple tool that another program passes on."""
_OF_SERVER: Final = re.compile(
    r"(?:ERROR|FATAL|PANIC|WARNING):  |ERROR \d|\(error\) |(?:MongoS|S)erverError|Code: \d"
)
"""How clients word what their database server reports."""
_WARNING: Final = re.compile(
    r"(?:\S{0,12}[\d:.,-]{6,} +){0,3}\W{0,4}(?:npm |pnpm |PHP )?(?:warn(?:ing)?|W)\b", re.IGNORECASE
)
"""How a program that goes on begins an account of what failed, also in a log: one that ended well has no
errors to report."""
_GIT_FORM: Final = re.compile(r"\s*(?:\S+\s?[:：]|error |! )")
"""How git and what it starts begin their messages, in any language: hashes, names and marks are no words
before a colon."""
_MARKED: Final = re.compile(r"\s*[<>]\s")
"""A line of a difference, or a quoted one; Gradle begins causes so."""
_OF_GIT: Final = re.compile(r"(?:fatal|error): .*(?:/\.git/|\bindex\.lock\b|\brefs/)")
"""git's own account of a failure in its directory."""


class Strength(IntEnum):
    """How surely a line is a command's own message."""

    NONE = 0
    """It can only be text that is shown: no command of the script prints such a message."""
    AMBIGUOUS = 1
    """A command can have printed it, and another one of the script shows text from elsewhere."""
    OPEN = 2
    """A command can have printed it, and none of the script shows text from elsewhere."""
    TIED = 3
    """As `OPEN`, and it names what the command was given, or its file."""
    OWN = 4
    """It begins with the name of a command of the script and is about what that command was given."""


class Attribution(msgspec.Struct, frozen=True):
    """The command that a line is attributed to."""

    strength: Strength
    command: Ran | None = None


class Origin(msgspec.Struct, frozen=True):
    """What ran: the commands of a script, or None for what could not be parsed."""

    commands: tuple[Ran, ...] | None
    text: str
    """Of the script without filters of pipelines, whose patterns quote what they look for."""
    home: str | None
    cwd: str | None
    marks: tuple[str, ...] | None = None
    """Texts one of which is in every message of these commands; None where one may print any message."""

    @property
    def shows_text(self) -> bool:
        """Whether a command prints text from elsewhere."""
        return self.commands is None or any(
            c.role in (Role.READER, Role.TEST, Role.REMOTE) for c in self.commands
        )

    def _quotes(self, line: str) -> bool:
        """Return whether a line may be text from elsewhere that a command of the script prints.

        What git shows of its history has something before each line: a hash, a blank, a mark of a
        difference. Its own accounts begin with `fatal:` or `error:`.
        """
        if self.commands is None or not _OF_GIT.match(line):
            is_row = any(is_query(c.name) for c in self.commands or ()) and not _OF_QUERY.match(line)
            return self.shows_text or is_row
        readers = [c for c in self.commands if c.role in (Role.READER, Role.TEST, Role.REMOTE)]
        return not all(_shows_history(c) for c in readers)

    def is_one_reader(self) -> bool:
        """Return whether all there is to run is one command that exits with 0 where it shows text."""
        return self.commands is not None and len(self.commands) == 1 and self.commands[0].name != "diff"

    def agent(self) -> tuple[str, Ran] | None:
        """Return the first coding agent's CLI that the script starts."""
        for command in self.commands or ():
            if command.role is Role.AGENT and (name := agent_of(command.name, command.words)):
                return name, command
        return None

    def attribute(
        self,
        line: str,
        named: tuple[str, ...],
        phrase: str,
        account: str,
        *,
        network: bool,
        alone: bool,
        code_of: Callable[[Ran], int | None],
    ) -> Attribution:
        """Return which command printed a line, and how surely.

        Args:
            line: the line that begins the message.
            named: the paths or hosts that the message names, as written.
            phrase: the words which report the failure; where the script holds them itself, it prints them.
            account: the lines around it: a traceback names the program's file.
            network: whether it is about the network: programs that print pages fail there in own words.
            alone: whether hardly anything else was printed: no text from elsewhere, then.
            code_of: the exit code of a command where it is known: one that ended with 0 reports no failure
                of its own, unless it names what it was given.
        """
        if self.commands is None:
            return Attribution(Strength.AMBIGUOUS)
        visible = [c for c in self.commands if not c.unseen]
        name = prefix_of(line, frozenset(c.name for c in visible))
        if is_shells(line):
            fits = opens_connection if network else shell_message_fits
            if found := next((c for c in visible if fits(c, named, self.home)), None):
                return Attribution(Strength.OWN, found)
        elif own := [c for c in visible if c.name == name and (c.role is not Role.TEST or name == "go")]:
            return self._own(own, visible, named, account, network=network, code_of=code_of)
        if (phrase and phrase in self.text) or _SHOWN_TEXT.match(line):
            return Attribution(Strength.NONE)
        programs = [c for c in visible if c.role is Role.PROGRAM]
        roles = (Role.READER, Role.REMOTE) if network or self._are_at_home(named) else (Role.READER,)
        clients = [c for c in visible if c.role in roles and reads_remotely(c.name)]
        fails = (
            _CLIENT_FAILS.search(line) if network else roles[-1] is Role.REMOTE and _OF_ANSIBLE.match(line)
        )
        if not programs and clients and (alone or fails):
            return Attribution(Strength.OPEN, clients[0])
        if network:
            programs = programs or [c for c in visible if reads_page(c, named, self.home)]
        else:
            programs = [c for c in programs if self._may_print(c, named, line, code_of(c))]
        programs = [
            c
            for c in programs
            if self._may_say(c, line, named, code_of=code_of, network=network)
            or self._shows(c, named, account)
        ]
        return self._open(programs, name, named, account, line, network=network)

    def _are_at_home(self, named: tuple[str, ...]) -> bool:
        """Return whether all paths lie in the home directory, where clients keep their state."""
        placed = [place(name, self.cwd, self.home) or "" for name in named]
        return self.home is not None and all(path.startswith(f"{self.home}/") for path in placed)

    def is_of_service(self, command: Ran, named: tuple[str, ...]) -> bool:
        """Return whether a message about these paths may be what a service has recorded: clients keep their
        own files at home, or are told where to."""
        if not asks_service(command.name) or (named and self._are_at_home(named)):
            return False
        return not any(mentions(command, name, self.home) for name in named)

    def _own(
        self,
        own: list[Ran],
        visible: list[Ran],
        named: tuple[str, ...],
        account: str,
        *,
        network: bool,
        code_of: Callable[[Ran], int | None],
    ) -> Attribution:
        """Attribute a message that begins with the name of these commands."""
        if network and named:
            own = [c for c in own if not stays_here(c) or self._shows(c, named, "")]
        if named:
            own = [c for c in own if c.role is Role.TOOL or self._shows(c, named, "") or code_of(c) != 0]
        if found := next((c for c in own if is_about(c, named, self.home)), None):
            doubt = (
                found.role is Role.PROGRAM and self.shows_text and named and not self._shows(found, named, "")
            )
            return Attribution(Strength.AMBIGUOUS if doubt else Strength.OWN, found)
        programs = (c for c in visible if c.role is Role.PROGRAM)
        starter = next((c for c in programs if self._shows(c, named, account)), None)
        return Attribution(Strength.TIED if starter else Strength.NONE, starter)

    def _open(
        self,
        programs: list[Ran],
        name: str | None,
        named: tuple[str, ...],
        account: str,
        line: str,
        *,
        network: bool,
    ) -> Attribution:
        """Attribute a message to one of the programs that print messages of any form."""
        programs = [c for c in programs if not prints_no_others(c, name)]
        if not programs:
            return Attribution(Strength.NONE)
        shown = [
            c
            for c in programs
            if self._shows(c, named, account)
            or runs(c, name)
            or (network and not named and connects_by_code(c))
        ]
        command = (shown or [c for c in programs if c.name == name] or programs)[-1]
        if shown and not (is_inline(command) and prints_data(command)):
            return Attribution(Strength.TIED, command)
        inner = _INNER_TOOL.search(line)
        tool = inner[1] if inner else prefix_of(line, WRITING_TOOLS)
        in_doubt = (self._quotes(line) and not shown) or is_foreign(command, tool)
        return Attribution(Strength.AMBIGUOUS if in_doubt else Strength.OPEN, command)

    def _may_print(self, command: Ran, named: tuple[str, ...], line: str, code: int | None) -> bool:
        """Return whether a program prints messages about files; what fetches pages prints those as well."""
        if is_inline(command) and _ERROR_IMITATED.search(command.raw):
            return False
        if is_served(command.name) and _OF_SERVER.match(line):
            return False
        if not code and self.is_of_service(command, named):
            return False
        return not shows_pages(command.name) or any(mentions(command, name, self.home) for name in named)

    def _may_say(
        self,
        command: Ran,
        line: str,
        named: tuple[str, ...],
        *,
        code_of: Callable[[Ran], int | None],
        network: bool,
    ) -> bool:
        """Return whether a program may report a failure of its own with a line that its arguments do not
        show to be about them."""
        if code_of(command) == 0 and not _WARNING.match(line):
            if not named and network:
                return connects_by_code(command)
            files = (word for word in command.words if "." in word or "/" in word)
            return any(len(name) > 3 and name in self.text for name in named) or (
                not named and any(file in line for file in files)
            )
        if _MARKED.match(line) and not is_build_tool(command.name):
            return False
        return network or command.name != "git" or _GIT_FORM.match(line) is not None

    def _shows(self, command: Ran, named: tuple[str, ...], account: str) -> bool:
        """Return whether something shows that a message is of this command: it names what the command
        does, or its file."""
        return any(mentions(command, name, self.home) for name in named) or is_in(command, account)


def _shows_history(command: Ran) -> bool:
    """Return whether git shows what it has recorded, in a form that begins no line with a message."""
    subcommand = next((word for word in command.words if not word.startswith("-")), "")
    return (
        command.name == "git"
        and subcommand in ("log", "status", "branch", "diff", "reflog", "remote", "rev-parse", "ls-files")
        and not any(word.startswith(("--format=%B", "--format=%b", "--pretty=%B")) for word in command.words)
    )


def origin(script: str, cwd: str | None, home: str | None) -> Origin:
    """Return what a script runs."""
    return _origin(script, cwd, home)


@lru_cache(128)
def _origin(script: str, cwd: str | None, home: str | None) -> Origin:
    parsed = commands(script) or commands(_UNKNOWN_TO_GRAMMAR.sub("", script))
    if not parsed:
        return Origin(commands=None, text=script, home=home, cwd=cwd)
    ran = tuple(Reader(cwd, home).read(parsed))
    made = {path for c in ran for path in (*c.written, *(c.words if c.name == "tee" else ()))}
    ran = tuple(looked_at(c, made) for c in ran)
    text = script
    for command in ran:
        if command.role is Role.QUIET and command.name not in ("echo", "printf"):
            text = text.replace(command.raw, "", 1)
    return Origin(commands=ran, text=text, home=home, cwd=cwd, marks=marks_of(ran))


# ------------------------------------------------------------
# The name with which a message begins: that of the program which reports its own failure


_PREFIX: Final = re.compile(r"^\s{0,4}(?P<name>-?[\w./+@~-]+|\(eval\))(?:\[\d+\]|:? ?line \d+|:\d+)?: ")
"""What a message begins with: `touch: `, `bash: line 1: `, `zsh:1: `, `/bin/sh: 1: `, `make[1]: `."""
_SHELL_SCRIPT: Final = re.compile(
    r"^\s{0,4}(?:\S+: (?:line )?\d+: |\S+\.sh: |\(eval\):\d+: "
    r"|(?:warning|fish): An error occurred while redirecting file )"
)
"""A shell names the script that it runs, or the NAME of `bash -c '…' NAME`; fish what it opens."""
_NPM: Final = re.compile(r"^(?P<name>p?npm|zip) (?:ERR!|I/O error:|error:?|warn|WARN|notice) ")
_GENERIC: Final = re.compile(
    r"(?:fatal|error|warning|warn|note|hint|info|debug|critical|exception|panic|err!?|e|w|uncaught|unknown"
    r"|notfound|caused by|cause|failed"
    r"|\d.*|socket|bind|open|mkdir|unlink(?:at)?|rename|remove|connect|listen|E[A-Z]{3,}"
    r"|.*(?:error|exception|warning)|[~/.].*)",
    re.IGNORECASE,
)
"""First words that are no program's name, or a path (which may be one: then the name is compared as well)."""


def is_shells(line: str) -> bool:
    """Return whether a message is a shell's own."""
    return prefix_of(line) in SHELLS or _SHELL_SCRIPT.match(line) is not None


def prefix_of(line: str, known: frozenset[str] = frozenset()) -> str | None:
    """Return the name of the program with which a message begins; None where it begins with none.

    Args:
        line: the message.
        known: names that are programs, whatever else they may be.
    """
    match = _NPM.match(line) or _PREFIX.match(line)
    if match is None:
        return None
    name = posixpath.basename(match["name"].lstrip("-"))
    if name in known:
        return name
    is_path = _GENERIC.fullmatch(match["name"]) and "." in name and not name.endswith(".sh")
    return None if is_path or _GENERIC.fullmatch(name) else name


# ------------------------------------------------------------
# Texts that every message of some scripts has: outputs of readers and test runs mostly have none of them,
# so that all they hold is text from elsewhere


_TEST_FOLDERS: Final = (
    *("target", ".cargo", "pkg/mod", ".npm", "_cacache", ".pytest_cache", "__pycache__", ".gradle", ".m2"),
    *(".tox", ".nox", ".hypothesis", ".mypy_cache", ".cache/uv", ".cache/pip", ".cache/go-build"),
    *(".cache/node", ".cache/yarn", ".cache/pnpm", ".cache/bazel", ".cache/zig", ".cache/ms-playwright"),
    ".cache/Cypress",
)
_GO_BUILD: Final = "go-build"
"""How Go's temporary folders begin."""
TEST_FILE: Final = re.compile(rf"/(?:{'|'.join(map(re.escape, _TEST_FOLDERS))}|{_GO_BUILD}\w*)(?:/|$)")
"""Files of the tools that run tests: a test does not provoke errors there."""
NO_TEMPORARY: Final = "FileNotFoundError: [Errno 2] No usable temporary directory found in ["
"""Of pytest, when it starts to capture."""
_OF_TESTS: Final = (*(f"/{folder}" for folder in (*_TEST_FOLDERS, _GO_BUILD)), NO_TEMPORARY)
_BEHIND_NAME: Final = (":", "[", " line ", "line ")
"""What follows the name with which a program begins its messages."""
_OTHER_FORMS: Final = ("npm", "pnpm", "zip")
"""Programs whose messages begin in forms of their own."""


def marks_of(commands: Sequence[Ran]) -> tuple[str, ...] | None:
    """Return texts one of which is in every message that can be attributed to these commands; None where
    there are no such texts."""
    if not all(map(_has_marks, commands)):
        return None
    return tuple(dict.fromkeys(mark for command in commands for mark in _marks(command)))


def _has_marks(command: Ran) -> bool:
    """Return whether a command writes no files, and gives its own messages its name."""
    if command.role not in (Role.QUIET, Role.READER, Role.TEST):
        return False
    if command.written or opens_connection(command):
        return False
    by_code = command.role is Role.READER and command.name.startswith(INTERPRETERS)
    others = by_code or command.name in WRITING_TOOLS or command.name in _OTHER_FORMS
    return not others and not reads_remotely(command.name)


def _marks(command: Ran) -> Iterator[str]:
    if command.role is Role.TEST:
        yield from _OF_TESTS
        yield from files_of_options(command.words)
    if command.role is not Role.TEST or command.name == "go":
        yield from (command.name + behind for behind in _BEHIND_NAME)
