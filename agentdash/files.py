"""Open files that another program may have written: regular files only, never blocking, of limited size.

A path that agentdash reads may lead to a FIFO, a device or a loop of links. Opening these may block for ever
or have side effects, so that the type is checked before a file is opened, and again on its descriptor.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

MAX_TEXT_FILE_BYTES: Final = 1 << 20
"""Largest config, rules or state file that is read: written by hand, they have a few kB."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_READ_BYTES: Final = 1 << 16
_MAX_UNPACKED_FACTOR: Final = 1_000
"""Texts are compressed to a tenth, repeated ones to a hundredth of their size."""
_UNPACKED_IN_ANY_CASE_BYTES: Final = 1 << 30
_UNPACK_STEP_BYTES: Final = 1 << 10
"""Decompressed at once: the most hostile input of this size becomes 32 MiB."""
_TEMPORARY: Final = ".new"
"""The end of the name under which a file is written before it takes its place."""
_ABANDONED_S: Final = 600.0
"""Age of a temporary file whose writer was killed."""
TORN: Final = "ends in the middle of a line"
"""What is wrong with a compressed file that does not end with a whole line: it is written at once."""
_record: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
OnError = Callable[[OSError], None]
"""Called with the error of each directory or database that cannot be read; its `filename` is the path."""


@contextmanager
def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[int]:
    """Open a regular file for reading, as a descriptor that is closed at the end of the `with` block.

    Args:
        follow: whether the last component may be a symbolic link.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    fd = _open(path, follow=follow)
    try:
        yield fd
    finally:
        os.close(fd)


def open_stream(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Return a regular file, opened for reading as a buffered stream.

    Args:
        buffering: bytes that are read at once; -1: few.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    return os.fdopen(_open(path, follow=True), "rb", buffering)


def read_bytes(path: str | os.PathLike[str], limit: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file.

    Args:
        limit: bytes; a larger file is an error.
        follow: whether the last component may be a symbolic link.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than `limit`.
    """
    content = bytearray()
    with open_regular(path, follow=follow) as fd:
        while block := os.read(fd, _READ_BYTES):
            content += block
            if len(content) > limit:
                raise OSError(errno.EFBIG, f"larger than {limit} bytes", os.fspath(path))
    return bytes(content)


def read_text(path: str | os.PathLike[str], limit: int = MAX_TEXT_FILE_BYTES) -> str:
    """Return the content of a regular UTF-8 file, without a byte order mark, with universal newlines.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than `limit` bytes.
        UnicodeDecodeError: it is not valid UTF-8.
    """
    text = read_bytes(path, limit).decode("utf-8-sig")  # Codex reads its files with the mark as well
    return text.replace("\r\n", "\n").replace("\r", "\n")


def expand_user(path: str | os.PathLike[str]) -> Path:
    """Return a path with its `~` or `~user` replaced by that home directory.

    Raises:
        FileNotFoundError: no such user or home directory is known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        shown = os.fspath(path)
        raise FileNotFoundError(errno.ENOENT, f"no home directory {Path(path).parts[0]}", shown) from None


def unpacked(packed: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the content of a zstd-compressed file in pieces of about `size` bytes; the last may be empty.

    Raises:
        ValueError: the file is damaged, ends too early, or becomes larger than any file of Codex.
    """
    from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - compressed files are rare

    frame = ZstdDecompressor().decompressobj()
    begun = False
    plain = bytearray()
    packed_bytes = plain_bytes = 0
    try:
        while data := packed.read(_UNPACK_STEP_BYTES):
            packed_bytes += len(data)
            while data:
                piece = frame.decompress(data)
                plain += piece
                plain_bytes += len(piece)
                if plain_bytes > max(_UNPACKED_IN_ANY_CASE_BYTES, _MAX_UNPACKED_FACTOR * packed_bytes):
                    raise ValueError(f"compressed data that becomes more than {plain_bytes >> 20} MB")
                data = frame.unused_data
                begun = not frame.eof
                if frame.eof:
                    frame = ZstdDecompressor().decompressobj()
            if len(plain) >= size:
                yield bytes(plain)
                plain.clear()
    except ZstdError as error:
        yield bytes(plain)
        raise ValueError(str(error)) from error
    yield bytes(plain)
    if begun:
        raise ValueError("compressed data that is not complete")


