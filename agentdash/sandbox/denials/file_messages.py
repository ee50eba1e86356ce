"""Read messages about files: which operation on which path failed for which reason."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from agentdash.model.denials import Operation
from agentdash.model.patterns import Pattern
from agentdash.sandbox.denials.attribution import is_shells, prefix_of
from agentdash.sandbox.denials.lines import Lines
from agentdash.sandbox.denials.paths import paths_in, without_paths
from agentdash.sandbox.word_sets import word_set


class Message(msgspec.Struct, frozen=True):
    """A message about a file."""

    reason: Reason
    operation: Operation
    writes: bool | None
    """Whether the message is about writing; None where it could be reading too."""
    paths: tuple[str, ...]
    """As named, likeliest target first."""
    phrase: str
    """The words that report the failure; empty where there are only codes."""
    first: int
    last: int
    """Numbers of its lines."""


_READING: Final = Pattern(
    r"for reading|can(?:no|')t (?:read|stat|statx|access|list|open directory)"
    r"|can't open file(?! for writing)|cannot open directory|could not open directory"
    r"|opendir|readdir|scandir|readlink|realpath|unable to access '|failed to read|(?:could not|couldn't"
    r"|unable to|error) read"
    r"|cannot be loaded|unable to index|(?:^|[\s,])(?:l?stat|access|lstatx?|read|watch) [`'\"/]"
    r"|reading (?:file|from)|FileSystem\.(?:stat|read\w*|access)",
    re.IGNORECASE,
)
_OPERATIONS: Final[dict[Operation, Pattern]] = {
    "sqlite": Pattern(r"database(?! \.git| directory)|SQLITE_|sqlite3?\.", re.IGNORECASE),
    "mkdir": Pattern(
        r"mkdir|creat(?:e|ing) (?:\w+ ){0,2}(?:director|folder)|make director|create_dir|makeDirectory"
        r"|create work tree dir|can't make|mkdtemp|makedirs",
        re.IGNORECASE,
    ),
    "rename": Pattern(r"\brename|cannot move|can't move|\bmv: |cannot overwrite|moving ", re.IGNORECASE),
    "delete": Pattern(r"cannot unlink|\bunlink|\brmdir|\brm: |delet|remov", re.IGNORECASE),
    "chmod": Pattern(
        r"\bchmod|\bchown|\bchgrp|changing (?:permissions|ownership|group)|chang\w+ (?:mode|owner)"
        r"|setfacl|setxattr",
        re.IGNORECASE,
    ),
    "create": Pattern(
        r"creat|mktemp|mkstemp|cannot touch|\btouch: |symlink|symbolic link|hard link|\blink |\bln: "
        r"|mkfifo|mknod|copyfile|FileOutputStream|temporary file",
        re.IGNORECASE,
    ),
    "write": Pattern(
        r"writ|\bappend|truncat|overwrit|\bsav(?:e|ing)\b|\block(?:ed|ing)?\b|setting times|utime"
        r"|cannot make|output file|log file|\btee: |\bdd: |\binstall: |for (?:output|appending)"
        r"|failed to open (?:the file|stream)|file_put_contents|into ",
        re.IGNORECASE,
    ),
}
_GIT: Final = Pattern(r"(?:^|/)\.git/")
"""In the repository; `.git` alone is also the name of an empty file with which uv marks its caches."""
_OF_GIT: Final = ("fatal: ", "error: ", "git: ")
_CHAIN: Final = Pattern(
    r"^\s*(?:caused? by\b|cause\b|because\b|reason\b|\d+: |[╰├└│|>*✗×·-])|^\s{2,}\S|^\t|^ \S",
    re.IGNORECASE,
)
_TROUBLE: Final = Pattern(
    r"fail|error|cannot|can't|could ?n[o']t|couldn't|unable|denied|refus|not (?:create|open|write)"
    r"|initiali[sz]",
    re.IGNORECASE,
)
_CHAIN_LINES: Final = 10
"""Lines between the path and the error number in the longest chains of causes (cargo's)."""
_MAX_PATH: Final = 1_000
_FIELD: Final = Pattern(
    r"^\s*['\"]?(?:code|errno|syscall|path|dest|address|port)['\"]?: |^npm (?:ERR!|error) (?:code|errno"
    r"|syscall|path|dest) "
)
"""Fields of an error that its message, a line above or below, has in words."""
_FUNCTIONS: Final = word_set(
    "open openat fopen creat tmpfile mkstemp mkostemp mkdtemp mktemp write"
) | frozenset(("rename", "renameat", "unlink", "mkdir", "rmdir", "link", "symlink", "truncate", "utimensat"))
"""Functions of the C library, which `perror` puts in the place of a file."""
_PLACE: Final = Pattern(r"^\S+:\d+:in [`'][^`']*': |^\s{0,4}\S*/\S+?:(?: line)? \d+: ")
"""Where Ruby raised an error: `/usr/lib/ruby/3.1.0/fileutils.rb:243:in `mkdir': `; which script a shell runs,
and where in it: `/bin/bash: line 1: `, `./build.sh: 3: `."""
_RUBY_PATH: Final = Pattern(r" @ \w+ - (?:\([^,()]*, )?(?P<path>[^()]+?)\)?(?: \(Errno::\w+\))?$")
_BARE: Final = Pattern(r"(?:^|: |cannot create )([\w.@+~-]+)$")
_TAR: Final = Pattern(r"^(?:bsd)?tar: (?P<path>.+?): (?:Cannot|Can't) \w+(?: \w+)*: $")
"""What tar says of a member, whose name is relative to where it extracts."""
_HERE: Final = Pattern(r" \./: $")
"""The working directory: gcc's `Cannot create temporary file in ./: `."""


def read_message(lines: Lines, number: int, script: str) -> Message | None:
    """Return what the line reports about a file, with what the lines around it add; None for nothing.

    Args:
        number: of the line.
        script: what ran: it shows where a path with blanks begins and ends.
    """
    line = lines[number]
    found = reason_in(line)
    if found is None:
        return None
    reason, match = found
    if _FIELD.match(line):
        return None
    first = last = number
    if place := _PLACE.match(line):
        line = line[place.end() :]
        reason, match = reason_in(line) or (reason, match)
    paths = _paths(line[: match.start()], _behind(line, match), match[0], script)
    text = line
    complete = any("/" in path for path in paths) or (paths and (is_shells(lines[number]) or prefix_of(line)))
    if complete and _CHAIN.match(line) and (above := _directory_above(lines, number, paths)):
        paths = (above, *paths)
    if not complete:
        more, first, last, text = _around(lines, number)
        paths = (*more, *paths)
    writes = _writes(reason, text)
    return Message(
        reason=reason,
        operation=_operation(reason, text, paths),
        writes=writes,
        paths=paths,
        phrase=phrase_of(line),
        first=first,
        last=last,
    )


def _behind(line: str, match: re.Match[str]) -> str:
    """Return what follows the reason; of its repetition in words (`EROFS: read-only file system`) what
    follows that."""
    rest = line[match.end() :]
    repeated = re.match(
        r":? ?(?:read-only file ?system|operation not permitted|permission denied)", rest, re.IGNORECASE
    )
    return rest[repeated.end() :] if repeated else rest


def _paths(before: str, behind: str, reason: str, script: str) -> tuple[str, ...]:
    if ruby := _RUBY_PATH.match(behind):
        return (ruby["path"],)
    inner = paths_in(reason)  # `Access to the path '/x' is denied`
    after = paths_in(behind)
    arrow = re.search(r"['\"`] -> ['\"`]", behind)
    first = paths_in(before)
    ordered = [*inner, *(reversed(after) if arrow else after)]
    if "->" in before:
        ordered += first  # `'link' -> 'its text'`
    else:
        ordered += reversed(first)
    if not ordered and (bare := _bare_path(before)):
        ordered.append(bare)
    if bare_after := re.match(r":\s+([\w.@+~-]+)$", behind):
        ordered.append(bare_after[1])
    ordered.sort(key=lambda path: "/" not in path)
    line = f"{before}{reason}{behind}"
    return tuple(dict.fromkeys(_extended(path, line, script) for path in ordered))


def _bare_path(before: str) -> str | None:
    """Return the file without a slash that stands before the reason."""
    if member := _TAR.match(before):
        return member["path"]
    if _HERE.search(before):
        return "./"
    if not before.rstrip().endswith((":", "(", "[", "]", ")")):
        return None
    text = re.sub(r"[:\s(\[]+(?:\[?errno -?\d+\]?|\d+:)?\s*$", "", before, flags=re.IGNORECASE)
    bare = _BARE.search(text)
    return bare[1] if bare and bare[1] not in _FUNCTIONS else None


def _extended(path: str, line: str, script: str) -> str:
    """Return a path with the rest of it behind its blanks, as far as the script has that rest as well."""
    at = line.find(f"{path} ")
    if at < 0 or f"{path} " not in script:
        return path
    longest = path
    for end in range(at + len(path) + 1, min(len(line), at + _MAX_PATH)):
        if line[at : end + 1] not in script:
            break
        if line[end] not in " '\"`,:;()":
            longest = line[at : end + 1]
    return (
        longest
        if "/" in longest[len(path) :].lstrip(" /") and not longest[len(path) :].startswith(" /")
        else path
    )


def _around(lines: Lines, number: int) -> tuple[tuple[str, ...], int, int, str]:
    """Return paths of the lines that belong to this one, the numbers of the first and last of them, and
    their text."""
    line = lines[number]
    if line.rstrip().endswith(":"):  # brew's list of directories; CMake's file
        for later in (number + 1, number + 2):
            if re.fullmatch(r"\s*[~/]\S*\s*", "".join(lines.range(later, later))):
                return (lines[later].strip(),), number, later, line
    if line.startswith(("E: ", "W: ", "N: ")):  # each of apt's lines is a message of its own
        return (), number, number, line
    chained = _CHAIN.match(line) is not None
    for earlier in range(number - 1, max(-1, number - 1 - _CHAIN_LINES), -1):
        above = lines[earlier]
        if not above.strip():
            continue
        if found := [path for path in paths_in(above) if "/" in path]:
            if _TROUBLE.search(above) and 'File "' not in above:
                return tuple(reversed(found)), earlier, number, f"{above}\n{line}"
            break
        if not chained:
            break
    return (), number, number, line


def _directory_above(lines: Lines, number: int, paths: tuple[str, ...]) -> str | None:
    """Return the directory that the beginning of a chain of causes is about, if a file in it is the cause
    (uv: `Failed to initialize cache at`)."""
    more, *_ = _around(lines, number)
    return next((path for path in more if any(each.startswith(f"{path}/") for each in paths)), None)


@lru_cache(2_048)
def _writes(reason: Reason, text: str) -> bool | None:
    if reason is Reason.READ_ONLY:
        return True
    text = without_paths(text)
    if _READING.search(text):
        return False
    if reason in (Reason.DATABASE, Reason.UNWRITABLE, Reason.MISSING):
        return True
    return True if any(pattern.search(text) for pattern in _OPERATIONS.values()) else None


def _operation(reason: Reason, text: str, paths: tuple[str, ...]) -> Operation:
    if reason is Reason.DATABASE:
        return "sqlite"
    if reason is Reason.MISSING:
        return "write" if ": open " in text else "mkdir"
    if any(map(_GIT.search, paths)) or (text.startswith(_OF_GIT) and any(p.endswith(".git") for p in paths)):
        return "git"
    return operation_of(text)


@lru_cache(2_048)
def operation_of(text: str) -> Operation:
    """Return the operation that the words of a message are about; `write` where they do not show which."""
    text = without_paths(text)
    return next((operation for operation, pattern in _OPERATIONS.items() if pattern.search(text)), "write")


# ------------------------------------------------------------
# The reasons that messages about files give for a failure


class Reason(StrEnum):
    """Why an operation on a file failed, as the message gives it."""

    READ_ONLY = "EROFS"
    """Only writing fails with it: with a restricted policy this is the read-only root of bubblewrap (Codex
    0.125+)."""
    NOT_PERMITTED = "EPERM"
    """Of macOS' Seatbelt. Also of `chown`, and of what is no file."""
    PERMISSION = "EACCES"
    """Of Landlock (Codex through 0.114). Also of plain file modes, and of reading."""
    DATABASE = "database"
    """SQLite gives no error number: not there, read-only, not permitted read alike."""
    UNWRITABLE = "unwritable"
    """A program found by itself that it may not write, and went on or gave up without an error number."""
    MISSING = "ENOENT"
    """A directory that a program makes first is not there: its own failure to make it is not in the message
    (Node's recursive mkdir of Node 20, `install -d`, `go env -w`)."""


_REASONS: Final = (
    (Reason.READ_ONLY, Pattern(r"read-only file ?system|\bEROFS\b", re.IGNORECASE)),
    (Reason.NOT_PERMITTED, Pattern(r"operation not permitted|\bEPERM\b", re.IGNORECASE)),
    (
        Reason.PERMISSION,
        Pattern(
            r"permission denied(?! \(publickey|, please try again)|\bEACCES\b|PermissionDenied\b"
            r"|AccessDeniedException"
            r"|insufficient permission|Access to the path .{1,300} is denied",
            re.IGNORECASE,
        ),
    ),
    (
        Reason.DATABASE,
        Pattern(
            r"unable to open (?:the )?database(?: file)?|attempt to write a readonly database"
            r"|readonly database"
            r"|SQLITE_(?:READONLY|CANTOPEN)",
            re.IGNORECASE,
        ),
    ),
    (
        Reason.UNWRITABLE,
        Pattern(
            r"(?:is|are) not writ(?:e-?)?able|Could not create local repository at"
            r"|due to an error writing to the directory"
            r"|does not exist and could not be created|Please check your permissions"
            r"|cannot lock ref '.{1,200}': unable to create directory for|Unable to \(re\)create the"
            r"|No usable temporary directory"
            r"|don't have write permissions? for|trying to write to [`'\"]"
            r"|Failed to add the host to the list of known hosts|E212: Can't open file for writing"
            r"|\bUnknown: FileSystem\.\w+"
            r"|^curl: \(23\) |unable to create temporary object directory|\(unpacker error\)$"
            r"|could not create parent directories$"
        ),
    ),
    (
        Reason.MISSING,
        Pattern(
            r"ENOENT: no such file or directory(?=, mkdir ['\"])"
            r"|^install: cannot change permissions of .{1,300}: No such file or directory$"
            r"|^go: writing go env config: open .{1,300}: no such file or directory$"
        ),
    ),
)

_WORDS: Final = Pattern(
    r"read-only file ?system|operation not permitted|permission denied"
    r"|unable to open|readonly database|\bnot writ(?:e-?)?able",
    re.IGNORECASE,
)


@lru_cache(2_048)  # logs repeat their lines
def reason_in(line: str) -> tuple[Reason, re.Match[str]] | None:
    """Return the reason that a line gives, and the words or the code for it; None where it gives none."""
    for reason, pattern in _REASONS:
        if match := pattern.search(line):
            return reason, match
    return None


def phrase_of(line: str) -> str:
    """Return the words of a line that report a failure; empty where it has codes only."""
    found = _WORDS.search(line)
    return found[0] if found else ""
