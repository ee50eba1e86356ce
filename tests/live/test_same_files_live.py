"""Two real workers that edit one file of one repository, each in a worktree of its own."""

from __future__ import annotations

from agentdash.config import Config
from agentdash.model.worker import Snapshot
from tests.live.claude import ClaudeLab, install
from tests.live.conftest import OpenLab
from tests.live.test_order_live import make_repository
from tests.live.watched import watching_config

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = {0}\n*** End Patch"


def shared(snapshot: Snapshot) -> set[tuple[str, str, str]]:
    """Return who shares which file with whom, by the agents."""
    agents = {worker.id: worker.agent.name for worker in snapshot.workers}
    return {
        (agents[worker.id], same.path, agents[same.worker])
        for worker in snapshot.workers
        for same in worker.same_files
    }


async def test_one_file_in_two_worktrees(codex: OpenLab) -> None:
    lab = codex({"edit": [{"patch": PATCH.format(2)}, {"say": "done"}]})
    edit = {"file_path": "app.py", "old_string": "x = 1", "new_string": "x = 3"}
    with ClaudeLab(install(), {}) as other:
        make_repository(lab.workspace, other.workspace)
        path = {"file_path": str(other.workspace / "app.py")}
        other.model.script = {
            "edit": [
                {"tool": "Read", "args": path},
                {"tool": "Edit", "args": edit | path},
                {"say": "done"},
            ]
        }
        config = Config(codex_home=lab.home, claude_home=other.config, socket_paths=(lab.tmux, other.tmux))
        async with watching_config(config) as watched:
            pane = await lab.tui()
            pane.submit("[[edit]] go")
            claude = await other.tui("--permission-mode", "acceptEdits")
            claude.submit("[[edit]] go")
            expected = {("codex", "app.py", "claude"), ("claude", "app.py", "codex")}
            seen = await watched.until_snapshot(lambda each: shared(each) == expected)
            assert not [worker.needs_you for worker in seen.workers if worker.same_files and worker.needs_you]
            calls = {same.edit.call for worker in seen.workers for same in worker.same_files}
            assert {call.partition(" ")[2] for call in calls} == {"update app.py", path["file_path"]}
