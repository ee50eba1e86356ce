"""What is said of workers in the real Codex's sandbox, compared with what happens to them there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentdash.agents.state_paths import state_paths
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.config import Config
from agentdash.model.denials import PathFacts
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.state_paths import resolve_path
from agentdash.report.predictions import paths_under_policy
from tests.live.clis import install
from tests.live.codex_box import WORKSPACE_WRITE, Box
from tests.live.watched import watching_config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and namespaces are Linux's")


@pytest.fixture
def box() -> Iterator[Box]:
    with closing(Box()) as made:
        yield made


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
        ended = box.run(box.argv(str(install("opencode")), "run", "-m", "no/model", "hello"))
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
        found = await watched.until(
            lambda w: any(finding.kind == "sandboxed-tmux-server" for finding in w.sandbox.findings)
        )
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
