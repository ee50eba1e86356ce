"""Reach and git of real Codex workers, by the commands and by the documents."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.live.conftest import OpenLab
from tests.live.patience import wait_until


def test_reach_of_a_sandboxed_and_of_a_free_worker(codex: OpenLab) -> None:
    """A sandboxed command reaches less than one without a sandbox, and the other's directory is a target."""
    step = {"tool": "exec_command", "args": {"cmd": "sleep 1000", "yield_time_ms": 500}}
    script = {name: [step, {"hold": "end"}, {"say": "done"}] for name in ("boxed", "free")}
    lab = codex(script)
    subprocess.run(["git", "init", "--quiet", "-b", "topic", str(lab.workspace)], check=True)
    other = lab.root / "other"
    other.mkdir()
    lab.exec("[[boxed]] go")
    lab.exec("[[free]] go", "-s", "danger-full-access", "-C", str(other))

    def reaches() -> dict[str, dict[str, Any]]:
        workers = lab.document("reach")["workers"]
        return {each["name"].split("]]")[0].strip("["): each for each in workers if each["agent"] == "codex"}

    found: dict[str, dict[str, Any]] = {}
    wait_until(
        lambda: (
            found.update(reaches()) or all(found.get(name, {}).get("by") == "processes" for name in script)
        ),
        "a command of both workers",
    )
    reached = {
        name: {
            (each["kind"], each["action"], each["path"]): each["certainty"] for each in found[name]["reached"]
        }
        for name in script
    }
    tmux = ("escape", "connect", str(lab.tmux))
    assert reached["free"][tmux] == "can"
    assert reached["boxed"][tmux] == "may"
    assert "a seccomp filter" in found["boxed"]["limits"]
    assert reached["free"]["network", "connect", "network"] == "can"
    assert ("network", "connect", "network") not in reached["boxed"]
    assert reached["free"]["worker", "write", str(lab.workspace)] == "can"
    assert ("worker", "write", str(other)) not in reached["boxed"]
    bashrc = ("takeover", "write", str(Path.home() / ".bashrc"))
    assert bashrc in reached["free"]
    assert bashrc not in reached["boxed"]

    def branches() -> dict[str, str | None]:
        workers = lab.document("status")["workers"]
        return {each["cwd"]: each["git"] and each["git"]["branch"] for each in workers}

    # one look spends 0.05 s on all repositories
    wait_until(lambda: branches().get(str(lab.workspace)) == "topic", "the branch")
    lab.model.release("end")
