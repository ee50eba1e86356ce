"""Where the rows of `python -m tests.torture` play: a Codex home around one faulty thing, and what a user
runs beside it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tests.live.patience import scaled
from tests.live.terminal import READY, Terminal

GOOD: Final = "01a1fafc-c823-7e21-b4b7-1bc0b7cb0525"
"""The thread beside the faults."""
BAD: Final = "01a1fafc-c823-7e21-b4b7-bad000000000"
REPOSITORY: Final = Path(__file__).parents[2]
GOOD_FILE: Final = (
    REPOSITORY / f"tests/data/rollouts/0.169.0/code-mode/rollout-2026-11-20T22-03-52-{GOOD}.jsonl"
)
_SETPRIV: Final = shutil.which("setpriv") or "setpriv"
"""Found before a row takes PATH away."""
_LIMIT_S: Final = 60.0
"""Of one command on a quiet machine, where it takes a second, and one over 50,000 sessions 40 s."""
_POLL_S: Final = 0.1
_INTERRUPTED: Final = 130
"""Exit code of a screen whose event loop is busy for longer than a key has patience."""


class Place(msgspec.Struct):
    """Where the commands of one row run."""

    root: Path
    home: Path
    """The Codex home."""
    day: Path
    """The directory of the good rollout."""
    state: Path
    """agentdash's state directory."""
    config: Path
    """agentdash's config directory."""
    cwd: Path
    env: dict[str, str]
    cwd_is_deleted: bool = False
    closed: tuple[int, ...] = ()
    """Descriptors that the commands do not have."""
    limits: dict[int, int] = {}
    """Resource limits of the commands."""

    @property
    def bad(self) -> Path:
        """The path of a faulty rollout beside the good one."""
        return self.day / f"rollout-2026-11-20T22-03-53-{BAD}.jsonl"


def make_place(root: Path) -> Place:
    """Create a Codex home with one rollout, and empty state and config directories."""
    root.chmod(0o711)
    home = root / "codex"
    day = home / "sessions/2026/11/20"
    state, config, cwd, user = (root / name for name in ("state", "config/agentdash", "cwd", "user"))
    for folder in (day, state, config, cwd, user):
        folder.mkdir(parents=True)
    shutil.copy(GOOD_FILE, day)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(user),
        "CODEX_HOME": str(home),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(config.parent),
        "LC_ALL": "C.UTF-8",
    }
    return Place(root=root, home=home, day=day, state=state / "agentdash", config=config, cwd=cwd, env=env)


@contextmanager
def fresh_stage(uid: int, arrange: Callable[[Place], object]) -> Iterator[Stage]:
    """Arrange a place, and remove it after the block. Outside of /tmp, which sandboxes may write to."""
    root = Path(tempfile.mkdtemp(prefix="torture-", dir="/var/tmp"))
    try:
        place = make_place(root)
        arrange(place)
        if os.geteuid() == 0 and uid:
            for folder, folders, names in os.walk(root):
                for name in (".", *folders, *names):
                    os.chown(Path(folder, name), uid, uid, follow_symlinks=False)
        with ExitStack() as cleanup:
            yield Stage(place, uid, cleanup)
    finally:
        for each in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
            each.chmod(0o700)
        shutil.rmtree(root, ignore_errors=True)


class Done(NamedTuple):
    """What a command did."""

    code: int | None
    """Exit code; None: it was still running after the limit."""
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON document; empty where there is none."""
        with suppress(ValueError):
            read = json.loads(self.out)
            return read if isinstance(read, dict) else {}
        return {}


class Stage:
    """One row's place, user and processes. All of these are ended with it.

    Args:
        place: the Codex home and directories.
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
        return [_SETPRIV, f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--", *command]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of an agentdash of the scene's user."""
        return self.as_user([sys.executable, "-m", "agentdash", *arguments])

    def run(self, *arguments: str, setup: str | None = None, limit: float = _LIMIT_S) -> Done:
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

    def to_its_end(self, command: Sequence[str], limit: float = _LIMIT_S) -> Done:
        """Run any command to its end."""
        self.place.cwd.mkdir(exist_ok=True)
        process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.place.cwd,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=self._take_away,  # noqa: PLW1509 - nothing here has threads
        )
        code: int | None
        try:
            out, err = process.communicate(timeout=scaled(limit))
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            (out, err), code = process.communicate(), None
        return Done(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def _take_away(self) -> None:
        """Take from a child, before it executes its program, what the row lets it lack."""
        if self.place.cwd_is_deleted:
            self.place.cwd.rmdir()
        for kind, value in self.place.limits.items():
            resource.setrlimit(kind, (value, value))
        for number in self.place.closed:
            os.close(number)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start another program of the user; it is ended with the scene."""
        process = subprocess.Popen(self.as_user(command), env=self.env, cwd=self.place.cwd, **options)
        self.cleanup.enter_context(process)
        self.cleanup.callback(process.kill)
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


class Row(msgspec.Struct):
    """A fault, and what must hold while it lasts."""

    name: str
    play: Callable[[Stage], Iterator[str]]
    """Yields what was wrong."""
    arrange: Callable[[Place], object] = lambda place: None
    needs_root: bool = False
    """Whether only root can arrange it; the commands may still run as another user."""
    unprivileged: bool = False
    """Whether the fault is none for root."""


def becomes(condition: Callable[[], object]) -> bool:
    """Return whether a condition becomes true within the patience for this machine."""
    end = time.monotonic() + scaled(_LIMIT_S)
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def whole(done: Done, codes: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield what is wrong with a `--json` command: it hangs, fails, or lacks the thread beside the fault."""
    if done.code not in codes:
        yield f"exits with {done.code}: {done.err.strip()[-200:]}"
    elif "Traceback" in done.err or "Traceback" in done.out:
        yield done.err.strip()[-200:]
    elif not done.document:
        yield f"no document: {done.out[:100]!r} {done.err.strip()[-200:]}"
    elif GOOD not in done.out:
        yield "the thread beside the fault is missing"


def source(document: Mapping[str, Any], name: str) -> tuple[bool | None, str]:
    """Return the health of a source of a `status` document, and its detail."""
    found = {each["name"]: (each["ok"], each["detail"]) for each in document.get("sources", ())}
    return found.get(name, (None, "no such source"))


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
