"""`agentdash wait` on workers of real Codex whose panes close with them, as soon as it has begun."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agentdash.model.states import State
from tests.live.codex import Lab, Pane
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until
from tests.live.scripted_server import Script

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the first look reads /proc")

ROOT = Path(__file__).parents[2]
STATES = {
    "good": State.COMPLETED,
    "denied": State.BLOCKED_SANDBOX,
    "failing": State.FAILED_PROVIDER,
    "stopped": State.INTERRUPTED,
    "killed": State.EXITED,
}
UNTIL = ",".join(STATES.values())


HELD = {"hold": "the end"}
"""The model answers nobody before `wait` has begun."""
SCRIPT: Script = {
    "good": [HELD, {"say": "all done"}],
    "denied": [HELD, {"run": "touch /etc/agentdash-denied"}, {"say": "I could not."}],
    "failing": [HELD, *[{"fail": 401}] * 20],
    "stopped": [HELD, {"hold": "never"}],
    "killed": [HELD, {"hold": "never"}],
}


def start(lab: Lab, task: str) -> Pane:
    """Start `codex exec` in a window that closes with it, and wait until it has asked the model."""
    codex = [str(lab.binary), "exec", "-s", "workspace-write", "--skip-git-repo-check", f"[[{task}]] go"]
    where = ("-d", "-P", "-F", "#{pane_id}", "-c", str(lab.workspace))
    return Pane(lab, lab.run_tmux("new-window", *where, f"{shlex.join(codex)} </dev/null").strip())


def begin_to_wait(lab: Lab, pane: Pane) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agentdash", "wait", pane.id, "--until", UNTIL, "--json"]
    options = ["--timeout", f"{scaled(60):.0f}", "--codex-home", str(lab.home), "-S", str(lab.tmux)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def has_looked(waiting: subprocess.Popen[str]) -> bool:
    """Return whether the first look, which precedes all imports, has been taken."""
    return "msgspec" in Path(f"/proc/{waiting.pid}/maps").read_text("utf-8")


def end(lab: Lab, pane: Pane, number: signal.Signals) -> None:
    """Send a signal to the Codex in a pane, or kill it with all that it started."""
    root = psutil.Process(int(lab.run_tmux("display-message", "-p", "-t", pane.id, "#{pane_pid}")))
    family = [root, *root.children(recursive=True)]
    for process in family if number == signal.SIGKILL else family[-1:]:
        with suppress(ProcessLookupError):  # what a command has started ends with it
            os.kill(process.pid, number)


async def test_every_answer_is_right(codex: OpenLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    lab = codex(SCRIPT)
    lab.pane("sleep 600")
    lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
    panes: dict[str, Pane] = {}
    for kind in STATES:
        panes[kind] = start(lab, kind)
        await until(lambda kind=kind: any(f"[[{kind}]]" in json.dumps(r) for r in lab.model.requests))
    waiting = {kind: begin_to_wait(lab, pane) for kind, pane in panes.items()}
    await until(lambda: all(map(has_looked, waiting.values())))
    end(lab, panes["stopped"], signal.SIGINT)
    end(lab, panes["killed"], signal.SIGKILL)
    lab.model.release("the end")
    answers = {}
    for kind, process in waiting.items():
        output, _ = process.communicate(timeout=scaled(120))
        answers[kind] = (process.returncode, json.loads(output)["worker"]["state"])
    assert answers == {kind: (0, state) for kind, state in STATES.items()}
