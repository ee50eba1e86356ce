"""What ties a message to a command: the command's words, the file or the code that it runs."""

from __future__ import annotations

import itertools
import posixpath
import re
from typing import Final

from agentdash.sandbox.denials.hosts import is_loopback, operand_hosts
from agentdash.sandbox.denials.programs import (
    INTERPRETERS,
    SELF_CONTAINED,
    WRITING_TOOLS,
    Role,
    is_build_tool,
    is_query,
    runs_project,
    shows_pages,
    starts_tools,
)
from agentdash.sandbox.denials.ran import Ran
from agentdash.sandbox.denials.targets import is_part_of, is_same, paths_in, place

_STARTS_OTHERS: Final = re.compile(
    r"subprocess|system|popen|spawn|exec(?!ut)|fork|sh\(|run\(|[`$%]", re.IGNORECASE
)
"""Calls in inline code which start other programs."""
_ERROR_MADE: Final = re.compile(
    r"strerror|Errno::E|errno\.E|\$!\s*=|(?:Error|Exception)\(|\b(?:raise|throw)\b"
)


_CODE_FILE: Final = re.compile(r"[\w./@+-]+\.(?:py|js|mjs|cjs|ts|rb|pl|php)")
_OTHER_MACHINE: Final = re.compile(r"(?!-)(?:[\w.-]+@)?[\w.-]+:(?P<path>/(?!/).*)")


def mentions(command: Ran, named: str, home: str | None) -> bool:
    """Return whether a command's own words, inline code or input name a path or a host."""
    if len(named) < 4:
        return False
    if named in command.raw or any(named in word for word in command.words):
        return True
    placed = place(named, command.cwd, home)
    if command.name == "git" and placed is not None and "/.git/" in placed:
        return f"{command.cwd}/".startswith(placed.partition(".git/")[0])
    if placed is None:
        return False
    literals = (path for word in command.words for path in paths_in(word)) if is_inline(command) else ()
    if any(len(path) > 3 and named.startswith(path) for path in literals):
        return True
    operands = (place(word, command.cwd, home) for word in command.words if word)
    return any(
        each == placed or (placed.startswith(f"{each}/") and not f"{command.cwd}/".startswith(f"{each}/"))
        for each in operands
    )


def is_elsewhere(command: Ran, named: str) -> bool:
    """Return whether a path can lie on another machine, which an operand names: `build1:/opt/app`."""
    others = (_OTHER_MACHINE.match(word) for word in command.words)
    return any(other and named.startswith(other["path"].rstrip("/")) for other in others)


def connects_by_code(command: Ran) -> bool:
    """Return whether inline code names a host: it need not be in the error that it prints."""
    if not is_inline(command) or is_query(command.name) or shows_pages(command.name):
        return False
    return not all(map(is_loopback, operand_hosts(command.name, (*command.words, command.raw))))


def stays_here(command: Ran) -> bool:
    """Return whether a program fetches from this machine alone: it reaches no other host."""
    addresses = [word for word in command.words if "://" in word]
    hosts = (host for word in addresses for host in operand_hosts(command.name, (word,)))
    return shows_pages(command.name) and bool(addresses) and all(map(is_loopback, hosts))


def is_foreign(command: Ran, name: str | None) -> bool:
    """Return whether a message begins with the name of a simple tool that a command does not start."""
    if name not in WRITING_TOOLS or name == command.name or name in command.words:
        return False
    if prints_no_others(command, name):
        return True
    return not (command.is_function or starts_tools(command.name, command.words, command.raw))


def prints_no_others(command: Ran, name: str | None) -> bool:
    """Return whether a program starts no others whose messages begin with this name."""
    started = SELF_CONTAINED.get(command.name)
    if (
        command.name.startswith(INTERPRETERS)
        and is_inline(command)
        and not _STARTS_OTHERS.search(command.raw)
    ):
        started = frozenset()
    return started is not None and name is not None and name != command.name and name not in started


