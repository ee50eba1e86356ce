"""Find the few lines of an output that may report a denial, without looking at the others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

MAX_DENIALS: Final = 20
"""Of one output: one with more repeats one cause."""
MAX_QUOTE_CHARACTERS: Final = 400
_MAX_LINE_CHARACTERS: Final = 1_000
"""Longer lines are minified code or data; only the part around the phrase is read."""
_MAX_LINES: Final = 200
"""Different lines that are read of one output."""


_TEXT: Final = (
    # of files
    "read-only file | permission denied | not permitted | access denied | is denied | accessdenied | eperm"
    "| erofs | eacces | insufficient permission | write permission | your permissions | permissiondenied"
    "| enoent: no such file or directory, mkdir | filesystem. | not writable | not writeable | known hosts"
    "| error writing to | database file | readonly database | open database | open the database"
    "| sqlite_cantopen | sqlite_readonly | no usable temporary | curl: (23) | e212:"
    "| unable to create directory for .git"
    "| temporary object directory | (unpacker error | could not create parent | local repository at"
    "| writing go env config | cannot change permissions of | could not be created | unable to (re)create"
    # of the network
    "| not resolve | n't resolve | to resolve | cannot resolve | name resolution | resolving ' | eai_"
    "| resolving timed | dnsresolvefailed | code enotfound | 'enotfound | getaddr | not known | unknown host"
    "| unknownhost | unknown mysql | unknown server | host is known | such host | lookup failed"
    "| lookup address | server misbehaving | bad address ' | bad hostname | no address associated"
    "| :nxdomain | no servers could | find the server at | load the service | could not download"
    "| translate host | refused | timed out | i/o timeout | etimedout | is unreachable | network unreachable"
    "| enetunreach | ehostunreach | no route to | reset by peer in conn | ssl_error_syscall | to connect"
    "| not connect | n't connect | connect to host | error connecting | failed_connect | connect error"
    "| connection error | connection failed | (connect) | a new connection | newconnection | could not reach"
    "| network connection | curl error | in allowlist | by-allowlist | error sending request | network access"
    "| received http code | tunnel connection failed | connect tunnel failed | failedtoopensocket"
    "| socket, errno: 1 | tcp/ip socket (1) | from versions: none | no matching distribution"
    "| failed to listen on | uv_interface_addresses | communications error to"
    # of programs
    "| no new privileges | without necessary permissions | in current capabilities | sysmond service"
    # of the sandbox
    "| linux-sandbox | sandbox-exec: | sandbox_apply | failed in sandbox | windows sandbox | bwrap:"
    "| landlock | sandbox error | sandbox( | requires bubblewrap | createprocessasuserw"
)
_PHRASES: Final = tuple(phrase.strip() for phrase in _TEXT.split("|"))
"""Every line that a rule of this package reads has one of them, in lower case."""

_SGR: Final = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")


class Lines:
    """The lines of an output by number, cleaned of colours and carriage returns when they are read."""

    def __init__(self, output: str) -> None:
        self._raw = output.split("\n") if output else []
        self._cleaned: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, number: int) -> str:
        if number not in self._cleaned:
            self._cleaned[number] = _clean(self._raw[number])
        return self._cleaned[number]

    def range(self, first: int, last: int) -> list[str]:
        """Return the lines from `first` to `last`, both included, as far as there are any."""
        return [self[n] for n in range(max(0, first), min(len(self), last + 1))]


@lru_cache(1)  # audits look at an output before they read its call
def suspects(output: str) -> tuple[Lines, tuple[int, ...]]:
    """Return the lines of an output, and the numbers of those that may report a denial: the first of equal
    ones. A line that goes on (unzip's `   Read-only file system`) differs if the line above does."""
    numbers = _numbers(output)
    if not numbers:
        return Lines(""), ()
    lines = Lines(output)
    seen: dict[str, int] = {}
    for number in numbers:
        text = lines[number]
        seen.setdefault(f"{lines[number - 1]}\n{text}" if number and text.startswith(" ") else text, number)
        if len(seen) == _MAX_LINES:
            break
    return lines, tuple(seen.values())


def _numbers(output: str) -> list[int]:
    """Return the numbers of the lines that have one of the phrases."""
    lowered = output.lower().encode(errors="replace")
    found: list[int] = []
    number = at = end = 0
    for start in _places(lowered):
        if start < end:
            continue  # on the same line
        number += lowered.count(b"\n", at, start)
        found.append(number)
        at = start
        end = lowered.find(b"\n", start)
        if end < 0:
            break
    return found


def _places(lowered: bytes) -> Iterable[int]:
    """Return where the phrases are in a text, in order."""
    if (search := _search()) is not None:
        return [start for _, start, _ in search.find_matches_as_indexes(lowered)]
    return sorted(
        match.start() for phrase in _PHRASES for match in re.finditer(re.escape(phrase).encode(), lowered)
    )


@cache
def _search() -> BytesAhoCorasick | None:
    """Return the search for all phrases at once, or None where there is no wheel for it: it takes ten times
    as long then."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return None
    return BytesAhoCorasick([phrase.encode() for phrase in _PHRASES], implementation=Implementation.DFA)


def quote(*lines: str) -> str:
    """Return lines as one bounded quotation."""
    return "\n".join(line.strip() for line in lines)[:MAX_QUOTE_CHARACTERS]


def _clean(line: str) -> str:
    if "\x1b" in line:
        line = _SGR.sub("", line)
    line = line.rstrip("\r")
    if "\r" in line:
        line = line.rpartition("\r")[2]  # a progress display: what is left standing
    if len(line) <= _MAX_LINE_CHARACTERS:
        return line
    lowered = line.lower()
    hit = min((at for phrase in _PHRASES if (at := lowered.find(phrase)) >= 0), default=0)
    return line[max(0, hit - _MAX_LINE_CHARACTERS // 2) :][:_MAX_LINE_CHARACTERS]
