"""Real worker CLIs in tmux panes, with a scripted model: Gemini, Qwen, OpenCode, Kilo, Copilot.

    lab = WorkerLab({"go": [{"run": "touch x"}, {"say": "done"}]})
    pane = await lab.start("gemini", "--yolo", env={"SANDBOX": "0"})
    pane.submit("[[go]] go")

They are installed once with npm, like Codex. No COLORTERM is set: their screens are those of a plain
terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from agentdash.config import Config
from tests.live.codex import cache, new_root, npm_install
from tests.live.dispositions import restore_defaults
from tests.live.patience import until
from tests.live.scripted_server import Script
from tests.live.tmux_pane import TmuxPane
from tests.live.watched import Watched, watching_config
from tests.live.worker_model import ScriptedWorkerModel

PACKAGES: Final = {
    "gemini": ("@google/gemini-cli", "0.61.0"),
    "qwen": ("@qwen-code/qwen-code", "0.24.4"),
    "opencode": ("opencode-ai", "1.18.33"),
    "kilo": ("@kilocode/cli", "7.7.7"),
    "copilot": ("@github/copilot", "1.0.102"),
    "srt": ("@anthropic-ai/sandbox-runtime", "0.0.83"),
}
PROMPTS: Final = {
    "gemini": "Type your message",
    "qwen": "Type your message",
    "opencode": "Ask anything",
    "kilo": "Ask anything",
    "copilot": "/ commands",
}
"""What each CLI shows when it is ready for a prompt."""


def program(agent: str) -> Path:
    """Install a CLI, and return the path of its command."""
    package, version = PACKAGES[agent]
    return npm_install(package, version, agent)


class WorkerLab:
    """A home and a workspace with all that these CLIs need.

    Args:
        script: what the model does: see worker_model.py.
    """

    def __init__(self, script: Script) -> None:
        self.root = new_root()
        self.user = self.root / "user"
        self.workspace = self.root / "workspace"
        for directory in (self.user, self.workspace):
            directory.mkdir()
        self._short = Path(tempfile.mkdtemp(prefix="ad-"))
        self.tmux = self._short / "tmux"
        self.model = ScriptedWorkerModel(script)
        self.model.start()

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
        quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        own = {
            "gemini": {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url},
            "qwen": {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "mock"},
            "opencode": {f"OPENCODE_DISABLE_{name}": "1" for name in quiet},
            "kilo": {f"KILO_DISABLE_{name}": "1" for name in quiet},
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
        limit = {"context": 200_000, "output": 8_000}
        model = {"name": "Mock", "tool_call": True, "limit": limit}
        options = {"baseURL": f"{self.model.url}/v1", "apiKey": "none"}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Mock",
            "options": options,
            "models": {"mock": model},
        }
        return self.user / ".config" / agent / f"{agent}.json", {
            "autoupdate": False,
            "share": "disabled",
            "model": "mock/mock",
            "small_model": "mock/mock",
            "provider": {"mock": provider},
            "permission": {"bash": "ask"},
        }

    async def start(
        self,
        agent: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
        size: tuple[int, int] = (100, 30),
    ) -> WorkerPane:
        """Start a CLI in a new tmux session, wait until it is ready for a prompt, and return its pane.

        Args:
            agent: which.
            arguments: its arguments.
            env: more variables.
            around: a command that starts it, such as a sandbox.
            size: of the pane.
        """
        variables = self.environment(agent) | dict(env or {})
        command = [*around, str(program(agent)), *arguments]
        shell = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command])
        where = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(self.workspace), "-P", "-F", "#{pane_id}"]
        ident = self.run_tmux(
            "new-session", "-d", *where, shell, ";", "set-option", "-g", "remain-on-exit", "on"
        )
        pane = WorkerPane(self, ident.strip())
        await until(lambda: PROMPTS[agent] in pane.text(), f"the prompt of {agent}", 60.0)
        return pane

    def run_tmux(self, *arguments: str) -> str:
        """Run a tmux command, and return its output."""
        done = subprocess.run(
            [shutil.which("tmux") or "tmux", "-S", str(self.tmux), "-f", os.devnull, *arguments],
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "TERM": "xterm-256color",
                "HOME": str(self.user),
            },
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=restore_defaults,
        )
        return done.stdout

    def screens(self) -> dict[str, str]:
        """Return the screens of all panes, what the model answered, and the chats of the home."""
        idents = self.run_tmux("list-panes", "-a", "-F", "#{pane_id}").split()
        screens = {ident: self.run_tmux("capture-pane", "-p", "-t", ident) for ident in idents}
        files = sorted(
            path for path in self.user.rglob("*") if path.name.endswith((".jsonl", ".runtime.json"))
        )
        described = (f"{path.relative_to(self.user)} {path.stat().st_size}" for path in files)
        return {**screens, "the model": "\n".join(self.model.answers), "the home": "\n".join(described)}

    def close(self) -> None:
        """Stop everything that runs in the home, and remove it."""
        with suppress(subprocess.CalledProcessError):
            self.run_tmux("kill-server")
        self._stop_processes()
        self.model.close()
        shutil.rmtree(self._short)
        shutil.rmtree(self.root, ignore_errors=True)

    def _stop_processes(self) -> None:
        """Kill what outlives the tmux server, by its $HOME: Gemini CLI does not end with its terminal."""
        for _ in range(10):
            found = [process for process in psutil.process_iter() if self._is_of_home(process)]
            if not found:
                return
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(found, timeout=5)
        raise AssertionError(f"cannot stop {found}")

    def _is_of_home(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get("HOME") == str(
                self.user
            )
        except psutil.Error:
            return False


class WorkerPane(TmuxPane):
    """A tmux pane of a lab with worker CLIs."""

    async def submit(self, prompt: str) -> None:
        """Type a prompt, wait until it is on the screen, and press Enter."""
        self.type(prompt)
        await self.shows(prompt)
        await asyncio.sleep(0.3)  # Gemini CLI takes an Enter that follows at once for a part of a paste
        self.keys("Enter")


@asynccontextmanager
async def watching(lab: WorkerLab) -> AsyncIterator[Watched]:
    """Run a hub over a lab."""
    config = Config(codex_home=lab.root / "codex", claude_home=lab.root / "claude", socket_paths=(lab.tmux,))
    async with watching_config(config) as watched:
        yield watched


def _merged(needed: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of `more` in them."""
    both = dict(needed)
    for name, value in more.items():
        before = both.get(name)
        both[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both
