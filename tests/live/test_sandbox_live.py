"""Observations of processes in the real Codex's sandbox, compared with what the processes can do."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from agentdash.agents.state_paths import state_paths
from agentdash.collect.processes import linux
from agentdash.collect.processes.path_rights import PathRights
from agentdash.config import Config
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.state_paths import resolve_path
from agentdash.report.predictions import paths_under_policy
from tests.live.clis import install as install_cli
from tests.live.clis import new_root
from tests.live.codex import install
from tests.live.patience import wait_until
from tests.live.tmux import kill_all
from tests.live.watched import watching_config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and namespaces are Linux's")

TRY = """
import json, os, sys
def can(path):
    there = os.path.lexists(path)
    try:
        if os.path.isdir(path):
            probe = path + "/.agentdash-probe"
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600)); os.unlink(probe)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            if not there: os.unlink(path)
    except OSError: return False
    return True
print(os.getpid(), flush=True)
for line in sys.stdin: print(can(json.loads(line)), flush=True)
"""
"""Tries to write each given path, prints whether it could, and removes what it made."""


class Sandbox:
    """A home, a workspace, and `codex sandbox` over them; not in /tmp, which is writable in the sandbox."""

    def __init__(self, codex: Path) -> None:
        self._codex = codex
        self.root = new_root()
        self.home, self.workspace, self.outside = (
            self.root / "home",
            self.root / "workspace",
            self.root / "outside",
        )
        for folder in (self.home / ".codex", self.workspace, self.outside / "extra"):
            folder.mkdir(parents=True)
        self._short = Path(tempfile.mkdtemp(prefix="ad-"))
        self.tmux = self._short / "tmux"
        """A socket that both sides can reach."""
        self._running: list[subprocess.Popen[str]] = []

    def argv(self, *command: str, settings: tuple[str, ...] = ()) -> list[str]:
        """Return the arguments that run a command in the sandbox."""
        options = [arg for setting in ("sandbox_mode=workspace-write", *settings) for arg in ("-c", setting)]
        return [str(self._codex), "sandbox", *options, "--", *command]

    def environment(self) -> dict[str, str]:
        """Return the variables of its commands."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CODEX_", "TMUX", "XDG_"))
        }
        return {**kept, "HOME": str(self.home), "CODEX_HOME": str(self.home / ".codex")}

    def run(
        self, *command: str, settings: tuple[str, ...] = (), errors_too: bool = False, **env: str
    ) -> subprocess.Popen[str]:
        """Start a command in the sandbox: it may write the workspace; a network needs `settings`."""
        argv, environment = self.argv(*command, settings=settings), {**self.environment(), **env}
        pipes = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT if errors_too else subprocess.DEVNULL,
        }
        self._running.append(subprocess.Popen(argv, cwd=self.workspace, env=environment, text=True, **pipes))
        return self._running[-1]

    def pid(self, started: subprocess.Popen[str], matches: Callable[[psutil.Process], bool]) -> int:
        """Wait for a descendant of a started process that matches, and return its pid."""
        found: list[int] = []

        def search() -> bool:
            for process in psutil.Process(started.pid).children(recursive=True):
                with suppress(psutil.Error):
                    found.extend([process.pid] if matches(process) else [])
            return bool(found)

        wait_until(search, "a process in the sandbox")
        return found[0]

    def close(self) -> None:
        for started in self._running:
            started.kill()
            started.wait()
            for pipe in (started.stdin, started.stdout):
                pipe.close()
        # the arguments of the sandbox's own processes have the workspace; those inside end with them
        kill_all(lambda process: any(str(self.root) in argument for argument in process.cmdline()))
        shutil.rmtree(self._short)
        shutil.rmtree(self.root)


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with closing(Sandbox(install())) as made:
        yield made


