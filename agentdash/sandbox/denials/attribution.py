"""Decide which command of a script can have printed a line, and how surely.

A program's own messages begin with its name, or name what it was given. A command that ended well has no
failure to report, unless the line names what it was given. What shows text from elsewhere (documents, logs,
databases, test runs) is believed only if it says its name, or has printed nothing else.
"""

from __future__ import annotations

import posixpath
import re
from enum import IntEnum
from typing import Final

import msgspec

from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.commands import RunCommand
from agentdash.sandbox.denials.hosts import is_loopback, operand_hosts
from agentdash.sandbox.denials.paths import is_same, paths_in, place
from agentdash.sandbox.denials.programs import (
    BUILD_TOOLS,
    FETCHERS,
    INTERPRETERS,
    SELF_CONTAINED,
    SHELLS,
    WRITING_TOOLS,
    Role,
    is_filter,
    runs_project,
)


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
    command: RunCommand | None = None


_NOBODY: Final = Attribution(Strength.NONE)

_SHOWN_TEXT: Final = re.compile(
    # a place in a source, unless a compiler reports a failure with it
    r"^\s*(?:\S+\.[A-Za-z]\w*[:(]\d+(?:[:,]\d+)?\)?:? (?!.*\b(?:warning|error)(?: [A-Z]+\d+)?: )"
    r"|(?:\[\w+\]\s+)?>?\s*\d+\s*[|│┆┃]\s|\+|\$ "  # a numbered line, an added one, a trace or a prompt
    r"|\d+:\d+\s+(?:error|warning|suggestion|info|hint|note)\s"  # what a linter reports of a file named above
    r"|remote: |# |['\"].*\\n"  # a document, or a text as code writes it
    r"|(?:not )?ok \d+ )",  # a test's result
    re.IGNORECASE,
)
"""Lines which programs show of a text, besides their own messages."""
_PASSED: Final = re.compile(
    r"^\s*(?:OK|PASS(?:ED)?|[✓✔√])\b|(?:\.{2,}|…|[-–—:>|\[(]) *(?i:ok|pass(?:ed)?|yes|no|(?:not )?found)\b"
    r"[\])]?(?: *\([\d.,]+ ?m?s\))?\.?\s*$"
)
"""A line that says of a test that it passed, or what was found out: what it names was expected, or tried."""
_ERROR_IMITATED: Final = re.compile(r"\$!\s*=[^=~]")
"""Inline code which makes an error of a number, without an operation that failed with it."""
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
_OF_SERVER: Final = re.compile(r"(?:ERROR|FATAL|PANIC|WARNING):  |ERROR \d|\(error\) |Code: \d")
"""How clients word what their database server reports of its own files."""
_CLIENT_FAILS: Final = re.compile(r"^E\d{4} [\d:.]+ +\d+ \S+\.go:\d+\]")
"""How kubectl reports that it reaches no server: nothing of it can be shown, then."""
_STARTS_OTHERS: Final = re.compile(r"subprocess|system|popen|spawn|exec(?!ut)|fork|[`$%]", re.IGNORECASE)
"""Calls in inline code which start other programs."""
_ERROR_MADE: Final = re.compile(
    r"strerror|Errno::E|errno\.E|\$!\s*=|(?:Error|Exception)\(|\b(?:raise|throw)\b"
)
_GLOB: Final = frozenset("*?[{")
_OTHER_MACHINE: Final = re.compile(r"(?!-)(?:[\w.-]+@)?[\w.-]+:(?P<path>/(?!/).*)")
_TOOL_FAILURE_LINES: Final = 40
"""An account of a tool's own failure is not longer; what it read is."""


def attribute(
    call: Call, number: int, named: tuple[str, ...], phrase: str, *, network: bool = False
) -> Attribution:
    """Return which command printed a line; of a tool that is no command, whether it failed.

    Args:
        call: what ran, and what it printed.
        number: of the line that begins the message.
        named: the paths or hosts that the message names, as written.
        phrase: the words which report the failure; where the script holds them itself, it prints them.
        network: whether it is about the network: programs that print pages fail there in own words.
    """
    if not call.is_command:
        return Attribution(_strength_of_tool(call))
    line = call.lines[number]
    if _PASSED.search(line):
        return _NOBODY
    found = _of_script(call, line, named, phrase, network=network)
    if found.strength is Strength.NONE:
        found = _of_agent(call, line) or found
    if found.command is not None and any(_is_elsewhere(found.command, path) for path in named):
        return _NOBODY
    return found


