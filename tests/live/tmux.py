"""Real programs in panes of private tmux servers, with a home, a workspace and a scripted model."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from tests.live.clis import new_root
from tests.live.model_server import Script, ScriptedModel
from tests.live.patience import until
from tests.live.programs import restore_defaults, run

ROOT = Path(__file__).parents[2]
"""The checkout."""


def outer_environment() -> dict[str, str]:
    """Return the environment of the tests without the tmux and the Codex that they may run in."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "CODEX_"))}


class TmuxServer:
    """A tmux server of its own, ended after the block, or by `close`.

    Args:
        env: the whole environment of the server and its panes; by default that of the tests.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self.tmux_env = env or outer_environment()
        self.folder = Path(tempfile.mkdtemp(prefix="ad-"))
        """A directory with a short path, which those of sockets must be."""
        self.tmux = self.folder / "tmux"
        """The socket of the server."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run_tmux(self, *arguments: str) -> str:
        """Run a tmux command, and return its output."""
        command = [shutil.which("tmux") or "tmux", "-u", "-S", str(self.tmux), "-f", os.devnull, *arguments]
        return run(command, env=self.tmux_env, check=True, preexec_fn=restore_defaults).stdout

    def panes(self) -> list[str]:
        """Return the ids of all panes."""
        return self.run_tmux("list-panes", "-a", "-F", "#{pane_id}").split()

    def screens(self) -> dict[str, str]:
        """Return the text of every pane."""
        return {pane: self.run_tmux("capture-pane", "-p", "-t", pane) for pane in self.panes()}

    def close(self) -> None:
        """End the server with the programs in its panes."""
        with suppress(subprocess.CalledProcessError):
            self.run_tmux("kill-server")
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def default_server(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Iterator[TmuxServer]:
    """Run the server that is the default one of this process and of what it starts, outside of other ones."""
    for name in ("TMUX", "TMUX_PANE", "AGENTDASH_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with TmuxServer() as server:
        monkeypatch.setenv("TMUX_TMPDIR", str(server.folder))
        server.tmux = server.folder / f"tmux-{os.getuid()}" / "default"
        server.tmux.parent.mkdir(mode=0o700)
        server.tmux_env = {**os.environ, "PYTHONPATH": str(ROOT)}
        yield server


@contextmanager
def panes(
    count: int,
    env: Mapping[str, str],
    program: Sequence[str],
    as_user: Callable[[list[str]], list[str]] = lambda command: command,
) -> Iterator[int]:
    """Run the default server of an environment and a user, with panes of a program; yield its pid."""
    given = {**env, "PATH": os.environ["PATH"]}

    def tmux(*arguments: str) -> str:
        return run(as_user(["tmux", "-f", os.devnull, *arguments]), env=given, check=True).stdout

    tmux("new-session", "-d", "-x", "100", "-y", "30", *program)
    try:
        for _ in range(count - 1):
            tmux("new-window", "-d", *program)
        yield int(tmux("display-message", "-p", "#{pid}"))
    finally:
        tmux("kill-server")


class TmuxPane:
    """A tmux pane in which a program runs."""

    def __init__(self, lab: TmuxServer, ident: str) -> None:
        self._lab = lab
        self.id = ident
        """The id in tmux: `%0`."""

    def text(self) -> str:
        """Return the text of the screen."""
        return self._lab.run_tmux("capture-pane", "-p", "-t", self.id)

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names: `y`, `Enter`, `Escape`."""
        self._lab.run_tmux("send-keys", "-t", self.id, *names)

    def type(self, text: str) -> None:
        """Type a text."""
        self._lab.run_tmux("send-keys", "-t", self.id, "-l", text)

    async def shows(self, text: str, limit: float = 30.0) -> None:
        """Wait until `text` is on the screen.

        Raises:
            TimeoutError: it does not appear.
        """
        await until(lambda: text in self.text(), f"{text!r} on the screen of {self.id}", limit)


class ScriptedLab(TmuxServer):
    """Directories, a tmux server and a scripted model for real CLIs.

    Args:
        script: what the model does: see model_server.py.
    """

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.root = new_root()
        self.home = self.root / "home"
        """The CODEX_HOME to watch."""
        self.claude_home = self.root / "claude"
        self.state = self.folder / "state"
        """The XDG_STATE_HOME of agentdash beside it."""
        self.workspace = self.root / "workspace"
        self.user = self.root / "user"
        """$HOME: empty, so that login shells run no profile."""
        for directory in (self.home, self.workspace, self.user):
            directory.mkdir()
        self.model = ScriptedModel(script)

    def command(self, *arguments: str) -> list[str]:
        """Return the command of an agentdash that watches its home, and its tmux server where there is one
        and it reads it."""
        reads_files = arguments[0] in ("check", "sessions", "replay") or not self.tmux.exists()
        where = ["--codex-home", str(self.home), *([] if reads_files else ["-S", str(self.tmux)])]
        return [sys.executable, "-m", "agentdash", *arguments, *where]

    def agentdash(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run an agentdash beside it to its end."""
        return run(self.command(*arguments), env={**self.outside, **env})

    def document(self, *arguments: str, **env: str) -> Any:
        """Return the JSON document of a command, which may have findings."""
        done = self.agentdash(*arguments, "--json", **env)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def begin(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start an agentdash beside it."""
        return subprocess.Popen(self.command(*arguments), env=self.outside, text=True, **options)

    @property
    def outside(self) -> dict[str, str]:
        """The environment of an agentdash beside it."""
        state = {"XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(self.folder / "config")}
        return {**outer_environment(), **state, "PYTHONPATH": str(ROOT)}

    def open_pane(self, command: str, size: tuple[int, int] = (120, 40)) -> str:
        """Start a shell command in a new tmux session, and return the pane's id; the pane remains when the
        command has ended."""
        where = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(self.workspace), "-P", "-F", "#{pane_id}"]
        remains = ["set-option", "-g", "remain-on-exit", "on"]
        return self.run_tmux("new-session", "-d", *where, command, ";", *remains).strip()

    def close(self) -> None:
        """Stop everything that runs in the directories, and remove them."""
        super().close()
        self.stop()
        self.model.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def stop(self) -> None:
        """Stop what outlives the tmux server."""


def kill_all(is_meant: Callable[[psutil.Process], bool]) -> None:
    """Kill all processes that are meant, with those that they have started.

    Args:
        is_meant: may raise `psutil.Error`, which means no.
    """

    def found() -> list[psutil.Process]:
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and is_meant(process):
                    processes.append(process)
        return processes

    for _ in range(10):
        if not (left := found()):
            return
        for process in left:
            with suppress(psutil.NoSuchProcess):
                for each in (process, *process.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
        psutil.wait_procs(left, timeout=5)
    raise AssertionError(f"cannot stop {left}")
