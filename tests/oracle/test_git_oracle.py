"""What is read of git repositories, against git itself, over random histories; and that nothing which a
repository configures is run."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.collect.git import find_repository, read_repository
from agentdash.model.git import Repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STEPS = 30
CONFIGURED = """
core.fsmonitor core.pager core.editor core.sshCommand core.alternateRefsCommand core.gitProxy diff.external
diff.evil.command diff.evil.textconv filter.evil.clean filter.evil.smudge filter.evil.process pager.rev-list
pager.diff-index alias.rev-list alias.diff-index gpg.program credential.helper
"""
"""Settings that name programs."""


def git(directory: Path, *arguments: str, check: bool = True) -> str:
    who = ["-c", "user.name=Me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=directory, capture_output=True, text=True, check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true"},
    )  # fmt: skip
    assert not check or done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.strip()


def read(directory: Path) -> Repository:
    place = find_repository(directory)
    assert place is not None
    return read_repository(place)


def truth(directory: Path) -> Repository:
    """Return the same by git's own answers."""
    branch = git(directory, "symbolic-ref", "--quiet", "--short", "HEAD", check=False) or None
    commit = git(directory, "rev-parse", "--quiet", "--verify", "HEAD", check=False) or None
    git_dir, common = (git(directory, "rev-parse", "--path-format=absolute", each) for each in
                       ("--git-dir", "--git-common-dir"))  # fmt: skip
    return Repository(
        root=git(directory, "rev-parse", "--show-toplevel"),
        common=common,
        branch=branch,
        commit=commit,
        worktree=Path(git_dir).name if git_dir != common else None,
        dirty=bool(git(directory, "status", "--porcelain", "--untracked-files=no")),
    )


