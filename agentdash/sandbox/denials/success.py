"""Decide whether a script did what a sandbox had refused before, and which host it reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agentdash.model.denials import What
from agentdash.sandbox.denials.attribution import is_shells, prefix_of
from agentdash.sandbox.denials.commands import RunCommand, commands_of
from agentdash.sandbox.denials.hosts import is_loopback, operand_hosts
from agentdash.sandbox.denials.network import GIT_CONNECTS, connects
from agentdash.sandbox.denials.paths import place
from agentdash.sandbox.denials.programs import (
    FETCHERS,
    INTERPRETERS,
    WRITING_CODE,
    WRITING_TOOLS,
    Role,
    is_filter,
)

_SOURCES_FIRST: Final = frozenset(("cp", "ln", "link", "install", "ditto"))
"""Tools that only read their operands but the last."""
_WRITING_SQL: Final = re.compile(r"\b(?:insert|update|delete|replace|create|drop|alter)\b", re.IGNORECASE)
_SETS_ONLY: Final = frozenset(("config", "remote", "set", "tag", "-G", "-R"))
"""Arguments of programs that write a host down, and do not connect to it."""
_SILENT: Final = re.compile(r"-[^\WS]*[sq][^\WS]*|--silent|--quiet")


def did_it(
    script: str, printed: str, *, what: What, target: str, cwd: str | None, denied: Iterable[str]
) -> bool:
    """Return whether a script that exited with 0 wrote a path, or reached a host.

    Only what must have run and shows no failure counts; what reads a file or prints a name proves nothing.

    Args:
        script: as written.
        printed: the end of its output: the command would have reported its failure there.
        what: `filesystem` or `network`.
        target: the path or the host.
        cwd: where it ran.
        denied: scripts that were denied it: the same program with the same target does the same.
    """
    found = commands_of(script, cwd, None) or ()
    ran = [c for c in found if len(found) == 1 or not (c.unseen or c.conditional)]
    lines = printed.splitlines()
    if what == "network":
        alone = len(found) == 1
        return any(_reaches(c, target, alone=alone) and not _failed(c, target, lines) for c in ran)
    before = {_program(c) for other in denied for c in commands_of(other, cwd, None) or ()}
    return any(_writes(c, target, before) and not _failed(c, target, lines) for c in ran)


def _failed(command: RunCommand, target: str, lines: list[str]) -> bool:
    return any(
        prefix_of(line) == command.name or (is_shells(line) and target.rpartition("/")[2] in line)
        for line in lines
    )


def _program(command: RunCommand) -> tuple[str, str]:
    """Return a program with its subcommand or script."""
    return command.name, next((word for word in command.words if not word.startswith("-")), "")


def _writes(command: RunCommand, target: str, before: set[tuple[str, str]]) -> bool:
    if any(_is(path, target, command) for path in command.written):
        return True
    operands = [word for word in command.words if word and not word.startswith("-")]
    if command.name in WRITING_TOOLS:
        written = operands[-1:] if command.name in _SOURCES_FIRST else operands
        return any(_is(word.rpartition("of=")[2], target, command) for word in written)
    if not _names(command.raw, target, command.cwd):
        return False
    writing = _WRITING_SQL if command.name.startswith("sqlite") else WRITING_CODE
    if (command.is_code or writing is _WRITING_SQL) and writing.search(command.raw):
        return True
    return not is_filter(command.name) and _program(command) in before


def _is(path: str, target: str, command: RunCommand) -> bool:
    return bool(path) and place(path, command.cwd, None) == target


def _names(text: str, target: str, cwd: str | None) -> bool:
    """Return whether a text has a target as a word, as written or relative to the working directory."""
    names = [target]
    if cwd and target.startswith(cwd.rstrip("/") + "/"):
        names.append(target.removeprefix(cwd.rstrip("/") + "/"))
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", text) for name in names)


def _reaches(command: RunCommand, host: str, *, alone: bool) -> bool:
    """Return whether a command connected to a host.

    Args:
        command: one that ran.
        host: a name or an address.
        alone: whether the exit code of the script is its own; else only messages show that it failed.
    """
    if command.role in (Role.QUIET, Role.TOOL, Role.TEST):
        return False
    if not re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", command.raw):
        return False
    if command.role is Role.READER and (is_filter(command.name) or command.name.startswith(INTERPRETERS)):
        return False
    if command.name == "git":
        return not GIT_CONNECTS.isdisjoint(command.words)
    silent = command.name in FETCHERS and any(_SILENT.fullmatch(word) for word in command.words)
    return _SETS_ONLY.isdisjoint(command.words) and (alone or not silent)


# ------------------------------------------------------------
# Which host a script reached


_HOST: Final = r"((?:[\w-]+\.)+[A-Za-z][\w-]*)"
_OF_GIT: Final = re.compile(
    rf"^(?:To|From) (?:(?:https?|ssh|git)://)?(?:[^@/\s]+@)?{_HOST}[:/]"
    rf"|^(?:\S+@)?{_HOST}: Permission denied \([\w,-]*publickey"
    r"|^fatal: (?:Authentication failed for|could not read Username for|repository) '"
    rf"https?://(?:[^@/]*@)?{_HOST}",
    re.MULTILINE,
)
"""Git asks for a name, and finds no repository, after the host has answered."""
_OF_CURL: Final = re.compile(r"^(?:< |  )?HTTP/[\d.]+ (?!200 Connection established)\d{3}\b", re.MULTILINE)
_PROXIED: Final = ("-x", "--proxy", "--unix-socket", "--resolve", "--connect-to")


def reached_host(script: str, output: str, cwd: str | None) -> tuple[str, str] | None:
    """Return the host that a script reached, and the words that prove it, or None.

    Only what the other side alone can have said counts: refs, the head of an answer, a refused key. What a
    cache or a mirror on this machine may have given does not.

    Args:
        script: as written.
        output: all that it printed.
        cwd: where it ran.
    """
    ran = commands_of(script, cwd, None) or ()
    connecting = [command for command in ran if connects(command)]
    others = (command for command in ran if command not in connecting)
    if len(connecting) != 1 or any(c.role not in (Role.QUIET, Role.TOOL) for c in others):
        return None
    found = _by_git(output) if connecting[0].name == "git" else _by_fetcher(connecting[0], output)
    return None if found is None or is_loopback(found[0]) else found


def _by_git(output: str) -> tuple[str, str] | None:
    match = _OF_GIT.search(output)
    return None if match is None else (next(filter(None, match.groups())), match[0].strip())


def _by_fetcher(command: RunCommand, output: str) -> tuple[str, str] | None:
    hosts = set(operand_hosts(command.name, command.words))
    match = _OF_CURL.search(output)
    if command.name not in ("curl", "wget") or len(hosts) != 1 or match is None:
        return None
    return None if any(word in _PROXIED for word in command.words) else (hosts.pop(), match[0].strip())
