"""Read messages about the network: a name that does not resolve, a connection that cannot be made, a proxy
that refuses."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from agentdash.engine.detect.denials.lines import Lines
from agentdash.engine.detect.denials.targets import without_paths
from agentdash.model.denials import Operation


class Message(msgspec.Struct, frozen=True):
    """A message about the network."""

    operation: Operation
    certain: bool
    """Whether only a sandbox or a policy gives it; a plain failure reads the same where not."""
    host: str | None
    """A host name, an address, or the path of a local socket."""
    needs_host: bool
    """Whether it proves nothing unless a host is known that is not this machine: `Connection refused`."""
    generic: bool
    """Whether another line of the same account names the cause (`error sending request for url (…)`)."""
    first: int
    last: int
    package: str | None = None
    """What a package index does not have."""


_HOST: Final = (
    r"\[?(?P<host>[A-Za-z0-9_](?:[\w-]*\w)?(?:\.[\w-]+)*|[0-9a-fA-F]*(?:::?[0-9a-fA-F]+)+|::1?)\]?"
    r"(?![\w-]|\.\w)\.?"
)
_NO_WORD: Final = r"(?<![\w.-])"

_PROXY: Final = re.compile(
    r"""Network access (?:to ["'“]?(?P<host>[\w.-]+)["'”]?(?: \S+)? )?(?:was|is) (?:denied|blocked)"""
    r"|Domain not in allowlist|blocked-by-allowlist",
    re.IGNORECASE,
)
"""Answers of Codex's own proxy."""
_PROXY_HOST: Final = re.compile(r""""host"\s*:\s*"(?P<host>[\w.-]+)\"""")
_TUNNEL: Final = re.compile(
    r"CONNECT tunnel failed, response 403|HTTP code 403 from proxy after CONNECT"
    r"|Tunnel connection failed: 403"
)
"""A proxy refused the host: the sandbox's, where the network goes through one."""

_NOT_PERMITTED: Final = re.compile(r"operation not permitted|\bEPERM\b|FailedToOpenSocket", re.IGNORECASE)
_NET_WORD: Final = re.compile(
    r"\bsockets?\b|\bSocket\w*Exception\b|\bconnect(?:ing|ion)?\b|\bbind(?:ing)?\b|\blisten(?:ing)?\b|\bsend(?:to|msg)\b|\btcp\b"
    r"|\budp\b|\bdial\b|\bnetlink\b|OpenSocket"
    r"|\b(?:Udp|Tcp)(?:Socket|Stream|Listener)\b|\burllib|\bhttps?\b|sending request",
    re.IGNORECASE,
)
_BIND: Final = re.compile(
    r"\bbind(?:ing)?\b|\blisten(?:ing)?\b|server_bind|\bfor address\b|start_server|serve_forever",
    re.IGNORECASE,
)
_SOCKET: Final = re.compile(
    r"(?:error connecting to |connect EPERM |listen EPERM: operation not permitted |dial unix "
    r"|unix:(?://)?)(?P<path>/[^\s:()'\"]+)"
    r"|(?P<file>/[\w./@+-]+\.sock)\b"
)
_BARE_NOT_PERMITTED: Final = re.compile(
    r"(?:PermissionError|OSError|socket\.error): \[Errno 1\] Operation not permitted\s*$|\(os error 1\)\s*$"
    r"|\bOs \{ code: 1, kind: PermissionDenied",
    re.IGNORECASE,
)
_WRAPPED: Final = re.compile(r"^[\s│|]*operation not permitted\W*$", re.IGNORECASE)
_RAW_SOCKET: Final = re.compile(r"^(?:ping|ping6|traceroute|arping|nmap|tcpdump|mtr)\b.*: ", re.IGNORECASE)
"""Programs that need a privilege for their sockets anywhere."""

_RESOLVE: Final = re.compile(
    r"could ?n(?:o|')t resolve (?:host|proxy)|could not resolve (?:host|proxy)|unable to resolve host"
    r"|failed to resolve ['\"]"
    r"|failed to resolve host|failed to resolve address|resolving timed out"
    r"|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname"
    r"|no address associated with"
    r"|name does not resolve|no such host\b|failed to lookup address|dns error|dns lookup failed"
    r"|getaddrinfo\(?\)? ?(?:failed|:|for host|E[A-Z_]+)|\bEAI_\w+|\bENOTFOUND\b|gaierror"
    r"|php_network_getaddresses"
    r"|\blookup [\w.-]+\.?(?: on \S+)?: (?!no route)|UnknownHostException|unknown host\b"
    r"|could not translate host name|unknown (?:mysql )?server host|DNSResolveFailed|curl error 6\b"
    r"|bad address '|could not resolve: |could not resolve [\w.-]+/\d+"
    r"|could not resolve '[\w-]+(?:\.[\w-]+)+'|no servers could be reached"
    r"|couldn't get address for|communications error to|unable to find the server at|\bbad hostname\b"
    r"|:nxdomain|,nxdomain|\bcould not download (?:\S+ ){0,3}(?:at|from) https?://",
    re.IGNORECASE,
)
_CONNECT: Final = re.compile(
    r"network is unreachable|network unreachable|\bENETUNREACH\b|no route to host|host is unreachable"
    r"|\bEHOSTUNREACH\b"
    r"|failed to connect to \S+ port|could(?: not|n't) connect to (?!the endpoint|the docker)|nc: connect to"
    r"|curl: \((?:7|28|35|56)\) (?!.*HTTP).*(?:connect|SSL_ERROR_SYSCALL|reset by peer in connection)"
    r"|connect(?:ion)? (?:to|at|timed)[^\n]*(?:timed out|timeout)|\bETIMEDOUT\b|connection timed out"
    r"|i/o timeout"
    r"|connection refused|\bECONNREFUSED\b|connection reset by peer in connection|actively refused"
    r"|can't connect to mysql server|could not connect to redis|unable to connect to"
    r"|cannot connect to host|failed_connect"
    r"|was refused - did you specify|could not reach host|curl error (?:7|28)\b",
    re.IGNORECASE,
)
_GENERIC: Final = re.compile(
    r"failed to establish a new connection|NewConnectionError|error sending request"
    r"|could not connect to the endpoint url"
    r"|error connecting to (?!/)[\w.-]+\s*$|all attempts to connect to"
    r"|trouble with your network connection|connection failed for url"
    r"|unable to load the service index|couldn't connect to '?https?://|client error \(connect\)"
    r"|error trying to connect|tcp connect error"
    r"|ConnectionRefused\b|connection error",
    re.IGNORECASE,
)
_NO_SOCKETS: Final[tuple[tuple[Operation, bool, re.Pattern[str]], ...]] = (
    ("connect", True, re.compile(r"uv_interface_addresses returned Unknown system error 1\b")),
    ("connect", True, re.compile(r"^(?:nc|ncat|socat): Operation not permitted$", re.IGNORECASE)),
    ("bind", False, re.compile(r"Failed to listen on \S+ \(reason: \?\)")),
    ("bind", False, re.compile(r"Could not determine a usable (?:local|wildcard) IP")),
)
"""What Node, netcat, PHP and Gradle print where the sandbox refuses them every socket (EPERM): operation,
whether nothing else has these words, and the words."""
_EMPTY_INDEX: Final = re.compile(
    r"requirement (?P<package>\S+) \(from versions: none\)"
    r"|No matching distribution found for (?P<missing>\S+)",
    re.IGNORECASE,
)
"""pip's and uv's last words after their retries; also of a package that does not exist, so only where no
index can be reached."""
_NEEDS_HOST: Final = re.compile(
    r"refused|reset|timed out|timeout|ETIMEDOUT|unable to connect|could(?: not|n't) connect|connection error",
    re.IGNORECASE,
)
_EXPLAINED: Final = re.compile(
    r"read timed out|readtimeout|with \d+(?: out of -?\d+)? bytes received|certificate|ssl routines"
    r"|wrong version number|handshake fail"
    r"|tlsv1|\bNXDOMAIN\b|the requested URL returned error|command timed out|is the docker daemon running"
    r"|\b(?:HTTP/[\d.]+|status(?: code)?:?|HTTP error) [45]\d\d\b",
    re.IGNORECASE,
)
"""Something else is the cause: an answer came, or the other side was reached."""

_HOSTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:resolve (?:host(?:name| address)?(?: name)?|proxy(?: name)?)"
        rf"|resolve):? +['\"‘“]?{_HOST}(?=['\"’”:;/,\s.)]|$)",
        rf"(?:resolving|failed to resolve|bad address|bad hostname|get address for|server host"
        rf"|translate host name|unable to resolve) +['\"‘“]{_HOST}(?::\d+)?['\"’”]",
        rf"getaddrinfo\(['\"]{_HOST}['\"]",
        rf"getaddrinfo\(?\)?:? +(?:E[A-Z_]+ +|for (?:host +)?)?['\"]?(?!E(?:AI_|NOTFOUND)){_HOST}(?:['\"]"
        rf"|\s|:|$)",
        rf"\blookup {_HOST}(?= on |:)",
        rf"UnknownHostException: {_HOST}",
        rf"unknown host:? '?{_HOST}",
        rf"cannot resolve {_HOST}: unknown host",
        rf"failed to connect to {_HOST} port",
        rf"connect to host {_HOST} port",
        rf"connect to {_HOST} (?:port|\()",
        rf"(?:connect|bind|listen) E[A-Z]+(?:: [a-z ]+)? {_HOST}(?::\d+)?(?=[\s,)-]|$)",
        rf"dial (?:tcp|udp)\d? {_HOST}:\d+",
        rf"listen (?:tcp|udp)\d? {_HOST}:\d+",
        rf"(?:HTTPS?ConnectionPool\(|\()host=['\"]{_HOST}['\"]",
        rf"connect to host {_HOST}:\d+",
        rf"\w+://(?:[^/@\s'\"]*@)?{_HOST}",
        rf"(?:redis at|server on) ['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)",
        rf"to_address, ?\{{['\"]{_HOST}['\"]",
        rf"reach host {_HOST}",
        rf"attempts to connect to {_HOST} failed",
        rf"in connection to {_HOST}:\d+",
        rf"find the server at {_HOST}",
        rf"\({_HOST}:\d+\)",
        rf"(?:^|[\s(]){_HOST}(?::\d+)?: (?:temporary failure in name|name or service not|nodename nor"
        rf"|no address associated|unknown host)",
        rf"/dev/(?:tcp|udp)/{_HOST}/",
        rf"connection to the server {_HOST}:\d+",
    )
)
_LOOSE_HOSTS: Final = (
    re.compile(rf"(?:server at|address) +\(?['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)", re.IGNORECASE),
    re.compile(
        rf"(?:connect to|connection to|connecting to) +\(?['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)", re.IGNORECASE
    ),
)
"""What follows is a host only if it looks like one."""
_SCRIPT_HOSTS: Final = (
    re.compile(rf"\b[a-z][\w+.-]*://(?:[^/@\s'\"]*@)?{_HOST}", re.IGNORECASE),
    re.compile(rf"/dev/(?:tcp|udp)/{_HOST}/"),
    re.compile(r"\b[\w.-]+@(?P<host>[\w-]+(?:\.[\w-]+)+)(?=[:\s'\"]|$)"),
    re.compile(
        r"(?:getaddrinfo|getaddr|gethostbyname|connection|connect|connect_ex|lookup|resolve\w*|TCPSocket\.(?:new"
        r"|open)|Dial|new Socket)"
        rf"\(\s*\(?\s*(?:\d+\s*,\s*)?(?:\w+\s*[=:]\s*)?(?:~c)?['\"]{_HOST}(?::\d+)?['\"]",
        re.IGNORECASE,
    ),
)
_TAKE_HOSTS: Final = frozenset(
    (
        *(
            "ssh",
            "sftp",
            "scp",
            "rsync",
            "ping",
            "ping6",
            "nc",
            "ncat",
            "netcat",
            "telnet",
            "dig",
            "nslookup",
            "host",
            "drill",
            "whois",
            "ftp",
        ),
        *(
            "traceroute",
            "mtr",
            "psql",
            "pg_isready",
            "mysql",
            "mysqladmin",
            "redis-cli",
            "mongosh",
            "curl",
            "wget",
            "http",
            "https",
            "xh",
            "openssl",
            "lftp",
        ),
    )
)
"""Programs that take a host without a scheme."""
_OPERAND_HOST: Final = re.compile(rf"^(?:[\w.-]+@)?{_HOST}(?=[:/]|$)")
_NO_HOSTS: Final = frozenset(
    (
        *(
            "host",
            "hostname",
            "address",
            "server",
            "proxy",
            "name",
            "the",
            "remote",
            "port",
            "api",
            "error",
            "failed",
            "database",
            "socket",
        ),
        *(
            "redis",
            "mysql",
            "none",
            "null",
            "undefined",
            "http",
            "https",
            "unable",
            "this",
            "a",
            "an",
            "any",
            "all",
            "to",
        ),
        *(
            "getaddrinfo",
            "gaierror",
            "dns",
            "lookup",
            "resolver",
            "connection",
            "information",
            "temporary",
            "nodename",
            "for",
            "from",
            "in",
            "on",
            "at",
            "is",
            "was",
            "not",
            "no",
            "unknown",
        ),
    )
)
"""Words of messages in the place of a host."""
_FILE_ENDINGS: Final = re.compile(
    r"\.(?:py|js|mjs|cjs|ts|rb|go|rs|java|c|h|cc|cpp|php|pl|sh|json|toml|lock|html?|txt|md)$"
)
_ERROR_CODE: Final = re.compile(r"E\d+")
"""Subversion's: `svn: E670003: Temporary failure in name resolution`."""
_LOOPBACK: Final = re.compile(
    r"(?:localhost|.+\.localhost|ip6-localhost|localhost\.localdomain|127(?:\.\d+){1,3}|::1|0\.0\.0\.0|::)",
    re.IGNORECASE,
)
_ACCOUNT_LINES: Final = 12
"""Lines above in which the rest of one account is looked for (chains of causes)."""
_TRACEBACK_LINES: Final = 60


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself."""
    return _LOOPBACK.fullmatch(host.strip("[]")) is not None


def read_message(lines: Lines, number: int, script: str, *, index_reachable: bool) -> Message | None:
    """Return what the line reports about the network; None where it reports nothing, or names another cause.

    Args:
        lines: the output.
        number: of the line.
        script: what ran: a bare `Operation not permitted` is the network's only where a socket is spoken of.
        index_reachable: whether the policy lets some hosts through, so that an empty index proves nothing.
    """
    line = lines[number]
    if not _is_candidate(line):
        return None
    if proxy := _PROXY.search(line):
        named = _PROXY_HOST.search(line)
        host = proxy["host"] or (named["host"] if named else None)
        return _message("connect", number, certain=True, host=host)
    if _EXPLAINED.search(line) and not _RESOLVE.search(line):
        return None
    if _TUNNEL.search(line):
        return _message("connect", number, host=_host(line))
    if _NOT_PERMITTED.search(line) and (found := _not_permitted(lines, number, script)):
        return found
    for operation, certain, words in _NO_SOCKETS:
        if words.search(line):
            return _message(operation, number, certain=certain)
    if _RESOLVE.search(line):
        return _message("resolve", number, host=_host(line))
    if _CONNECT.search(line):
        return _message("connect", number, host=_host(line), needs_host=_NEEDS_HOST.search(line) is not None)
    if _GENERIC.search(line):
        needs = _NEEDS_HOST.search(line) is not None
        return _message("connect", number, host=_host(line), generic=True, needs_host=needs)
    if (empty := _EMPTY_INDEX.search(line)) and not index_reachable:
        package = empty["package"] or empty["missing"]
        return msgspec.structs.replace(_message("connect", number, generic=True), package=package)
    return None


@lru_cache(2_048)
def _is_candidate(line: str) -> bool:
    """Return whether any message about the network looks like a line: logs repeat theirs."""
    patterns = (_PROXY, _TUNNEL, _NOT_PERMITTED, _RESOLVE, _CONNECT, _GENERIC, _EMPTY_INDEX)
    return any(pattern.search(line) for pattern in (*patterns, *(words for *_, words in _NO_SOCKETS)))


def hosts_in(text: str) -> list[str]:
    """Return the hosts that a script names: in addresses of any scheme, and where programs take one."""
    found = sorted(
        (match.start(), match["host"]) for pattern in _SCRIPT_HOSTS for match in pattern.finditer(text)
    )
    return list(dict.fromkeys(host for _, host in found if is_host(host)))


def operand_hosts(name: str, words: tuple[str, ...]) -> list[str]:
    """Return the hosts in a command's arguments; for `ssh`, `ping`, `dig` and the like also bare names."""
    hosts = [host for word in words for host in hosts_in(word)]
    if hosts or name not in _TAKE_HOSTS:
        return hosts
    operands = [
        word
        for word in words
        if word and not word.startswith(("-", "+", "@")) and "=" not in word and not word.isdecimal()
    ]
    named = [
        match["host"] for word in operands if (match := _OPERAND_HOST.match(word)) and is_host(match["host"])
    ]
    dotted = [host for host in named if "." in host]
    return (dotted or named)[:1]


