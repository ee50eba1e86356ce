"""A real Codex, driven offline: with a home, a workspace, a scripted model and a tmux server of its own.

    async def test_it(codex):  # the fixture in conftest.py
        lab = codex({"ask": [{"run": "touch x", "escalate": "May I?"}, {"say": "done"}]})
        pane = await lab.tui()
        pane.submit("[[ask]] go")  # the marker selects the script: see model_server.py
        await pane.answer("Would you like to run the following command?", "y")
        await until((lab.workspace / "x").exists)

`lab.home` is the CODEX_HOME to watch, `lab.tmux` the socket of the tmux server. After the test everything
that was started is stopped: the tmux server, Codex's daemon, its updater and their commands. $HOME is an
empty directory of the lab, so that login shells run no profile.

Codex is installed once with npm, into $AGENTDASH_TEST_CACHE or ~/.cache/agentdash-tests.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.live.dispositions import restore_defaults
from tests.live.model_server import ScriptedModel
from tests.live.patience import until, wait_until
from tests.live.scripted_server import Script
from tests.live.tmux_pane import TmuxPane

VERSION = "0.169.0"
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


class SetupError(pytest.fail.Exception):
    """The machine lacks something that a live test needs: the test fails with this message alone."""

    def __init__(self, message: str) -> None:
        super().__init__(message, pytrace=False)


def cache() -> Path:
    """Return the directory of installed CLIs and labs; below /tmp Codex refuses to run its helpers."""
    named = os.environ.get("AGENTDASH_TEST_CACHE")
    directory = Path(named) if named else Path.home() / ".cache" / "agentdash-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


def new_root() -> Path:
    """Create the directory of a lab. Its name looks like a token of GitHub, and has to be known exactly
    nevertheless: homes, logs and policies are found by it."""
    return Path(tempfile.mkdtemp(prefix="ghr_", dir=cache()))


def npm_install(package: str, version: str, command: str) -> Path:
    """Install an npm package in this version, unless it is installed, and return the path of its command.

    Raises:
        SetupError: npm is missing, or fails.
    """
    place = cache() / f"{package.rpartition('/')[2]}-{version}"
    binary = place / "node_modules" / ".bin" / command
    with (cache() / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes install it once
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
    """Install a release of Codex, and return the path of its `codex` command."""
    return npm_install("@openai/codex", version, "codex")


def native_program(version: str = VERSION) -> Path:
    """Install a release of Codex; return the program that its `codex` command, a script of Node, starts."""
    package = install(version).parents[1] / "@openai"
    return next(path for path in package.rglob("vendor/*/*/codex") if path.is_file())


UNTIL_LET_GO: Final = "until [ -e go ]; do sleep 0.1; done"
"""A command that runs in the workspace until `Lab.let_go`."""


class Lab:
    """A Codex home with all that a Codex in it needs.

    Args:
        binary: the `codex` command.
        script: what the model does: see model_server.py.
        config: further top-level lines of config.toml.
    """

    def __init__(self, binary: Path, script: Script, config: str = "") -> None:
        self.binary = binary
        self.root = new_root()
        self.home = self.root / "home"
        self.workspace = self.root / "workspace"
        self.user = self.root / "user"
        for directory in (self.home, self.workspace, self.user):
            directory.mkdir()
        self._short = Path(tempfile.mkdtemp(prefix="ad-"))
        self.tmux = self._short / "tmux"
        """The tmux server's socket; the paths of sockets must be short."""
        self.model = ScriptedModel(script)
        self.model.start()
        settings = _CONFIG.format(url=self.model.url, workspace=self.workspace, extra=config)
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

    def exec(self, prompt: str, *arguments: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """Start `codex exec` in a new tmux session; the pane remains when it has ended."""
        if self._newest is not None:
            self._newest.wait_for_start()
        arguments = arguments or ("-s", "workspace-write")
        command = shlex.join([str(self.binary), "exec", *arguments, "--skip-git-repo-check", prompt])
        self._newest = self.pane(f"{command} </dev/null", size)  # else it waits for more of the prompt
        return self._newest

    def let_go(self) -> None:
        """Let commands end that are `UNTIL_LET_GO`."""
        (self.workspace / "go").touch()

    def threads(self) -> dict[str, str | None]:
        """Return the threads that have a rollout, oldest first, each with its parent."""
        heads = (
            file.read_bytes().partition(b"\n")
            for file in sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))
        )
        metas = [json.loads(line)["payload"] for line, end, _ in heads if end]
        return {meta["id"]: meta.get("parent_thread_id") for meta in metas}

    def run_tmux(self, *arguments: str) -> str:
        """Run a tmux command, and return its output."""
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "CODEX_"))}
        done = subprocess.run(
            ["tmux", "-S", str(self.tmux), "-f", os.devnull, *arguments],
            env={**keep, "HOME": str(self.user), "CODEX_HOME": str(self.home), "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=restore_defaults,
        )
        return done.stdout

    def close(self) -> None:
        """Stop everything that runs in the home, and remove it."""
        with suppress(subprocess.CalledProcessError):
            self.run_tmux("kill-server")
        self._stop_daemon()
        self.model.close()
        # Codex keeps its sockets and their locks elsewhere, and links to them
        for link in self.home.glob("app-server-*/*.sock"):
            for left in (link.resolve(), Path(f"{link.resolve()}.lock")):
                left.unlink(missing_ok=True)
        shutil.rmtree(self._short)
        shutil.rmtree(self.root, ignore_errors=True)

    def pane(self, command: str, size: tuple[int, int] = (120, 40)) -> Pane:
        """Start a shell command in a new tmux session; the pane remains when it has ended."""
        where = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(self.workspace), "-P", "-F", "#{pane_id}"]
        ident = self.run_tmux(
            "new-session", "-d", *where, command, ";", "set-option", "-g", "remain-on-exit", "on"
        )
        return Pane(self, ident.strip())

    def screens(self) -> dict[str, str]:
        """Return the text of every pane."""
        panes = self.run_tmux("list-panes", "-a", "-F", "#{pane_id}").split()
        return {pane: Pane(self, pane).text() for pane in panes}

    def _stop_daemon(self) -> None:
        """Kill the daemon and its updater, with their commands.

        They are recognised by their program, a copy of Codex inside this home: the updater has no pid file in
        its first second.
        """
        for _ in range(10):
            found = [process for process in psutil.process_iter() if self._runs_from_home(process)]
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    for each in (process, *process.children(recursive=True)):
                        with suppress(psutil.NoSuchProcess):
                            each.kill()
            if not found:
                return
            psutil.wait_procs(found, timeout=5)
        raise AssertionError(f"cannot stop {found}")

    def _runs_from_home(self, process: psutil.Process) -> bool:
        try:
            return process.exe().startswith(f"{self.home}{os.sep}")
        except psutil.Error:
            return False


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
        with suppress(subprocess.CalledProcessError):  # the pane has closed
            return bool(self.text().strip())
        return True

    def submit(self, prompt: str) -> None:
        """Paste a prompt and press Enter; typed, Codex would take the Enter for a line break of a paste."""
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

    async def answer(self, menu: str, key: str) -> None:
        """Wait for a menu, and press a key until it closes: in its first seconds a TUI may lose a key."""
        await self.shows(menu)
        while menu in self.text():
            self.keys(key)
            with suppress(TimeoutError):
                await until(lambda: menu not in self.text(), f"{menu!r} to close", limit=1.0)
