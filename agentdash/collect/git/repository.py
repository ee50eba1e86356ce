"""Read the state of a repository: branch, worktree, upstream, changes.

Its configuration may name programs (`core.fsmonitor`, filters, hooks), and a sandboxed worker may write it:
`git status` would run them outside of the sandbox. So files are read here directly, and git is run for two
questions only, by object ids and without a working tree, where it uses none of these: how many commits lie
between two, and whether the index differs from a commit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.collect.git.index import MalformedIndexError, is_changed, read_index
from agentdash.files import read_bytes
from agentdash.model.git import Repository
from agentdash.model.sanitize import clean_line
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
_FLAGS: Final = ("--no-optional-locks", "--no-pager")
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
    """Return the repository that a directory lies in; None where it lies in none."""
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
    """Return the commit of a ref (`refs/heads/main`); None where there is none."""
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
    """Return exit code and output of a git command over a repository's own files; None where it failed."""
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