def sockets_in(text: str) -> list[str]:
    """Return the paths of local sockets that a text names."""
    return list(dict.fromkeys(match["path"] or match["file"] for match in _SOCKET.finditer(text)))


def _message(
    operation: Operation,
    number: int,
    *,
    certain: bool = False,
    host: str | None = None,
    needs_host: bool = False,
    generic: bool = False,
) -> Message:
    return Message(
        operation=operation,
        certain=certain,
        host=host,
        needs_host=needs_host,
        generic=generic,
        first=number,
        last=number,
    )


def _not_permitted(lines: Lines, number: int, script: str) -> Message | None:
    """Return the message of an EPERM that a socket got."""
    line = lines[number]
    if sockets := sockets_in(line):
        operation: Operation = "bind" if _BIND.search(line) else "connect"
        return _message(operation, number, certain=True, host=sockets[0])
    if _NET_WORD.search(without_paths(line)):
        host = _host(line) or _host("".join(lines.range(number + 1, number + 1)))
        if re.search(r"\blookup ", line):
            return _message("resolve", number, certain=True, host=host)
        certain = _RAW_SOCKET.match(line) is None
        return _message("bind" if _BIND.search(line) else "connect", number, certain=certain, host=host)
    if _WRAPPED.match(line):
        return _wrapped(lines, number)
    if not _BARE_NOT_PERMITTED.search(line):
        return None
    account = _account(lines, number)
    if not _NET_WORD.search(f"{account}\n{script}"):
        return None
    bound = re.search(r"\.bind\(|server_bind|\.listen\(|\bbind\b", f"{account}\n{script}")
    operation = "bind" if bound and "connect" not in account else "connect"
    return _message(operation, number, certain=True, host=_host(account))


