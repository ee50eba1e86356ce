"""A real Codex, driven offline: a home, a workspace, a scripted model and a tmux server of its own.

    async def test_it(codex):                                     # the fixture in conftest.py
        lab = codex({"ask": [{"run": "touch x", "escalate": "May I?"}, {"say": "done"}]})
        pane = await lab.tui()                                    # the TUI, at its empty composer
        pane.submit("[[ask]] go")                                 # the marker chooses the script: see model_server.py
        await pane.answer("Would you like to run the following command?", "y")
        await until(lambda: (lab.workspace / "x").exists())

`lab.home` is the CODEX_HOME to point agentdash at, `lab.tmux` the path of the tmux server's socket. When the test is over everything
that was started is stopped: the tmux server, Codex's daemon, its updater and their commands. $HOME is an empty directory in there, so that
login shells do not run anybody's profile.

Codex is installed once with npm, into $AGENTDASH_TEST_CACHE or ~/.cache/agentdash-tests.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.live.model_server import Script, ScriptedModel

VERSION = "0.169.0"
PATIENCE = 30.0
"""Seconds that anything in a live test may take; what it waits for takes far less."""
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


class SetupError(Exception):
    """The machine lacks what a live test needs; says what."""


def cache() -> Path:
    """Where installed CLIs and scratch homes go. Not under /tmp: Codex refuses to run its helpers from there."""
    named = os.environ.get("AGENTDASH_TEST_CACHE")
    directory = Path(named) if named else Path.home() / ".cache" / "agentdash-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


def npm_install(package: str, version: str, command: str) -> Path:
    """The command of an npm package in just this version, installed where it is not yet.

    Raises:
        SetupError: there is no npm, or it could not install it.
    """
    place = cache() / f"{package.rpartition('/')[2]}-{version}"
    binary = place / "node_modules" / ".bin" / command
    with (cache() / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side install it once
        if binary.exists():
            return binary
        npm = shutil.which("npm")
        if npm is None:
            raise SetupError(f"the live tests need npm on PATH, to install {package} {version}")
        place.mkdir(exist_ok=True)
        run = [
            npm,
            "install",
            "--prefix",
            str(place),
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            f"{package}@{version}",
        ]
        done = subprocess.run(run, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode or not binary.exists():
            shutil.rmtree(place)
            raise SetupError(
                f"npm could not install {package} {version}: {' '.join(done.stderr.split())[-300:]}"
            )
    return binary


def install(version: str = VERSION) -> Path:
    """The `codex` command of a release."""
    return npm_install("@openai/codex", version, "codex")


async def until(
    condition: Callable[[], object], what: str = "the condition", patience: float = PATIENCE
) -> None:
    """Returns when `condition()` is true.

    Raises:
        TimeoutError: it did not become so within `patience` seconds; names `what`.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    while not condition():
        if loop.time() > end:
            raise TimeoutError(f"waited {patience:.0f} s for {what}")
        await asyncio.sleep(0.02)


