"""A supervising agent that follows the README's paragraph for AGENTS.md, with real workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.live.codex import Lab, Pane
from tests.live.conftest import OpenLab
from tests.live.tmux import ROOT


def recipe() -> dict[str, str]:
    """Return the commands of the README's paragraph for AGENTS.md, by their first two words."""
    text = (ROOT / "README.md").read_text("utf-8")
    paragraph = text[text.index("## Workers in tmux") :].partition("```")[0]
    commands = re.findall(r"`((?:tmux|agentdash) (?:new-window|status|wait|kill-pane) [^`]+)`", paragraph)
    found = {" ".join(each.split()[:2]): each for each in commands}
    assert set(found) == {"tmux new-window", "agentdash status", "agentdash wait", "tmux kill-pane"}
    return found


class Supervisor:
    """Runs commands as they stand there, in a shell inside the lab's tmux server."""

    def __init__(self, codex: OpenLab, folder: Path) -> None:
        self.lab = codex({}, config="sandbox_workspace_write.exclude_slash_tmp = true")
        subprocess.run(["git", "init", "-q", str(self.lab.workspace)], check=True)
        denied = self.lab.root / "denied"
        denied.mkdir()
        self.lab.model.script = {
            "good": [{"say": "all done"}],
            "denied": [{"run": f"touch {denied}/x"}, {"say": "I could not."}],
            "failing": [{"fail": 401}] * 20,
        }
        programs = folder / "bin"
        programs.mkdir()
        for name, text in (
            ("codex", f'exec "{self.lab.binary}" "$@"'),
            ("agentdash", f'cd "{ROOT}" && exec "{sys.executable}" -m agentdash "$@"'),
        ):
            program = programs / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.lab.pane("sleep 600")
        self.lab.run_tmux("set-environment", "-g", "PATH", path)
        self.lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
        own = {"PATH": path, "CODEX_HOME": str(self.lab.home), "TMUX": f"{self.lab.tmux},1,0"}
        self.env = {**self.lab.outside, **own}

    def run(self, line: str, *around: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*around, "bash", "-c", line],
            capture_output=True,
            text=True,
            check=False,
            env=self.env,
            cwd=self.lab.workspace,
            stdin=subprocess.DEVNULL,
        )

    def start(self, task: str) -> str:
        """Start a worker, wait until it runs, and return the id of its pane."""
        done = self.run(recipe()["tmux new-window"].replace("the task", f"[[{task}]] go"))
        assert done.returncode == 0, done.stderr
        pane = Pane(self.lab, done.stdout.strip())
        pane.wait_for_start()
        return pane.id

    def run_in_sandbox(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a supervising Codex does: in its sandbox."""
        return self.run(line, str(self.lab.binary), "sandbox", "-c", "sandbox_mode=workspace-write", "--")


def rollouts(lab: Lab) -> str:
    return "".join(path.read_text("utf-8") for path in lab.home.glob("sessions/*/*/*/rollout-*.jsonl"))
