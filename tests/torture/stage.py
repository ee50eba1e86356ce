"""Where the scenes of `python -m tests.torture` play: real processes of a user around one faulty thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.live.patience import scaled
from tests.live.terminal import READY, Terminal
from tests.torture.faults import GOOD, Place

REPOSITORY: Final = Path(__file__).parents[2]
_COMMAND_LIMIT_S: Final = 60.0
"""Of one command on a quiet machine, where it takes a second."""
_WAIT_S: Final = 60.0
_POLL_S: Final = 0.1
_INTERRUPTED: Final = 130
"""Exit code of a screen whose event loop is busy for longer than a key has patience."""


class Done(NamedTuple):
    """What a command did."""

    code: int | None
    """Exit code; None: it was still running after the limit."""
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON document; empty where there is none."""
        try:
            read = json.loads(self.out)
        except ValueError:
            return {}
        return read if isinstance(read, dict) else {}


class Stage:
    """One scene's place, user and processes. All of these are ended with it.

    Args:
        place: the Codex home and directories of the scene.
        uid: the user that runs everything.
        cleanup: where what has to be ended is registered.
    """

    def __init__(self, place: Place, uid: int, cleanup: ExitStack) -> None:
        self.place = place
        self.uid = uid
        self.cleanup = cleanup
        self.env = {
            **place.env,
            "TERM": "xterm-256color",
            "TMUX_TMPDIR": str(place.root),
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def as_user(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs as the scene's user."""
        if self.uid == os.geteuid():
            return list(command)
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--", *command]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of an agentdash of the scene's user."""
        return self.as_user([sys.executable, "-m", "agentdash", *arguments])

    def run(self, *arguments: str, setup: str | None = None, limit: float = _COMMAND_LIMIT_S) -> Done:
        """Run agentdash to its end.

        Args:
            arguments: of agentdash.
            setup: shell commands that run before it, as root, in mount and pid namespaces of their own.
            limit: seconds on a quiet machine.
        """
        command = self.command(*arguments)
        if setup is not None:
            script = f'{setup} && exec "$@"'
            command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", *command]
        return self.to_its_end(command, limit)

    def to_its_end(self, command: Sequence[str], limit: float) -> Done:
        process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.place.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=scaled(limit))
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            (out, err), code = process.communicate(), None
        return Done(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start another program of the user; it is ended with the scene."""
        process = subprocess.Popen(self.as_user(command), env=self.env, cwd=self.place.cwd, **options)
        self.cleanup.callback(_end, process)
        return process

    def screen(self, *arguments: str) -> Terminal:
        """Start a full-screen agentdash; it is ended with the scene."""
        terminal = Terminal(self.command(*arguments), self.env, columns=120, lines=36)
        self.cleanup.callback(terminal.close)
        return terminal

    def open_screen(self, *arguments: str) -> Terminal:
        """Start a full-screen agentdash, and wait until it reads keys."""
        terminal = self.screen(*arguments)
        terminal.until(lambda: READY in terminal.output, "the screen")
        return terminal

    def tmux(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a tmux command of the scene's own server."""
        command = self.as_user(["tmux", "-f", os.devnull, *arguments])
        return subprocess.run(command, env=env or self.env, check=False, capture_output=True)

    def panes(self, count: int, *program: str) -> None:
        """Start the server with a number of panes; it is ended with the scene."""
        self.cleanup.callback(self.tmux, "kill-server")
        self.tmux("new-session", "-d", "-x", "100", "-y", "30", *program)
        batch = 50  # windows by one call: a command line has a limit
        for begin in range(1, count, batch):
            words: list[str] = []
            for _ in range(begin, min(begin + batch, count)):
                words += ["new-window", "-d", *program, ";"]
            self.tmux(*words[:-1])

    def worker(self, name: str = "codex") -> str:
        """Return the path of a program that is identified as a worker CLI, and only sleeps."""
        path = self.place.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(Path("/bin/sleep").resolve().read_bytes())
        path.chmod(0o755)
        return str(path)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def becomes(condition: Callable[[], object]) -> bool:
    """Return whether a condition becomes true within the patience for this machine."""
    end = time.monotonic() + scaled(_WAIT_S)
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def whole(done: Done, codes: Sequence[int] = (0,), *, good: bool = True) -> Iterator[str]:
    """Yield what is wrong with a `--json` command: it hangs, fails, or lacks the thread beside the fault."""
    if done.code not in codes:
        yield f"exits with {done.code}: {done.err.strip()[-200:]}"
    elif "Traceback" in done.err or "Traceback" in done.out:
        yield done.err.strip()[-200:]
    elif not done.document:
        yield f"no document: {done.out[:100]!r} {done.err.strip()[-200:]}"
    elif good and GOOD not in done.out:
        yield "the thread beside the fault is missing"


def source(done: Done, name: str) -> tuple[bool | None, str]:
    """Return the health of a source of a `status` document, and its detail."""
    for each in done.document.get("sources", ()):
        if each["name"] == name:
            return each["ok"], each["detail"]
    return None, "no such source"


def quits(terminal: Terminal) -> Iterator[str]:
    """Press ctrl+q; yield what is wrong with the end."""
    terminal.press(b"\x11")
    try:
        code = terminal.exit_code()
        terminal.assert_restored()
    except AssertionError as error:
        yield f"ctrl+q: {error}"
        return
    if code not in (0, _INTERRUPTED):
        yield f"ctrl+q exits with {code}"
    if b"Traceback" in terminal.output:
        yield "a traceback on the screen"
