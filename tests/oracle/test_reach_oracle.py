"""What `PathRights` says of a process from outside, against what that process can really do in its sandbox.

The truth is generated: random trees of files, links, sockets, modes, owners and access lists, and places of
this machine; each is tried by a process inside (`reach_inside.py`). Nothing that it can do may be called
impossible, and nothing that it cannot may be called possible: what is not known may be either.
"""

import json
import os
import random
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from agentdash.collect.processes.path_rights import PathRights
from agentdash.collect.processes.reach import reach_of
from agentdash.model.reach import Action, ReachKind, ReachTarget
from tests.live.clis import new_root
from tests.live.codex import install

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

IS_ROOT = os.getuid() == 0
USER = 1000
"""Processes run as this user where the test may choose."""
OTHER = 1001
PATHS = 500
PLACES = ("/etc", "/usr/lib", "/var", "/tmp", "/run", "/home", "/opt", "/srv")
INSIDE = Path(__file__).with_name("reach_inside.py")
PYTHON = "/usr/bin/python3"
"""Of the system: every user may run it."""


class Question(NamedTuple):
    action: Action
    path: str
    rearrange: bool


class Tree:
    """A random tree of files."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.directories = [root]
        self._close = ExitStack()
        self.files = [self._below(f"f{number}") for number in range(60)]
        for number in range(60):
            path = self._below(f"d{number}")
            path.mkdir()
            self.directories.append(path)
        self.files += [self._below(f"f{number}") for number in range(60, 180)]
        for path in self.files:
            path.write_text("x")
        self.sockets = [root / f"s{number}" for number in range(30)]
        for path in self.sockets:
            server = self._close.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(path))
            server.listen(64)
        for number in range(40):
            self._link(self._below(f"l{number}"))
        for path in [*self.files, *self.directories[1:], *self.sockets]:
            self._protect(path)

    def close(self) -> None:
        self._close.close()

    def _below(self, name: str) -> Path:
        return self.random.choice(self.directories) / name

    def questions(self, count: int) -> list[Question]:
        return [self._question() for _ in range(count)]

    def _question(self) -> Question:
        pick = self.random.random()
        if pick < 0.1:
            return Question("connect", str(self.random.choice(self.sockets)), rearrange=True)
        path = self.random.choice([*self.files, *self.directories])
        if pick < 0.25:
            path = self._below(f"missing{self.random.randrange(9)}")
        elif pick < 0.3:
            path = self._below("missing/below")
        elif pick < 0.35:
            path = self._below("..") / self.random.choice(self.files).name
        action: Action = "read" if self.random.random() < 0.3 else "write"
        return Question(action, str(path), rearrange=True)

    def _link(self, path: Path) -> None:
        file, folder = self.random.choice(self.files), self.random.choice(self.directories)
        near = os.path.relpath(folder, path.parent)
        odd = ("nowhere", path.name, "/etc/hostname", "/proc/self/cwd")
        path.symlink_to(self.random.choice([str(file), near, *odd]))
        self.files.append(path)

    def _protect(self, path: Path) -> None:
        if path.is_symlink():
            return
        modes = [0o755, 0o700, 0o777, 0o1777, 0o555, 0o000, 0o770, 0o644, 0o600, 0o444, 0o666, 0o640]
        if IS_ROOT:
            owner, group = self.random.choice([0, USER, USER, OTHER]), self.random.choice([0, USER, OTHER])
            os.chown(path, owner, group)
        mode = self.random.choice(modes)
        path.chmod(mode | (0o100 if path.is_dir() and self.random.random() < 0.7 else 0))
        if self.random.random() < 0.06:
            _grant(path, USER)


def _grant(path: Path, user: int) -> None:
    """Add an access list that lets a user do everything."""
    none = 0xFFFFFFFF
    # the owner, a named user, the group, the mask, others
    entries = [(0x01, 6, none), (0x02, 7, user), (0x04, 0, none), (0x10, 7, none), (0x20, 0, none)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", packed)
    except OSError:
        return  # a filesystem without access lists


def _places(seed: int, count: int) -> list[Question]:
    """Return paths of this machine, on which only plain access is tried."""
    chosen = random.Random(seed)
    found: list[Path] = []
    for place in PLACES:
        for folder, directories, files in os.walk(place):
            found += [Path(folder, name) for name in (*files[:20], *directories[:20])]
            if len(found) > 4_000:
                break
    plain = [str(path) for path in found if path.is_file() or path.is_dir()]
    paths = chosen.sample(plain, min(count, len(plain)))
    return [Question(chosen.choice(("read", "write")), path, rearrange=False) for path in paths]


def _as_user() -> list[str]:
    if not IS_ROOT:
        return []
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


def _bwrap(*arguments: str) -> Callable[[Path], list[str]]:
    def command(root: Path) -> list[str]:
        filled = [each.replace("ROOT", str(root)) for each in arguments]
        return [*_as_user(), "bwrap", *filled, "--dev", "/dev", "--proc", "/proc"]

    return command


def _codex(*arguments: str) -> Callable[[Path], list[str]]:
    def command(root: Path) -> list[str]:
        return [str(install()), "sandbox", *arguments, "--"]

    return command


def _shell(script: str) -> Callable[[Path], list[str]]:
    def command(root: Path) -> list[str]:
        line = f'{script}; exec "$@"'.replace("ROOT", str(root))
        return [*_as_user(), "unshare", "-Urm", "sh", "-c", line, "sh"]

    return command


SANDBOXES: dict[str, Callable[[Path], list[str]]] = {
    "none": lambda root: _as_user(),
    "root": lambda root: [],
    "bwrap read-only": _bwrap("--ro-bind", "/", "/", "--unshare-pid"),
    "bwrap binds": _bwrap(
        *("--ro-bind", "/", "/", "--bind", "ROOT", "ROOT"),
        *("--ro-bind", "ROOT/d0", "ROOT/d0", "--tmpfs", "ROOT/d1"),
    ),
    "tmpfs over home": _bwrap("--bind", "/", "/", "--tmpfs", "ROOT"),
    "codex read-only": _codex("-c", 'sandbox_mode="read-only"'),
    "codex workspace-write": _codex("-c", 'sandbox_mode="workspace-write"'),
    "user namespace": lambda root: [*_as_user(), "unshare", "-Ur"],
    "mounted again": _shell("mount --bind ROOT ROOT && mount -o remount,bind,ro ROOT"),
    "chroot": _shell(
        'mkdir -p /tmp/reach-root && mount --rbind / /tmp/reach-root && exec chroot /tmp/reach-root "$@"'
    ),
}


@contextmanager
def inside(command: list[str], root: Path) -> Iterator[tuple[int, Callable[[list[Question]], list[bool]]]]:
    """Start the process that tries paths; yield its pid, as this namespace counts, and a way to ask it."""
    home = new_root()
    marker = f"reach-{os.getpid()}-{root.name}"
    with subprocess.Popen(
        [*command, PYTHON, "-c", INSIDE.read_text("utf-8"), marker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=home if command[:1] == [str(install())] else root,  # it mounts over .git there, as this user
        env={**os.environ, "CODEX_HOME": str(home), "HOME": str(home)},
    ) as process:
        assert process.stdin
        assert process.stdout
        out, into = process.stdout, process.stdin

        def ask(questions: list[Question]) -> list[bool]:
            into.write(f"{json.dumps(questions)}\n")
            into.flush()
            return list(json.loads(out.readline()))

        try:
            yield _host_pid(marker, json.loads(out.readline())["pid"]), ask
        finally:
            process.kill()
            shutil.rmtree(home, ignore_errors=True)


def _host_pid(marker: str, number: int) -> int:
    """Return the pid, as this namespace counts, of the process that calls itself `number`."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            argv = process.cmdline()
            fields = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            own = next((line.split()[-1] for line in fields if line.startswith("NSpid:")), "")
            if argv[:1] == [PYTHON] and marker in argv and own == str(number):
                return process.pid
    raise AssertionError(f"process {number} of {marker} is not there")


