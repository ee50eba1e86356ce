"""The index of a git repository (`.git/index`, versions 2 to 4), and whether tracked files differ from it."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.files import read_bytes

_MAX_INDEX_BYTES: Final = 32 << 20
"""About 300,000 files: comparing them would take seconds."""
_MAX_ENTRIES: Final = 20_000
"""Files that are compared, at 2 µs each; of a larger repository it is not known whether it has changed."""
_MAX_HASHED_BYTES: Final = 1 << 20
"""Largest file that is read to find out whether it is as before."""
_MAX_HASHED_FILES: Final = 50
_ENTRY: Final = struct.Struct(">10I20sH")
_HEADER: Final = struct.Struct(">4sII")
_EXTENDED: Final = 0x4000
_ASSUME_VALID: Final = 0x8000
_SKIP_WORKTREE: Final = 0x4000
_STAGE: Final = 0x3000
_GITLINK: Final = 0o160000
_LINK: Final = 0o120000


class Entry(NamedTuple):
    """A tracked file."""

    path: bytes
    mode: int
    size: int
    mtime_ns: int
    digest: bytes
    is_skipped: bool
    """Whether git does not compare it (assume-unchanged, sparse checkout)."""
    is_merging: bool
    """Whether it has a conflict."""


class MalformedIndexError(Exception):
    """The index is damaged, of an unknown version, or too large."""


def read_index(path: Path) -> list[Entry]:
    """Return the entries of an index; none where there is no index yet.

    Raises:
        MalformedIndexError: it cannot be used.
        OSError: it cannot be read.
    """
    try:
        content = read_bytes(path, _MAX_INDEX_BYTES)
    except FileNotFoundError:
        return []
    try:
        magic, version, count = _HEADER.unpack_from(content)
        if magic != b"DIRC" or version not in (2, 3, 4) or count > _MAX_ENTRIES:
            raise MalformedIndexError(f"version {version}, {count} entries")
        return list(_entries(content, version, count))
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedIndexError(str(error)) from error


def _entries(content: bytes, version: int, count: int) -> Iterator[Entry]:
    at, path = _HEADER.size, b""
    for _ in range(count):
        start = at
        _, _, seconds, nanoseconds, _, _, mode, _, _, size, digest, flags = _ENTRY.unpack_from(content, at)
        at += _ENTRY.size
        extended = 0
        if flags & _EXTENDED:
            (extended,) = struct.unpack_from(">H", content, at)
            at += 2
        if version == 4:
            kept, at = _variable_number(content, at)
            end = content.index(b"\0", at)
            path = path[: len(path) - kept] + content[at:end]
            at = end + 1
        else:
            end = content.index(b"\0", at)
            path = content[at:end]
            at = start + ((end - start + 8) & ~7)
        yield Entry(
            path=path,
            mode=mode,
            size=size,
            mtime_ns=seconds * 1_000_000_000 + nanoseconds,
            digest=digest,
            is_skipped=bool(flags & _ASSUME_VALID or extended & _SKIP_WORKTREE),
            is_merging=bool(flags & _STAGE),
        )


def _variable_number(content: bytes, at: int) -> tuple[int, int]:
    """Parse a number of version 4, as in pack files; return it, and where it ends."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def is_changed(root: Path, entries: list[Entry], written_ns: int) -> bool | None:
    """Return whether a tracked file differs from the index; None: not known.

    A file with another time, or one that may have been written again in the same moment as the index, is read
    and compared by its content. Where git would convert it first (line ends, filters such as LFS), another
    content proves nothing.

    Args:
        root: the working tree.
        entries: of the index.
        written_ns: when the index was written (unix nanoseconds).
    """
    suspects: list[Entry] = []
    is_one_too_large = False
    base = os.fsencode(root)
    for entry in entries:
        if entry.is_merging:
            return True
        if entry.is_skipped or stat.S_IFMT(entry.mode) == _GITLINK:
            continue
        try:
            found = os.lstat(os.path.join(base, entry.path))  # noqa: PTH118 - paths are bytes
        except OSError:
            return True
        if _type_differs(entry, found):
            return True
        is_same = found.st_size & 0xFFFFFFFF == entry.size and found.st_mtime_ns == entry.mtime_ns
        if is_same and entry.mtime_ns < written_ns:
            continue
        if found.st_size == entry.size > _MAX_HASHED_BYTES:
            is_one_too_large = True
        else:
            suspects.append(entry)
    if suspects and (len(suspects) > _MAX_HASHED_FILES or _converts(root)):
        return None
    if any(_content_differs(base, entry) for entry in suspects):
        return True
    return None if is_one_too_large else False


def _type_differs(entry: Entry, found: os.stat_result) -> bool:
    if stat.S_IFMT(entry.mode) == _LINK:
        return not stat.S_ISLNK(found.st_mode)
    return not stat.S_ISREG(found.st_mode) or bool(found.st_mode & 0o100) != bool(entry.mode & 0o100)


def _content_differs(base: bytes, entry: Entry) -> bool:
    path = os.path.join(base, entry.path)  # noqa: PTH118 - paths are bytes
    try:
        is_link = stat.S_IFMT(entry.mode) == _LINK
        if is_link:
            content = os.readlink(path)  # noqa: PTH115 - paths are bytes
        else:
            content = read_bytes(os.fsdecode(path), _MAX_HASHED_BYTES, follow=False)
    except OSError:
        return True
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).digest() != entry.digest


def _converts(root: Path) -> bool:
    """Return whether a file of attributes lies in the top directory, by which git may convert contents."""
    return (root / ".gitattributes").exists()