def _strength_of_tool(call: Call) -> Strength:
    """Return whether the output of a tool that is no command is an account of its failure, not what it was
    to read."""
    if call.outcome in ("denied", "failed"):
        return Strength.TIED
    first = next((line for line in call.lines.range(0, 5) if line.strip()), "")
    return Strength.OPEN if len(call.lines) <= _TOOL_FAILURE_LINES and is_account(first) else Strength.NONE


def _of_script(call: Call, line: str, named: tuple[str, ...], phrase: str, *, network: bool) -> Attribution:
    if call.script.commands is None:
        return Attribution(Strength.AMBIGUOUS)
    visible = call.script.visible
    name = prefix_of(line, frozenset(c.name for c in visible))
    if is_shells(line):
        if not network and (found := next((c for c in visible if _redirects(call, c, named)), None)):
            return Attribution(Strength.OWN, found)
    elif own := [c for c in visible if c.name == name and (c.role is not Role.TEST or name == "go")]:
        return _own(call, own, named, network=network)
    if (phrase and phrase in call.script.text) or _SHOWN_TEXT.match(line):
        return _NOBODY
    programs = [c for c in visible if c.role is Role.PROGRAM]
    of_reader = _of_reader(call, line, named, network=network)
    if not programs or of_reader.strength is Strength.TIED:
        return of_reader
    programs = [
        c
        for c in programs
        if not (_prints_no_others(c, name) or (c.is_code and _ERROR_IMITATED.search(c.raw)))
        and (_names_any(call, c, named) or _may_say(call, c, line, named, network=network))
    ]
    return _of_program(call, programs, line, named)


def _own(call: Call, own: list[RunCommand], named: tuple[str, ...], *, network: bool) -> Attribution:
    """Attribute a message that begins with the name of these commands."""
    if network and named:  # of an address it may show what stands there
        own = [c for c in own if "://" not in c.raw or "$" in c.raw or _names_any(call, c, named)]
    if named:
        own = [c for c in own if c.role is Role.TOOL or _names_any(call, c, named) or call.code_of(c) != 0]
    if found := next((c for c in own if _is_about(c, named)), None):
        is_program = found.role is Role.PROGRAM
        in_doubt = is_program and call.script.shows_text and named and not _names_any(call, found, named)
        return Attribution(Strength.AMBIGUOUS if in_doubt else Strength.OWN, found)
    programs = (c for c in call.script.visible if c.role is Role.PROGRAM)
    starter = next((c for c in programs if _names_any(call, c, named)), None)
    return Attribution(Strength.TIED if starter else Strength.NONE, starter)


def _of_reader(call: Call, line: str, named: tuple[str, ...], *, network: bool) -> Attribution:
    """Attribute a message to a program that shows text from elsewhere: it is about what that was given, or
    all that was printed."""
    readers = [c for c in call.script.visible if c.role in (Role.READER, Role.REMOTE)]
    clients = [c for c in readers if not _shows_files(c)]
    if network and (found := next((c for c in readers if _reads_page(call, c, named)), None)):
        return _of_program(call, [found], line, named)
    if not network:
        if found := next((c for c in clients if _is_own_state(c, named)), None):
            return Attribution(Strength.TIED, found)
        clients = [c for c in clients if c.role is Role.READER and not _OF_SERVER.match(line)]
        given = (c for c in clients if _names_any(call, c, named))
        if is_account(line) and (found := next(given, None)):
            return Attribution(Strength.TIED, found)
    is_alone = (network or call.failed) and call.is_alone(line)  # logs are short as well
    is_known = is_alone or (network and _CLIENT_FAILS.search(line) is not None)
    return Attribution(Strength.OPEN, clients[0]) if clients and is_known else _NOBODY


def _shows_files(command: RunCommand) -> bool:
    """Return whether what a command shows are files: their lines may have any form."""
    by_code = command.name in SHELLS or command.name.startswith(INTERPRETERS)
    return by_code or command.name == "git" or is_filter(command.name)


