"""Signals, stopped processes, vanished and missing terminals: real processes in real terminals."""

import os
import pty
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.live.endless_app_server import serving
from tests.live.patience import wait_until
from tests.live.programs import run
from tests.live.terminal import END_LIMIT_S, Terminal
from tests.live.tmux import TmuxServer, outer_environment

ROLLOUTS = Path(__file__).parents[1] / "data" / "rollouts"
THREAD: Final = "01a1fa8b-0000-7000-8000-000000000001"
HELP: Final = "no key acts on a worker"
"""Shown by the help alone."""
LAST_HANDLED: Final = signal.SIGQUIT
"""Signal whose handler is installed last; Python itself handles SIGINT from its start."""


def environment(state: Path, **more: str) -> dict[str, str]:
    """Return an environment without Codex, tmux and agentdash's own state."""
    own = {"CODEX_HOME": str(state / "codex"), "XDG_STATE_HOME": str(state), "TMUX_TMPDIR": str(state)}
    return {**outer_environment(), "TERM": "xterm-256color", **own, **more}


def status_files(state: Path) -> list[Path]:
    return sorted(state.rglob("status-*.json"))


Open = Callable[..., Terminal]


@pytest.fixture
def state() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agentdash-") as folder:  # short: sockets are below it
        path = Path(folder)
        (path / "codex" / "sessions").mkdir(parents=True)
        yield path


@pytest.fixture
def start(state: Path) -> Iterator[Open]:
    with ExitStack() as terminals:

        def start(*arguments: str, ignored: tuple[int, ...] = (), **env: str) -> Terminal:
            command = [sys.executable, "-m", "agentdash", *arguments]
            terminal = Terminal(command, environment(state, **env), ignored=ignored)
            terminals.callback(terminal.close)
            return terminal

        yield start


# ---------------------------------------------------------------- signals

CASES: Final = (
    *("/SIGTERM", "/SIGHUP", "/SIGQUIT", "/SIGINT", "demo/SIGTERM", "replay/SIGTERM"),
    *("publish/SIGTERM", "publish/SIGINT", "status --watch/SIGTERM", "status --watch/SIGINT"),
    "wait %99 --until completed/SIGHUP",
)
"""Commands and signals."""


@pytest.mark.parametrize("case", CASES)
def test_signal_ends_a_command(start: Open, state: Path, case: str) -> None:
    words, _, name = case.partition("/")
    number, command = signal.Signals[name], words.split()
    if command[:1] in (["status"], ["wait"]):  # they follow another one
        writer = start("publish")
        writer.until(lambda: status_files(state), "the status file")
        terminal = start(*command)
        terminal.until(lambda: is_handled(terminal.process.pid, LAST_HANDLED), "the handlers")
    else:
        terminal = start(*command)
        if command != ["publish"]:
            terminal.until_ready()
        if command in ([], ["publish"]):
            terminal.until(lambda: status_files(state), "the status file")
    terminal.process.send_signal(number)
    assert terminal.exit_code() == 128 + number
    terminal.assert_restored()
    assert b"Traceback" not in terminal.output
    assert command[:1] in (["status"], ["wait"]) or status_files(state) == []


