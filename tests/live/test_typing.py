"""Keys that arrive in one read of the terminal, and copying, in a real tmux."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.live.patience import wait_until

TIMES = 20
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


class Terminal:
    """A tmux server of its own, with agentdash in its one pane."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "socket"
        self.tmux("new-session", "-d", "-s", "a", "-x", "120", "-y", "36", "-n", "w", "sleep 100000")
        self.tmux("set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *args: str) -> str:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        command = ["tmux", "-f", "/dev/null", "-S", str(self.socket), *args]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout

    def start(self, *command: str) -> None:
        state = f"XDG_STATE_HOME={self.folder}/state"
        argv = ["env", state, sys.executable, "-m", "agentdash", *command]
        self.tmux("respawn-pane", "-k", "-t", "a", *argv)

    def type(self, text: str) -> None:
        """Send characters in one write, and so in one read."""
        self.tmux("send-keys", "-t", "a", "-l", text)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "a", *keys)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "a")

    @property
    def is_running(self) -> bool:
        return self.tmux("display-message", "-p", "-t", "a", "#{pane_dead}").strip() == "0"

    @property
    def words(self) -> list[str]:
        """The lines of the screen, without blanks around them."""
        return [line.strip() for line in self.screen.splitlines()]

    def shows(self, text: str) -> None:
        try:
            wait_until(lambda: text in self.screen, f"{text!r}")
        except TimeoutError as error:
            raise AssertionError(f"{error}; on the screen is\n{self.screen}") from error

    def lacks(self, text: str) -> bool:
        return text not in self.screen


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    # the path of a socket has at most 107 characters
    folder = Path(f"/tmp/agentdash-{uuid.uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    opened = Terminal(folder)
    yield opened
    opened.tmux("kill-server")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    folder.rmdir()


def repeat(terminal: Terminal, typed: str, shown: str, closed: str) -> None:
    """Type a text many times, and close the input each time."""
    for _ in range(TIMES):
        terminal.type(typed)
        terminal.shows(shown)
        assert terminal.is_running
        terminal.press("Escape")
        wait_until(lambda: shown not in terminal.screen and closed in terminal.screen, "the input to close")


@pytest.mark.parametrize("text", ["Pus", "state:failed", "tqt"])
def test_a_filter_typed_ahead_of_its_input(terminal: Terminal, text: str) -> None:
    terminal.start("demo", "--speed", "0.25")
    terminal.shows("? help")
    repeat(terminal, f"/{text}", f" / {text}", "? help")


def test_a_command_typed_ahead_of_the_palette(terminal: Terminal) -> None:
    terminal.start("demo", "--speed", "0.25")
    terminal.shows("? help")
    for _ in range(TIMES):
        terminal.type(":quit")
        terminal.shows("Back, and from the list: quit.")
        wait_until(lambda: terminal.words.count("quit") == 2, "the input and its only hit")
        assert terminal.is_running
        terminal.press("Escape")
        wait_until(lambda: "from the list" not in terminal.screen, "the palette to close")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    day = tmp_path / "home" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for file in sorted(RECORDINGS.glob("0.169.0/*/*.jsonl")):
        (day / file.name).write_bytes(file.read_bytes())
    return tmp_path / "home"


def test_filter_and_search_of_the_library_typed_ahead(terminal: Terminal, home: Path) -> None:
    terminal.start("replay", "--codex-home", str(home))
    terminal.shows("? help")
    repeat(terminal, "/Pus", " / Pus", "? help")
    terminal.type("Squota")
    terminal.shows(" S quota")
    assert terminal.is_running


def test_keys_typed_behind_an_enter(terminal: Terminal, home: Path) -> None:
    terminal.start("replay", "--codex-home", str(home))
    terminal.shows("? help")
    for _ in range(5):
        terminal.type("/o\rSsandbox\r?")
        for shown in ("every term has to match", '"sandbox"', '"o"'):  # the help, the search, the filter
            terminal.shows(shown)
            terminal.press("Escape")
            wait_until(partial(terminal.lacks, shown), f"{shown} to close")


def test_a_time_typed_ahead_of_its_input(terminal: Terminal, home: Path) -> None:
    thread = next(home.rglob("*.jsonl")).stem[-36:]
    terminal.start("replay", thread, "--codex-home", str(home))
    terminal.shows("? help")
    for _ in range(TIMES):
        terminal.type("Sqtq")
        terminal.shows("go to  qtq")
        assert terminal.is_running
        terminal.press("Escape")
        wait_until(lambda: "go to  qtq" not in terminal.screen, "the input to close")


def test_quit_from_inputs_and_boxes(terminal: Terminal) -> None:
    for keys in ("/abc", "?", "w", ":abc", ""):
        terminal.start("demo", "--speed", "0.25")
        terminal.shows("? help")
        terminal.type(keys or "j")
        time.sleep(0.2)  # either order must end it
        terminal.press("C-q")
        wait_until(lambda: not terminal.is_running, "the end")


def test_what_is_copied_is_in_the_buffer_of_tmux(terminal: Terminal) -> None:
    terminal.start("demo", "--speed", "0.25")
    terminal.shows("? help")
    terminal.press("y")
    terminal.shows("Copied to tmux's buffer")
    copied = terminal.tmux("show-buffer")
    assert len(copied) == 36
    assert copied[:13] in terminal.screen  # a longer message is cut at the end of the line


def test_a_clipboard_that_is_off_is_not_called_set(terminal: Terminal) -> None:
    terminal.tmux("set-option", "-s", "set-clipboard", "off")
    terminal.start("demo", "--speed", "0.25")
    terminal.shows("? help")
    terminal.press("y")
    terminal.shows("not to the clipboard")
    assert len(terminal.tmux("show-buffer")) == 36
