"""A supervising agent inside Codex's sandbox: `status`, `wait` and `explain` read the status file."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdash.store.status_file import START, status_file
from tests.live.codex import MENU, Lab, install
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until
from tests.live.supervisor import Supervisor, recipe, rollouts

ROOT = Path(__file__).parents[2]
Publish = Callable[[Lab], "subprocess.Popen[bytes]"]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Publish]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    running: list[subprocess.Popen[bytes]] = []

    def begin(lab: Lab) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "agentdash",
            "publish",
            "--codex-home",
            str(lab.home),
            "-S",
            str(lab.tmux),
        ]
        running.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL))
        return running[-1]

    yield begin
    for process in running:
        process.terminate()
        assert process.wait(scaled(20)) == 128 + signal.SIGTERM


@pytest.fixture
def supervisor(codex: OpenLab, tmp_path: Path) -> Supervisor:
    return Supervisor(codex, tmp_path)


def agentdash_command(*arguments: str) -> str:
    """Return the shell command that runs agentdash inside the sandbox."""
    env = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"], "PYTHONPATH": str(ROOT)}
    return shlex.join(
        [
            "env",
            *(f"{name}={value}" for name, value in env.items()),
            sys.executable,
            "-m",
            "agentdash",
            *arguments,
        ]
    )


def in_sandbox(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(install()),
        "sandbox",
        "-c",
        "sandbox_mode=workspace-write",
        "--",
        "bash",
        "-c",
        agentdash_command(*arguments),
    ]
    env = {**os.environ, "CODEX_HOME": str(lab.home)}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=env,
        cwd=lab.workspace,
        check=False,
        stdin=subprocess.DEVNULL,
    )


async def test_workers_are_unreachable_without_a_status_file(codex: OpenLab, publish: Publish) -> None:
    lab = codex({"ask": [{"run": "touch x", "escalate": "May I?"}, {"say": "done"}]})
    pane = await lab.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    without_file = in_sandbox(lab, "status", "--json")
    document = json.loads(without_file.stdout)
    assert [w["state"] for w in document["workers"]] == ["unreachable"]
    assert START in document["via"]["problem"]
    assert START in without_file.stderr
    assert in_sandbox(lab, "wait", pane.id).returncode == 2
    asked = in_sandbox(lab, "status", pane.id, "--json")
    document = json.loads(asked.stdout)
    assert (asked.returncode, [w["state"] for w in document["workers"]]) == (0, ["unreachable"])
    assert START in document["workers"][0]["why"]
    publish(lab)
    await until(status_file(lab.home).exists)
    waited = in_sandbox(
        lab,
        "wait",
        f"{lab.tmux} {pane.id}",
        "--until",
        "waiting-approval",
        "--timeout",
        f"{scaled(20):.0f}",
        "--json",
    )
    document = json.loads(waited.stdout)
    assert (waited.returncode, document["outcome"], document["worker"]["state"]) == (
        0,
        "reached",
        "waiting-approval",
    )
    assert document["via"]["file"] == str(status_file(lab.home))
    assert "old" in waited.stderr
    explained = json.loads(in_sandbox(lab, "explain", f"{lab.tmux} {pane.id}", "--json").stdout)
    assert (explained["via"]["file"], explained["workers"][0]["state"]) == (
        document["via"]["file"],
        "waiting-approval",
    )


async def test_recipe_inside_of_the_sandbox(publish: Publish, supervisor: Supervisor) -> None:
    """Its workers end before they are asked about, the first one before anything is published; the commands
    are those of the README."""
    lab = supervisor.lab
    panes = [supervisor.start("good")]
    await until(lambda: rollouts(lab).count('"task_complete"') == 1)
    assert sandboxed_state(supervisor, panes[0]) == "unreachable"
    publish(lab)
    await until(status_file(lab.home).exists)
    panes += [supervisor.start(task) for task in ("denied", "failing")]
    assert sandboxed_state(supervisor, panes[-1])  # the status file may be older than its pane
    await until(lambda: rollouts(lab).count('"task_complete"') == 3)
    states = ["completed", "blocked-sandbox", "failed-provider"]
    # the status file is written once a second, and a state must have settled before
    await until(lambda: [sandboxed_state(supervisor, pane) for pane in panes] == states)
    for pane, state in zip(panes, states, strict=True):
        waited = supervisor.run_in_sandbox(recipe()["agentdash wait"].replace("%4", pane))
        assert (waited.returncode, waited.stdout.split()[:1]) == (0, [state]), waited.stderr
        supervisor.run(recipe()["tmux kill-pane"].replace("%4", pane))
    await until(lambda: len(lab.screens()) == 1)
    assert [sandboxed_state(supervisor, pane) for pane in panes] == states


def sandboxed_state(supervisor: Supervisor, pane: str) -> str:
    done = supervisor.run_in_sandbox(recipe()["agentdash status"].replace("%4", pane))
    assert done.returncode == 0, done.stderr
    workers = json.loads(done.stdout)["workers"]
    assert len(workers) == 1, (pane, done.stderr, workers)
    (worker,) = workers
    return str(worker["state"])
