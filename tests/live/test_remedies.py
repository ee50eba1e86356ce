"""Every kind of remedy, applied to the real Codex: the denied command succeeds, and nothing else opens.

A command is denied in `codex sandbox`, its output is read, and the remedy for what was read is applied, as
the command for one run and as lines pasted into a `config.toml` that has tables already.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.engine.judge.findings.remedies import exclude_flags, remedy_for
from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.sandbox.denials import find_denials
from tests.live.clis import new_root
from tests.live.codex import Lab, install
from tests.live.conftest import OpenLab
from tests.live.patience import scaled
from tests.live.tmux import outer_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probes are for Linux's sandbox")

CONFIG: Final = """\
model = "mock"

[tui]
notifications = true

[projects."/nowhere"]
trust_level = "trusted"
"""
"""A configuration with tables: Codex writes some itself."""
LEGACY: Final = ("-c", 'sandbox_mode="workspace-write"')


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in outer_environment().items() if not name.startswith("XDG_")}


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    output: str


class Box:
    """A home, a workspace and other directories, and `codex sandbox` over them."""

    def __init__(self, codex: Path) -> None:
        self._codex = codex
        self.root = new_root()
        self.home = self.root / "people" / "alice"
        self.codex_home = self.home / ".codex"
        self.workspace = self.root / "workspace"
        self.board = self.root / "data" / "board"
        self.other = self.root / "data" / "other"
        for directory in (
            self.codex_home,
            self.workspace,
            self.board,
            self.other,
            self.home / ".local/share",
        ):
            directory.mkdir(parents=True)
        (self.home / ".bashrc").write_text("# shell\n")
        (self.codex_home / "config.toml").write_text(CONFIG)
        self._bin = self.root / "bin"
        self._bin.mkdir()
        wrapper = self._bin / "codex"
        wrapper.write_text(f'#!/bin/sh\nexec {codex} sandbox $BASE "$@" -- sh -c "$COMMAND"\n')
        wrapper.chmod(0o755)

    def run(self, command: str, *, base: Sequence[str] = LEGACY, once: str = "codex") -> Ran:
        """Run a shell command in the sandbox.

        Args:
            command: the script.
            base: options that select the policy; without spaces in them.
            once: the shell command that starts Codex, as a remedy gives it.
        """
        env = clean_environment() | {
            "HOME": str(self.home), "CODEX_HOME": str(self.codex_home), "BASE": " ".join(base),
            "COMMAND": command, "PATH": f"{self._bin}:{os.environ['PATH']}",
        }  # fmt: skip
        done = subprocess.run(
            ["sh", "-c", once], cwd=self.workspace, env=env, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=scaled(60),
        )  # fmt: skip
        return Ran(done.returncode, done.stdout)

    def writable(self, **how: object) -> set[str]:
        """Return which of the places, and of the directories in them, a command can write."""
        places = [
            self.workspace, self.workspace / ".git", self.board, self.other, self.board.parent, self.root,
            self.home, self.home / ".local", self.home / ".local/share", self.home / ".local/share/tool",
            self.codex_home, Path("/etc"), Path("/usr"), Path("/var"), Path("/opt"), Path("/tmp"),
        ]  # fmt: skip
        words = " ".join(shlex.quote(str(place)) for place in places)
        script = (
            f'for p in {words}; do (: > "$p/probe") 2>/dev/null && echo "$p" && rm "$p/probe"; done; true'
        )
        done = self.run(script, **how)
        assert done.code == 0, done.output
        return set(done.output.split())

    def policy(self, *roots: Path, **more: object) -> Policy:
        """Return the policy that Codex states for the workspace and these roots."""
        stated = {"type": "workspace-write", "writable_roots": [str(root) for root in roots], **more}
        return from_sandbox_policy(stated, str(self.workspace))

    def remedy(self, command: str, denied: Ran, policy: Policy, homes: tuple[str, ...] = ()) -> Remedy:
        """Return the remedy for what the output of a denied command shows."""
        found = find_denials(
            command, denied.output, exit_code=denied.code, outcome="ended", policy=policy,
            cwd=str(self.workspace),
            home=str(self.home),
        )  # fmt: skip
        assert found, denied.output
        denial = found[-1]
        facts = PathFacts(
            kinds=path_kinds([denial.path]) if denial.path else {},
            homes=homes,
            workspaces=(str(self.workspace),),
            codex_home=str(self.codex_home),
        )
        remedy = remedy_for(denial, policy, facts, script=command)
        assert remedy is not None, denial
        return remedy

    def paste(self, remedy: Remedy) -> None:
        """Change `config.toml` as the remedy's `where` says."""
        file = self.codex_home / "config.toml"
        assert remedy.where is not None
        assert remedy.where.startswith(f"{file}, at the end")
        if create := remedy.where.partition("before that, `")[2].partition("`")[0]:
            subprocess.run(shlex.split(create), check=True)
        config = file.read_text()
        header, *lines = remedy.text.splitlines()
        if header in config.splitlines():
            keys = tuple(line.partition(" =")[0] + " =" for line in lines)
            kept = [line for line in config.splitlines() if not line.startswith(keys)]
            at = kept.index(header) + 1
            config = "\n".join([*kept[:at], *lines, *kept[at:]])
        else:
            config += f"\n{remedy.text}"
        first = remedy.where.partition("with `")[2].partition("` above the first [table]")[0]
        file.write_text(f"{first}\n{config}\n")
        tomllib.loads(file.read_text())

    def close(self) -> None:
        shutil.rmtree(self.root)


