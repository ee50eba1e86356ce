"""The git repositories that live workers work in: branch, worktree, changes.

Their configuration may name programs (`core.fsmonitor`, filters, hooks), and a sandboxed worker may write it:
`git status` would run them outside the sandbox. So files are read here directly, and git is run for one
question only, by object ids and without a working tree, where it uses none of these: whether the index
differs from a commit.

For the diff that the user asks for, git is given a repository directory of our own that is empty, with the
objects and the index of that one: no filter, textconv, external diff, hook or fsmonitor is configured there,
and it writes nothing.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.collect.scheduler import look_repeatedly
from agentdash.files import read_bytes
from agentdash.model.changes import DirectoryDiff
from agentdash.model.events import Event, RepositorySeen
from agentdash.model.fleet import Fleet
from agentdash.model.git import Repository
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.programs import environment, find_program

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PACKED_REFS_BYTES: Final = 16 << 20
_GIT_TIMEOUT_S: Final = 2.0
_ID: Final = re.compile(r"[0-9a-f]{40}")
SAFE_ENVIRONMENT: Final = {
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
_QUIETLY: Final = ("--no-optional-locks", "--no-pager")
_DIFFERS: Final = (
    *("diff-index", "--cached", "--quiet"),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules"),
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
            text = read_text(dot)
            if text is None or not text.startswith("gitdir:"):
                return None
            git = (root / text.removeprefix("gitdir:").strip()).resolve()
            common = read_text(git / "commondir")
            return Place(root, git, (git / common.strip()).resolve() if common else git)
    return None


def read_repository(place: Place) -> Repository:
    """Return the state of a repository; never raises."""
    reference, commit = read_head(place)
    branch = reference.removeprefix("refs/heads/") if reference else None
    return Repository(
        root=clean_line(str(place.root)),
        common=clean_line(str(place.common)),
        branch=clean_line(branch) if branch else None,
        commit=commit,
        worktree=clean_line(place.git.name) if place.git != place.common else None,
        dirty=_is_dirty(place, commit),
    )


def read_head(place: Place) -> tuple[str | None, str | None]:
    """Return the ref that is checked out, None where HEAD is detached, and the commit, None if not known."""
    head = (read_text(place.git / "HEAD") or "").strip()
    if head.startswith("ref:"):
        reference = head.removeprefix("ref:").strip()
        return reference, resolve(place, reference)
    return None, head if _ID.fullmatch(head) else None


def _is_dirty(place: Place, commit: str | None) -> bool | None:
    try:
        entries = read_index(place.git / "index")
        version = (place.git / "index").stat().st_mtime_ns if entries else 0
    except (OSError, ValueError):
        return None
    changed = is_changed(place.root, entries, version)
    if changed is not False or commit is None:
        return changed if commit is not None else bool(entries)
    return _is_staged(place.git, commit, version)


# ---------------------------------------------------------------- refs


def resolve(place: Place, reference: str) -> str | None:
    """Return the commit of a ref (`refs/heads/main`), or None."""
    if not reference.startswith("refs/") or ".." in reference.split("/"):
        return None
    for folder in (place.git, place.common):
        if (text := read_text(folder / reference)) is not None:
            return text.strip() if _ID.fullmatch(text.strip()) else None
    commit = _packed_refs(place.common).get(reference)
    return commit if commit and _ID.fullmatch(commit) else None


def _packed_refs(common: Path) -> dict[str, str]:
    text = read_text(common / "packed-refs", _MAX_PACKED_REFS_BYTES) or ""
    pairs = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("#", "^"))
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def read_text(path: Path, limit: int = _MAX_FILE_BYTES) -> str | None:
    """Return the text of a file of git's own, or None if it cannot be read."""
    try:
        return read_bytes(path, limit).decode("utf-8", "replace")
    except OSError:
        return None


# ---------------------------------------------------------------- the index


