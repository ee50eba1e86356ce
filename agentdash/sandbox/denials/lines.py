"""Find the few lines of an output that may report a denial, without looking at the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from agentdash.model.patterns import Pattern
from agentdash.model.sanitize import MAX_BLOCK_CHARS, clean_block

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

MAX_DENIALS: Final = 20
"""Of one output: one with more repeats one cause."""
MAX_QUOTE_CHARACTERS: Final = 400
_MAX_LINE_CHARACTERS: Final = 1_000
"""Longer lines are minified code or data; only their part around the hit is read."""
_MAX_LINES: Final = 200
"""Different lines that are read of one output."""

_FRAGMENTS: Final = {
    fragment: Pattern(confirmed, re.IGNORECASE)
    for fragment, confirmed in {
        "-only file": r"read-only file",
        **dict.fromkeys(("ermission d", "ermission D"), r"permission denied"),
        "ermitted": r"not permitted",
        **dict.fromkeys(("t permission", "t Permission"), r"insufficient permission"),
        **dict.fromkeys(("e permission", "e Permission"), r"write permission"),
        "enied": r"access ?denied|access\b.{0,150} denied",
        "atabase": r"database file|readonly database|open (?:the )?database",
        "not writ": r"not writ(?:e-?)?able",
        "ror writing": r"error writing to",
        "usable temp": r"no usable temporary",
        "esol": r"DNSResolveFailed"
        r"|(?:not|n't|to) resolve|name resolution|resolving (?:'|timed)|resolving [^ ]+ \(.*failed",
        "onnect": r"onnect\w*\W[^\n]{0,150}(?:refused|timed out|timeout|unreachable|reset by|failed"
        "|SSL_ERROR)|onnectionrefused"
        r"|(?:failed|unable|cannot|not|n't|error|attempts) (?:\w+ ){0,3}(?:re)?connect(?:ing)? to"
        r"|your network connection|failed_connect"
        r"|connect to host \S+ port \d+: failure"
        r"|connection (?:error|failed)|\(connect\)|connect error|error connect|NewConnection",
        "nreachable": r"(?:network|host)(?: is)? unreachable",
        "known": r"not known|unknown host|UnknownHost|known hosts|Unknown: File"
        r"|Unknown MySQL|Unknown server|host is known",
        "ookup": r"lookup [\w.-]+(?:\.| on \S+)?:|lookup address|lookup failed",
        "getaddr": r"getaddr",
        "bad addr": r"bad address '",
        " hostname": r"bad hostname",
        "ress assoc": r"address associated",
        "timed out": r"(?:connect\w*|operation|resolving|i/o)\b.{0,80} timed out",
        "servers could": r"no servers could",
        "o route": r"no route to",
        "ror sending": r"error sending request",
        "the serv": r"find the server at|load the service",
        "llowlist": r"in allowlist|by-allowlist",
        "andbox": r"linux-sandbox|sandbox-exec|sandbox_apply|failed in sandbox|windows sandbox"
        r"|sandbox error|sandbox\(",
        "bwrap: ": r"bwrap: ",
        ":nxdom": r":nxdomain",
        ",nxdom": r",nxdomain",
        "not download": r"could not download",
        "mkdir '": r"ENOENT: no such file or directory, mkdir '",
        "nge permissions": r"install: cannot change permissions of",
        "file descriptor": r"(?:strip|objcopy): .{1,300}: bad file descriptor",
        "parent directories": r"could not create parent directories",
        "go env config": r"writing go env config",
        "irectory for .git": r"unable to create directory for \.git/",
        "ersions: none": r"from versions: none",
        "d not be created": r"does not exist and could not be created",
        "your permissions": r"Please check your permissions",
        "(re)create": r"Unable to \(re\)create the",
        "ailed to clean": r"Failed to clean project: Failed to delete",
        "(reason: ?)": r"Failed to listen on",
        "IP socket (": r"TCP/IP socket \(1\)",
        "errno: 1": r"socket, errno: 1\b",
        "curl error ": r"curl error \d",
        "_interface_ad": r"uv_interface_addresses returned",
        "usable l": r"usable local IP",
        "usable w": r"usable wildcard IP",
        "local repository": r"create local repository at",
        "l: (23)": r"curl: \(23\)",
        "ry object dir": r"temporary object directory",
        "(unpacker": r"\(unpacker error\)",
    }.items()
}
"""Every line that a rule of this package reads has one of these fragments, or one of the words below.

