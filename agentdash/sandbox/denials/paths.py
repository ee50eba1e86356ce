"""Paths as messages and scripts name them, placed in the file system."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import Final

import msgspec

from agentdash.model.policy import TMPDIR, Filesystem, Policy, PolicyRule

_MACOS_TEMPORARY: Final = ("/var/folders/", "/private/var/folders/")
"""What TMPDIR is on macOS."""
_PRIVATE: Final = re.compile(r"/private(?=/(?:tmp|var|etc)(?:/|$))")
"""macOS: /tmp, /var and /etc are symbolic links into /private; messages have either form."""

_QUOTED: Final = re.compile(
    r"""(?:(?<!\w)|(?<=\b[bur]))'([^'\n]+)'|"([^"\n]+)"|`([^`'\n]+)[`']|‘([^’\n]+)’|“([^”\n]+)”"""
)
_ABSOLUTE: Final = re.compile(r"""(?<![\w.:/~@%+-])(?:~|\$HOME)?/(?:[^\s:'"`,;()<>|’”“»」\]}\\]|\\ )*""")
_RELATIVE: Final = re.compile(
    r"""(?<![\w./:@-])(?:\.{0,2}[\w@+-][\w.@+-]*/[\w.@+/-]+|\.{1,2}/[\w.@+/-]+|\.git(?=[\s:,]|$))"""
)
_DATABASE_PATH: Final = re.compile(
    r"""(?:(?<=')|(?<="))((?:~|/|\$HOME|\.)[^'"\n]*\.(?:db|db3|sqlite|sqlite3))(?=['"])"""
    r"""|((?:~|/|\$HOME|\$\{HOME\}|\.{1,2}/|\b[\w.-]+/)[\w./@+-]*\.(?:db|db3|sqlite|sqlite3|sqlite-wal)\b"""
    r"""|(?<![\w/.$~-])[\w-]+\.(?:db|db3|sqlite3?)\b)"""
)
_HOME_PLUS: Final = re.compile(
    r"""(?:os\.environ(?:\.get\(|\[)['"]HOME['"][\])]|process\.env\.HOME|os\.homedir\(\)"""
    r"""|Path\.home\(\)|ENV\[['"]HOME['"]\])\s*[+/,]\s*['"]/?"""
)
"""How programs name a file in the home directory."""


def place(path: str, cwd: str | None, home: str | None) -> str | None:
    """Return a path as absolute and normalized; None where that takes what is not known."""
    path = path.strip().rstrip(":,;")
    path = re.sub(r"^(?:\$HOME|\$\{HOME\}|~)(?=/|$)", "~", path)
    if path.startswith("~"):
        if home is None or not (path == "~" or path.startswith("~/")):
            return None
        path = home + path[1:]
    if not path or "$" in path or "\0" in path:
        return None
    if not path.startswith("/"):
        if cwd is None:
            return None
        path = posixpath.join(cwd, path)
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


@lru_cache(2_048)  # logs repeat their lines
def paths_in(text: str) -> tuple[str, ...]:
    """Return what looks like a path in a message, in order; quoted texts first count as paths if they have
    a slash or no blank."""
    found: list[tuple[int, str]] = []
    taken: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group)
        if "://" in inner or not ("/" in inner or _is_bare_name(text, match, inner)):
            continue
        found.append((match.start(), inner))
        taken.append(match.span())
    for pattern in (_ABSOLUTE, _RELATIVE):
        for match in pattern.finditer(text):
            if any(start <= match.start() < end for start, end in taken) or "://" in match[0]:
                continue
            found.append((match.start(), match[0].rstrip(".") if len(match[0]) > 3 else match[0]))
            taken.append(match.span())
    return tuple(path for _, path in sorted(found))


def _is_bare_name(text: str, match: re.Match[str], inner: str) -> bool:
    """Return whether a quoted word without a slash is a file's name: it stands beside the reason."""
    behind, before = text[match.end() :].strip(" :(,"), text[: match.start()].strip(" :,-@")
    return re.fullmatch(r"[\w.@+~-]+", inner) is not None and (
        not behind or not before or behind.startswith(("->", "=>", "to "))
    )


def without_paths(text: str) -> str:
    """Return a message with its paths shortened to `/`, so that their words are not taken for its own."""
    text = _QUOTED.sub(_shortened, text)
    return _RELATIVE.sub("/", _ABSOLUTE.sub("/", text))


def _shortened(match: re.Match[str]) -> str:
    inner = match[0][1:-1]
    if "/" not in inner or ": " in inner:
        return match[0][0] + (without_paths(inner) if "/" in inner else inner) + match[0][-1]
    return "'/'"


def databases_in(text: str) -> list[str]:
    """Return the database files that a text names."""
    found = (match[1] or match[2] for match in _DATABASE_PATH.finditer(_HOME_PLUS.sub("~/", text)))
    return list(dict.fromkeys(found))


def may_write(policy: Policy, path: str) -> bool | None:
    """Return what the policy allows for an absolute path, or None if it does not decide it (kernel file
    systems, unknown policies)."""
    temporary = any(rule.path == TMPDIR and rule.access == "write" for rule in policy.rules)
    if temporary and path.startswith(_MACOS_TEMPORARY):
        return True
    forms = {path, _PRIVATE.sub("", path)}
    if path.startswith(("/tmp", "/var", "/etc")):  # noqa: S108  macOS has them under /private
        forms.add("/private" + path)
    return True if any(policy.may_write(form) for form in forms) else policy.may_write(path)


def denies_read(policy: Policy, path: str) -> bool:
    """Return whether the policy hides this path from reading."""
    if not policy.has_deny:
        return False
    readable = (msgspec.structs.replace(r, access="write") if r.access != "deny" else r for r in policy.rules)
    hiding = Policy(filesystem=Filesystem.CUSTOM, rules=(PolicyRule("/", "write"), *readable))
    return hiding.may_write(path) is False


def is_same(named: str, path: str, cwd: str | None, home: str | None) -> bool:
    """Return whether a name in a script and a path in a message are of one file, as far as is known."""
    if not path or named == path:
        return True
    if named.startswith("~/") and path.startswith("/") and path.endswith(named[1:]):
        return True  # below the home directory, wherever that lies
    here, there = place(named, cwd, home), place(path, cwd, home)
    if here is None or there is None:
        return posixpath.basename(named.rstrip("/")) == posixpath.basename(path.rstrip("/"))
    return here == there
