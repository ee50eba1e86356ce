"""Two real workers that edit one file of one repository, each in a worktree of its own."""

from __future__ import annotations

import subprocess

from agentdash.config import Config
from agentdash.model.worker import Snapshot
from tests.live.claude import ClaudeLab, install
from tests.live.conftest import OpenLab
from tests.live.opencode import tui as opencode_tui
from tests.live.watched import watching, watching_config

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = {0}\n*** End Patch"


def commands(*lines: str, cwd: object) -> None:
    for line in lines:
        subprocess.run(line, shell=True, cwd=str(cwd), check=True, capture_output=True)


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
    git = "git -c user.name=a -c user.email=a@b"
    commands(
        "git init -q", "echo 'x = 1' > app.py", "git add app.py", f"{git} commit -qm x", cwd=lab.workspace
    )
    edit = {"file_path": "app.py", "old_string": "x = 1", "new_string": "x = 3"}
    with ClaudeLab(install(), {"edit": [{"tool": "Read"}, {"tool": "Edit"}, {"say": "done"}]}) as other:
        commands(f"git worktree add -q -f {other.workspace} -b fix", cwd=lab.workspace)
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


async def test_opencode_in_the_same_directory(codex: OpenLab) -> None:
    lab = codex({})
    path = {"filePath": str(lab.workspace / "app.py")}
    lab.model.script = {
        "patch": [{"patch": PATCH.format(2)}, {"say": "done"}],
        "edit": [
            {"tool": "read", "args": path},
            {"tool": "edit", "args": {**path, "oldString": "x = 1", "newString": "x = 3"}},
            {"say": "done"},
        ],
    }
    commands("git init -q", "echo 'x = 1' > app.py", cwd=lab.workspace)
    async with watching(lab) as watched:
        opencode = await opencode_tui(lab)
        opencode.submit("[[edit]] go")
        await watched.until(lambda each: each.agent.name == "opencode" and bool(each.edits))
        commands("echo 'x = 1' > app.py", cwd=lab.workspace)
        pane = await lab.tui()
        pane.submit("[[patch]] go")
        expected = {("codex", "app.py", "opencode"), ("opencode", "app.py", "codex")}
        await watched.until_snapshot(lambda each: shared(each) == expected)
