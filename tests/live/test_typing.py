"""Keys that arrive in one read of the terminal, and copying, in a real tmux."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.live.patience import wait_until
from tests.live.tmux import TmuxServer

TIMES = 5
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


class Terminal(TmuxServer):
    """A tmux server of its own, with agentdash in its one pane."""

    def __init__(self) -> None:
        super().__init__()
        self.run_tmux("new-session", "-d", "-s", "a", "-x", "120", "-y", "36", "-n", "w", "sleep 100000")
        self.run_tmux("set-option", "-g", "remain-on-exit", "on")

    def start(self, *command: str) -> None:
        state = f"XDG_STATE_HOME={self.folder}/state"
        argv = ["env", state, sys.executable, "-m", "agentdash", *command]
        self.run_tmux("respawn-pane", "-k", "-t", "a", *argv)

    def type(self, text: str) -> None:
        """Send characters in one write, and so in one read."""
        self.run_tmux("send-keys", "-t", "a", "-l", text)

    def press(self, *keys: str) -> None:
        self.run_tmux("send-keys", "-t", "a", *keys)

    @property
    def screen(self) -> str:
        return self.run_tmux("capture-pane", "-p", "-t", "a")

    @property
    def is_running(self) -> bool:
        return self.run_tmux("display-message", "-p", "-t", "a", "#{pane_dead}").strip() == "0"

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
def terminal() -> Iterator[Terminal]:
    with Terminal() as opened:
        yield opened


def repeat(terminal: Terminal, typed: str, shown: str, closed: str) -> None:
    """Type a text many times, and close the input each time."""
    for _ in range(TIMES):
        terminal.type(typed)
        terminal.shows(shown)
        assert terminal.is_running
        terminal.press("Escape")
        wait_until(lambda: shown not in terminal.screen and closed in terminal.screen, "the input to close")


def test_a_filter_typed_ahead_of_its_input(terminal: Terminal) -> None:
    terminal.start("demo", "--speed", "0.25")
    terminal.shows("? help")
    for text in ("Pus", "state:failed", "tqt"):
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


def test_keys_typed_behind_an_enter(terminal: Terminal, home: Path) -> None:
    terminal.start("replay", "--codex-home", str(home))
    terminal.shows("? help")
    for _ in range(5):
        terminal.type("/o\rSsandbox\r?")
        for shown in ("every term has to match", '"sandbox"', " / o "):  # the help, the search, the filter
            terminal.shows(shown)
            terminal.press("Escape")
            wait_until(partial(terminal.lacks, shown), f"{shown} to close")
