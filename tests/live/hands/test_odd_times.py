"""Keys at times and places where they mean nothing: nothing ends, no action fails, and the next key works."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from agentdash.tui.keys import KEYS
from tests.live.hands.checks import FAILED
from tests.live.hands.hands import AGENTDASH, Hands, PrivateServer, shows
from tests.live.patience import wait_until

SIZES = ((80, 24), (45, 50), (120, 36))
ENDING = {"quit", "quit-now", "copy-text"}
"""Keys that end the program, the last one where no text is selected."""
EVERY = tuple(part for key in KEYS if key.id not in ENDING for part in key.keys.split(","))
OPENERS = ("", "enter", "m", "L", "Z", "w", "?", ":", "/", "D", "S")
"""What opens the screens, boxes and inputs of all apps."""
THEME = shows("Theme: ")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of an agentdash that has nothing to watch."""
    (folder / "codex" / "sessions").mkdir(parents=True)
    return {
        "HOME": str(folder),
        "CODEX_HOME": str(folder / "codex"),
        "XDG_STATE_HOME": str(folder),
        "LANG": "C.UTF-8",
    }


def pound(hands: Hands, log: Path) -> None:
    """Press every key twice, at once, on every screen, while the terminal changes its size."""
    for number, opener in enumerate(OPENERS):
        hands.press(*filter(None, (opener,)), *EVERY, *EVERY)
        hands.resize(number % 3)
    hands.resize(0)
    while not THEME(hands):
        assert hands.ended is None, hands.text
        hands.press("escape")
        hands.pause()
        hands.press("t")
        hands.pause()
    assert "ERROR" not in log.read_text()
    assert FAILED not in hands.text


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_without_workers(size: tuple[int, int], tmp_path: Path) -> None:
    log = tmp_path / "log"
    with PrivateServer() as server:
        command = (str(AGENTDASH), "--no-tmux", "--debug-log", str(log))
        hands = Hands(server, command, environment(tmp_path), size)
        pound(hands, log)
        hands.close()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_demo(size: tuple[int, int], tmp_path: Path) -> None:
    log = tmp_path / "log"
    with PrivateServer() as server:
        command = (str(AGENTDASH), "demo", "--speed", "8", "--debug-log", str(log))
        hands = Hands(server, command, environment(tmp_path), size)
        pound(hands, log)
        hands.close()


def test_a_client_that_goes_and_a_session_that_ends(tmp_path: Path) -> None:
    with PrivateServer() as server:
        hands = Hands(server, (str(AGENTDASH), "demo"), environment(tmp_path))
        hands.until(shows("a attention"), "the demo")
        hands.tmux("detach-client", "-s", "hands")
        hands.press("t")
        hands.until(THEME, "the theme, without a client")
        pid = int(hands.tmux("display-message", "-p", "-t", hands.pane, "#{pane_pid}"))
        hands.close()
        wait_until(lambda: not psutil.pid_exists(pid), "the end of the program")
