"""Real worker CLIs in tmux panes, with a scripted model: Gemini, Qwen, OpenCode, Kilo, Copilot.

    lab = WorkerLab({"go": [{"run": "touch x"}, {"say": "done"}]})
    pane = await lab.start("gemini", "--yolo", env={"SANDBOX": "0"})
    pane.submit("[[go]] go")

No COLORTERM is set: their screens are those of a plain terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.live.clis import cache, install
from tests.live.codex import Lab, Pane
from tests.live.model_server import Script
from tests.live.tmux import ScriptedLab, TmuxPane, kill_all

OPENCODE_QUIET: Final = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
"""What it is not to do: behind `OPENCODE_DISABLE_`."""
PROMPTS: Final = {
    "gemini": "Type your message",
    "qwen": "Type your message",
    "opencode": "Ask anything",
    "kilo": "Ask anything",
    "copilot": "/ commands",
}
"""What each CLI shows when it is ready for a prompt."""


def opencode_settings(url: str) -> dict[str, Any]:
    """Return settings of OpenCode, and of its fork Kilo, for the model at an address."""
    limit = {"context": 200_000, "output": 8_000}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"mock": {"name": "Mock", "tool_call": True, "limit": limit}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock",
        "small_model": "mock/mock",
        "provider": {"mock": provider},
        "permission": {"bash": "ask"},
    }


class WorkerLab(ScriptedLab):
    """A home and a workspace with all that these CLIs need.

    Args:
        script: what the model does: see model_server.py.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        kept = {name: self.tmux_env[name] for name in ("PATH", "LANG") if name in self.tmux_env}
        self.tmux_env = {"LANG": "C.UTF-8", **kept, "TERM": "xterm-256color", "HOME": str(self.user)}

    def environment(self, agent: str) -> dict[str, str]:
        """Return the whole environment of a CLI."""
        url = self.model.url
        common = {
            "HOME": str(self.user),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "tmux-256color",
            "SHELL": "/bin/bash",
            "NO_UPDATE_NOTIFIER": "1",
            "DO_NOT_TRACK": "1",
        }
        own = {
            "gemini": {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url},
            "qwen": {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "mock"},
            "opencode": {f"OPENCODE_DISABLE_{name}": "1" for name in OPENCODE_QUIET},
            "kilo": {f"KILO_DISABLE_{name}": "1" for name in OPENCODE_QUIET},
            "copilot": {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
                "COPILOT_PROVIDER_API_KEY": "none",
                "COPILOT_MODEL": "gpt-4.1",
                "XDG_CACHE_HOME": str(cache() / "copilot-cache"),  # it unpacks itself there
            },
        }
        return common | own[agent]

    def configure(self, agent: str, settings: Mapping[str, Any] | None = None) -> None:
        """Write the settings of a CLI: those that it needs, and more."""
        path, needed = self._settings(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_merged(needed, settings or {}), indent=1), "utf-8")

    def _settings(self, agent: str) -> tuple[Path, dict[str, Any]]:
        if agent in ("gemini", "qwen"):
            auth = "gemini-api-key" if agent == "gemini" else "openai"
            return self.user / f".{agent}" / "settings.json", {
                "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": False}},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "model": {"name": "gemini-2.5-flash" if agent == "gemini" else "mock"},
            }
        if agent == "copilot":
            return self.user / ".copilot" / "config.json", {"trusted_folders": [str(self.workspace)]}
        path = self.user / ".config" / agent / f"{agent}.json"
        return path, opencode_settings(self.model.url)

    async def start(
        self,
        agent: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> WorkerPane:
        """Start a CLI in a new tmux session, wait until it is ready for a prompt, and return its pane.

        Args:
            agent: which.
            arguments: its arguments.
            env: more variables.
            around: a command that starts it, such as a sandbox.
        """
        variables = self.environment(agent) | dict(env or {})
        command = [*around, str(install(agent)), *arguments]
        shell = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command])
        pane = WorkerPane(self, self.open_pane(shell, (100, 30)))
        await pane.shows(PROMPTS[agent], 60.0)
        return pane

    def screens(self) -> dict[str, str]:
        """Return the screens of all panes, what the model answered, and the chats of the home."""
        files = sorted(
            path for path in self.user.rglob("*") if path.name.endswith((".jsonl", ".runtime.json"))
        )
        described = (f"{path.relative_to(self.user)} {path.stat().st_size}" for path in files)
        more = {"the model": "\n".join(self.model.answers), "the home": "\n".join(described)}
        return {**super().screens(), **more}

    def stop(self) -> None:
        """Kill what outlives the tmux server, by its $HOME: Gemini CLI does not end with its terminal."""
        kill_all(lambda process: process.environ().get("HOME") == str(self.user))


class WorkerPane(TmuxPane):
    """A tmux pane of a lab with worker CLIs."""

    async def submit(self, prompt: str) -> None:
        """Type a prompt, wait until it is on the screen, and press Enter."""
        self.type(prompt)
        await self.shows(prompt)
        await asyncio.sleep(0.3)  # Gemini CLI takes an Enter that follows at once for a part of a paste
        self.keys("Enter")


def _merged(needed: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of `more` in them."""
    both = dict(needed)
    for name, value in more.items():
        before = both.get(name)
        both[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both


def opencode_command(lab: Lab, *arguments: str) -> str:
    """Return the shell command that starts OpenCode in a lab of Codex, with its model and $HOME."""
    folder = lab.user / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(opencode_settings(lab.model.url)), "utf-8")
    quiet = [f"OPENCODE_DISABLE_{name}=1" for name in OPENCODE_QUIET]
    return shlex.join(["env", *quiet, str(install("opencode")), *arguments])


async def opencode_tui(lab: Lab) -> Pane:
    """Start its TUI, wait until it is ready for a prompt, and return its pane."""
    pane = lab.pane(opencode_command(lab))
    await pane.shows("Ask anything")
    return pane
