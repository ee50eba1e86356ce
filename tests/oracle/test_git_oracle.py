"""What is read of git repositories, against git itself, over random histories; and that nothing which a
repository configures is run."""

import os
import random
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.collect.git import find_repository, read_repository
from agentdash.model.git import Repository
from tests.live.programs import run, write_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COUNT = 30
CONFIGURED = """
core.fsmonitor core.pager core.editor core.sshCommand core.alternateRefsCommand core.gitProxy diff.external
diff.evil.command diff.evil.textconv filter.evil.clean filter.evil.smudge filter.evil.process pager.rev-list
pager.diff-index alias.rev-list alias.diff-index gpg.program credential.helper
"""
"""Settings that name programs."""


ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_EDITOR": "true",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Me"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "me@example.com"),
}


def git(directory: Path, *arguments: str, check: bool = True) -> str:
    done = run(["git", *arguments], cwd=directory, env=ENVIRONMENT)
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


COMMIT = "echo $RANDOM > file$((RANDOM % 20)); git add --all; git commit --quiet --allow-empty -m x"
PUBLISH = (
    f"cd $THERE && git pull --quiet --rebase origin main && {COMMIT} && git push --quiet origin HEAD:main"
)
FILE = "f=$(ls -p | grep -v / | shuf -n 1 --random-source=<(yes $RANDOM)); f=${f:-new}"
"""Chooses a file of the directory."""
STEPS = {
    "commit": COMMIT,
    "edit": f"{FILE}; echo $RANDOM > $f",
    "same": f"{FILE}; [ -e $f ] && cp $f ../same && rm $f && cp ../same $f",  # git calls it unchanged
    "stage": f"{FILE}; echo $RANDOM > $f; git add --all",
    "restore": "git reset --quiet --hard",
    "mode": f"{FILE}; [ -x $f ] && chmod -x $f || chmod +x $f",
    "delete": f"{FILE}; rm -f $f",
    "untracked": "echo x > untracked$((RANDOM % 5))",
    "fetch": f"({PUBLISH}); git fetch --quiet",
    "detach": "git reset --quiet --hard; git checkout --quiet --detach",
    "branch": "git reset --quiet --hard; git checkout --quiet -B b$((RANDOM % 4))",
    "pack": "git pack-refs --all; git gc --quiet",
    "link": "ln -sfn nowhere$((RANDOM % 3)) link$((RANDOM % 3)); git add --all",
    "stash": "git stash --quiet",
    "add": "git add --all",
    "many": "mkdir -p many/deeper; touch many/deeper/a-rather-long-name-{1..60}; git add --all",
}
BEGIN = f"""
git init --quiet --bare --initial-branch=main origin.git
git clone --quiet origin.git here 2>/dev/null; cd here; git checkout --quiet -B main
{COMMIT}; git push --quiet -u origin main; cd ..
git clone --quiet origin.git there; git -C here worktree add --quiet -b side/topic ../tree
"""


class History:
    """A random history of two clones and a worktree."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder, self.here, self.tree = folder, folder / "here", folder / "tree"
        folder.mkdir()
        self.run(BEGIN, folder)

    def run(self, script: str, place: Path) -> None:
        script = f"RANDOM={self.random.randrange(1 << 15)}; {script}"
        run(["bash", "-c", script], cwd=place, env={**ENVIRONMENT, "THERE": str(self.folder / "there")})

    def step(self) -> str:
        name = self.random.choice(list(STEPS))
        self.run(STEPS[name], self.random.choice([self.here, self.here, self.tree]))
        return name


@pytest.mark.parametrize("seed", [1, 3])
def test_same_as_git(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "lab", seed)
    seen: set[tuple[bool | None, bool]] = set()
    unknown = 0
    for _ in range(COUNT):
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
    assert unknown < COUNT


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
    script = write_program(tmp_path / "run", f"echo $0 $@ >> {canary}\ncat")
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
    run(["git", "status"], cwd=place)
    assert canary.exists()  # the canary sings


@pytest.mark.parametrize(
    "content", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\0\0\xff\xff", b"x" * 99]
)
def test_damaged_index_is_not_known(tmp_path: Path, content: bytes) -> None:
    history = History(tmp_path / "lab", 11)
    (history.here / ".git" / "index").write_bytes(content)
    found = read(history.here)
    assert (found.dirty, found.branch) == (None, "main")
