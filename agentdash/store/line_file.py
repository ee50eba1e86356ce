"""The line file: the counts of the fleet beside the status file, small enough for a status line that is drawn
each second.

One file for each Codex home, `status-<hash>.line`, written with the status file and removed with it: text,
one `name value` per line. Modules that start slowly (`typing`, `pathlib`, `json`, `msgspec`) are not imported
here: a reader has 30 ms, of which Python itself takes two thirds.
"""

# Paths are strings here: `pathlib` starts slowly.
# ruff: noqa: PTH116, PTH208

from __future__ import annotations

import os
import stat

from agentdash.folders import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from agentdash.model.worker import Snapshot

SCHEMA = "agentdash.line/1"
SUFFIX = ".line"
_MAX_BYTES = 1 << 13
"""Size above which a file is malformed: a path and some numbers."""
_WRITABLE_BY_OTHERS = 0o022
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class LineFacts:
    """The content of a line file.

    Args:
        home: the Codex home.
        written_at: unix seconds.
        boot: the kernel's id of the boot; empty where it has none.
        waiting_since: since when the worker that has waited longest needs the user (unix seconds); None: none
            does.
        failed: whether the engine has failed, so that the counts may be old.
        counts: workers by group, `mismatch`, and `new`.
    """

    __slots__ = ("boot", "counts", "failed", "home", "waiting_since", "written_at")

    def __init__(
        self,
        *,
        home: str,
        written_at: float,
        boot: str,
        waiting_since: float | None,
        failed: bool,
        counts: dict[str, int],
    ) -> None:
        self.home = home
        self.written_at = written_at
        self.boot = boot
        self.waiting_since = waiting_since
        self.failed = failed
        self.counts = counts


def line_facts(snapshot: Snapshot, *, home: str, written_at: float, boot: str) -> LineFacts:
    """Return the facts of a snapshot that a status line shows."""
    begins = [w.assessment.since for w in snapshot.workers if w.needs_you and w.assessment.since is not None]
    return LineFacts(
        home=home,
        written_at=written_at,
        boot=boot,
        waiting_since=min(begins, default=None),
        failed=snapshot.failure is not None,
        counts=snapshot.counts(),
    )


def line_path(status_file: Path) -> Path:
    """Return the path of the line file beside a status file."""
    return status_file.with_suffix(SUFFIX)


def line_content(facts: LineFacts) -> bytes:
    """Return the content of a line file."""
    lines = [SCHEMA, f"written_at {facts.written_at!r}", f"boot {facts.boot}", f"home {facts.home}"]
    lines += [f"waiting_since {facts.waiting_since!r}"] if facts.waiting_since is not None else []
    lines += ["failed 1"] if facts.failed else []
    lines += [f"count.{name} {number}" for name, number in facts.counts.items()]
    return "\n".join((*lines, "")).encode("utf-8", "replace")


def read_line_files() -> list[LineFacts]:
    """Return the content of all line files that are complete and that only this user may write."""
    folder = state_folder()
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX) and name[0] != ".")
        if not _is_own(os.lstat(folder)):
            return []
    except OSError:
        return []
    found = (_read(f"{folder}/{name}") for name in names)
    return [facts for facts in found if facts is not None]


def boot_id() -> str:
    """Return the kernel's id of the boot; empty where it has none."""
    try:
        return read_small(_BOOT_ID).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def read_small(path: str, *, follow: bool = False) -> bytes:
    """Return the first 8 kB of a regular file, as `agentdash.files` does, which imports more.

    Args:
        path: the file.
        follow: whether the last component may be a symbolic link.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file.
    """
    if not stat.S_ISREG(os.stat(path, follow_symlinks=follow).st_mode):
        raise ValueError("not a regular file")
    no_follow = 0 if follow else os.O_NOFOLLOW
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | no_follow)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)


def _read(path: str) -> LineFacts | None:
    try:
        if not _is_own(os.lstat(path)):
            return None
        first, *lines = read_small(path).decode("utf-8").splitlines()
        values = dict(line.partition(" ")[::2] for line in lines)
        if first != SCHEMA or not all(map(str.isprintable, lines)):
            return None
        since = values.get("waiting_since")
        return LineFacts(
            home=values["home"],
            written_at=float(values["written_at"]),
            boot=values["boot"],
            waiting_since=None if since is None else float(since),
            failed="failed" in values,
            counts={
                name.partition(".")[2]: int(value)
                for name, value in values.items()
                if name.startswith("count.")
            },
        )
    except (OSError, ValueError, KeyError):
        return None


def _is_own(found: os.stat_result) -> bool:
    is_link = stat.S_ISLNK(found.st_mode)
    return not is_link and found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
