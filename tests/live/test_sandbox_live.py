"""What is said of workers in the real Codex's sandbox, compared with what happens to them there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentdash.agents.state_paths import state_paths
from agentdash.config import Config
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.state_paths import resolve_path
from agentdash.report.predictions import paths_under_policy
from tests.live.clis import install as install_cli
from tests.live.clis import new_root
from tests.live.codex import install
from tests.live.patience import scaled
from tests.live.tmux import kill_all
from tests.live.watched import watching_config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and namespaces are Linux's")


class Sandbox:
    """A home, a workspace, and `codex sandbox` over them; not in /tmp, which is writable in the sandbox."""

    def __init__(self, codex: Path) -> None:
        self._codex = codex
        self.root = new_root()
        self.home, self.workspace = self.root / "home", self.root / "workspace"
        for folder in (self.home / ".codex", self.workspace):
            folder.mkdir(parents=True)
        self._short = Path(tempfile.mkdtemp(prefix="ad-"))
        self.tmux = self._short / "tmux"
        """A socket that both sides can reach."""

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

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the sandbox: it may write the workspace, and has no network."""
        return subprocess.run(
            self.argv(*command),
            cwd=self.workspace,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=scaled(60),
        )

    def close(self) -> None:
        # the arguments of the sandbox's own processes have the workspace; those inside end with them
        kill_all(lambda process: any(str(self.root) in argument for argument in process.cmdline()))
        shutil.rmtree(self._short)
        shutil.rmtree(self.root)


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with closing(Sandbox(install())) as made:
        yield made


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
        ended = box.run(str(install_cli("opencode")), "run", "-m", "no/model", "hello")
        output = ended.stdout
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
