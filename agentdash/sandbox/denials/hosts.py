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
_CALLED_HOST: Final = Pattern(
    rf"resolve (?:host(?:name| address)?(?: name)?|proxy(?: name)?)?:? *['\"‘“]?{_HOST}(?=['\"’”:;/,\s.)]|$)",
    re.IGNORECASE,
)
_HOSTS: Final = tuple(
    Pattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:resolving|to resolve|bad address|bad hostname|address for|server host|host name) +"
        rf"['\"‘“]{_HOST}(?::\d+)?['\"’”]",
        rf"getaddrinfo\(['\"]{_HOST}['\"]",
        rf"getaddrinfo\(?\)?:? +(?:E[A-Z_]+ +|for (?:host +)?)?['\"]?(?!E(?:AI_|NOTFOUND)){_HOST}"
        rf"(?:['\"]|\s|:|$)",
        rf"\blookup {_HOST}(?= on |:)",
        rf"unknown ?host(?:Exception)?:? '?{_HOST}",
        rf"cannot resolve {_HOST}: unknown host",
        rf"connect to (?:host )?{_HOST} (?:port|\()",
        rf"(?:connect|bind|listen) E[A-Z]+(?:: [a-z ]+)? {_HOST}(?::\d+)?(?=[\s,)-]|$)",
        rf"(?:dial|listen) (?:tcp|udp)\d? {_HOST}:\d+",
        rf"\(host=['\"]{_HOST}['\"]",
        rf"\w+://(?:[^/@\s'\"]*@)?{_HOST}",
        rf"(?:connect to host|connection to(?: the server)?) {_HOST}:\d+",
        rf"(?:redis at|server on|reach host|find the server at|attempts to connect to) ['\"]?{_HOST}"
        rf"(?=['\"\s:,;)]|$)",
        rf"to_address, ?\{{['\"]{_HOST}['\"]",
        rf"\({_HOST}:\d+\)",
        rf"(?:^|[\s(]){_HOST}(?::\d+)?: (?:temporary failure in name|name or service not|nodename nor"
        rf"|no address associated|unknown host)",
        rf"/dev/(?:tcp|udp)/{_HOST}/",
    )
)
"""Patterns of messages that name a host."""
_LOOSE_HOSTS: Final = tuple(
    Pattern(rf"(?:{words}) +\(?['\"]?{_HOST}['\"]?(?=[\s:,;)]|$)", re.IGNORECASE)
    for words in ("server at|address", "connect to|connection to|connecting to")
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
    return list(dict.fromkeys(host for _, host in found if _is_host(host)))


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
    matches = [match["host"] for word in operands if (match := _OPERAND_HOST.match(word))]
    named = list(filter(_is_host, matches))
    dotted = [host for host in named if "." in host]
    return (dotted or named)[:1]


def host_in(line: str) -> str | None:
    """Return the host that a message names."""
    for match in _CALLED_HOST.finditer(line):
        if _is_host(match["host"], is_called=True):
            return match["host"]
    found = (match["host"] for pattern in _HOSTS for match in pattern.finditer(line))
    loose = (match["host"] for pattern in _LOOSE_HOSTS for match in pattern.finditer(line))
    named = next(filter(_is_host, found), None)
    return named or next((h for h in loose if _is_host(h) and re.search(r"[.:]|^localhost$", h)), None)


def _is_host(host: str, *, is_called: bool = False) -> bool:
    """Return whether a word can be a host: not a word of the message, nor a file unless the message calls it
    a host."""
    return (
        host.lower() not in _NO_HOSTS
        and not host.isdecimal()
        and (is_called or _FILE_ENDINGS.search(host) is None)
        and _ERROR_CODE.fullmatch(host) is None
        and "_" not in host.partition(".")[0][:1]
    )
