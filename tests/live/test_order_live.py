"""The diff of a directory, labels and pins that are kept: of real Codex in two worktrees, by real keys."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.live.conftest import OpenLab, Screens
from tests.live.hands.dashboard import on
from tests.live.hands.hands import AGENTDASH, Hands, lacks, shows

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
_REPOSITORY = """
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_KEY_1=user.email
export GIT_CONFIG_VALUE_0=a GIT_CONFIG_VALUE_1=a@b
git init -q -b main; echo x = 1 > app.py; git add app.py; git commit -qm one
git worktree add -q -f "$1" -b fix
"""


def make_repository(folder: Path, worktree: Path | str) -> None:
    """Make a repository with a file, and a worktree of it."""
    script = ["sh", "-ec", _REPOSITORY, "sh", str(worktree)]
    subprocess.run(script, cwd=folder, check=True, capture_output=True)


async def test_two_worktrees_of_a_project(codex: OpenLab, report_screens: Callable[[Screens], None]) -> None:
    lab = codex({"edit": [{"patch": PATCH}, {"say": "edited"}], "look": [{"say": "looked"}]})
    report_screens(lab.screens)
    make_repository(lab.workspace, "fix")
    for prompt, folder, said in (("edit", "fix", "edited"), ("look", ".", "looked")):
        pane = await lab.tui("-s", "workspace-write", "-a", "on-request", "-C", str(lab.workspace / folder))
        pane.submit(f"[[{prompt}]] go")
        await pane.shows(said)
    env = {"HOME": str(lab.user), "CODEX_HOME": str(lab.home), "XDG_STATE_HOME": str(lab.state)}
    env |= {"LANG": "C.UTF-8"}
    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("[[edit]] go", "[[look]] go"), "both workers")
        hands.walk(
            (
                ("g", shows("workspace  /", "workspace  worktree fix")),
                ("G", on("[[edit]] go")),
                ("L", shows("what you call it")),
                ('"payments"', None),
                ("enter", lambda hands: hands.selected.startswith("payments")),
                ("P", shows("PINNED")),
                ("g", shows("this machine", "PINNED")),
                ("enter", shows("payments ⋅ [[edit]] go")),
                ("right", None),
                ("right", None),
                ("right", shows("against main (", "-x = 1", "+x = 2", "whoever has changed it")),
            )
        )
    workers = {each["name"]: each for each in lab.document("status")["workers"]}
    marked = {name: (each["label"], each["pinned"]) for name, each in workers.items()}
    assert marked == {"[[edit]] go": ("payments", True), "[[look]] go": ("", False)}
    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("PINNED", "payments"), "what was kept")
        assert lab.agentdash("label", "payments", "retries").stdout.endswith(": retries\n")
        hands.until(shows("retries"), "the other label")
        hands.walk((("P", lacks("PINNED")),))
        assert lab.agentdash("label", "retries", "").stdout.endswith(": no label\n")
        hands.until(lacks("retries"), "its name")
