"""Programs whose output cannot hold a line of an environment."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from agentdash.engine.detect.env_output.dumps import FLAG_STEM
from agentdash.engine.detect.env_output.patterns import (
    ONE_LINE,
    QUIET,
    QUIET_TEXT,
    Hole,
    Kind,
    Parts,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.word_sets import word_set

_ONE_LINE: Final = frozenset(["arch", "date", "id", "logname", "pwd", "uname", "whoami"])
"""Programs of every system that print one line; with several operands some of them print more."""
_MISSING_ON_SOME: Final = word_set("basename dirname hostid hostname mktemp nproc readlink realpath tty")
"""Programs that print one line, or are missing, or fail with one."""
_SILENT: Final = word_set(
    "chgrp chmod chown cp install ln mkdir mkfifo mv rm rmdir sleep sync touch truncate"
)
_QUIET: Final = word_set(
    "aa-status arp cal capsh cksum cmp curl df dig du factor file findmnt free getcap getconf getent "
    "getenforce getfacl groups host ifconfig ip last ldd locale ls lsb_release lsblk lscpu lsof md5sum mount "
    "nc ncat netstat networksetup nslookup pgrep pidof ping ping6 route scutil seq sha1sum sha256sum shasum "
    "ss stat sw_vers sysctl telnet traceroute tree uptime w wget who"
)
_QUIET_SUBCOMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "git": (
        "status",
        "branch",
        "rev-parse",
        "remote",
        "describe",
        "fetch",
        "ls-remote",
        "init",
        "add",
        "clone",
        "commit",
        "push",
        "pull",
        "checkout",
        "switch",
    ),
    "pip": ("install", "download", "index", "list", "freeze"),
    "pip3": ("install", "download", "index", "list", "freeze"),
    "npm": ("ping", "view", "whoami"),
    "apt-get": ("update", "install"),
    "apt": ("update", "install"),
    "gh": ("auth",),
    "openssl": ("version", "s_client"),
    "docker": ("ps", "info", "version", "images"),
    "csrutil": ("status",),
}
"""Programs of which only some subcommands are known to print nothing of an environment."""
_TALKERS: Final = frozenset(("curl", "wget", "nc", "ncat", "telnet", "traceroute", "ping", "ping6"))
"""Programs that write what they receive, and their progress, without regard to lines."""
INSTANT: Final = (
    _ONE_LINE | _MISSING_ON_SOME | _SILENT | frozenset(("ls", "stat", "df", "free", "uptime"))
) - {"sleep", "cp"}
"""Programs that do not wait for anything."""
_PRINTING_OPTIONS: Final = ("-exec", "-ok", "-printf", "-fprint", "file:")
"""Beginnings of arguments with which `find` and `curl` print the content of files."""


def inert(call: Call) -> list[Result] | None:
    """Return what a program of these lists writes; None for other programs."""
    texts = call.words
    if any(FLAG_STEM in part for argument in call.arguments for part in argument if isinstance(part, str)):
        return None  # it may print its own arguments
    if call.name in _SILENT:
        verbose = any(text is not None and text.startswith(("-v", "--verbose")) for text in texts)
        failed: Parts = (
            Hole(Kind.QUIET_LINE),
            call.name,
            ": ",
            Hole(Kind.QUIET_LINE),
            "\n",
            *errors_of(call.name),
        )
        return [Result(out=(QUIET,) if verbose else ()), Result(err=failed, status=1)]
    if call.name == "date" and len(texts) <= _ONE_FORMAT and (stamp := _stamp(texts)) is not None:
        return [Result(out=stamp)]
    if call.name in _ONE_LINE:
        return [Result(out=(QUIET,) if call.name == "id" and len(texts) > 1 else ONE_LINE)]
    if call.name in _MISSING_ON_SOME:
        if sum(not (text or "-").startswith("-") for text in texts) > 1:
            return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]
        return [Result(out=ONE_LINE), Result(err=errors_of(call.name), status=None)]
    if call.name in _QUIET_SUBCOMMANDS:
        subcommand = next((text for text in texts if text is None or not text.startswith("-")), None)
        if subcommand not in _QUIET_SUBCOMMANDS[call.name]:
            return None
        return [Result(out=(QUIET,), err=(QUIET,), status=None)]
    if call.name == "ps" and any(o == "-o" and _FIELDS.fullmatch(f or "?") for o, f in pairwise(texts)):
        return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]
    if call.name in _QUIET or call.name == "find":
        if any(text is not None and text.startswith(_PRINTING_OPTIONS) for text in texts):
            return None
        if call.name in _TALKERS:
            return [Result(out=(QUIET_TEXT,), err=(QUIET_TEXT,), status=None)]
        return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]
    return None


_FIELDS: Final = re.compile(r"(?:(?:pid|ppid|pgid|sid|tty|user|uid|stat|etime|comm|ucomm)=?(?:,|$))+")
"""Fields of `ps` that hold no arguments of a process."""
_ONE_FORMAT: Final = 2
_STAMP: Final = re.compile(r"\+(?:%[FTYmdHMSsNj]|[-:/._TZ+])+")


def _stamp(texts: list[str | None]) -> Parts | None:
    """Return what `date +%F` writes: numbers and the signs between them; None for other formats."""
    formats = [text or "?" for text in texts if text not in ("-u", "--utc")]
    if len(formats) != 1 or not _STAMP.fullmatch(formats[0]):
        return None
    written = formats[0][1:].replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    number = Hole(Kind.DIGITS)
    pieces = [number if piece.startswith("%") else piece for piece in re.split("(%.)", written)]
    return joined((*pieces, "\n"))


def version_request(call: Call) -> list[Result] | None:
    """Return what `program --version` writes."""
    if len(call.arguments) == 1 and concrete(call.arguments[0]) in ("--version", "-V", "-v", "version"):
        return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]
    return None
