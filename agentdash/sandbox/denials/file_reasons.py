"""The reasons that messages about files give for a failure."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from agentdash.model.patterns import Pattern


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
            r"|cannot lock ref '.{1,200}': unable to create directory for"
            r"|Unable to \(re\)create the|Failed to clean project: Failed to delete"
            r"|No usable temporary directory"
            r"|don't have write permissions? for|trying to write to [`'\"]"
            r"|Failed to add the host to the list of known hosts|E212: Can't open file for writing"
            r"|\bUnknown: FileSystem\.\w+"
            r"|^curl: \(23\) |unable to create temporary object directory|\(unpacker error\)$"
            r"|could not create parent directories$"
            r"|^(?:strip|objcopy): .{1,300}: Bad file descriptor$",  # what they cannot create
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
