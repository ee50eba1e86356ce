"""A supervising agent inside Codex's sandbox: `status`, `wait` and `explain` read the status file."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdash.store.status_file import START
from tests.live.codex import MENU, Lab
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until
from tests.live.supervisor import Supervisor, recipe, rollouts

Publish = Callable[[Lab], None]


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
    await until(lambda: rollouts(lab).count('"task_complete"') == 1)
    assert state(panes[0]) == "unreachable"
    publish(lab)
    await until(lambda: status_file(lab))
    panes += [supervisor.start(task) for task in ("denied", "failing")]
    assert state(panes[-1])  # the status file may be older than its pane
    await until(lambda: rollouts(lab).count('"task_complete"') == 3)
    states = ["completed", "blocked-sandbox", "failed-provider"]
    # the status file is written once a second, and a state must have settled before
    await until(lambda: [state(pane) for pane in panes] == states)
    for pane, expected in zip(panes, states, strict=True):
        waited = supervisor.run_in_sandbox(recipe()["agentdash wait"].replace("%4", pane))
        assert (waited.returncode, waited.stdout.split()[:1]) == (0, [expected]), waited.stderr
        supervisor.run(recipe()["tmux kill-pane"].replace("%4", pane))
    await until(lambda: len(lab.screens()) == 1)
    assert [state(pane) for pane in panes] == states