All are searched for at once; where one is found, its pattern decides whether the line is read.
"""
_IN_LOWER_CASE: Final = {
    fragment: Pattern(
        re.sub(r"\\.|[A-Z]", lambda part: part[0] if len(part[0]) > 1 else part[0].lower(), confirmed.text)
    )
    for fragment, confirmed in _FRAGMENTS.items()
}
"""The same for ASCII text in lower case: three times as fast as patterns that ignore case."""
_WORDS: Final = (
    *("EROFS", "EACCES", "EPERM", "EAI_", "ENOTFOUND", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED"),
    *("ETIMEDOUT", "E212: ", "SQLITE_CANTOPEN", "SQLITE_READONLY", "FailedToOpenSocket", "FileSystem."),
    *("Network access ", "No matching distribution", "Received HTTP code", "Landlock"),
    *("CONNECT tunnel failed", "CONNECTION FAILED"),
)
"""Each of them is reason enough to read a line."""
_NEEDLES: Final = (*_FRAGMENTS, *_WORDS)
_AS_PRINTED: Final = (
    *_NEEDLES,
    *("\t" + needle[1:] for needle in _NEEDLES if needle.startswith(" ")),
    *(needle[:-1] + "\t" for needle in _NEEDLES if needle.endswith(" ")),
    *map(chr, (*range(9), 11, 12, *range(14, 32), 127)),
)
"""One of these is in every ASCII text that has a fragment or a word after it was cleaned: the same, with tabs
for spaces at the ends, and the control characters that are removed."""

_SGR: Final = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
_TRIES_PER_LINE: Final = 6
"""Of a fragment that is in a line again and again."""
_BEFORE: Final = 60
_BEHIND: Final = 200
"""Characters around a fragment that its pattern is searched in."""


class Lines:
    """The lines of an output by number, cleaned of colours and carriage returns when they are read."""

    def __init__(self, output: str) -> None:
        self._text: str | None = output
        self._raw = output.split("\n") if output else []
        self._cleaned: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, number: int) -> str:
        if number not in self._cleaned:
            self._cleaned[number] = _clean(self._raw[number])
        return self._cleaned[number]

    def with_line(self, number: int, text: str) -> Lines:
        """Return the lines with another text of one of them."""
        copy = Lines("")
        copy._text = None
        copy._raw = self._raw
        copy._cleaned = {**self._cleaned, number: text}
        return copy

    def may_hold(self, texts: Iterable[str]) -> bool:
        """Return whether one of these texts may be in a line; False is certain."""
        return self._text is None or "\x1b" in self._text or any(text in self._text for text in texts)

    def range(self, first: int, last: int) -> list[str]:
        """Return the lines from `first` to `last`, both included, as far as there are any."""
        return [self[n] for n in range(max(0, first), min(len(self), last + 1))]


_newest: Final[list[tuple[str, Lines, tuple[int, ...]]]] = []
"""The last output that was read, and the answer: audits look at an output before they read its call."""


def may_have_suspects(printed: str) -> bool:
    """Return whether a text has suspicious lines once it is cleaned."""
    if "\x1b" in printed:
        printed = clean_block(printed)
    search = _ascii_search()
    if search is not None and printed.isascii() and len(printed) <= MAX_BLOCK_CHARS:
        found = search.find_matches_as_indexes(printed.encode(), overlapping=True)
        if not found:
            return False
        is_clean = "\t" not in printed and "\r" not in printed
        if is_clean and max(found)[0] < len(_NEEDLES):
            return bool(_read(printed, ((_NEEDLES[n], at) for n, at, _ in found))[1])
    return bool(suspects(clean_block(printed))[1])


def suspects(output: str) -> tuple[Lines, tuple[int, ...]]:
    """Return the lines of an output, and the numbers of those that may report a denial: of repeated ones the
    first. One that goes on (unzip's `   Read-only file system`) is another one behind another line."""
    for text, lines, numbers in _newest[:]:
        if text == output:
            return lines, numbers
    return _read(output, _occurrences(output))


def _read(output: str, occurrences: Iterable[tuple[str, int]]) -> tuple[Lines, tuple[int, ...]]:
    """Return the answer of `suspects` by the fragments and words that are in an output."""
    starts = sorted(set(_line_starts(output, occurrences)))
    lines = Lines(output if starts else "")
    numbers = tuple(_numbers(lines, output, starts))
    _newest[:] = [(output, lines, numbers)]
    return lines, numbers


def _numbers(lines: Lines, output: str, starts: Iterable[int]) -> Iterator[int]:
    """Yield the numbers of the different lines that begin at these places."""
    seen: set[str] = set()
    number = at = 0
    for start in starts:
        number += output.count("\n", at, start)
        at = start
        text = lines[number]
        account = f"{lines[number - 1]}\n{text}" if number and text.startswith(" ") else text
        if account in seen:
            continue
        seen.add(account)
        yield number
        if len(seen) == _MAX_LINES:
            break


def quote(*lines: str) -> str:
    """Return lines as one bounded quotation."""
    return "\n".join(line.strip() for line in lines)[:MAX_QUOTE_CHARACTERS]


def _line_starts(output: str, occurrences: Iterable[tuple[str, int]]) -> Iterator[int]:
    """Yield where the lines begin that may report a denial, in any order."""
    lines: dict[str, _LineSearch] = {}
    is_ascii = output.isascii()
    for needle, at in occurrences:
        confirmed = _FRAGMENTS.get(needle)
        if confirmed is None:
            yield output.rfind("\n", 0, at) + 1
            continue
        line = lines.get(needle)
        if line is None or at >= line.end:
            end = output.find("\n", at)
            line = _LineSearch(output.rfind("\n", 0, at) + 1, len(output) if end < 0 else end)
            lines[needle] = line
        if line.is_over:
            continue
        line.tries += 1
        begin, end = max(line.start, at - _BEFORE), min(line.end, at + _BEHIND)
        if (
            _IN_LOWER_CASE[needle].search(output[begin:end].lower())
            if is_ascii
            else confirmed.search(output, begin, end)
        ):
            yield line.start
            line.is_over = True
        elif line.tries == _TRIES_PER_LINE:
            line.is_over = True


class _LineSearch:
    """The search for one fragment in one line."""

    __slots__ = ("end", "is_over", "start", "tries")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.tries = 0
        self.is_over = False


def _occurrences(output: str) -> Iterator[tuple[str, int]]:
    """Yield the fragments and words in an output and their places, those of each one in their order."""
    if output.isascii() and (ascii_search := _ascii_search()) is not None:
        for number, start, _ in ascii_search.find_matches_as_indexes(output.encode(), overlapping=True):
            if number < len(_NEEDLES):
                yield _NEEDLES[number], start
    elif (search := _search()) is not None:
        for number, start, _ in search.find_matches_as_indexes(output, overlapping=True):
            yield _NEEDLES[number], start
    else:
        for needle in _NEEDLES:
            at = output.find(needle)
            while at >= 0:
                yield needle, at
                at = output.find(needle, at + 1)


# ---------------------------------------------------------------- the searches, built when first used


@cache
def _search() -> AhoCorasick | None:
    """Return the search for all needles; None where there is no wheel: it is then ten times as slow."""
    try:
        from ahocorasick_rs import AhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return None
    return AhoCorasick(_NEEDLES, implementation=Implementation.ContiguousNFA)  # a DFA takes 6 MB


@cache
def _ascii_search() -> BytesAhoCorasick | None:
    """Return the search in ASCII text, cleaned or not: places in bytes are those in the text, and it is twice
    as fast."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return None
    return BytesAhoCorasick([needle.encode() for needle in _AS_PRINTED], implementation=Implementation.DFA)


# ---------------------------------------------------------------- lines


def _clean(line: str) -> str:
    if "\x1b" in line:
        line = _SGR.sub("", line)
    line = line.rstrip("\r")
    if "\r" in line:
        line = line.rpartition("\r")[2]  # a progress display: what is left standing
    if len(line) <= _MAX_LINE_CHARACTERS:
        return line
    hit = next(_line_hits(line), 0)
    return line[max(0, hit - _MAX_LINE_CHARACTERS // 2) :][:_MAX_LINE_CHARACTERS]


def _line_hits(line: str) -> Iterator[int]:
    for fragment, confirmed in _FRAGMENTS.items():
        if fragment in line and (match := confirmed.search(line)):
            yield match.start()
