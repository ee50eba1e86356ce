"""The git repositories that live workers work in: branch, worktree, upstream, changes.

Their configuration may name programs (`core.fsmonitor`, filters, hooks), and a sandboxed worker may write it:
`git status` would run them outside the sandbox. So files are read here directly, and git is run for two
questions only, by object ids and without a working tree, where it uses none of these: how many commits lie
between two, and whether the index differs from a commit.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import stat
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.collect.scheduler import look_repeatedly
from agentdash.files import read_bytes
from agentdash.model.events import Event, RepositorySeen
from agentdash.model.fleet import Fleet
from agentdash.model.git import Repository
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.programs import environment, find_program

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PACKED_REFS_BYTES: Final = 16 << 20
_MAX_LINKS: Final = 5
"""Symbolic refs that lead to others."""
_GIT_TIMEOUT_S: Final = 2.0
_ID: Final = re.compile(r"[0-9a-f]{40}")
_SECTION: Final = re.compile(r'\[\s*(\w+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # no fetch of missing objects by a program of the configuration
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_SAFE: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.commitGraph=false",
    "core.pager=cat",
)


class Place(NamedTuple):
    """Where a repository is."""

    root: Path
    """The working tree."""
    git: Path
    """Its own files: `.git`, or `.git/worktrees/NAME` of the main one."""
    common: Path
    """The files that all worktrees share."""


def find_repository(directory: Path) -> Place | None:
    """Return the repository that a directory lies in, or None if it lies in none."""
    for root in (directory, *directory.parents):
        dot = root / ".git"
        if dot.is_dir():
            return Place(root, dot, dot) if (dot / "HEAD").exists() else None
        if dot.is_file():
            text = _text(dot)
            if text is None or not text.startswith("gitdir:"):
                return None
            git = (root / text.removeprefix("gitdir:").strip()).resolve()
            common = _text(git / "commondir")
            return Place(root, git, (git / common.strip()).resolve() if common else git)
    return None


def read_repository(place: Place) -> Repository:
    """Return the state of a repository; never raises."""
    head = (_text(place.git / "HEAD") or "").strip()
    reference = head.removeprefix("ref:").strip() if head.startswith("ref:") else None
    commit = _resolve(place, reference) if reference else head
    commit = commit if commit and _ID.fullmatch(commit) else None
    branch = reference.removeprefix("refs/heads/") if reference else None
    upstream = _upstream(place, branch) if branch else None
    other = _resolve(place, upstream) if upstream else None
    counts = _ahead_behind(place.common, commit, other) if commit and other else None
    return Repository(
        root=clean_line(str(place.root)),
        branch=clean_line(branch) if branch else None,
        commit=commit,
        worktree=clean_line(place.git.name) if place.git != place.common else None,
        dirty=_is_dirty(place, commit),
        upstream=clean_line(upstream.removeprefix("refs/remotes/").removeprefix("refs/heads/"))
        if upstream
        else None,
        ahead=counts[0] if counts else None,
        behind=counts[1] if counts else None,
    )


def _is_dirty(place: Place, commit: str | None) -> bool | None:
    try:
        entries = read_index(place.git / "index")
        version = (place.git / "index").stat().st_mtime_ns if entries else 0
    except (MalformedIndexError, OSError):
        return None
    changed = is_changed(place.root, entries, version)
    if changed is not False or commit is None:
        return changed if commit is not None else bool(entries)
    return _is_staged(place.git, commit, version)


# ---------------------------------------------------------------- refs and configuration


def _resolve(place: Place, reference: str) -> str | None:
    """Return the commit of a ref (`refs/heads/main`), or None."""
    for _ in range(_MAX_LINKS):
        if not reference.startswith("refs/") or ".." in reference.split("/"):
            return None
        for folder in (place.git, place.common):
            if (text := _text(folder / reference)) is not None:
                break
        else:
            return _packed_refs(place.common).get(reference)
        text = text.strip()
        if not text.startswith("ref:"):
            return text if _ID.fullmatch(text) else None
        reference = text.removeprefix("ref:").strip()
    return None


def _packed_refs(common: Path) -> dict[str, str]:
    text = _text(common / "packed-refs", _MAX_PACKED_REFS_BYTES) or ""
    pairs = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("#", "^"))
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _upstream(place: Place, branch: str) -> str | None:
    """Return the ref that a branch follows (`branch.NAME.merge` at `branch.NAME.remote`)."""
    settings = dict(_settings(_text(place.common / "config") or ""))
    remote, merge = settings.get(("branch", branch, "remote")), settings.get(("branch", branch, "merge"))
    if not remote or not merge or not merge.startswith("refs/heads/"):
        return None
    if remote == ".":
        return merge
    return f"refs/remotes/{remote}/{merge.removeprefix('refs/heads/')}"


def _settings(text: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the settings of a config file: (section, subsection, name) and value. Includes are not read."""
    section = subsection = ""
    for raw in text.splitlines():
        line = raw.strip()
        if (head := _SECTION.match(line)) is not None:
            section, subsection = head[1].lower(), re.sub(r"\\(.)", r"\1", head[2] or "")
            line = line[head.end() :].strip()
        name, sign, value = line.partition("=")
        if sign and line[:1] not in ("#", ";"):
            yield (section, subsection, name.strip().lower()), value.strip().strip('"')


