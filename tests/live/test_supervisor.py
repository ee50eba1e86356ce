"""A supervising agent that follows the README's paragraph for AGENTS.md, with real workers: beside them, and
inside Codex's sandbox, where `status`, `wait` and `explain` read the status file."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdash.store.status_file import START
from tests.live.codex import MENU, Lab, Pane
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until
from tests.live.programs import run, write_program
from tests.live.tmux import ROOT

Publish = Callable[[Lab], None]
STATES = {"good": "completed", "denied": "blocked-sandbox", "failing": "failed-provider"}
"""How each of its workers ends, by its task."""


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
        for name, text in (
            ("codex", f'exec "{self.lab.binary}" "$@"'),
            ("agentdash", f'cd "{ROOT}" && exec "{sys.executable}" -m agentdash "$@"'),
        ):
            write_program(programs / name, text)
        path = f"{programs}:{os.environ['PATH']}"
        self.lab.pane("sleep 600")
        self.lab.run_tmux("set-environment", "-g", "PATH", path)
        self.lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
        own = {"PATH": path, "CODEX_HOME": str(self.lab.home), "TMUX": f"{self.lab.tmux},1,0"}
        self.env = {**self.lab.outside, **own}

    def run(self, line: str, *around: str) -> subprocess.CompletedProcess[str]:
        return run([*around, "bash", "-c", line], env=self.env, cwd=self.lab.workspace)

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


@pytest.fixture
def publish() -> Iterator[Publish]:
    running: list[subprocess.Popen[str]] = []
    yield lambda lab: running.append(lab.begin("publish", stderr=subprocess.DEVNULL))
    for process in running:
        process.terminate()
        assert process.wait(scaled(20)) == 128 + signal.SIGTERM


def status_file(lab: Lab) -> Path | None:
    return next((lab.state / "agentdash").glob("status-*.json"), None)


def document(supervisor: Supervisor, line: str) -> Any:
    done = supervisor.run_in_sandbox(line)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_workers_are_unreachable_without_a_status_file(
    codex: OpenLab, tmp_path: Path, publish: Publish
) -> None:
    supervisor = Supervisor(codex, tmp_path)
    lab = supervisor.lab
    lab.model.script = {"ask": [{"run": "touch x", "escalate": "May I?"}, {"say": "done"}]}
    pane = await lab.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    found = document(supervisor, "agentdash status --json")
    assert {each["state"] for each in found["workers"]} == {"unreachable"}
    assert START in found["via"]["problem"]
    assert supervisor.run_in_sandbox(f"agentdash wait {pane.id}").returncode == 2
    (worker,) = document(supervisor, f"agentdash status {pane.id} --json")["workers"]
    assert worker["state"] == "unreachable"
    assert START in worker["why"]
    publish(lab)
    await until(lambda: status_file(lab))
    target, limit = f"'{lab.tmux} {pane.id}'", f"{scaled(20):.0f}"
    waited = supervisor.run_in_sandbox(
        f"agentdash wait {target} --until waiting-approval --timeout {limit} --json"
    )
    found = json.loads(waited.stdout)
    assert (found["outcome"], found["worker"]["state"]) == ("reached", "waiting-approval")
    assert found["via"]["file"] == str(status_file(lab))
    assert "old" in waited.stderr
    explained = document(supervisor, f"agentdash explain {target} --json")
    assert explained["via"]["file"] == str(status_file(lab))
    assert explained["workers"][0]["state"] == "waiting-approval"


async def test_recipe_inside_of_the_sandbox(codex: OpenLab, tmp_path: Path, publish: Publish) -> None:
    """Its workers end before they are asked about, the first one before anything is published; the commands
    are those of the README."""
    supervisor = Supervisor(codex, tmp_path)
    lab = supervisor.lab

    def state(pane: str) -> str:
        """Return its state; of the pane too where that has just closed, and its thread is not known yet."""
        workers = document(supervisor, recipe()["agentdash status"].replace("%4", pane))["workers"]
        return " ".join(each["state"] for each in workers)

    panes = [supervisor.start("good")]
    await until(lambda: lab.count_ended() == 1)
    assert state(panes[0]) == "unreachable"
    publish(lab)
    await until(lambda: status_file(lab))
    panes += [supervisor.start(task) for task in ("denied", "failing")]
    assert state(panes[-1])  # the status file may be older than its pane
    await until(lambda: lab.count_ended() == 3)
    states = [*STATES.values()]
    # the status file is written once a second, and a state must have settled before
    await until(lambda: [state(pane) for pane in panes] == states)
    for pane, expected in zip(panes, states, strict=True):
        waited = supervisor.run_in_sandbox(recipe()["agentdash wait"].replace("%4", pane))
        assert (waited.returncode, waited.stdout.split()[:1]) == (0, [expected]), waited.stderr
        supervisor.run(recipe()["tmux kill-pane"].replace("%4", pane))
    await until(lambda: len(lab.screens()) == 1)
    assert [state(pane) for pane in panes] == states


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended before", "waited for"])
async def test_recipe(codex: OpenLab, tmp_path: Path, has_ended: bool) -> None:
    """The workers of a supervisor, by the commands of the README, have ended before it asks, or are waited
    for."""
    supervisor = Supervisor(codex, tmp_path)
    panes = {task: supervisor.start(task) for task in STATES}
    if has_ended:
        await until(lambda: supervisor.lab.count_ended() == len(STATES))
    for task, pane in panes.items():
        waited = supervisor.run(recipe()["agentdash wait"].replace("%4", pane))
        assert (waited.returncode, waited.stdout.split()[:1]) == (0, [STATES[task]]), waited.stderr
    for killed in (False, True):
        for task, pane in panes.items():
            if killed:
                assert supervisor.run(recipe()["tmux kill-pane"].replace("%4", pane)).returncode == 0
            asked = supervisor.run(recipe()["agentdash status"].replace("%4", pane))
            assert [each["state"] for each in json.loads(asked.stdout)["workers"]] == [STATES[task]]