def _wrapped(lines: Lines, number: int) -> Message | None:
    """Return the message of a paragraph that was broken into short lines (Terraform's)."""
    first = number
    while first > 0 and number - first < _ACCOUNT_LINES and lines[first - 1].strip(" │|"):
        first -= 1
    text = " ".join(line.strip(" │|") for line in lines.range(first, number))
    if not _NET_WORD.search(without_paths(text)):
        return None
    operation: Operation = "resolve" if re.search(r"\blookup ", text) else "connect"
    found = _message(operation, number, certain=True, host=_host(text))
    return msgspec.structs.replace(found, first=first)


def _account(lines: Lines, number: int) -> str:
    """Return the lines above that belong to the same account: a traceback, or a chain of causes."""
    above: list[str] = []
    for earlier in range(number - 1, max(-1, number - _TRACEBACK_LINES), -1):
        line = lines[earlier]
        if line.startswith("Traceback "):
            return "\n".join(above)
        above.append(line)
    return "\n".join(line for line in above[:_ACCOUNT_LINES] if line.strip())


def _host(line: str) -> str | None:
    for pattern in (*_HOSTS, *_LOOSE_HOSTS):
        for match in pattern.finditer(line):
            host = match["host"]
            if is_host(host, is_named=pattern is _HOSTS[0]) and (
                pattern not in _LOOSE_HOSTS or re.search(r"[.:]|^localhost$", host)
            ):
                return host
    return None


def is_host(host: str, *, is_named: bool = False) -> bool:
    """Return whether a word can be a host: not a file (but where a message says that it is a host), not a
    word of the message."""
    return (
        host.lower() not in _NO_HOSTS
        and not host.isdecimal()
        and (is_named or _FILE_ENDINGS.search(host) is None)
        and _ERROR_CODE.fullmatch(host) is None
        and "_" not in host.partition(".")[0][:1]
    )