def file_size(path: Path) -> int:
    """Return the bytes of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def is_record(data: bytes | bytearray) -> bool:
    """Return whether data is one whole JSON object: a last line without its newline, that was not torn."""
    if not data.rstrip().endswith(b"}"):  # most are found out by this
        return False
    try:
        _record.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def write_file(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file that the user named, whole: on an error there is no new file, and an old one keeps its
    content. Others may not read a new one; one that is replaced keeps its permissions.

    Args:
        content: of the file.
        replace: whether an existing regular file is replaced; another kind of file never is.

    Raises:
        OSError: it exists, or cannot be written.
    """
    if not replace:
        with _created(path) as descriptor:
            _write_all(descriptor, content)
        return
    target = path.resolve()
    mode = 0o600
    if target.exists():
        _check_regular(found := target.stat(), path)
        mode = stat.S_IMODE(found.st_mode)
    _remove_abandoned(target.parent, f".{glob.escape(target.name)}.*{_TEMPORARY}")
    _replace(target, content, mode)


def write_private(path: Path, content: bytes) -> os.stat_result:
    """Replace a file of agentdash's own directory, whatever it is; only this user may read it.

    What killed writers left in the directory is removed: hidden files there are temporary.

    Returns:
        The new file: its inode and time of change.

    Raises:
        OSError: it cannot be written, or the directory is not private.
    """
    ensure_private_directory(path.parent)
    _remove_abandoned(path.parent, ".*")
    return _replace(path, content, 0o600)


def _remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove what writers of this user left that were killed: writing takes milliseconds."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            found = path.lstat()
            is_left = time.time() - found.st_mtime > _ABANDONED_S and found.st_uid == os.geteuid()
            if is_left and stat.S_ISREG(found.st_mode):
                path.unlink()


def _replace(path: Path, content: bytes, mode: int) -> os.stat_result:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{_TEMPORARY}")
    with _created(temporary) as descriptor:
        _write_all(descriptor, content)
        os.fchmod(descriptor, mode)
        written = os.fstat(descriptor)
        temporary.replace(path)
    return written


@contextmanager
def _created(path: Path) -> Iterator[int]:
    """Create a file of mode 0600, as a descriptor for the block; remove it if that fails."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def create_private_directory(path: Path) -> None:
    """Create a directory and its missing parents; only this user may enter them, from the start.

    Raises:
        OSError: one cannot be created, or the path is not a directory.
    """
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def ensure_private_directory(path: Path) -> None:
    """Create a directory that only this user may enter, or take all rights on an existing one from others.

    Raises:
        OSError: it cannot be created, is a symbolic link, or belongs to another user.
    """
    create_private_directory(path)
    if (problem := _owner_problem(found := path.lstat())) is not None:
        raise PermissionError(errno.EPERM, problem, str(path))
    if found.st_mode & 0o077:
        path.chmod(0o700)


def untrusted(path: Path) -> str | None:
    """Return why a file that agentdash wrote may have been written by others, or None if it cannot.

    Raises:
        OSError: it does not exist, or cannot be examined.
    """
    for each in (path.parent, path):
        found = each.lstat()
        problem = _owner_problem(found)
        if problem is None and found.st_mode & 0o022:
            problem = "other users may write to it"
        if problem is not None:
            return f"{each}: {problem}"
    return None


def _owner_problem(found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    return None if found.st_uid == os.geteuid() else f"belongs to user {found.st_uid}"


def _open(path: str | os.PathLike[str], *, follow: bool) -> int:
    # opening some devices and pipes has effects of its own: the type is checked first
    _check_regular(os.stat(path, follow_symlinks=follow), path)  # noqa: PTH116 - strings are faster
    fd = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    try:
        _check_regular(os.fstat(fd), path)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check_regular(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
