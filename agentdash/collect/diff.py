"""How the directory of a worker differs from where its branch has left the main one.

The working tree, its attributes and the configuration of its repository may be written by the worker. So git
is given a repository directory of our own that is empty, with the objects and the index of that one: no
filter, textconv, external diff, hook or fsmonitor is configured there, and it writes nothing.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Final

from agentdash.collect.git import SAFE_ENVIRONMENT, Place, find_repository, read_head, read_text, resolve
from agentdash.model.changes import DirectoryDiff
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.programs import environment, find_program

_TIMEOUT_S: Final = 3.0
_MAX_BYTES: Final = 256 << 10
_OPTIONS: Final = (
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
    text = clean_block(output[:_MAX_BYTES].decode("utf-8", "replace"), _MAX_BYTES).strip("\n")
    return DirectoryDiff(clean_line(f"{name} ({base[:10]})"), text, is_cut=len(output) > _MAX_BYTES)


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
        [find_program("git"), *_OPTIONS, *arguments],
        env={**environment("git"), **SAFE_ENVIRONMENT, **{name: str(path) for name, path in paths.items()}},
        cwd=place.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = threading.Timer(_TIMEOUT_S, process.kill)
        timer.start()
        try:
            output = process.stdout.read(_MAX_BYTES + 1) if process.stdout else b""
            if len(output) > _MAX_BYTES:
                process.kill()
            elif (code := process.wait()) not in (0, 1):
                raise OSError(f"git {arguments[0]} has failed, or took too long ({code})")
        finally:
            timer.cancel()
    return output
