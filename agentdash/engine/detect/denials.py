"""Refusals by a sandbox, read from what a command printed.

The words alone prove nothing: a full disk, a foreign file or a missing network print the same. A text counts as a denial only where
the policy in force makes it plausible: the named path may not be written, or the network is off. Under full access nothing makes it so by
itself: there it is kept as uncertain, for whoever knows what the commands got.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

from agentdash.model.fleet import Denial
from agentdash.model.policy import Filesystem, Network, Policy

_READ_ONLY: Final = re.compile(r"[Rr]ead-only file system|\bEROFS\b|os error 30\b|Errno 30\b|errno: -30\b")
"""EROFS: with a restricted policy this is its read-only root (bubblewrap, 0.125+), whatever else might say so."""
_REFUSED: Final = re.compile(
    r"Permission denied|\bEACCES\b|os error 13\b|Errno 13\b|Operation not permitted|\bEPERM\b|Errno 1\b"
)
"""EACCES and EPERM: Landlock says these (through 0.114), and so do plain file modes."""
_DATABASE: Final = re.compile(
    r"unable to open database file|attempt to write a readonly database|SQLITE_READONLY|SQLITE_CANTOPEN|readonly database",
    re.IGNORECASE,
)
_WORDS: Final = (
    *(
        "Permission denied",
        "Operation not permitted",
        "EROFS",
        "EACCES",
        "EPERM",
        "EAI_AGAIN",
        "Errno ",
        "SQLITE_",
        "FailedToOpenSocket",
    ),
    *(
        "Network access ",
        "Network is unreachable",
        "NewConnectionError",
        "Name or service not known",
        "Temporary failure in name",
    ),
    "Domain not in allowlist",
)
_PHRASES: Final = (
    *(
        "-only file system",
        "os error ",
        "errno: -30",
        "database file",
        "readonly database",
        "ould not resolve host",
    ),
    *("nodename nor servname", "curl: (7)", "bwrap: ", "linux-sandbox/", "due to an error writing"),
)
"""One of these is in every line that a rule below matches. Outputs are long and denials rare: what has none is done with."""


def _by_initial(words: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    """A pattern for each initial: those are capitals, which are rare, and a search leaps from one to the next."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return {initial: re.compile(f"{initial}(?:{'|'.join(some)})") for initial, some in rests.items()}


_CAPITALS: Final = _by_initial(_WORDS)
_NETWORK: Final = re.compile(
    r"error connecting to \S+ \(Operation not permitted\)"  # tmux
    r"|(?:connect|listen) EPERM|FailedToOpenSocket|Cannot open netlink socket: Operation not permitted"
    r"|(?:socket|sendto|connect)\S*: .*Operation not permitted"
    r"|Network access (?:to \S+ )?(?:was|is) (?:denied|blocked) by|Domain not in allowlist"
)
_SOCKET: Final = re.compile(r"\[Errno 1\] Operation not permitted")
"""What Python says of `socket()`; the word itself is in the traceback above."""
_UNRESOLVED: Final = re.compile(
    r"Temporary failure in name resolution|[Cc]ould not resolve host|EAI_AGAIN|Name or service not known|nodename nor servname"
    r"|curl: \(7\)|Network is unreachable|connection broken by 'NewConnectionError"
)
"""What a cut network looks like to a resolver, and to who connects to an address: also what being offline looks like."""
_NO_SANDBOX: Final = re.compile(r"^bwrap: .+|thread 'main' panicked at linux-sandbox/")
_UNWRITTEN: Final = re.compile(r"due to an error writing to the directory: ")
"""npm's logs: it does not name the error, nor fail for it."""
_OWN_PLACES: Final = ("/proc/", "/dev/", "/sys/")
"""Where refusals are the kernel's own, sandbox or not."""
_NAMELESS: Final = re.compile(r"failed in sandbox: [\w -]+\Z")
"""What 0.49 and 0.50 leave of `touch: cannot touch '/etc/x': Permission denied`: the command alone names the file."""
_QUOTE: Final = 400
"""Characters quoted of a line."""
_PATH: Final = re.compile(
    r"""(?:[`'"‘“]((?:~|/)[^`'"’”\n]*)[`'"’”])|((?<![\w.:/])(?:~|/|\.git/)(?:[\w.@+,-]+/?)+)"""
)
_DATABASE_FILE: Final = re.compile(
    r"""((?:~|/|\$HOME|\./|\b[\w.-]+/)[\w./@+-]*\.(?:db|sqlite3?|sqlite-wal))\b"""
)
_HOME_PLUS: Final = re.compile(
    r"""(?:os\.environ\[['"]HOME['"]\]|process\.env\.HOME|os\.homedir\(\)|Path\.home\(\))\s*[+/]\s*['"]/?"""
)
"""How programs name a file in the home directory."""