def _is_own_state(command: RunCommand, named: tuple[str, ...]) -> bool:
    """Return whether paths lie where a program keeps its state: `~/.config/gcloud`, `~/.aws`."""
    folders = (f"/{command.name}/", f"/.{command.name}/")
    return bool(named) and all(any(folder in f"{path}/" for folder in folders) for path in named)


def _of_program(call: Call, programs: list[RunCommand], line: str, named: tuple[str, ...]) -> Attribution:
    """Attribute a message to one of the programs that print messages of any form."""
    if not programs:
        return _NOBODY
    name = prefix_of(line, frozenset(c.name for c in programs) | WRITING_TOOLS)
    shown = [c for c in programs if _names_any(call, c, named)]
    command = (shown or [c for c in programs if c.name == name] or programs)[-1]
    if shown and not (command.is_inline and prints_data(command)):
        return Attribution(Strength.TIED, command)
    in_doubt = call.script.shows_text and not shown
    return Attribution(Strength.AMBIGUOUS if in_doubt else Strength.OPEN, command)


def _of_agent(call: Call, line: str) -> Attribution | None:
    """Attribute the account of a failure to the coding agent's CLI that the script starts."""
    found = call.script.agent()
    if found is None or call.script.shows_text or not is_account(line):
        return None
    if len(call.lines) > _TOOL_FAILURE_LINES:
        return None  # an answer, which may quote
    return Attribution(Strength.TIED, found[1])


# ------------------------------------------------------------
# What ties a message to a command


def _names_any(call: Call, command: RunCommand, named: tuple[str, ...]) -> bool:
    return any(_mentions(call, command, name) for name in named)


def _mentions(call: Call, command: RunCommand, named: str) -> bool:
    """Return whether a command's own words, inline code or input name a path or a host."""
    if len(named) < 4:
        return False
    if named in command.raw or any(named in word for word in command.words):
        return True
    placed = place(named, command.cwd, call.home)
    if placed is None:
        return False
    if command.name == "git" and "/.git/" in placed:
        return f"{command.cwd}/".startswith(placed.partition(".git/")[0])
    literals = (p for word in command.words for p in paths_in(word)) if command.is_inline else ()
    if any(len(path) > 3 and named.startswith(path) for path in literals):
        return True
    operands = [path for word in command.words if word and (path := place(word, command.cwd, call.home))]
    outside = [path for path in operands if not f"{command.cwd}/".startswith(f"{path}/")]
    return placed in operands or placed.startswith(tuple(f"{path}/" for path in outside))


def _is_about(command: RunCommand, named: tuple[str, ...]) -> bool:
    """Return whether a message about these paths is about what the command was given.

    Only simple tools name what they were given; for all others any path will do.
    """
    if command.role is not Role.TOOL or not named or command.takes_more:
        return True
    if all(word.startswith("-") for word in command.words if word):
        return True  # it names a file by itself: `mktemp -d`
    if any(not word or not _GLOB.isdisjoint(word) for word in command.words):
        return True
    names = (re.escape(posixpath.basename(path.rstrip("/"))) for path in named)
    return any(re.search(rf"(?<!\w){name}(?!\w)", command.raw) for name in names)


def _redirects(call: Call, command: RunCommand, named: tuple[str, ...]) -> bool:
    """Return whether a shell can have printed a message about one of these paths for the redirection of a
    command."""
    return any(
        not target or is_same(target, path, command.cwd, call.home)
        for target in command.written
        for path in named or ("",)
    )


# ------------------------------------------------------------
# What a command does not print


def _may_say(call: Call, command: RunCommand, line: str, named: tuple[str, ...], *, network: bool) -> bool:
    """Return whether a program may report a failure of its own with a line that its arguments do not show to
    be about them."""
    if call.code_of(command) == 0 and not _WARNING.match(line):
        if not named and network:
            return _connects_by_code(command)
        files = (word for word in command.words if "." in word or "/" in word)
        return any(len(name) > 3 and name in call.script.text for name in named) or (
            not named and any(file in line for file in files)
        )
    if _MARKED.match(line) and command.name not in BUILD_TOOLS:
        return False
    return network or command.name != "git" or _GIT_FORM.match(line) is not None


