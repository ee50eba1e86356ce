"""Find the hosts that messages about the network, and scripts, name."""

from __future__ import annotations

import re
from typing import Final

from agentdash.model.patterns import Pattern
from agentdash.sandbox.word_sets import word_set

_HOST: Final = (
    r"\[?(?P<host>[A-Za-z0-9_](?:[\w-]*\w)?(?:\.[\w-]+)*|[0-9a-fA-F]*(?:::?[0-9a-fA-F]+)+|::1?)\]?"
    r"(?![\w-]|\.\w)\.?"
)

_HOSTS: Final = tuple(
    (fragments, Pattern(pattern, re.IGNORECASE))
    for fragments, pattern in (
        (
            ("resolve",),
            rf"(?:resolve (?:host(?:name| address)?(?: name)?|proxy(?: name)?)"
            rf"|resolve):? +['\"‘“]?{_HOST}(?=['\"’”:;/,\s.)]|$)",
        ),
        (
            ("resolv", "address", "host"),
            rf"(?:resolving|failed to resolve|bad address|bad hostname|get address for|server host"
            rf"|translate host name|unable to resolve) +['\"‘“]{_HOST}(?::\d+)?['\"’”]",
        ),
        (("getaddrinfo(",), rf"getaddrinfo\(['\"]{_HOST}['\"]"),
        (
            ("getaddrinfo",),
            rf"getaddrinfo\(?\)?:? +(?:E[A-Z_]+ +|for (?:host +)?)?['\"]?(?!E(?:AI_|NOTFOUND)){_HOST}(?:['\"]"
            rf"|\s|:|$)",
        ),
        (("lookup ",), rf"\blookup {_HOST}(?= on |:)"),
        (("unknownhost",), rf"UnknownHostException: {_HOST}"),
        (("unknown host",), rf"unknown host:? '?{_HOST}"),
        (("cannot resolve ",), rf"cannot resolve {_HOST}: unknown host"),
        (("failed to connect to ",), rf"failed to connect to {_HOST} port"),
        (("connect to host ",), rf"connect to host {_HOST} port"),
        (("connect to ",), rf"connect to {_HOST} (?:port|\()"),
        (
            ("connect e", "bind e", "listen e"),
            rf"(?:connect|bind|listen) E[A-Z]+(?:: [a-z ]+)? {_HOST}(?::\d+)?(?=[\s,)-]|$)",
        ),
        (("dial ",), rf"dial (?:tcp|udp)\d? {_HOST}:\d+"),
        (("listen ",), rf"listen (?:tcp|udp)\d? {_HOST}:\d+"),
        (("(host=",), rf"(?:HTTPS?ConnectionPool\(|\()host=['\"]{_HOST}['\"]"),
        (("connect to host ",), rf"connect to host {_HOST}:\d+"),
        (("://",), rf"\w+://(?:[^/@\s'\"]*@)?{_HOST}"),
        (("redis at ", "server on "), rf"(?:redis at|server on) ['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)"),
        (("to_address",), rf"to_address, ?\{{['\"]{_HOST}['\"]"),
        (("reach host ",), rf"reach host {_HOST}"),
        (("attempts to connect to ",), rf"attempts to connect to {_HOST} failed"),
        (("in connection to ",), rf"in connection to {_HOST}:\d+"),
        (("find the server at ",), rf"find the server at {_HOST}"),
        (("(",), rf"\({_HOST}:\d+\)"),
        (
            (": temporary failure", ": n", ": unknown host"),
            rf"(?:^|[\s(]){_HOST}(?::\d+)?: (?:temporary failure in name|name or service not|nodename nor"
            rf"|no address associated|unknown host)",
        ),
        (("/dev/",), rf"/dev/(?:tcp|udp)/{_HOST}/"),
        (("connection to the server ",), rf"connection to the server {_HOST}:\d+"),
    )
)
"""Patterns of messages that name a host; of the fragments of each one is in the lower case of every such
message: most patterns are neither searched nor compiled for most messages."""

