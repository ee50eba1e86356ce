"""The diff of a working tree against its merge base: nothing that a repository configures is run."""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from agentdash.collect.git import read_diff

OWN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}


def git(folder: Path, *arguments: str) -> str:
    user = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    command = ("git", "-C", str(folder), *user, *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True, env=OWN).stdout.strip()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a branch `fix` in a worktree beside it; main goes on without it."""
    shop = tmp_path / "shop"
    shop.mkdir()
    git(shop, "init", "-q")
    (shop / "app.py").write_text("x = 1\n")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "one")
    git(shop, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    (shop / "other.py").write_text("y = 1\n")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "two")
    return shop


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): f"{sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}" for path in found}


def test_a_worktree_is_compared_with_where_its_branch_began(shop: Path, tmp_path: Path) -> None:
    fix, base = tmp_path / "fix", git(shop, "rev-parse", "main~1")
    (fix / "app.py").write_text("x = 2\n")
    git(fix, "commit", "-qam", "fix")
    (fix / "src").mkdir()
    (fix / "new.py").write_text("untracked\n")
    (fix / "app.py").write_text("x = 2\n\x1b[31mz = 3\n")
    state = tmp_path / "state"
    found = read_diff(state, str(fix / "src"))
    assert (found.base, found.problem) == (f"main ({base[:10]})", "")
    assert [line for line in found.text.split("\n") if line[:1] in "+-"] == [
        "--- a/app.py", "+++ b/app.py", "-x = 1", "+x = 2", "+z = 3",
    ]  # fmt: skip
    assert list(state.iterdir()) == []


def test_nothing_that_the_repository_configures_is_run_or_written(shop: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (shop / ".gitattributes").write_text("* filter=bad diff=bad merge=bad\n")
    touch = f"touch {ran}; cat"
    for name in ("filter.bad.clean", "filter.bad.smudge", "filter.bad.process", "diff.bad.textconv"):
        git(shop, "config", name, touch)
    for name in ("diff.bad.command", "diff.external", "core.fsmonitor", "core.pager", "core.sshCommand"):
        git(shop, "config", name, touch)
    git(shop, "config", "core.hooksPath", str(tmp_path))
    hook = tmp_path / "post-index-change"
    hook.write_text(f"#!/bin/sh\n{touch}\n")
    hook.chmod(0o755)
    (shop / "app.py").write_text("x = 5\n")
    before = files(shop)
    found = read_diff(tmp_path / "state", str(shop))
    assert "+x = 5" in found.text
    assert not ran.exists()
    assert files(shop) == before
    subprocess.run(["git", "-C", str(shop), "diff"], check=False, capture_output=True, env=OWN)
    assert ran.exists(), "the control: git itself runs them"


def test_it_is_bounded_and_says_what_is_not_known(shop: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (shop / "app.py").write_text("".join(f"line {number}\n" for number in range(50_000)))
    found = read_diff(state, str(shop))
    assert found.is_cut
    assert len(found.text) <= 256 << 10
    (shop / ".git" / "index").write_bytes(b"DIRC no index")
    broken = read_diff(state, str(shop))
    assert broken.problem.startswith("git diff-index has failed")
    assert read_diff(state, str(tmp_path)) is None
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert "committed" in getattr(read_diff(state, str(empty)), "problem", "")