@pytest.fixture
def box() -> Iterator[Box]:
    with closing(Box(install())) as made:
        yield made


# ---------------------------------------------------------------- files


def git_repository(box: Box) -> str:
    subprocess.run(["git", "init", "-q", box.workspace], check=True)
    return "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"


ROOTS: Final[dict[str, tuple[Callable[[Box], str], Callable[[Box], Path]]]] = {
    "file": (lambda box: f"echo x > {box.board}/kanban.db", lambda box: box.board),
    "sqlite": (
        lambda box: (
            f"{sys.executable} -c \"import sqlite3; c = sqlite3.connect('{box.board}/k.db');"
            " c.execute('create table t(a)'); c.commit()\""
        ),
        lambda box: box.board,
    ),
    "remove": (lambda box: f"rmdir {box.board}", lambda box: box.board.parent),
    "commit": (git_repository, lambda box: box.workspace / ".git"),
}


@pytest.mark.parametrize(
    ("kind", "form"), [*((kind, "once") for kind in ROOTS), ("file", "file"), ("sqlite", "file with roots")]
)
def test_root_opens_one_directory(box: Box, kind: str, form: str) -> None:
    make, opened = ROOTS[kind]
    command = make(box)
    roots = (box.other,) if form == "file with roots" else ()
    table = (
        f"\n[sandbox_workspace_write]\nwritable_roots = {json.dumps([str(r) for r in roots])}\n"
        if roots
        else ""
    )
    (box.codex_home / "config.toml").write_text(CONFIG + table)
    before = box.writable()
    assert {str(root) for root in roots} <= before
    denied = box.run(command)
    assert denied.code != 0
    remedy = box.remedy(command, denied, box.policy(*roots))
    how = {}
    if form == "once":
        assert remedy.once is not None
        how = {"once": remedy.once}
    else:
        box.paste(remedy)
    assert box.run("true", **how).code == 0
    root = opened(box)
    below = {
        str(root),
        *(place for place in (str(box.board), str(box.other)) if place.startswith(f"{root}/")),
    }
    assert box.writable(**how) == before | below
    done = box.run(command, **how)
    assert done.code == 0, done.output


def test_missing_directory_is_created_first(box: Box) -> None:
    """What exists above it is shared by many programs."""
    goal = box.home / ".local/share/tool"
    command = f"mkdir -p {goal} && echo x > {goal}/x"
    before = box.writable()
    remedy = box.remedy(command, box.run(command), box.policy())
    assert remedy.once is not None
    assert box.run(command, once=remedy.once).code == 0
    assert box.writable(once=remedy.once) == before | {str(goal)}
    box.paste(remedy)
    assert box.writable() == before | {str(goal)}


