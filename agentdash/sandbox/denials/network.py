"""Read messages about the network: a name that does not resolve, a connection that cannot be made, a proxy
that refuses.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Operation
from agentdash.model.patterns import Pattern
from agentdash.model.policy import Network
from agentdash.sandbox.denials.attribution import Strength, attribute, prints_data
from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.commands import RunCommand, commands_of
from agentdash.sandbox.denials.findings import Finding, finding
from agentdash.sandbox.denials.hosts import host_in, hosts_in, is_loopback, operand_hosts
from agentdash.sandbox.denials.lines import Lines
from agentdash.sandbox.denials.paths import without_paths
from agentdash.sandbox.denials.programs import Role


class Message(msgspec.Struct, frozen=True):
    """A message about the network."""

    operation: Operation
    certain: bool = False
    """Whether only a sandbox or a policy gives it; a plain failure reads the same where not."""
    host: str | None = None
    """A host name, an address, or the path of a local socket."""
    needs_host: bool = False
    """Whether it proves nothing unless a host is known that is not this machine: `Connection refused`."""
    generic: bool = False
    """Whether another line of the same account names the cause (`error sending request for url (…)`)."""
    package: str | None = None
    """What a package index does not have."""


_PROXY: Final = Pattern(
    r"""Network access (?:to ["'“]?(?P<host>[\w.-]+)["'”]?(?: \S+)? )?(?:was|is) (?:denied|blocked)"""
    r"|Domain not in allowlist|blocked-by-allowlist",
    re.IGNORECASE,
)
"""Answers of Codex's own proxy."""
_REFUSED_HOST: Final = Pattern(r'"host": ?"(?P<host>[\w.-]+)"')
"""In the answer of Codex's proxy (0.133+)."""
_NOT_PERMITTED: Final = Pattern(r"operation not permitted|\beperm\b|failedtoopensocket|\bsocket, errno: 1$")
_NET_WORD: Final = Pattern(
    r"\bsockets?\b|\bsocket\w*exception\b|\bconnect(?:ing|ion)?\b|\bbind(?:ing)?\b|\blisten(?:ing)?\b"
    r"|\bsend(?:to|msg)\b|\btcp\b"
    r"|\budp\b|\bdial\b|\bnetlink\b|opensocket"
    r"|\b(?:udp|tcp)(?:socket|stream|listener)\b|\burllib|\bhttps?\b|sending request"
)
_BIND: Final = Pattern(
    r"\bbind(?:ing)?\b|\blisten(?:ing)?\b|server_bind|\bfor address\b|start_server|serve_forever"
)
_SOCKET: Final = Pattern(
    r"(?:error connecting to |connect EPERM |listen EPERM: operation not permitted |dial unix "
    r"|unix:(?://)?)(?P<path>/[^\s:()'\"]+)"
    r"|(?P<file>/[\w./@+-]+\.sock)\b"
)
_BARE_NOT_PERMITTED: Final = Pattern(
    r"(?:PermissionError|OSError|socket\.error): \[Errno 1\] Operation not permitted\s*$|\(os error 1\)\s*$"
    r"|\bOs \{ code: 1, kind: PermissionDenied",
    re.IGNORECASE,
)
_RESOLVE: Final = Pattern(
    r"could ?n(?:o|')t resolve (?:host|proxy)|could not resolve (?:host|proxy)|unable to resolve host"
    r"|failed to resolve ['\"]"
    r"|failed to resolve host|failed to resolve address|resolving timed out"
    r"|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname"
    r"|no address associated with"
    r"|name does not resolve|no such host\b|failed to lookup address|dns error|dns lookup failed"
    r"|getaddrinfo\(?\)? ?(?:failed|:|for host|e[a-z_]+)|\beai_\w+|\benotfound\b|gaierror"
    r"|php_network_getaddresses"
    r"|\blookup [\w.-]+\.?(?: on \S+)?: (?!no route)|unknownhostexception|unknown host\b"
    r"|could not translate host name|unknown (?:mysql )?server host|dnsresolvefailed|curl error 6\b"
    r"|bad address '|could not resolve: |could not resolve [\w.-]+/\d+"
    r"|could not resolve '[\w-]+(?:\.[\w-]+)+'|no servers could be reached"
    r"|couldn't get address for|communications error to|unable to find the server at|\bbad hostname\b"
    r"|:nxdomain|,nxdomain|\bcould not download (?:\S+ ){0,3}(?:at|from) https?://"
)
_CONNECT: Final = Pattern(
    r"connect tunnel failed, response 403|http code 403 from proxy after connect"  # by the sandbox's proxy
    r"|tunnel connection failed: 403"
    r"|network is unreachable|network unreachable|\benetunreach\b|no route to host|host is unreachable"
    r"|\behostunreach\b"
    r"|^ssh: connect to host \S+ port \d+: failure"  # it got no socket
    r"|failed to connect to \S+ port|could(?: not|n't) connect to (?!the endpoint|the docker)|nc: connect to"
    r"|curl: \((?:7|28|35|56)\) (?!.*http).*(?:connect|ssl_error_syscall|reset by peer in connection)"
    r"|connect(?:ion)? (?:to|at|timed)[^\n]*(?:timed out|timeout)|\betimedout\b|connection timed out"
    r"|i/o timeout"
    r"|connection refused|\beconnrefused\b|connection reset by peer in connection|actively refused"
    r"|can't connect to mysql server|could not connect to redis|unable to connect to"
    r"|cannot connect to host|failed_connect"
    r"|was refused - did you specify|could not reach host|curl error (?:7|28)\b"
)
_GENERIC: Final = Pattern(
    r"failed to establish a new connection|newconnectionerror|error sending request"
    r"|could not connect to the endpoint url"
    r"|error connecting to (?!/)[\w.-]+\s*$|all attempts to connect to"
    r"|trouble with your network connection|connection failed for url"
    r"|unable to load the service index|couldn't connect to '?https?://|client error \(connect\)"
    r"|error trying to connect|tcp connect error"
    r"|connectionrefused\b|connection error"
)
_NO_SOCKETS: Final[tuple[tuple[Operation, bool, Pattern], ...]] = (
    ("connect", True, Pattern(r"uv_interface_addresses returned Unknown system error 1\b")),
    ("connect", True, Pattern(r"^(?:nc|ncat|socat): Operation not permitted$", re.IGNORECASE)),
    ("connect", True, Pattern(r"Can't create TCP/IP socket \(1\)")),
    ("bind", False, Pattern(r"Failed to listen on \S+ \(reason: \?\)")),
)
"""What Node, netcat, MySQL and PHP print where the sandbox refuses every socket (EPERM): operation,
whether nothing else has these words, and the words."""
_EMPTY_INDEX: Final = Pattern(
    r"requirement (?P<package>\S+) \(from versions: none\)"
    r"|No matching distribution found for (?P<missing>\S+)",
    re.IGNORECASE,
)
"""pip's and uv's last words after their retries; also of a package that does not exist, so only where no
index can be reached."""
_NEEDS_HOST: Final = Pattern(
    r"refused|reset|timed out|timeout|etimedout|unable to connect|could(?: not|n't) connect|connection error"
)
_ACCOUNT_LINES: Final = 12
"""Lines above in which the rest of one account is looked for (chains of causes)."""
_TRACEBACK_LINES: Final = 60


def read_message(lines: Lines, number: int, script: str, *, index_reachable: bool) -> Message | None:
    """Return what the line reports about the network, or None if it reports nothing, or names another cause.

    Args:
        lines: of the output.
        number: of the line.
        script: what ran: a bare `Operation not permitted` is the network's only where a socket is spoken of.
        index_reachable: whether the policy lets some hosts through, so that an empty index proves nothing.
    """
    line = lines[number]
    lowered = line.lower()  # to ignore cases takes three times as long
    if proxy := _PROXY.search(line):
        answer = _REFUSED_HOST.search(line)
        return Message("connect", certain=True, host=answer["host"] if answer else proxy["host"])
    if _NOT_PERMITTED.search(lowered) and (found := _not_permitted(lines, number, script)):
        return found
    for operation, certain, words in _NO_SOCKETS:
        if words.search(line):
            return Message(operation, certain=certain)
    if _RESOLVE.search(lowered):
        return Message("resolve", host=host_in(line))
    if (is_plain := _CONNECT.search(lowered) is not None) or _GENERIC.search(lowered):
        needs_host = _NEEDS_HOST.search(lowered) is not None
        return Message("connect", host=host_in(line), needs_host=needs_host, generic=not is_plain)
    if (empty := _EMPTY_INDEX.search(line)) and not index_reachable:
        return Message("connect", generic=True, package=empty["package"] or empty["missing"])
    return None


def _sockets_in(text: str) -> list[str]:
    """Return the paths of local sockets that a text names."""
    return list(dict.fromkeys(match["path"] or match["file"] for match in _SOCKET.finditer(text)))


def _not_permitted(lines: Lines, number: int, script: str) -> Message | None:
    """Return the message of an EPERM that a socket got."""
    # a text as code writes it has many lines in one
    line = next(part for part in lines[number].split(r"\n") if _NOT_PERMITTED.search(part.lower()))
    operation: Operation = "bind" if _BIND.search(line.lower()) else "connect"
    if sockets := _sockets_in(line):
        return Message(operation, certain=True, host=sockets[0])
    if _NET_WORD.search(without_paths(line).lower()):
        host = host_in(line) or host_in("".join(lines.range(number + 1, number + 1)))
        if re.search(r"\blookup ", line):
            return Message("resolve", certain=True, host=host)
        return Message(operation, certain=True, host=host)
    if not _BARE_NOT_PERMITTED.search(line):
        return None
    account = _account(lines, number)
    if not _NET_WORD.search(f"{account}\n{script}".lower()):
        return None
    bound = re.search(r"\.bind\(|server_bind|\.listen\(|\bbind\b", f"{account}\n{script}")
    operation = "bind" if bound and "connect" not in account else "connect"
    return Message(operation, certain=True, host=host_in(account))


def _account(lines: Lines, number: int) -> str:
    """Return the lines above that belong to the same account: a traceback, or a chain of causes."""
    above: list[str] = []
    for earlier in range(number - 1, max(-1, number - _TRACEBACK_LINES), -1):
        line = lines[earlier]
        if line.startswith("Traceback "):
            return "\n".join(above)
        above.append(line)
    return "\n".join(line for line in above[:_ACCOUNT_LINES] if line.strip())


# ------------------------------------------------------------
# Decide which messages about the network are denials


_REFUSED: Final = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_RESOLVERS: Final = ("dig", "nslookup", "host", "drill", "getent")
GIT_CONNECTS: Final = frozenset(("fetch", "pull", "push", "clone", "ls-remote", "submodule"))
"""Subcommands with which git connects to a remote repository."""
_QUOTED_PART: Final = re.compile(r"['\"‘’“”].*")
_PHRASE_CHARACTERS: Final = 60
"""Of the end of a line: enough to find it in the script, if that prints it."""


def judge_network(call: Call, message: Message, number: int) -> Finding | None:
    """Return the denial that the message of a line reports, or None if something else explains it."""
    line = call.lines[number]
    if not message.certain and call.policy.network is Network.UNKNOWN:
        return None
    if not message.certain and call.unsandboxed and not _REFUSED.search(line):
        return None  # where nothing restricts it, only a refusal by the kernel has the words of a sandbox
    # what only a sandbox or a policy says is about the host that was asked for
    about = message.host or (_host_of(None, call.source) if message.certain else None)
    named = tuple(name for name in (about, message.package) if name)
    phrase = _QUOTED_PART.sub("", line)[-_PHRASE_CHARACTERS:]
    source = attribute(call, number, named, phrase, network=True)
    ambiguous = source.strength is Strength.AMBIGUOUS
    if source.strength is Strength.NONE or (ambiguous and not call.failed):
        return None
    host = message.host or _host_of(source.command, call.source)
    provider = source.command is not None and source.command.role is Role.AGENT and host is None
    if not message.certain and not provider and _is_local(message, host, call.source):
        return None
    asks = source.command is not None and source.command.name in _RESOLVERS
    proven = source.strength > Strength.OPEN or call.has_failed(source.command)
    if source.command is not None and not (prints_data(source.command) or source.command.is_inline):
        proven = True  # what is installed fails in these words only by itself
    certain = (message.certain and proven and not call.unsandboxed and not ambiguous) or call.denied
    operation: Operation = "resolve" if asks else message.operation
    certainty: Certainty = "certain" if certain else "likely"
    found = finding(call, "network", operation, certainty, host, source, number, number)
    return msgspec.structs.replace(found, generic=message.generic)


def connects(command: RunCommand) -> bool:
    """Return whether a command is to connect to another machine."""
    if command.role in (Role.QUIET, Role.TOOL):
        return False
    hosts = operand_hosts(command.name, command.words)
    if command.name == "git":
        is_local = any(word.startswith(("/", ".", "file:")) for word in command.words)
        return not is_local and not GIT_CONNECTS.isdisjoint(command.words)
    return any(not is_loopback(host) for host in hosts)


def _is_local(message: Message, host: str | None, script: str) -> bool:
    """Return whether a failure can be of a connection to this machine, which no other host was part of."""
    if host is not None:
        return is_loopback(host)
    hosts = hosts_in(script)
    return message.needs_host or (bool(hosts) and all(is_loopback(host) for host in hosts))


def _host_of(command: RunCommand | None, script: str) -> str | None:
    """Return the host that a command, else the whole script, is about, where it is one alone."""
    for hosts in (operand_hosts(command.name, command.words) if command else [], hosts_in(script)):
        remote = [host for host in hosts if not is_loopback(host)]
        if remote:
            return remote[0] if len(remote) == 1 else None
    sockets = _sockets_in(script)
    return sockets[0] if len(sockets) == 1 else None


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