def denial(command: str, output: str, policy: Policy | None, cwd: str | None) -> Denial | None:
    """The denial that this output tells of, if it does.

    Args:
        command: what was run; it often names the file that the error text leaves out.
        output: what it printed.
        policy: the policy in force when it ran.
        cwd: its working directory, to place relative paths.
    """
    if policy is None or policy.enforced_by == "external":
        return None
    lines = _telling(output)
    if policy.enforced_by == "nobody":
        return _under_full_access(lines, command, output, cwd)
    if policy.filesystem is Filesystem.UNKNOWN:
        return None
    if found := next((line for line in lines if _NO_SANDBOX.search(line)), None):
        return Denial("sandbox", found)
    offline = policy.network is not Network.ON
    if offline and (found := next((line for line in lines if _cut_off(line, command, output)), None)):
        return Denial("network", found)
    if policy.filesystem is not Filesystem.UNRESTRICTED and (
        denied := _file_denial(command, lines, policy, cwd)
    ):
        return denied
    if offline and (found := next((line for line in lines if _UNRESOLVED.search(line)), None)):
        return Denial("network", found, certain=False)
    if found := next((line for line in lines if _UNWRITTEN.search(line)), None):
        path = _path_in(found, cwd)
        return (
            Denial("filesystem", found, path, certain=False)
            if path and policy.may_write(path) is False
            else None
        )
    return None


def _under_full_access(lines: list[str], command: str, output: str, cwd: str | None) -> Denial | None:
    """Words of a sandbox where there should be none."""
    for line in lines:
        if _READ_ONLY.search(line):
            return Denial("filesystem", line, _path_in(line, cwd), certain=False)
        if _cut_off(line, command, output):
            return Denial("network", line, certain=False)
    return None


def _telling(output: str) -> list[str]:
    """The lines that may tell of a denial."""
    hits = [
        match.start()
        for initial, pattern in _CAPITALS.items()
        if initial in output
        for match in pattern.finditer(output)
    ]
    for phrase in filter(output.__contains__, _PHRASES):
        hits += [match.start() for match in re.finditer(re.escape(phrase), output)]
    lines: list[str] = []
    end = -1
    for at in sorted(hits):
        if at > end:
            start, end = output.rfind("\n", 0, at) + 1, output.find("\n", at)
            end = len(output) if end < 0 else end
            lines.append(output[start:end].strip()[:_QUOTE])
    return lines


def _cut_off(line: str, command: str, output: str) -> bool:
    return _NETWORK.search(line) is not None or (
        _SOCKET.search(line) is not None and ("socket" in command or "socket" in output)
    )


def home_of(cwd: str | None) -> str | None:
    """The home directory that a working directory lies in, by the customs of Linux and macOS."""
    match = re.match(r"(/(?:home|Users)/[^/]+|/root)(?:/|$)", cwd or "")
    return match[1] if match else None


def _file_denial(command: str, lines: list[str], policy: Policy, cwd: str | None) -> Denial | None:
    last: Denial | None = None
    for line in lines:
        read_only, is_database = _READ_ONLY.search(line) is not None, _DATABASE.search(line) is not None
        if not (read_only or is_database or _REFUSED.search(line)):
            continue
        path = _path_in(line, cwd) or (_database_in(f"{line}\n{command}", cwd) if is_database else None)
        if path is None and _NAMELESS.match(line):
            path = _path_in(command, cwd)
        allowed = policy.may_write(path) if path else None
        if (
            allowed is True
            or (allowed is None and not is_database and not read_only)
            or (path or "").startswith(_OWN_PLACES)
        ):
            continue  # a path that may be written, or words that name none: an ordinary failure
        last = Denial("filesystem", line, path)
    return last


def _path_in(line: str, cwd: str | None) -> str | None:
    found = [a or b for a, b in _PATH.findall(line)]
    return _place(found[-1], cwd) if found else None


def _database_in(text: str, cwd: str | None) -> str | None:
    found: list[str] = _DATABASE_FILE.findall(_HOME_PLUS.sub("~/", text))
    return _place(found[0], cwd) if found else None


def _place(path: str, cwd: str | None) -> str:
    """Absolute as far as it can be known: `~` and relative paths are resolved against the working directory."""
    path = path.strip().rstrip(":,;")
    if path.startswith("$HOME"):
        path = "~" + path[5:]
    if path.startswith("~/") and (home := home_of(cwd)):
        path = home + path[1:]
    elif not path.startswith(("/", "~")) and cwd:
        path = posixpath.join(cwd, path)
    return posixpath.normpath(path)
