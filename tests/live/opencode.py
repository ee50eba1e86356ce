"""A real OpenCode in a lab of Codex: its TUI and `opencode run`, with the lab's scripted model and $HOME."""

from __future__ import annotations

import json
import shlex

from tests.live.clis import install
from tests.live.codex import Lab, Pane
from tests.live.workers import OPENCODE_QUIET, opencode_settings


def command(lab: Lab, *arguments: str) -> str:
    """Return the shell command that starts it."""
    folder = lab.user / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(opencode_settings(lab.model.url)), "utf-8")
    quiet = [f"OPENCODE_DISABLE_{name}=1" for name in OPENCODE_QUIET]
    return shlex.join(["env", *quiet, str(install("opencode")), *arguments])


async def tui(lab: Lab) -> Pane:
    """Start the TUI, wait until it is ready for a prompt, and return its pane."""
    pane = lab.pane(command(lab))
    await pane.shows("Ask anything")
    return pane