def test_may_write_agrees_with_a_process_that_tries(box: Sandbox) -> None:
    subprocess.run(["git", "init", "-q", box.workspace], check=True)
    extra = box.outside / "extra"
    (extra / "link-out").symlink_to(box.home)
    (box.home / "link-in").symlink_to(extra)
    (box.workspace / "read-only.txt").write_text("x")
    (box.workspace / "read-only.txt").chmod(0o444)
    (box.workspace / "shut").mkdir(mode=0o500)
    writing = box.run(
        sys.executable,
        "-IS",
        "-c",
        TRY,
        settings=(f"sandbox_workspace_write.writable_roots={json.dumps([str(extra)])}",),
    )
    assert writing.stdin is not None
    assert writing.stdout is not None
    inner = int(writing.stdout.readline())
    pid = box.pid(
        writing,
        lambda p: TRY in p.cmdline() and linux.ns_pid(p.pid) == inner and linux.ns_pid(p.pid) != p.pid,
    )
    places = {
        box.workspace: ". new a/b .git .git/index.lock .codex .codex/x read-only.txt shut/x",
        extra: ". new .. ../new link-out/x .git/x",
        box.home: ". link-in/x .local/share/opencode/opencode.db .codex/x",
        Path("/"): ". root/x etc/passwd tmp tmp/x tmp/.git/x var/tmp/x usr/x dev/null dev/shm/x proc/x sys/x",
    }
    paths = [os.path.normpath(place / name) for place, names in places.items() for name in names.split()]
    predicted = {}
    done = {}
    rights = PathRights(pid)
    for path in paths:
        predicted[path] = rights.can_write(path).verdict == "allowed"
        writing.stdin.write(json.dumps(path) + "\n")
        writing.stdin.flush()
        done[path] = writing.stdout.readline() == "True\n"
    # the process tries without making directories
    comparable = [path for path in predicted if Path(path).parent.exists()]
    assert comparable
    assert {path: predicted[path] for path in comparable} == {path: done[path] for path in comparable}
    assert predicted[str(box.workspace / "a/b")] is True
    assert {
        predicted[str(p)]
        for p in (box.home / ".local/share/opencode/opencode.db", box.workspace / ".codex/x")
    } == {False}
    assert rights.can_write(str(box.home / "x")).verdict == "read-only-mount"


def test_opencode_ends_at_the_predicted_path(box: Sandbox) -> None:
    """Its error names the path; of directories that exist it must write the first only."""
    rows, env = state_paths()["opencode"], {"HOME": str(box.home)}
    places = [path for row in rows if (path := resolve_path(row.path, env)) is not None]
    policy = Policy(
        Filesystem.WORKSPACE, Network.OFF, (PolicyRule("/", "read"), PolicyRule(str(box.workspace), "write"))
    )
    for expected in (places, places[:1]):
        missing = [path for path in places if not Path(path).exists()]
        found = paths_under_policy(policy, rows, env, str(box.workspace), missing)
        needed = [path.path for path in found if path.denied and path.needed]
        assert needed == expected
        ended = box.run(str(install_cli("opencode")), "run", "-m", "no/model", "hello", errors_too=True)
        output = ended.communicate()[0]
        assert ended.returncode == 1
        named = re.search(r"(?:mkdir '|open \()(/[^')]+)", output)
        assert named is not None, output
        assert any(path.startswith(named[1]) or named[1].startswith(path) for path in needed)
        for path in places:
            Path(path).mkdir(parents=True, exist_ok=True)


async def test_worker_of_a_sandboxed_tmux_server(box: Sandbox) -> None:
    """The server is refused and named; its worker is known by its process, in the pane of the sandbox."""
    (box.workspace / "opencode").symlink_to(sys.executable)
    worker = f"{box.workspace / 'opencode'} -IS -c 'input()'"
    serve = f'tmux -S {box.tmux} -f /dev/null new-session -d "{worker}"; exec sleep 1000'
    inside = box.argv("sh", "-c", serve, settings=("sandbox_workspace_write.network_access=true",))
    outside = box.tmux.with_name("outside")
    subprocess.run(  # noqa: ASYNC221 - short
        ["tmux", "-S", outside, "-f", "/dev/null", "new-session", "-d", shlex.join(inside)],
        cwd=box.workspace,
        env=box.environment(),
        check=True,
    )
    config = Config(codex_home=box.home / ".codex", socket_paths=(box.tmux, outside))
    async with watching_config(config) as watched:
        found = await watched.until(
            lambda w: any(finding.kind == "sandboxed-tmux-server" for finding in w.sandbox.findings)
        )
        refused = await watched.until_snapshot(
            lambda each: any(
                source.name == f"tmux {box.tmux}" and source.detail.startswith("refused: ")
                for source in each.sources
            )
        )
    assert (found.agent.name, found.sandbox.got.sandboxed, found.sandbox.got.network_namespace) == (
        "opencode",
        True,
        "host",
    )
    assert {w.pane.key.server for w in refused.workers if w.pane} == {str(outside)}
