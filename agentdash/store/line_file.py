"""The line file: the fleet in a few words, for a status line that is drawn each second.

One file for each Codex home, `status-<hash>.line`, written with the status file and removed with it: text,
one `name value` per line. Modules that start slowly (`typing`, `pathlib`, `json`, `msgspec`) are not imported
here: a reader has 30 ms, and Python itself takes two thirds of that.
"""

# Paths are strings here: `pathlib` starts slowly.
# ruff: noqa: PTH208

from __future__ import annotations

import os
import stat

from agentdash.folders import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from agentdash.model.worker import Snapshot

SCHEMA = "agentdash.line/3"
SUFFIX = ".line"
_NAMES = ("written_at", "home", "plain", "tmux")
"""Unix seconds; the Codex home; words, plain and styled for tmux."""
_MAX_BYTES = 1 << 13
"""Size above which a file is malformed: a path and some words."""
_WRITABLE_BY_OTHERS = 0o022
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_SHOWN = (
    ("needs-you", "needs you", "need you", "#[fg=red,bold]"),
    ("running", "running", "running", ""),
    ("unclear", "unclear", "unclear", ""),
    ("mismatch", "mismatch", "mismatches", "#[fg=magenta]"),
)
"""Count, words for one and for several, and the style in tmux; in this order, where they are not 0."""
_DEFAULT_STYLE = "#[default]"


def line_text(snapshot: Snapshot, now: float, *, tmux: bool = False) -> str:
    """Return the fleet in a few words: `2 need you 14m, 3 running, 1 mismatch`.

    Args:
        now: unix seconds.
        tmux: whether to add the styles of tmux's `status-right`.
    """
    counts = snapshot.counts()
    begins = [w.assessment.since for w in snapshot.workers if w.needs_you and w.assessment.since is not None]
    parts = []
    for name, one, several, style in _SHOWN:
        number = counts.get(name, 0)
        if not number:
            continue
        part = f"{number} {one if number == 1 else several}"
        if name == "needs-you" and begins:
            part += f" {age(now - min(begins))}"
        parts.append(f"{style}{part}{_DEFAULT_STYLE}" if tmux and style else part)
    if not parts:
        done = counts.get("done", 0)
        parts.append(f"{done} done" if done else "no workers")
    if snapshot.failure is not None:
        parts.append("agentdash failed")
    return ", ".join(parts)


def age(seconds: float) -> str:
    """Return a duration in its largest unit: `14m`."""
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def line_path(status_file: Path) -> Path:
    """Return the path of the line file beside a status file."""
    return status_file.with_suffix(SUFFIX)


def line_content(snapshot: Snapshot, *, home: str, written_at: float) -> bytes:
    """Return the content of a line file."""
    texts = (line_text(snapshot, written_at), line_text(snapshot, written_at, tmux=True))
    values = (repr(written_at), home, *texts)
    lines = [f"{name} {value}" for name, value in zip(_NAMES, values, strict=True)]
    return "\n".join((SCHEMA, *lines, "")).encode("utf-8", "replace")


def read_line_files() -> list[dict[str, str]]:
    """Return the content of all line files that are complete and that only this user may write, by name."""
    folder = state_folder()
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX) and name[0] != ".")
        if not _is_own(os.lstat(folder)):
            return []
    except OSError:
        return []
    found = (_read(f"{folder}/{name}") for name in names)
    return [values for values in found if values is not None]


def _read(path: str) -> dict[str, str] | None:
    """Return the content of a line file, opened as `agentdash.files` does, which imports more."""
    try:
        found = os.lstat(path)
        if not _is_own(found) or not stat.S_ISREG(found.st_mode):
            return None
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
        descriptor = os.open(path, flags)
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = os.read(descriptor, _MAX_BYTES) if is_file else b""
        finally:
            os.close(descriptor)
        first, *lines = content.decode("utf-8").splitlines() or [""]
        values = dict(line.partition(" ")[::2] for line in lines)
        float(values["written_at"])
    except (OSError, ValueError, KeyError):
        return None
    is_whole = first == SCHEMA and tuple(values) == _NAMES and all(map(str.isprintable, lines))
    return values if is_whole else None


def _is_own(found: os.stat_result) -> bool:
    is_link = stat.S_ISLNK(found.st_mode)
    return not is_link and found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