def _text(path: Path, limit: int = _MAX_FILE_BYTES) -> str | None:
    try:
        return read_bytes(path, limit).decode("utf-8", "replace")
    except OSError:
        return None


# ---------------------------------------------------------------- git, by object ids


@lru_cache(maxsize=512)
def _ahead_behind(common: Path, commit: str, other: str) -> tuple[int, int] | None:
    """Return how many commits each of two has that the other has not."""
    if commit == other:
        return 0, 0
    done = _git(common, "rev-list", "--count", "--left-right", f"{commit}...{other}")
    numbers = done[1].split() if done is not None and done[0] == 0 else []
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and "".join(numbers).isdigit() else None


@lru_cache(maxsize=512)
def _is_staged(git: Path, commit: str, version: int) -> bool | None:
    """Return whether the index, last written at `version` (ns), differs from a commit."""
    del version  # the cache is asked again when the index was written
    done = _git(
        git,
        "diff-index",
        "--cached",
        "--quiet",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules",
        commit,
    )
    return {0: False, 1: True}.get(done[0]) if done is not None else None


def _git(git: Path, *arguments: str) -> tuple[int, str] | None:
    """Return exit code and output of a git command over a repository's own files, or None if it failed."""
    options = [part for setting in _SAFE for part in ("-c", setting)]
    try:
        done = subprocess.run(
            [
                find_program("git"),
                "--no-optional-locks",
                "--no-pager",
                f"--git-dir={git}",
                *options,
                *arguments,
            ],
            env={**environment("git"), **_ENVIRONMENT},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode, done.stdout[:_MAX_FILE_BYTES]


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


_MAX_DIRECTORIES: Final = 100
_ONCE_S: Final = 0.05
"""For all repositories of a single look: `status` must be quick; of the rest nothing is known then."""
_COST_FACTOR: Final = 50
"""At most 2 % of a core."""


class GitSource:
    """Emits the repositories of live workers' directories, where they changed."""

    name = "git"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Repository | None] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed, as far as it can be read quickly."""
        return await asyncio.to_thread(self._read, fleet, time.monotonic() + _ONCE_S)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what changes."""
        await look_repeatedly(self._read, _directories, emit, channel, cost_factor=_COST_FACTOR)

    def _read(self, fleet: Fleet, deadline: float = math.inf) -> list[Event]:
        events: list[Event] = []
        for directory in list(_directories(fleet))[:_MAX_DIRECTORIES]:
            if time.monotonic() > deadline:
                break
            place = find_repository(Path(directory))
            repository = read_repository(place) if place is not None else None
            if self._known.get(directory) != repository:
                self._known[directory] = repository
                events.append(
                    RepositorySeen(at=self._clock.now(), directory=directory, repository=repository)
                )
        return events


def _directories(fleet: Fleet) -> dict[str, None]:
    return dict.fromkeys(directory for directory, _ in working_directories(fleet))


def working_directories(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield the directories of live workers of this machine, and the names of the workers."""
    for thread in (*fleet.links.owners, *fleet.links.panes):
        known = fleet.threads.get(thread)
        if known is not None and known.cwd:
            yield known.cwd, known.nickname or known.name or known.agent
    for occupant in fleet.occupants.values():
        process = fleet.processes.get(occupant.key)
        if process is not None and process.cwd:
            yield process.cwd, occupant.agent
