"""Groups, labels, pins and the diff of a directory, of real Codex in two worktrees, by real keys."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.live.conftest import OpenLab, Screens
from tests.live.hands.hands import AGENTDASH, Hands, lacks, shows

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"


def run(line: str, folder: Path) -> None:
    subprocess.run(line, shell=True, cwd=folder, check=True, capture_output=True)


async def test_two_worktrees_of_a_project(
    codex: OpenLab, tmp_path: Path, report_screens: Callable[[Screens], None]
) -> None:
    lab = codex({"edit": [{"patch": PATCH}, {"say": "edited"}], "look": [{"say": "looked"}]})
    report_screens(lab.screens)
    for line in (
        *(f"{GIT} init -q", "echo x = 1 > app.py", "git add app.py", f"{GIT} commit -qm one"),
        "git worktree add -q fix -b fix",
    ):
        run(line, lab.workspace)
    for prompt, folder, said in (("edit", "fix", "edited"), ("look", ".", "looked")):
        pane = await lab.tui("-s", "workspace-write", "-a", "on-request", "-C", str(lab.workspace / folder))
        pane.submit(f"[[{prompt}]] go")
        await pane.shows(said)
    env = {
        "HOME": str(lab.user),
        "CODEX_HOME": str(lab.home),
        "XDG_STATE_HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }

    def agentdash(*arguments: str) -> str:
        command = [str(AGENTDASH), *arguments, "-S", str(lab.tmux)]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout

    def on(name: str) -> Callable[[Hands], bool]:
        return lambda hands: hands.selected.startswith(name)

    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("[[edit]] go", "[[look]] go"), "both workers")
        hands.walk(
            (
                ("g", shows("workspace  /", "workspace  worktree fix")),
                ("G", on("[[edit]] go")),
                ("L", shows("what you call it")),
                ('"payments"', None),
                ("enter", on("payments")),
                ("P", shows("PINNED")),
                ("g", shows("this machine", "PINNED")),
                ("enter", shows("payments ⋅ [[edit]] go")),
                ("right", None),
                ("right", None),
                ("right", shows("against main (", "-x = 1", "+x = 2", "whoever has changed it")),
            )
        )
    workers = {each["name"]: each for each in json.loads(agentdash("status", "--json"))["workers"]}
    marked = {name: (each["label"], each["pinned"]) for name, each in workers.items()}
    assert marked == {"[[edit]] go": ("payments", True), "[[look]] go": ("", False)}
    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("PINNED", "payments"), "what was kept")
        assert agentdash("label", "payments", "retries").endswith(": retries\n")
        hands.until(shows("retries"), "the other label")
        hands.walk((("P", lacks("PINNED")),))
        assert agentdash("label", "retries", "").endswith(": no label\n")
        hands.until(lacks("retries"), "its name")