def _prints_no_others(command: RunCommand, name: str | None) -> bool:
    """Return whether a program starts no others whose messages begin with this name."""
    started = SELF_CONTAINED.get(command.name)
    if command.is_code and not _STARTS_OTHERS.search(command.raw):
        started = frozenset()
    return started is not None and name is not None and name != command.name and name not in started


def _is_elsewhere(command: RunCommand, named: str) -> bool:
    """Return whether a path can lie on another machine, which an operand names: `build1:/opt/app`."""
    others = (_OTHER_MACHINE.match(word) for word in command.words)
    return any(other and named.startswith(other["path"].rstrip("/")) for other in others)


def _connects_by_code(command: RunCommand) -> bool:
    """Return whether inline code names a host: it need not be in the error that it prints."""
    if not command.is_inline or command.name in FETCHERS:
        return False
    return not all(map(is_loopback, operand_hosts(command.name, (*command.words, command.raw))))


def _reads_page(call: Call, command: RunCommand, named: tuple[str, ...]) -> bool:
    """Return whether inline code that reads pages names the host of a message, or any if that names none."""
    return command.is_code and (_names_any(call, command, named) if named else _connects_by_code(command))


def prints_data(command: RunCommand) -> bool:
    """Return whether a command may print an error that is none of its own: it runs code that the script does
    not show, or that makes an error by itself."""
    if command.is_code:
        return _ERROR_MADE.search(command.raw) is not None
    return command.is_function or runs_project(command.name, command.words, command.raw)


# ------------------------------------------------------------
# Whether a message reports the failure of its command: an error that a program shows of something else reads
# the same


_ERROR_SHAPE: Final = re.compile(
    r"^\W{0,12}(?:(?:API |CMake )?[\w.$:]*(?:error|exception|panic\w*|fail\w*|fatal)\b|unknown: |caused by"
    r"|errno|E[A-Z]{4,}:|traceback|called `|thread '|cannot |could not |can't |unable to |\[Errno"
    r"|[EW]: |(?:open|mkdir|write|rename|remove|unlink|chmod|create) ['\"`]?/"
    r"|\{\s*['\"](?:error|message|isError|status)['\"])",
    re.IGNORECASE,
)
"""How programs begin an account of their own failure; prose does not."""
_RUNTIME_SHAPE: Final = re.compile(
    r"^\W{0,12}(?:[\w.$:]*(?:Error|Exception)(?:\W|$)|[\w.$:]*panic|unknown: |Errno\b|E[A-Z]{4,}\b|called `"
    r"|thread '|\[Errno|(?:open|mkdir|write|rename|remove|unlink|chmod|create) ['\"`]?/"
    r"|PHP \w|\{\s*['\"](?:error|message|isError|status)['\"])"
    r"|^\S+:\d+:in | at \S+ line \d+\.?$| in \S+ on line \d+$|\(os error \d+\)$"
)
"""How runtimes word an error, and where in a program they say that it was: no code of a project does."""


def is_account(line: str) -> bool:
    """Return whether a line begins as programs begin an account of their own failure."""
    return _ERROR_SHAPE.match(line) is not None


def is_own_account(call: Call, source: Attribution, first: int, last: int, target: str | None) -> bool:
    """Return whether lines report the failure of the command that they are attributed to."""
    command, strength = source.command, source.strength
    if strength is Strength.OWN or (strength is Strength.TIED and command is None):
        return True
    if strength < Strength.OPEN or command is None:
        return False
    if command.role is Role.READER and not command.is_code:
        return is_account(call.lines[first])
    around = call.lines.range(first - 1, last)  # a panic: one above
    if prints_data(command):
        if call.reports_tests or (strength is Strength.OPEN and not command.is_code):
            return False
        is_own = any(map(_RUNTIME_SHAPE.search, around))
        is_tools = prefix_of(call.lines[last], WRITING_TOOLS) is not None
        return (is_own or is_tools) and (call.failed or strength is Strength.TIED)
    if strength is Strength.TIED:
        return True
    name = rf"(?<!\w){re.escape(posixpath.basename(target or '/'))}(?!\w)"
    if command.is_code and not (target and re.search(name, command.raw)):
        return False  # code that does not name the file shows messages of others
    is_known = command.name in BUILD_TOOLS or command.is_code
    return call.has_failed(command) or (is_known and any(map(is_account, around)))


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
    """Return the name of the program with which a message begins, or None.

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
