"""Real Claude Code and Gemini CLI at a model that never answers: enough for a worker that runs, and is ended.

They are installed once with npm, like Codex.
"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.live.codex import Lab, Pane, npm_install

CLAUDE, GEMINI = "2.1.197", "0.61.0"
_KEY = "sk-ant-api03-fakefakefakefakefakefakefakefakefakefake"


class SilentModel:
    """A loopback server that takes requests, and answers none until it is closed."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        """Set by a request for an answer."""
        self._closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                if self.path.partition("?")[0].endswith(("/messages", "enerateContent")):
                    model.asked.set()
                model._closed.wait()

            def do_GET(self) -> None:
                self.do_POST()

        return Handler


def claude(lab: Lab, url: str) -> Pane:
    """Start Claude Code's TUI with a prompt."""
    binary = npm_install("@anthropic-ai/claude-code", CLAUDE, "claude")
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "numStartups": 5,
        "autoUpdates": False,
        "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
        "projects": {str(lab.workspace): project},
    }
    (lab.user / ".claude.json").write_text(json.dumps(settings), "utf-8")
    env = {
        "ANTHROPIC_API_KEY": _KEY,
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **dict.fromkeys(("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"), "1"),
    }
    return _start(lab, env, str(binary), "the task")


def gemini(lab: Lab, url: str) -> Pane:
    """Start Gemini CLI's TUI with a prompt."""
    binary = npm_install("@google/gemini-cli", GEMINI, "gemini")
    folder = lab.user / ".gemini"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "ide": {"hasSeenNudge": True},
    }
    (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
    env = {"GEMINI_API_KEY": "fake-key", "GOOGLE_GEMINI_BASE_URL": url, "COLORTERM": "truecolor"}
    return _start(lab, env, str(binary), "-m", "gemini-2.5-flash", "-i", "the task")


def _start(lab: Lab, env: dict[str, str], *command: str) -> Pane:
    settings = [f"{name}={value}" for name, value in env.items()]
    return lab.pane(shlex.join(["env", "-u", "CLAUDE_CONFIG_DIR", *settings, *command]))


START: dict[str, Callable[[Lab, str], Pane]] = {"claude": claude, "gemini": gemini}