class History:
    """A random history of two clones and a worktree."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.origin = folder / "origin.git"
        self.here = folder / "here"
        self.there = folder / "there"
        self.tree = folder / "tree"
        folder.mkdir(exist_ok=True)
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        git(folder, "clone", "--quiet", str(self.origin), str(self.here))
        git(self.here, "checkout", "--quiet", "-B", "main")
        self._commit(self.here)
        git(self.here, "push", "--quiet", "-u", "origin", "main")
        git(folder, "clone", "--quiet", str(self.origin), str(self.there))
        git(self.here, "worktree", "add", "--quiet", "-b", "side/topic", str(self.tree))
        self.number = 0

    def step(self) -> str:
        place = self.random.choice([self.here, self.here, self.tree])
        name = self.random.choice([
            "commit", "edit", "same", "stage", "restore", "mode", "delete", "untracked", "fetch",
            "detach", "branch", "pack", "link", "stash", "add", "many",
        ])  # fmt: skip
        getattr(self, f"_{name}")(place)
        return name

    def _file(self, place: Path) -> Path:
        files = [path for path in place.iterdir() if path.is_file() and path.name != ".git"]
        return self.random.choice(sorted(files)) if files else place / "new"

    def _commit(self, place: Path) -> None:
        (place / f"file{self.random.randrange(20)}").write_text(f"{self.random.random()}\n")
        git(place, "add", "--all")
        git(place, "commit", "--quiet", "--allow-empty", "-m", "x")

    def _edit(self, place: Path) -> None:
        self._file(place).write_text(f"{self.random.random()}\n")

    def _same(self, place: Path) -> None:
        """Write the same content again: git compares it, and calls it unchanged."""
        path = self._file(place)
        if path.exists():
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)

    def _stage(self, place: Path) -> None:
        self._edit(place)
        git(place, "add", "--all")

    def _restore(self, place: Path) -> None:
        git(place, "reset", "--quiet", "--hard")

    def _mode(self, place: Path) -> None:
        path = self._file(place)
        if path.exists():
            path.chmod(path.stat().st_mode ^ stat.S_IXUSR)

    def _delete(self, place: Path) -> None:
        self._file(place).unlink(missing_ok=True)

    def _untracked(self, place: Path) -> None:
        (place / f"untracked{self.random.randrange(5)}").write_text("x")

    def _fetch(self, place: Path) -> None:
        git(self.there, "pull", "--quiet", "--rebase", "origin", "main")
        self._commit(self.there)
        git(self.there, "push", "--quiet", "origin", "HEAD:main")
        git(place, "fetch", "--quiet")

    def _detach(self, place: Path) -> None:
        self._restore(place)
        git(place, "checkout", "--quiet", "--detach", check=False)

    def _branch(self, place: Path) -> None:
        self._restore(place)
        git(place, "checkout", "--quiet", "-B", f"b{self.random.randrange(4)}", check=False)

    def _pack(self, place: Path) -> None:
        git(place, "pack-refs", "--all")
        git(place, "gc", "--quiet")

    def _link(self, place: Path) -> None:
        path = place / f"link{self.random.randrange(3)}"
        path.unlink(missing_ok=True)
        path.symlink_to(f"nowhere{self.random.randrange(3)}")
        git(place, "add", "--all")

    def _stash(self, place: Path) -> None:
        git(place, "stash", "--quiet", check=False)

    def _add(self, place: Path) -> None:
        git(place, "add", "--all")

    def _many(self, place: Path) -> None:
        folder = place / "many" / "deeper"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(60):
            (folder / f"a-rather-long-name-{number}").write_text(str(number))
        git(place, "add", "--all")


@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_git(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "lab", seed)
    seen: set[tuple[bool | None, bool]] = set()
    unknown = 0
    for _ in range(STEPS):
        step = history.step()
        for place in (history.here, history.tree):
            found = read(place)  # first: git status writes the index
            right = truth(place)
            if found.dirty is None:  # a file that was written again, which is not read
                found = replace(found, dirty=right.dirty)
                unknown += 1
            assert found == right, f"after {step}"
            seen.add((found.dirty, found.branch is None))
    assert {dirty for dirty, _ in seen} == {True, False}
    assert len(seen) > 2
    assert unknown < STEPS


def test_subdirectory_and_none(tmp_path: Path) -> None:
    history = History(tmp_path / "lab", 7)
    below = history.here / "a" / "b"
    below.mkdir(parents=True)
    assert read(below).root == str(history.here)
    outside = tmp_path / "outside"
    outside.mkdir()
    assert find_repository(outside) is None
    (outside / ".git").write_text("gitdir: /nowhere\n")
    assert read(outside).branch is None
    (outside / ".git").write_text("no such thing\n")
    assert find_repository(outside) is None


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    """Each of these runs with `git status`; a sandboxed worker may write them."""
    history = History(tmp_path / "lab", 9)
    place, canary = history.here, tmp_path / "canary"
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\necho $0 $@ >> {canary}\ncat\n")
    script.chmod(0o755)
    name = next(path.name for path in place.iterdir() if path.is_file())
    (place / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    for hook in ("post-index-change", "pre-auto-gc", "reference-transaction"):
        (place / ".git" / "hooks" / hook).symlink_to(script)
    for key in CONFIGURED.split():
        git(place, "config", key, f"!{script}" if key.startswith("alias.") else str(script))
    (place / name).write_text("changed")
    git(place, "-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "-c", "filter.evil.process=",
        "commit", "--quiet", "--all", "--no-verify", "-m", "y", check=False)  # fmt: skip
    os.utime(place / name, (time.time() + 9, time.time() + 9))
    canary.unlink(missing_ok=True)
    found = read(place)
    assert found.branch == "main"
    assert not canary.exists(), canary.read_text()
    subprocess.run(["git", "status"], cwd=place, capture_output=True, check=False)
    assert canary.exists()  # the canary sings


@pytest.mark.parametrize(
    "content", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\0\0\xff\xff", b"x" * 99]
)
def test_damaged_index_is_not_known(tmp_path: Path, content: bytes) -> None:
    history = History(tmp_path / "lab", 11)
    (history.here / ".git" / "index").write_bytes(content)
    found = read(history.here)
    assert (found.dirty, found.branch) == (None, "main")