def is_handled(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal: `SigCgt` of /proc/PID/status."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


# ---------------------------------------------------------------- stopped and continued


def test_stop_and_continue(start: Open) -> None:
    terminal = start("demo")
    terminal.until_ready()
    process = psutil.Process(terminal.process.pid)
    for _ in range(3):
        process.suspend()
        terminal.until(lambda: process.status() == psutil.STATUS_STOPPED, "the stop")
        process.resume()
        terminal.until_written(2_000, "the screen, painted again")
    assert process.num_threads() < 8  # each SIGCONT would start one more reader of keys
    terminal.press(b"?")
    terminal.until_written(2_000, "the help")
    terminal.press(b"\x11")
    assert terminal.exit_code() in (0, 128 + signal.SIGINT)  # 130 where a slow end had to be forced
    terminal.assert_restored()


def test_ctrl_z_suspends_and_fg_continues(state: Path) -> None:
    with TmuxServer(environment(state)) as server:
        tmux = server.run_tmux

        def screen() -> str:
            return tmux("capture-pane", "-p")

        def title() -> str:
            return tmux("display", "-p", "#{pane_title}").strip()

        tmux("new-session", "-d", "-x", "100", "-y", "30", "bash --norc --noprofile -i")
        tmux("select-pane", "-T", "title of the shell")
        tmux("send-keys", f"echo be'fore'; {sys.executable} -m agentdash demo", "Enter")
        wait_until(lambda: "DEMO" in screen(), "the dashboard")

        for _ in range(2):
            tmux("send-keys", "C-z")
            wait_until(lambda: "Stopped" in screen(), "the shell")
            assert title() == "title of the shell"
            assert "DEMO" not in screen()
            assert tmux("display", "-p", "#{alternate_on} #{mouse_any_flag}").split() == ["0", "0"]
            tmux("send-keys", "fg", "Enter")
            wait_until(lambda: "DEMO" in screen(), "the dashboard, continued")
            wait_until(lambda: title().startswith("agentdash"), "the title")
            tmux("send-keys", "?")
            wait_until(lambda: HELP in screen(), "the help")
            tmux("send-keys", "Escape")
            wait_until(lambda: HELP not in screen(), "the list")
        tmux("send-keys", "C-q")
        wait_until(lambda: "DEMO" not in screen(), "the end")
        tmux("send-keys", "echo code=$?", "Enter")
        wait_until(lambda: "code=0" in screen(), "the shell")
        assert title() == "title of the shell"


# ---------------------------------------------------------------- vanished terminals


@pytest.mark.parametrize(
    ("command", "ignored", "code"),
    [
        ((), (), 128 + signal.SIGHUP),
        ((), (signal.SIGHUP,), 128 + signal.SIGTERM),
        (("replay",), (), 128 + signal.SIGHUP),
    ],
)
def test_closed_terminal(
    start: Open, state: Path, command: tuple[str, ...], ignored: tuple[int, ...], code: int
) -> None:
    terminal = start(*command, ignored=ignored)
    terminal.until_ready()
    if not command:
        terminal.until(lambda: status_files(state), "the status file")
    terminal.vanish()
    assert terminal.exit_code() == code
    assert status_files(state) == []


@pytest.mark.parametrize("how", ["kill-server", "kill-pane", "SIGKILL"])
def test_killed_tmux(state: Path, how: str) -> None:
    with TmuxServer(environment(state)) as server:
        tmux = server.run_tmux
        tmux("new-session", "-d", "-x", "100", "-y", "30", "sleep 1000")
        pane = tmux("split-window", "-P", "-F", "#{pane_id}", f"exec {sys.executable} -m agentdash").strip()
        pid = int(tmux("display", "-p", "-t", pane, "#{pane_pid}"))
        server_pid = int(tmux("display", "-p", "#{pid}"))
        wait_until(lambda: status_files(state), "the status file")
        if how == "SIGKILL":
            os.kill(server_pid, signal.SIGKILL)
        else:
            tmux(how, *(("-t", pane) if how == "kill-pane" else ()))
        wait_until(lambda: not is_running(pid), "the end of the dashboard", END_LIMIT_S)
        assert status_files(state) == []


def is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


# ---------------------------------------------------------------- no terminal


@pytest.mark.parametrize(
    ("command", "hint", "missing"),
    [
        ((), "agentdash status", "both"),
        (("demo",), "not a terminal", "input"),
        (("replay",), "agentdash sessions", "output"),
    ],
)
def test_no_terminal(state: Path, command: tuple[str, ...], hint: str, missing: str) -> None:
    master, slave = pty.openpty()
    try:
        there = {"output": {"stdin": slave}, "input": {"stdout": slave}}.get(missing, {})
        done = run([sys.executable, "-m", "agentdash", *command], env=environment(state), **there)
    finally:
        os.close(master)
        os.close(slave)
    assert (done.returncode, done.stdout or "") == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"standard {'output' if missing == 'output' else 'input'} is not a terminal" in done.stderr
    assert hint in done.stderr


def test_dumb_terminal(start: Open) -> None:
    terminal = start(TERM="dumb")
    assert terminal.exit_code() == 2
    assert b"TERM is dumb" in terminal.output
    assert b"\x1b" not in terminal.output
    terminal.assert_restored()


# ---------------------------------------------------------------- quit keys while something is read


def large_rollout(state: Path) -> None:
    """Write a rollout of 3 GiB: some lines, and a hole."""
    path = state / "codex" / f"sessions/2026/11/20/rollout-2026-11-20T20-00-00-{THREAD}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(min(ROLLOUTS.rglob("rollout-*.jsonl")).read_bytes())
    os.truncate(path, 3 << 30)


@pytest.mark.parametrize(
    ("command", "key"),
    [(("replay",), b"\x11"), (("replay", THREAD), b"\x03"), ((), b"\x11"), (("demo",), b"\x03")],
)
def test_quit_key_at_the_start(start: Open, state: Path, command: tuple[str, ...], key: bytes) -> None:
    """From the moment when Python runs our first line, before the app reads keys."""
    large_rollout(state)
    terminal = start(*command)
    terminal.until(terminal.keeps_keys, "the terminal, prepared")
    terminal.press(key)
    assert terminal.exit_code() in (0, 128 + signal.SIGQUIT, 128 + signal.SIGINT, -signal.SIGINT)
    assert b"Traceback" not in terminal.output
    terminal.assert_restored()


def test_keys_that_are_typed_ahead(start: Open) -> None:
    """From the moment when Python runs our first line; ctrl+s stops no output."""
    terminal = start()
    terminal.until(terminal.keeps_keys, "the terminal, prepared")
    terminal.press(b"\x13?")
    terminal.until(lambda: HELP.encode() in terminal.output, "the help")
    terminal.press(b"\x11")
    assert terminal.exit_code() in (0, 128 + signal.SIGINT)
    terminal.assert_restored()


@pytest.mark.parametrize(
    ("command", "code"), [(("--no-tmux", "status"), 0), (("-L", "no\nname", "demo", "--bogus"), 2)], ids=str
)
def test_what_opens_no_screen_restores_the_terminal(start: Open, command: tuple[str, ...], code: int) -> None:
    """The first argument shows that a screen may open."""
    terminal = start(*command)
    assert terminal.exit_code() == code
    terminal.assert_restored()


def test_quit_key_while_codex_sends_without_end(start: Open, state: Path) -> None:
    with serving(state / "codex") as printed:
        terminal = start()
        terminal.until_ready()
        assert printed.readline() == b"connected\n"
        terminal.press(b"\x11")
        assert terminal.exit_code() in (0, 128 + signal.SIGINT)
        terminal.assert_restored()
        assert status_files(state) == []