def reads_page(command: Ran, named: tuple[str, ...], home: str | None) -> bool:
    """Return whether inline code that reads files, or pages, names the host of a message, or any host where
    that names none."""
    if command.role is not Role.READER or not is_code(command):
        return False
    return any(mentions(command, name, home) for name in named) if named else connects_by_code(command)


def is_inline(command: Ran) -> bool:
    """Return whether an interpreter gets its program as an argument or as its input."""
    options = itertools.takewhile(lambda word: not _CODE_FILE.fullmatch(word), command.words)
    return any(word in ("-c", "-e", "-p", "-r", "-") for word in options) or "\n" in command.raw


def is_code(command: Ran) -> bool:
    """Return whether a command is code that the script shows: its words have the paths of what it does."""
    return command.name.startswith(INTERPRETERS) and is_inline(command)


def prints_data(command: Ran) -> bool:
    """Return whether a command may print an error that is none of its own: it runs code that the script does
    not show, or that makes an error by itself."""
    if command.is_function:
        return True
    if is_code(command):
        return _ERROR_MADE.search(command.raw) is not None
    return runs_project(command.name, command.words, command.raw)


def repeats(command: Ran) -> bool:
    """Return whether a command may print messages that are none of its own, though it shows no files: it runs
    code, a file or a task of the project, or a function."""
    if is_code(command) or is_query(command.name) or "-m" in command.words or command.role is Role.READER:
        return False
    is_function = command.is_function and not is_build_tool(command.name)
    return is_function or runs_project(command.name, command.words, command.raw)


def runs(command: Ran, name: str | None) -> bool:
    """Return whether a command is, or runs, the script of this name."""
    return (
        name is not None and "." in name and name in (command.name, *map(posixpath.basename, command.words))
    )


def is_in(command: Ran, account: str) -> bool:
    """Return whether a traceback is of what a command runs: its file, or its inline code."""
    if "-c" in command.words and 'File "<string>"' in account:
        return True
    if "-e" in command.words and re.search(r" at -e line |^-e:\d+:in ", account, re.MULTILINE):
        return True
    if "-r" in command.words and " in Command line code on line " in account:
        return True
    if 'File "<stdin>"' in account and command.name.startswith("python"):
        return True
    if command.name.startswith("node") and (
        "[eval" in account or "node:internal" in account or "\nNode.js v" in account
    ):
        return True
    files = [posixpath.basename(word) for word in command.words if _CODE_FILE.fullmatch(word)]
    place = r"(?:^|[/\"(]){}(?:[\":]|(?: on)? line \d)"
    return any(re.search(place.format(re.escape(file)), account, re.MULTILINE) for file in files)


def shell_message_fits(command: Ran, paths: tuple[str, ...], home: str | None) -> bool:
    """Return whether a shell can have printed a message about one of these paths for the redirection of
    this command."""
    if not command.written:
        return False
    return any(
        not target or is_same(target, path, command.cwd, home)
        for target in command.written
        for path in paths or ("",)
    )


def opens_connection(command: Ran, _named: tuple[str, ...] = (), _home: str | None = None) -> bool:
    """Return whether a shell connects by itself, to bash's `/dev/tcp/HOST/PORT`, for reading or writing."""
    return any(word.startswith(("/dev/tcp/", "/dev/udp/")) for word in command.raw.split())


def is_about(command: Ran, paths: tuple[str, ...], home: str | None) -> bool:
    """Return whether a message about these paths is about what the command was given.

    Only simple tools name what they were given; for all others any path will do.
    """
    if command.role is not Role.TOOL or not paths or command.through_xargs:
        return True
    if all(word.startswith("-") for word in command.words if word):
        return True  # it names a file by itself: `mktemp -d`
    for word in command.words:
        if not word or any(mark in word for mark in "*?[{"):
            return True
        operand = word.partition("=")[2] if re.match(r"(?:--[\w-]+|of|if)=", word) else word
        if any(
            is_same(operand, path, command.cwd, home) or is_part_of(operand, path, command.cwd, home)
            for path in paths
        ):
            return True
    return False