class Lab:
    """One Codex home with all that a Codex in it needs.

    Args:
        binary: the `codex` command.
        script: what the model does: see model_server.py.
        config: further top-level lines of config.toml.
    """

    def __init__(self, binary: Path, script: Script, config: str = "") -> None:
        self.binary = binary
        self.root = Path(tempfile.mkdtemp(prefix="lab-", dir=cache()))
        self.home, self.workspace, self.user = self.root / "home", self.root / "workspace", self.root / "user"
        for directory in (self.home, self.workspace, self.user):
            directory.mkdir()
        self._short = Path(tempfile.mkdtemp(prefix="ad-"))
        self.tmux = self._short / "tmux"
        """The tmux server's socket; sockets need short paths."""
        self.model = ScriptedModel(script)
        self.model.start()
        settings = _CONFIG.format(url=self.model.url, workspace=self.workspace, extra=config)
        (self.home / "config.toml").write_text(settings, "utf-8")

    async def tui(self, *arguments: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """A TUI in a new tmux session, when it is ready for a prompt. By default it may write its workspace and asks for more."""
        arguments = arguments or ("-s", "workspace-write", "-a", "on-request")
        pane = self.pane(shlex.join([str(self.binary), *arguments]), size)
        await pane.shows("› Ask Codex to do anything")
        return pane

    def exec(self, prompt: str, *arguments: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """A `codex exec` in a new tmux session, just started. The pane stays when it has ended."""
        arguments = arguments or ("-s", "workspace-write")
        command = shlex.join([str(self.binary), "exec", *arguments, "--skip-git-repo-check", prompt])
        return self.pane(f"{command} </dev/null", size)  # it would wait for more of the prompt

    def threads(self) -> dict[str, str | None]:
        """The threads that have a rollout, oldest first, and the parent of each that has one."""
        heads = (
            file.read_bytes().partition(b"\n")
            for file in sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))
        )
        metas = [json.loads(line)["payload"] for line, end, _ in heads if end]
        return {meta["id"]: meta.get("parent_thread_id") for meta in metas}

    def run_tmux(self, *arguments: str) -> str:
        """What a tmux command prints."""
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "CODEX_"))}
        done = subprocess.run(
            ["tmux", "-S", str(self.tmux), "-f", os.devnull, *arguments],
            env={**keep, "HOME": str(self.user), "CODEX_HOME": str(self.home), "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout

    def close(self) -> None:
        """Stops everything that runs in the home, and removes it."""
        with suppress(subprocess.CalledProcessError):
            self.run_tmux("kill-server")
        self._stop_daemon()
        self.model.close()
        for link in self.home.glob(
            "app-server-*/*.sock"
        ):  # Codex keeps its sockets, and their locks, elsewhere
            for left in (link.resolve(), Path(f"{link.resolve()}.lock")):
                left.unlink(missing_ok=True)
        shutil.rmtree(self._short)
        shutil.rmtree(self.root, ignore_errors=True)

    def pane(self, command: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """A shell command in a new tmux session, just started. The pane stays when it has ended."""
        where = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(self.workspace), "-P", "-F", "#{pane_id}"]
        ident = self.run_tmux(
            "new-session", "-d", *where, command, ";", "set-option", "-g", "remain-on-exit", "on"
        )
        return Pane(self, ident.strip())

    def _stop_daemon(self) -> None:
        """The daemon and its updater, with their commands.

        They run from a copy of Codex inside of this very home: that tells them from any other Codex, also in the second in which the
        updater runs and has not written its pid file yet.
        """
        for _ in range(10):
            found = [process for process in psutil.process_iter() if self._is_ours(process)]
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    for each in (process, *process.children(recursive=True)):
                        with suppress(psutil.NoSuchProcess):
                            each.kill()
            if not found:
                return
            psutil.wait_procs(found, timeout=5)
        raise AssertionError(f"cannot stop {found}")

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.exe().startswith(f"{self.home}{os.sep}")
        except psutil.Error:
            return False


class Pane:
    """A tmux pane of a lab."""

    def __init__(self, lab: Lab, ident: str) -> None:
        self._lab = lab
        self.id = ident
        """As tmux names it: `%0`."""

    def text(self) -> str:
        """What is on its screen."""
        return self._lab.run_tmux("capture-pane", "-p", "-t", self.id)

    def keys(self, *names: str) -> None:
        """Presses keys, by tmux's names: `y`, `Enter`, `Escape`."""
        self._lab.run_tmux("send-keys", "-t", self.id, *names)

    def submit(self, prompt: str) -> None:
        """Gives it a prompt. Pasted: Codex takes an Enter right behind fast typing for a line break of a paste."""
        self._lab.run_tmux(
            "set-buffer",
            prompt,
            ";",
            "paste-buffer",
            "-p",
            "-d",
            "-t",
            self.id,
            ";",
            "send-keys",
            "-t",
            self.id,
            "Enter",
        )

    async def shows(self, text: str) -> None:
        """Returns when `text` is on its screen.

        Raises:
            TimeoutError: it did not come; shows the screen.
        """
        try:
            await until(lambda: text in self.text())
        except TimeoutError:
            raise TimeoutError(f"{text!r} did not come up on\n{self.text()}") from None

    async def answer(self, menu: str, key: str) -> None:
        """Waits for a menu, and presses a key until it has gone: in its first seconds a TUI now and then does not notice one."""
        await self.shows(menu)
        while menu in self.text():
            self.keys(key)
            with suppress(TimeoutError):
                await until(lambda: menu not in self.text(), f"{menu!r} to go", patience=1.0)
