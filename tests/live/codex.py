"""A real Codex, driven offline: with a home, a workspace, a scripted model and a tmux server of its own.

    async def test_it(codex):  # the fixture in conftest.py
        lab = codex({"ask": [{"run": "touch x", "escalate": "May I?"}, {"say": "done"}]})
        pane = await lab.tui()
        pane.submit("[[ask]] go")  # the marker selects the script: see model_server.py
        await pane.answer("Would you like to run the following command?", "y")
        await until((lab.workspace / "x").exists)

`lab.home` is the CODEX_HOME to watch, `lab.tmux` the socket of the tmux server. After the test everything
that was started is stopped: the tmux server, Codex's daemon, its updater and their commands.
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

from tests.live import clis
from tests.live.model_server import Script
from tests.live.patience import until, wait_until
from tests.live.programs import run
from tests.live.tmux import ScriptedLab, TmuxPane, kill_all, outer_environment

VERSION = clis.release("codex")
_CONFIG = """
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
{extra}
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 2
[projects."{workspace}"]
trust_level = "trusted"
"""


def install(version: str = VERSION) -> Path:
    """Install a release of Codex, and return the path of its `codex` command."""
    return clis.install("codex", version)


def native_program(version: str = VERSION) -> Path:
    """Install a release of Codex; return the program that its `codex` command, a script of Node, starts."""
    package = install(version).parents[1] / "@openai"
    return next(path for path in package.rglob("vendor/*/*/codex") if path.is_file())


MENU: Final = "Would you like to run the following command?"
"""How a TUI asks for approval of a command."""
UNTIL_LET_GO: Final = "until [ -e go ]; do sleep 0.1; done"
"""A command that runs in the workspace until `Lab.let_go`."""


class Lab(ScriptedLab):
    """A Codex home with all that a Codex in it needs.

    Args:
        binary: the `codex` command.
        script: what the model does: see model_server.py.
        config: further top-level lines of config.toml.
    """

    def __init__(self, binary: Path, script: Script, config: str = "") -> None:
        super().__init__(script)
        self.binary = binary
        own = {"HOME": str(self.user), "CODEX_HOME": str(self.home), "TERM": "xterm-256color"}
        self.tmux_env = {**self.tmux_env, **own}
        settings = _CONFIG.format(url=f"{self.model.url}/v1", workspace=self.workspace, extra=config)
        (self.home / "config.toml").write_text(settings, "utf-8")
        self._newest: Pane | None = None

    async def tui(self, *arguments: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """Start a TUI in a new tmux session, wait until it is ready for a prompt, and return its pane.

        By default it may write its workspace, and asks for approval of more.
        """
        arguments = arguments or ("-s", "workspace-write", "-a", "on-request")
        pane = self.pane(shlex.join([str(self.binary), *arguments]), size)
        await pane.shows("› Ask Codex to do anything")
        return pane

    def exec(self, prompt: str, *arguments: str) -> Pane:
        """Start `codex exec` in a new tmux session; the pane remains when it has ended."""
        if self._newest is not None:
            self._newest.wait_for_start()
        arguments = arguments or ("-s", "workspace-write")
        command = shlex.join([str(self.binary), "exec", *arguments, "--skip-git-repo-check", prompt])
        self._newest = self.pane(f"{command} </dev/null")  # else it waits for more of the prompt
        return self._newest

    def run_codex(self, *arguments: str, **env: str) -> None:
        """Run a Codex to its end, outside of tmux."""
        own = {"HOME": str(self.user), "CODEX_HOME": str(self.home)}
        command = [self.binary, *arguments]
        run(command, env=outer_environment() | own | env, cwd=self.workspace, check=True)

    def let_go(self) -> None:
        """Let commands end that are `UNTIL_LET_GO`."""
        (self.workspace / "go").touch()

    def rollouts(self) -> list[Path]:
        """Return the rollouts, oldest first."""
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))

    def count_ended(self) -> int:
        """Return how many turns have ended."""
        return sum(path.read_text("utf-8").count('"task_complete"') for path in self.rollouts())

    def threads(self) -> dict[str, str | None]:
        """Return the threads that have a rollout, oldest first, each with its parent."""
        heads = (file.read_bytes().partition(b"\n") for file in self.rollouts())
        metas = [json.loads(line)["payload"] for line, end, _ in heads if end]
        return {meta["id"]: meta.get("parent_thread_id") for meta in metas}

    def pane(self, command: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """Start a shell command in a new tmux session; the pane remains when it has ended."""
        return Pane(self, self.open_pane(command, size))

    def stop(self) -> None:
        """Stop the daemon, and remove what Codex keeps elsewhere: its sockets and their locks."""
        self.stop_daemon()
        for link in self.home.glob("app-server-*/*.sock"):
            for left in (link.resolve(), Path(f"{link.resolve()}.lock")):
                left.unlink(missing_ok=True)

    def stop_daemon(self) -> None:
        """Kill the daemon and its updater, with their commands.

        They are recognised by their program, a copy of Codex inside this home: the updater has no pid file in
        its first second.
        """
        kill_all(lambda process: process.exe().startswith(f"{self.home}{os.sep}"))


class Pane(TmuxPane):
    """A tmux pane of a lab with Codex."""

    def wait_for_start(self) -> None:
        """Wait until the `codex exec` of the pane has printed something, or has ended.

        No other Codex may start in its home before: it takes directories of helpers that are not locked yet
        for left ones. The first one then goes on without `codex-linux-sandbox` (0.169.0: "could not create
        PATH aliases: operation would block"), and no command of its turns can run.
        """
        wait_until(self._has_started, f"the start of Codex in {self.id}")

    def _has_started(self) -> bool:
        with suppress(CalledProcessError):  # the pane has closed
            return bool(self.text().strip())
        return True

    def submit(self, prompt: str) -> None:
        """Paste a prompt and press Enter; typed, Codex would take the Enter for a line break of a paste."""
        paste = ("paste-buffer", "-p", "-d", "-t", self.id)
        self._lab.run_tmux("set-buffer", prompt, ";", *paste, ";", "send-keys", "-t", self.id, "Enter")

    async def answer(self, menu: str, key: str) -> None:
        """Wait for a menu, and press a key until it closes: in its first seconds a TUI may lose a key."""
        await self.shows(menu)
        while menu in self.text():
            self.keys(key)
            with suppress(TimeoutError):
                await until(lambda: menu not in self.text(), f"{menu!r} to close", limit=1.0)
