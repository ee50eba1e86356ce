"""A real Claude Code, driven offline: with a home, a workspace, a scripted model and a tmux server.

    lab = ClaudeLab(install(), {"go": [{"run": "touch x"}, {"say": "done"}]}, {"sandbox": {"enabled": True}})
    done = lab.print("[[go]] go")        # claude -p
    pane = await lab.tui()               # or its TUI

`lab.user` is its $HOME, and `lab.programs` the directory of all programs that it finds: those of /usr/bin,
but for the ones left out, so that a machine without bubblewrap, or with a broken socat, can be played.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.live import clis
from tests.live.model_server import Script
from tests.live.patience import scaled
from tests.live.programs import restore_defaults, write_program
from tests.live.tmux import ScriptedLab, TmuxPane

VERSION = clis.release("claude")
VERSIONS = ("2.1.197", "2.1.240", "2.1.330")
"""The releases whose transcripts are recorded in tests/data/claude."""
_KEY = "sk-ant-api03-fakefakefakefakefakefakefakefakefakefake"
_PRINT_LIMIT_S = 120.0


def install(version: str = VERSION) -> Path:
    """Install a release of Claude Code, and return the path of its `claude` command."""
    return clis.install("claude", version)


class ClaudeLab(ScriptedLab):
    """A home with all that a Claude Code in it needs.

    Args:
        binary: the `claude` command.
        script: what the model does: see model_server.py.
        settings: of the user's settings.json.
        without: programs that it is not to find.
        broken: programs that fail at once.
    """

    def __init__(
        self,
        binary: Path,
        script: Script,
        settings: Mapping[str, Any] | None = None,
        *,
        without: tuple[str, ...] = (),
        broken: tuple[str, ...] = (),
    ) -> None:
        super().__init__(script)
        self.binary = binary
        self.programs = self.root / "bin"
        self.claude_home = self.user / ".claude"
        for directory in (self.programs, self.claude_home):
            directory.mkdir()
        self._started: list[subprocess.Popen[str]] = []
        (self.claude_home / "settings.json").write_text(json.dumps(settings or {}), "utf-8")
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "lastOnboardingVersion": VERSION,
            "numStartups": 5,
            "autoUpdates": False,
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
            "projects": {str(self.workspace): trusted},
        }
        (self.user / ".claude.json").write_text(json.dumps(state), "utf-8")
        self._collect_programs(without, broken)
        self.tmux_env = self.environment

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of its Claude Code."""
        quiet = ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_BUG_COMMAND")
        return {
            "HOME": str(self.user),
            "PATH": str(self.programs),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "ANTHROPIC_API_KEY": _KEY,
            "ANTHROPIC_BASE_URL": self.model.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            **({"IS_SANDBOX": "1"} if os.getuid() == 0 else {}),  # root may not bypass permissions without it
            **dict.fromkeys(quiet, "1"),
        }

    def start(self, prompt: str, *arguments: str) -> subprocess.Popen[str]:
        """Start `claude -p`; `close` kills it where it still runs."""
        running = subprocess.Popen(
            [str(self.binary), "-p", prompt, *arguments],
            env=self.environment,
            cwd=self.workspace,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=restore_defaults,  # noqa: PLW1509 - only signal dispositions
        )
        self._started.append(running)
        return running

    def print(self, prompt: str, *arguments: str) -> str:
        """Run `claude -p` to its end, and return what it printed."""
        return self.start(prompt, *arguments).communicate(timeout=scaled(_PRINT_LIMIT_S))[0]

    def stop(self) -> None:
        """Kill what `start` has started."""
        for process in self._started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    async def tui(self, *arguments: str) -> ClaudePane:
        """Start a TUI in a new tmux session, wait until it is ready for a prompt, and return its pane."""
        pane = ClaudePane(self, self.open_pane(shlex.join([str(self.binary), *arguments])))
        await pane.shows("\n❯")
        return pane

    def _collect_programs(self, without: tuple[str, ...], broken: tuple[str, ...]) -> None:
        for directory in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"):
            for path in Path(directory).iterdir():
                link = self.programs / path.name
                if path.name not in (*without, *broken) and not link.is_symlink():
                    link.symlink_to(path)
        for name in broken:
            write_program(self.programs / name, "echo broken >&2\nexit 1")


class ClaudePane(TmuxPane):
    """A tmux pane of a lab with Claude Code."""

    def submit(self, prompt: str) -> None:
        """Type a prompt and press Enter."""
        self.type(prompt)
        self.keys("Enter")
