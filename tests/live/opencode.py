"""A real OpenCode in a lab: its TUI and `opencode run`, with the lab's scripted model and $HOME.

It is installed once with npm, like Codex.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from tests.live.codex import Lab, Pane, npm_install

VERSION = "1.18.33"
_QUIET = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
SANDBOX = ("-c", "sandbox_mode=workspace-write", "-c", "sandbox_workspace_write.network_access=true")
"""Codex's sandbox with the network on and $HOME out of reach."""


def command(lab: Lab, *arguments: str, sandbox: Sequence[str] = ()) -> str:
    """Return the shell command that starts it, inside Codex's sandbox if `sandbox` has its options."""
    binary = npm_install("opencode-ai", VERSION, "opencode")
    folder = lab.user / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    models = {
        "mock-model": {
            "name": "Mock Model",
            "tool_call": True,
            "limit": {"context": 200_000, "output": 8_000},
        }
    }
    options = {"baseURL": lab.model.url, "apiKey": "none"}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "provider": {
            "mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options, "models": models}
        },
        "permission": {"bash": "ask"},
    }
    (folder / "opencode.json").write_text(json.dumps(settings), "utf-8")
    quiet = [f"OPENCODE_DISABLE_{name}=1" for name in _QUIET]
    sandboxed = [str(lab.binary), "sandbox", *sandbox, "--"] if sandbox else []
    return shlex.join(["env", *quiet, *sandboxed, str(binary), *arguments])


async def tui(lab: Lab, size: tuple[int, int] = (120, 40)) -> Pane:
    """Start the TUI, wait until it is ready for a prompt, and return its pane."""
    pane = lab.pane(command(lab), size)
    await pane.shows("Ask anything")
    return pane


def run(lab: Lab, prompt: str, *, sandbox: Sequence[str] = ()) -> Pane:
    """Start `opencode run`, and return its pane."""
    return lab.pane(command(lab, "run", prompt, sandbox=sandbox))
