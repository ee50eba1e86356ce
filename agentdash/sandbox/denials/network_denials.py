"""Decide which messages about the network are denials."""

from __future__ import annotations

import re
from typing import Final

from agentdash.model.policy import Network
from agentdash.sandbox.denials.attribution import Strength
from agentdash.sandbox.denials.call import Call, Finding
from agentdash.sandbox.denials.hosts import hosts_in, is_loopback, operand_hosts
from agentdash.sandbox.denials.network import Message, sockets_in
from agentdash.sandbox.denials.programs import Role
from agentdash.sandbox.denials.ran import Ran
from agentdash.sandbox.denials.ties import is_inline, prints_data

_NOT_PERMITTED: Final = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_RESOLVERS: Final = ("dig", "nslookup", "host", "drill", "getent")
_QUOTED_PART: Final = re.compile(r"['\"‘’“”].*")
_PHRASE_CHARACTERS: Final = 60
"""Of the end of a line: enough to find it in the script, if that prints it."""


def judge_network(call: Call, message: Message) -> Finding | None:
    """Return the denial that a message about the network reports; None where something else explains it."""
    line = call.lines[message.first]
    if not message.certain and call.policy.network is Network.UNKNOWN:
        return None
    if not message.certain and call.unsandboxed and not _NOT_PERMITTED.search(line):
        return None  # where nothing restricts it, only a refusal by the kernel has the words of a sandbox
    named = tuple(name for name in (message.host, message.package) if name)
    phrase = _QUOTED_PART.sub("", line)[-_PHRASE_CHARACTERS:]
    source = call.attribute(line, named, phrase, call.account(message.first), network=True)
    ambiguous = source.strength is Strength.AMBIGUOUS
    if source.strength is Strength.NONE or (ambiguous and not call.failed):
        return None
    host = message.host or _host_of(source.command, call.script)
    provider = source.command is not None and source.command.role is Role.AGENT and host is None
    if not message.certain and not provider and _is_local(message, host, call.script):
        return None
    asks = source.command is not None and source.command.name in _RESOLVERS
    proven = source.strength > Strength.OPEN or call.has_failed(source.command)
    if source.command is not None and not (prints_data(source.command) or is_inline(source.command)):
        proven = True  # what is installed fails in these words only by itself
    certain = (message.certain and proven and not call.unsandboxed and not ambiguous) or call.denied
    return call.finding(
        what="network",
        operation="resolve" if asks else message.operation,
        certainty="certain" if certain else "likely",
        target=host,
        source=source,
        first=message.first,
        last=message.last,
        generic=message.generic,
    )


def _is_local(message: Message, host: str | None, script: str) -> bool:
    """Return whether a failure can be of a connection to this machine, which no other host was part of."""
    if host is not None:
        return is_loopback(host)
    hosts = hosts_in(script)
    return message.needs_host or (bool(hosts) and all(is_loopback(host) for host in hosts))


def _host_of(command: Ran | None, script: str) -> str | None:
    """Return the host that a command, else the whole script, is about, where it is one alone."""
    for hosts in (operand_hosts(command.name, command.words) if command else [], hosts_in(script)):
        remote = [host for host in hosts if not is_loopback(host)]
        if remote:
            return remote[0] if len(remote) == 1 else None
    sockets = sockets_in(script)
    return sockets[0] if len(sockets) == 1 else None