def test_read_only_policy(codex: OpenLab) -> None:
    lab = codex({"touch": [{"run": "touch x"}, {"say": "done"}]})
    policy = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="never")
    found = find_denials(
        "touch x", "touch: cannot touch 'x': Read-only file system",
        exit_code=1, outcome="ended", policy=policy, cwd=str(lab.workspace),
    )  # fmt: skip
    remedy = remedy_for(found[0], policy, PathFacts(workspaces=(str(lab.workspace),)))
    assert remedy is not None
    assert remedy.once is not None
    run_exec(lab, remedy.once, "touch")
    assert (lab.workspace / "x").exists()


# ---------------------------------------------------------------- permission profiles


PROFILES: Final = {
    "dev": ("-c", 'default_permissions="dev"', "-c", 'permissions.dev.extends=":workspace"'),
    ":workspace": ("-c", 'default_permissions=":workspace"'),
}


@pytest.mark.parametrize(("profile", "form"), [("dev", "once"), ("dev", "file"), (":workspace", "file")])
def test_root_of_a_permission_profile(box: Box, profile: str, form: str) -> None:
    """In these Codex ignores `[sandbox_workspace_write]`."""
    base = PROFILES[profile]
    command = f"echo x > {box.board}/kanban.db"
    before = box.writable(base=base)
    policy = Policy(**{**fields(box.policy()), "profile": profile})
    remedy = box.remedy(command, box.run(command, base=base), policy)
    how: dict[str, object] = {"base": base}
    if form == "once":
        how["once"] = remedy.once
    else:
        box.paste(remedy)
        how["base"] = base if profile == "dev" else ()
    assert box.run(command, **how).code == 0
    assert box.writable(**how) == before | {str(box.board)}


# ---------------------------------------------------------------- network


@pytest.mark.parametrize(
    ("profile", "form"), [(None, "once"), (None, "file"), ("dev", "file"), (":workspace", "once")]
)
def test_network_for_a_host(box: Box, profile: str | None, form: str) -> None:
    """The network of the machine: shown by a server on its loopback interface."""
    base = PROFILES[profile] if profile else LEGACY
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach = f"{sys.executable} -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\""
        assert box.run(reach, base=base).code != 0
        before = box.writable(base=base)
        policy = Policy(**{**fields(box.policy()), "profile": profile})
        command = "curl -sS https://example.com/"
        remedy = box.remedy(command, box.run(command, base=base), policy)
        how: dict[str, object] = {"base": base}
        if form == "once":
            how["once"] = remedy.once
        else:
            box.paste(remedy)
            how["base"] = () if profile == ":workspace" else base
        assert box.run(reach, **how).code == 0
        assert box.writable(**how) == before


# ---------------------------------------------------------------- sockets


# ---------------------------------------------------------------- flags


def test_excluded_flags_are_gone(codex: OpenLab) -> None:
    lab = codex({"look": [{"run": "env | grep -c '^CODEX_SANDBOX'; echo end"}, {"say": "done"}]})
    once = exclude_flags(PathFacts()).once
    assert once is not None
    output = run_exec(lab, f"{once} -s danger-full-access", "look", CODEX_SANDBOX="seatbelt")
    assert "0\nend" in output, output


def fields(policy: Policy) -> dict[str, object]:
    return {name: getattr(policy, name) for name in policy.__struct_fields__}


def run_exec(lab: Lab, once: str, marker: str, **variables: str) -> str:
    """Run `codex exec` by the command of a remedy, and return the outputs of its calls."""
    env = clean_environment() | {"HOME": str(lab.user), "CODEX_HOME": str(lab.home), **variables}
    words = shlex.split(once)
    assert words[0] == "codex"
    subprocess.run(
        [str(lab.binary), *words[1:], "exec", "--skip-git-repo-check", f"[[{marker}]] go"],
        cwd=lab.workspace, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL,
        timeout=scaled(120),
    )  # fmt: skip
    outputs = []
    for file in sorted(lab.home.glob("sessions/*/*/*/*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            payload = json.loads(line)["payload"]
            if payload.get("type") == "function_call_output":
                outputs.append(str(payload["output"]))
    return "\n".join(outputs)
