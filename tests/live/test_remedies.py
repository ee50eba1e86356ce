"""A real Codex's sandbox: every kind of remedy works there, and workers in it fare as is said of them.

A command is denied in `codex sandbox`, its output is read, and the remedy for what was read is applied, as
the command for one run and as lines pasted into a `config.toml` that has tables already: the denied command
succeeds, and nothing else opens.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.agents.state_paths import state_paths
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.config import Config
from agentdash.engine.judge.findings.remedies import exclude_flags, remedy_for
from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.state_paths import resolve_path
from agentdash.report.predictions import paths_under_policy
from agentdash.sandbox.denials import find_denials
from tests.live.clis import install as install_cli
from tests.live.clis import new_root
from tests.live.codex import Lab, install
from tests.live.conftest import OpenLab
from tests.live.programs import run, write_program
from tests.live.tmux import kill_all, outer_environment
from tests.live.watched import kinds, watching_config

WORKSPACE_WRITE = ("-c", 'sandbox_mode="workspace-write"')
CONFIG: Final = """\
model = "mock"

[tui]
notifications = true

[projects."/nowhere"]
trust_level = "trusted"
"""
"""A configuration with tables: Codex writes some itself."""
PROFILES: Final = {
    None: WORKSPACE_WRITE,
    "dev": ("-c", 'default_permissions="dev"', "-c", 'permissions.dev.extends=":workspace"'),
    ":workspace": ("-c", 'default_permissions=":workspace"'),
}
"""Options that select a policy; in permission profiles Codex ignores `[sandbox_workspace_write]`."""


class Box:
    """A home, a workspace and directories that may be opened, with `codex sandbox` over them, which a `codex`
    runs for `$COMMAND`; not in /tmp, which is writable in the sandbox."""

    def __init__(self) -> None:
        self.codex = install()
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
        self.config = self.codex_home / "config.toml"
        self.config.write_text(CONFIG)
        program = f'exec {self.codex} sandbox $BASE "$@" -- sh -c "$COMMAND"'
        self._bin = write_program(self.root / "bin" / "codex", program).parent

    def argv(self, *command: str, options: tuple[str, ...] = WORKSPACE_WRITE) -> list[str]:
        """Return the arguments that run a command in the sandbox."""
        return [str(self.codex), "sandbox", *options, "--", *command]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands."""
        kept = {name: value for name, value in outer_environment().items() if not name.startswith("XDG_")}
        return kept | {"HOME": str(self.home), "CODEX_HOME": str(self.codex_home)}

    def run(self, argv: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in the workspace; its errors are among its output."""
        variables = {**self.environment, **more}
        return run(argv, cwd=self.workspace, env=variables, stderr=subprocess.STDOUT)

    def do(
        self, command: str, base: tuple[str, ...] = WORKSPACE_WRITE, once: str = "codex"
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command in the sandbox.

        Args:
            command: the script.
            base: options that select the policy; without spaces in them.
            once: the shell command that starts Codex, as a remedy gives it.
        """
        path = f"{self._bin}:{os.environ['PATH']}"
        return self.run(["sh", "-c", once], BASE=" ".join(base), COMMAND=command, PATH=path)

    def writable(self, *how: object) -> set[str]:
        """Return which of the places, and of the directories in them, a command can write."""
        places = [
            self.workspace, self.workspace / ".git", self.board, self.other, self.board.parent, self.root,
            self.home, self.home / ".local", self.home / ".local/share", self.home / ".local/share/tool",
            self.codex_home, Path("/etc"), Path("/usr"), Path("/var"), Path("/opt"), Path("/tmp"),
        ]  # fmt: skip
        words = shlex.join(map(str, places))
        attempt = '(: > "$p/probe") 2>/dev/null && echo "$p" && rm "$p/probe"'
        done = self.do(f"for p in {words}; do {attempt}; done; true", *how)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stdout
        return set(done.stdout.split())

    def policy(self, *roots: Path) -> Policy:
        """Return the policy that Codex states for the workspace and these roots."""
        stated = {"type": "workspace-write", "writable_roots": [str(root) for root in roots]}
        return from_sandbox_policy(stated, str(self.workspace))

    def remedy(self, command: str, base: tuple[str, ...], policy: Policy) -> Remedy:
        """Run a command that is denied; return the remedy for what its output shows."""
        denied = self.do(command, base)
        found = find_denials(
            command, denied.stdout, exit_code=denied.returncode, outcome="ended", policy=policy,
            cwd=str(self.workspace), home=str(self.home),
        )  # fmt: skip
        assert found, denied.stdout
        facts = PathFacts(
            kinds=path_kinds([found[-1].path]) if found[-1].path else {},
            workspaces=(str(self.workspace),),
            codex_home=str(self.codex_home),
        )
        remedy = remedy_for(found[-1], policy, facts, script=command)
        assert remedy is not None, found
        return remedy

    def paste(self, remedy: Remedy) -> None:
        """Change `config.toml` as the remedy's `where` says."""
        assert remedy.where is not None
        assert remedy.where.startswith(f"{self.config}, at the end")
        if create := remedy.where.partition("before that, `")[2].partition("`")[0]:
            subprocess.run(shlex.split(create), check=True)
        config = self.config.read_text()
        header, *lines = remedy.text.splitlines()
        if header in config.splitlines():
            keys = tuple(line.partition(" =")[0] + " =" for line in lines)
            kept = [line for line in config.splitlines() if not line.startswith(keys)]
            at = kept.index(header) + 1
            config = "\n".join([*kept[:at], *lines, *kept[at:]])
        else:
            config += f"\n{remedy.text}"
        first = remedy.where.partition("with `")[2].partition("` above the first [table]")[0]
        self.config.write_text(f"{first}\n{config}\n")
        tomllib.loads(self.config.read_text())

    def close(self) -> None:
        # the arguments of the sandbox's own processes have the workspace; those inside end with them
        kill_all(lambda process: any(str(self.root) in argument for argument in process.cmdline()))
        shutil.rmtree(self.root)


@pytest.fixture
def box() -> Iterator[Box]:
    with closing(Box()) as made:
        yield made


# ---------------------------------------------------------------- what is denied


class Want(NamedTuple):
    """A command that is denied, and what its remedy opens, with `{names}` of places."""

    command: str
    opened: str | None
    probe: str = ""
    """Succeeds with the remedy; the command itself where it is empty."""


_OPEN = "c = sqlite3.connect('{board}/k.db'); c.execute('create table t(a)'); c.commit()"
_CONNECT = "socket.create_connection(('127.0.0.1', {port}), 5)"
_TOOL = "{home}/.local/share/tool"
WANTS: Final = {
    "file": Want("echo x > {board}/kanban.db", "{board}"),
    "sqlite": Want(f'{sys.executable} -c "import sqlite3; {_OPEN}"', "{board}"),
    "remove": Want("rmdir {board}", "{data}"),
    "commit": Want("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x", "{workspace}/.git"),
    # created first: what exists above it is shared by many programs
    "missing": Want(f"mkdir -p {_TOOL} && echo x > {_TOOL}/x", _TOOL),
    # that of the machine: shown by a server on its loopback interface
    "network": Want(
        "curl -sS https://example.com/", None, f'{sys.executable} -c "import socket; {_CONNECT}"'
    ),
}


@pytest.mark.parametrize(
    ("name", "profile", "form"),
    [
        *((name, None, "once") for name in WANTS),
        *((name, None, "file") for name in ("file", "missing", "network")),
        ("sqlite", None, "file with roots"),
        *(("file", *how) for how in (("dev", "once"), ("dev", "file"), (":workspace", "file"))),
        *(("network", *how) for how in (("dev", "file"), (":workspace", "once"))),
    ],
)
def test_remedy_opens_what_was_denied_and_nothing_else(
    box: Box, name: str, profile: str | None, form: str
) -> None:
    if name == "commit":
        subprocess.run(["git", "init", "-q", box.workspace], check=True)
    base = PROFILES[profile]
    roots = (box.other,) if form == "file with roots" else ()
    if roots:
        listed = json.dumps([str(root) for root in roots])
        box.config.write_text(f"{CONFIG}\n[sandbox_workspace_write]\nwritable_roots = {listed}\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {"board": box.board, "data": box.board.parent, "home": box.home, "workspace": box.workspace}
        filled = [(text or "").format(port=server.getsockname()[1], **places) for text in WANTS[name]]
        command, opened, probe = filled[0], Path(filled[1]), filled[2] or filled[0]
        before = box.writable(base)
        assert {str(root) for root in roots} <= before
        assert box.do(probe, base).returncode != 0
        remedy = box.remedy(command, base, replace(box.policy(*roots), profile=profile))
        how: tuple[object, ...] = (base, remedy.once)
        if form != "once":
            box.paste(remedy)
            how = (() if profile == ":workspace" else base,)
        assert box.do("true", *how).returncode == 0  # type: ignore[arg-type]
        below = (str(place) for place in (box.board, box.other) if opened in place.parents)
        assert box.writable(*how) == before | ({str(opened), *below} if WANTS[name].opened else set())
        done = box.do(probe, *how)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- with `codex exec`


def run_exec(lab: Lab, once: str | None, marker: str, **variables: str) -> str:
    """Run `codex exec` by the command of a remedy, and return the outputs of its calls."""
    assert once is not None
    words = shlex.split(once)
    assert words[0] == "codex"
    lab.run_codex(*words[1:], "exec", "--skip-git-repo-check", f"[[{marker}]] go", **variables)
    payloads = [
        json.loads(line)["payload"] for file in lab.rollouts() for line in file.read_text().splitlines()
    ]
    return "\n".join(str(p["output"]) for p in payloads if p.get("type") == "function_call_output")


def test_read_only_policy(codex: OpenLab) -> None:
    lab = codex({"touch": [{"run": "touch x"}, {"say": "done"}]})
    policy = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="never")
    (found,) = find_denials(
        "touch x", "touch: cannot touch 'x': Read-only file system",
        exit_code=1, outcome="ended", policy=policy, cwd=str(lab.workspace),
    )  # fmt: skip
    remedy = remedy_for(found, policy, PathFacts(workspaces=(str(lab.workspace),)))
    assert remedy is not None
    run_exec(lab, remedy.once, "touch")
    assert (lab.workspace / "x").exists()


def test_excluded_flags_are_gone(codex: OpenLab) -> None:
    lab = codex({"look": [{"run": "env | grep -c '^CODEX_SANDBOX'; echo end"}, {"say": "done"}]})
    once = f"{exclude_flags(PathFacts()).once} -s danger-full-access"
    output = run_exec(lab, once, "look", CODEX_SANDBOX="seatbelt")
    assert "0\nend" in output, output


# ---------------------------------------------------------------- workers in the sandbox


def test_opencode_ends_at_the_predicted_path(box: Box) -> None:
    """Its error names the path; of directories that exist it must write the first only."""
    rows, env = state_paths()["opencode"], {"HOME": str(box.home)}
    places = [path for row in rows if (path := resolve_path(row.path, env)) is not None]
    policy = Policy(
        Filesystem.WORKSPACE, Network.OFF, (PolicyRule("/", "read"), PolicyRule(str(box.workspace), "write"))
    )
    for expected in (places, places[:1]):
        facts = PathFacts(kinds=path_kinds(places))
        found = paths_under_policy(policy, rows, env, str(box.workspace), facts)
        needed = [path.path for path in found if path.allowed is False and path.needed]
        assert needed == expected
        ended = box.run(box.argv(str(install_cli("opencode")), "run", "-m", "no/model", "hello"))
        output = ended.stdout
        assert ended.returncode == 1
        named = re.search(r"(?:mkdir '|open \()(/[^')]+)", output)
        assert named is not None, output
        assert any(path.startswith(named[1]) or named[1].startswith(path) for path in needed)
        for path in places:
            Path(path).mkdir(parents=True, exist_ok=True)


async def test_worker_of_a_sandboxed_tmux_server(box: Box, tmp_path: Path) -> None:
    """The server is refused and named; its worker is known by its process, in the pane of the sandbox."""
    inner, outside = tmp_path / "tmux", tmp_path / "outside"
    (box.workspace / "opencode").symlink_to(sys.executable)
    worker = f"{box.workspace / 'opencode'} -IS -c 'input()'"
    serve = f'tmux -S {inner} -f /dev/null new-session -d "{worker}"; exec sleep 1000'
    online = (*WORKSPACE_WRITE, "-c", "sandbox_workspace_write.network_access=true")
    inside = box.argv("sh", "-c", serve, options=online)
    subprocess.run(  # noqa: ASYNC221 - short
        ["tmux", "-S", outside, "-f", "/dev/null", "new-session", "-d", shlex.join(inside)],
        cwd=box.workspace,
        env=box.environment,
        check=True,
    )
    config = Config(codex_home=box.codex_home, socket_paths=(inner, outside))
    async with watching_config(config) as watched:
        found = await watched.until(lambda w: "sandboxed-tmux-server" in kinds(w))
        refused = await watched.until_snapshot(
            lambda each: any(
                source.name == f"tmux {inner}" and source.detail.startswith("refused: ")
                for source in each.sources
            )
        )
    assert (found.agent.name, found.sandbox.got.sandboxed, found.sandbox.got.network_namespace) == (
        "opencode",
        True,
        "host",
    )
    assert {w.pane.key.server for w in refused.workers if w.pane} == {str(outside)}