_LOOSE_HOSTS: Final = (
    (
        ("server at", "address"),
        Pattern(rf"(?:server at|address) +\(?['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)", re.IGNORECASE),
    ),
    (
        ("connect to", "connection to", "connecting to"),
        Pattern(
            rf"(?:connect to|connection to|connecting to) +\(?['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)",
            re.IGNORECASE,
        ),
    ),
)
"""What follows is a host only if it looks like one."""

_SCRIPT_HOSTS: Final = (
    Pattern(rf"\b[a-z][\w+.-]*://(?:[^/@\s'\"]*@)?{_HOST}", re.IGNORECASE),
    Pattern(rf"/dev/(?:tcp|udp)/{_HOST}/"),
    Pattern(r"\b[\w.-]+@(?P<host>(?:[\w-]+\.)+[A-Za-z][\w-]*|\d+(?:\.\d+){3})(?=[:\s'\"]|$)"),
    Pattern(
        r"(?:getaddrinfo|getaddr|gethostbyname|connection|connect|connect_ex|lookup|resolve\w*"
        r"|TCPSocket\.(?:new|open)|Dial|new Socket)"
        rf"\(\s*\(?\s*(?:\d+\s*,\s*)?(?:\w+\s*[=:]\s*)?(?:~c)?['\"]{_HOST}(?::\d+)?['\"]",
        re.IGNORECASE,
    ),
)

_TAKE_HOSTS: Final = word_set(
    "ssh sftp scp rsync ping ping6 nc ncat netcat telnet dig nslookup host drill whois ftp traceroute mtr "
    "psql pg_isready mysql mysqladmin redis-cli mongosh curl wget http https xh openssl lftp"
)
"""Programs that take a host without a scheme."""

_OPERAND_HOST: Final = Pattern(rf"^(?:[\w.-]+@)?{_HOST}(?=[:/]|$)")

_NO_HOSTS: Final = word_set(
    "host hostname address server proxy name the remote port api error failed database socket redis mysql "
    "none null undefined http https unable this a an any all to getaddrinfo gaierror dns lookup resolver "
    "connection information temporary nodename for from in on at is was not no unknown"
)
"""Words of messages in the place of a host."""

_FILE_ENDINGS: Final = Pattern(
    r"\.(?:py|js|mjs|cjs|ts|rb|go|rs|java|c|h|cc|cpp|php|pl|sh|json|toml|lock|html?|txt|md)$"
)

_ERROR_CODE: Final = Pattern(r"E\d+")
"""Subversion's: `svn: E670003: Temporary failure in name resolution`."""

_LOOPBACK: Final = Pattern(
    r"(?:localhost|.+\.localhost|ip6-localhost|localhost\.localdomain|127(?:\.\d+){1,3}|::1|0\.0\.0\.0|::)",
    re.IGNORECASE,
)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself."""
    return _LOOPBACK.fullmatch(host.strip("[]")) is not None


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
        if word and not word.startswith(("-", "+", "@", "file:")) and "=" not in word and not word.isdecimal()
    ]
    named = [
        match["host"] for word in operands if (match := _OPERAND_HOST.match(word)) and is_host(match["host"])
    ]
    dotted = [host for host in named if "." in host]
    return (dotted or named)[:1]


def host_in(line: str) -> str | None:
    """Return the host that a message names."""
    lower = line.casefold()
    for rule in (*_HOSTS, *_LOOSE_HOSTS):
        fragments, pattern = rule
        if not any(fragment in lower for fragment in fragments):
            continue
        for match in pattern.finditer(line):
            host = match["host"]
            if is_host(host, is_named=rule is _HOSTS[0]) and (
                rule not in _LOOSE_HOSTS or re.search(r"[.:]|^localhost$", host)
            ):
                return host
    return None


def is_host(host: str, *, is_named: bool = False) -> bool:
    """Return whether a word can be a host: not a file (but where a message calls it a host), not a
    word of the message."""
    return (
        host.lower() not in _NO_HOSTS
        and not host.isdecimal()
        and (is_named or _FILE_ENDINGS.search(host) is None)
        and _ERROR_CODE.fullmatch(host) is None
        and "_" not in host.partition(".")[0][:1]
    )