@pytest.fixture
def tree() -> Iterator[Tree]:
    root = Path(tempfile.mkdtemp(prefix="reach-", dir="/tmp"))
    root.chmod(0o755)
    if IS_ROOT:
        os.chown(root, USER, USER)
    made = Tree(root, seed=13)
    yield made
    made.close()
    for path in (root, *root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("name", SANDBOXES)
def test_what_is_called_possible_works_and_nothing_else(tree: Tree, name: str) -> None:
    if name == "root" and not IS_ROOT:
        name = "none"
    seed = tree.random.randrange(1 << 30)
    questions = [*tree.questions(PATHS * 3 // 5), *_places(seed, PATHS * 2 // 5)]
    with inside(SANDBOXES[name](tree.root), tree.root) as (pid, ask):
        rights = PathRights(pid)
        said = [rights.may(question.action, question.path) for question in questions]
        truth = ask(questions)
    assert len(truth) == len(questions) == PATHS
    is_filtered = name.startswith("codex")  # by seccomp, which has no part in the rights to a path
    wrong = [
        (question, right, works)
        for question, right, works in zip(questions, said, truth, strict=True)
        if right.granted is (not works) and not (question.action == "connect" and is_filtered and not works)
    ]
    assert wrong == []
    decided = [right.granted for right in said if right.granted is not None]
    assert len(decided) > PATHS // 4  # `unknown` for everything would be right as well


@pytest.fixture
def home_directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="reach-home-", dir="/tmp"))
    (path / ".ssh").mkdir()
    (path / ".bashrc").write_text("x")
    (path / ".ssh" / "key").write_text("x")
    if IS_ROOT:
        for each in (path, *path.rglob("*")):
            os.chown(each, USER, USER)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize(
    ("arguments", "bashrc", "key", "network"),
    [
        (("--bind", "/", "/"), "may", "may", "may"),
        (("--bind", "/", "/", "--unshare-net"), "may", "may", "cannot"),
        (("--bind", "/", "/", "--tmpfs", "ROOT"), "cannot", "cannot", "may"),
        (("--ro-bind", "/", "/"), "cannot", "may", "may"),
        (("--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/lib", "/lib",
          "--bind", "ROOT/.ssh", "/keys"), "cannot", "may", "may"),
        (("--bind", "/", "/", "--ro-bind", "/dev/null", "ROOT/.ssh/key"), "may", "cannot", "may"),
    ],
)  # fmt: skip
def test_copies_and_other_places_of_a_home(
    home_directory: Path, arguments: tuple[str, ...], bashrc: str, key: str, network: str
) -> None:
    """A tmpfs over a home changes no home, and a home that is mounted elsewhere is reached there."""
    places: tuple[tuple[str, Action], ...] = ((".bashrc", "write"), (".ssh/key", "read"))
    targets = [
        ReachTarget(kind=ReachKind.TAKEOVER, path=f"{home_directory}/{path}", what="", action=action)
        for path, action in places
    ]
    command = _bwrap("--new-session", *arguments)(home_directory)
    with inside(command, home_directory) as (pid, _):
        reach = reach_of(pid, targets)
    assert reach is not None
    assert [each.certainty for each in reach.targets] == [bashrc, key, network]
    assert reach.targets[2].target.kind is ReachKind.NETWORK
