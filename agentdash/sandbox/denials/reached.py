"""Find the host that a script reached."""

from __future__ import annotations

import re
from typing import Final

from agentdash.sandbox.denials.commands import RunCommand, commands_of
from agentdash.sandbox.denials.hosts import is_loopback, operand_hosts
from agentdash.sandbox.denials.network import connects
from agentdash.sandbox.denials.programs import Role

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