@lru_cache(maxsize=512)
def _is_staged(git: Path, commit: str, version: int) -> bool | None:
    """Return whether the index, last written at `version` (ns), differs from a commit."""
    del version  # the cache is asked again when the index was written
    options = [part for setting in _SAFE for part in ("-c", setting)]
    try:
        done = subprocess.run(
            [find_program("git"), *_QUIETLY, f"--git-dir={git}", *options, *_DIFFERS, commit],
            env={**environment("git"), **SAFE_ENVIRONMENT},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {0: False, 1: True}.get(done.returncode)


_MAX_INDEX_BYTES: Final = 32 << 20
"""About 300,000 files: comparing them would take seconds."""
_MAX_ENTRIES: Final = 20_000
"""Files that are compared, at 2 µs each; of a larger repository it is not known whether it has changed."""
_ENTRY: Final = struct.Struct(">10I20sH")
_HEADER: Final = struct.Struct(">4sII")
_EXTENDED: Final = 0x4000
"""Of an entry with 16 more flags, in version 3."""
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
    is_skipped: bool
    """Whether git does not compare it (assume-unchanged, sparse checkout)."""
    is_merging: bool
    """Whether it has a conflict."""


def read_index(path: Path) -> list[Entry]:
    """Return the entries of an index; none where there is no index yet.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, too large, or of a version other than 2 and 3.
    """
    try:
        content = read_bytes(path, _MAX_INDEX_BYTES)
    except FileNotFoundError:
        return []
    try:
        magic, version, count = _HEADER.unpack_from(content)
        if magic != b"DIRC" or version not in (2, 3) or count > _MAX_ENTRIES:
            raise ValueError(f"version {version}, {count} entries")
        return list(_entries(content, count))
    except struct.error as error:
        raise ValueError(str(error)) from error


def _entries(content: bytes, count: int) -> Iterator[Entry]:
    start = _HEADER.size
    for _ in range(count):
        _, _, seconds, nanoseconds, _, _, mode, _, _, size, _, flags = _ENTRY.unpack_from(content, start)
        at = start + _ENTRY.size
        extended = 0
        if flags & _EXTENDED:
            (extended,) = struct.unpack_from(">H", content, at)
            at += 2
        end = content.index(b"\0", at)
        yield Entry(
            path=content[at:end],
            mode=mode,
            size=size,
            mtime_ns=seconds * 1_000_000_000 + nanoseconds,
            is_skipped=bool(flags & _ASSUME_VALID or extended & _SKIP_WORKTREE),
            is_merging=bool(flags & _STAGE),
        )
        start += (end - start + 8) & ~7


def is_changed(root: Path, entries: list[Entry], written_ns: int) -> bool | None:
    """Return whether a tracked file differs from the index; None: not known.

    No file is read: one of another time may be as before, or one that was written in the same moment as the
    index another one. Where git would convert it first (line ends, filters such as LFS), another size proves
    nothing.

    Args:
        root: the working tree.
        entries: of the index.
        written_ns: when the index was written (unix nanoseconds).
    """
    is_known = True
    converts = (root / ".gitattributes").exists()
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
        if found.st_size & 0xFFFFFFFF != entry.size and not converts:
            return True
        is_same = found.st_size & 0xFFFFFFFF == entry.size and found.st_mtime_ns == entry.mtime_ns
        is_known &= is_same and entry.mtime_ns < written_ns
    return False if is_known else None


def _type_differs(entry: Entry, found: os.stat_result) -> bool:
    if stat.S_IFMT(entry.mode) == _LINK:
        return not stat.S_ISLNK(found.st_mode)
    return not stat.S_ISREG(found.st_mode) or bool(found.st_mode & 0o100) != bool(entry.mode & 0o100)


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
        await look_repeatedly(self._read, emit, channel, cost_factor=_COST_FACTOR)

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
    """Return the directories of live workers of this machine."""
    threads = (fleet.threads.get(thread) for thread in (*fleet.links.owners, *fleet.links.panes))
    processes = (fleet.processes.get(occupant.key) for occupant in fleet.occupants.values())
    return dict.fromkeys(
        each.cwd for several in (threads, processes) for each in several if each is not None and each.cwd
    )


_DIFF_TIMEOUT_S: Final = 3.0
_MAX_DIFF_BYTES: Final = 256 << 10
_DIFF_OPTIONS: Final = (
    "--no-pager",
    *("-c", "core.bigFileThreshold=1m"),  # larger files are compared, and not shown
    *("-c", "core.attributesFile=/dev/null"),
)
_DIFF: Final = (
    "diff-index",
    "-p",
    "-M",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules",
)
_MAIN: Final = ("refs/heads/main", "refs/heads/master")


def read_diff(state: Path, directory: str) -> DirectoryDiff | None:
    """Return how a working tree differs from the merge base of its branch and the main one, without untracked
    files; None: it is no repository. Never raises.

    Args:
        state: agentdash's own directory, where no worker writes.
        directory: anywhere in the working tree.
    """
    try:
        place = find_repository(Path(directory))
        if place is None:
            return None
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="git-", dir=state) as own:
            return _read(place, Path(own))
    except OSError as error:
        return DirectoryDiff(problem=clean_line(str(error)))


def _read(place: Place, own: Path) -> DirectoryDiff:
    (own / "refs").mkdir()
    (own / "HEAD").write_text("ref: refs/heads/none\n")
    head = read_head(place)[1]
    if head is None:
        return DirectoryDiff(problem="nothing is committed")
    main = _main_branch(place)
    other = resolve(place, main) if main else None
    found = _run(place, own, "merge-base", head, other).decode().strip() if other else ""
    base, name = (found, (main or "").rpartition("/")[2]) if found else (head, "its last commit")
    output = _run(place, own, *_DIFF, base, "--")
    text = clean_block(output[:_MAX_DIFF_BYTES].decode("utf-8", "replace"), _MAX_DIFF_BYTES).strip("\n")
    return DirectoryDiff(clean_line(f"{name} ({base[:10]})"), text, is_cut=len(output) > _MAX_DIFF_BYTES)


def _main_branch(place: Place) -> str | None:
    """Return the ref of the main branch: of the remote, by what it calls so, else the local one."""
    remote = (read_text(place.common / "refs/remotes/origin/HEAD") or "").removeprefix("ref:").strip()
    return next((each for each in (remote, *_MAIN) if each and resolve(place, each)), None)


def _run(place: Place, own: Path, *arguments: str) -> bytes:
    """Return what git prints, at most a little more than is shown.

    Raises:
        OSError: git is not there, takes too long, or fails.
    """
    paths = {
        "HOME": own,
        "XDG_CONFIG_HOME": own,
        "GIT_DIR": own,
        "GIT_WORK_TREE": place.root,
        "GIT_INDEX_FILE": place.git / "index",
        "GIT_OBJECT_DIRECTORY": place.common / "objects",
    }
    with subprocess.Popen(
        [find_program("git"), *_DIFF_OPTIONS, *arguments],
        env={**environment("git"), **SAFE_ENVIRONMENT, **{name: str(path) for name, path in paths.items()}},
        cwd=place.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = threading.Timer(_DIFF_TIMEOUT_S, process.kill)
        timer.start()
        try:
            output = process.stdout.read(_MAX_DIFF_BYTES + 1) if process.stdout else b""
            if len(output) > _MAX_DIFF_BYTES:
                process.kill()
            elif (code := process.wait()) not in (0, 1):
                raise OSError(f"git {arguments[0]} has failed, or took too long ({code})")
        finally:
            timer.cancel()
    return output
