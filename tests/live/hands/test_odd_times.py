"""Keys at times and places where they mean nothing: nothing ends, no action fails, and the next key works."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.live.hands.checks import THEME, pound
from tests.live.hands.hands import AGENTDASH, Hands, PrivateServer, shows
from tests.live.patience import wait_until

SIZES = ((80, 24), (45, 50), (120, 36))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of an agentdash that has nothing to watch."""
    (folder / "codex" / "sessions").mkdir(parents=True)
    return {
        "HOME": str(folder),
        "CODEX_HOME": str(folder / "codex"),
        "XDG_STATE_HOME": str(folder),
        "LANG": "C.UTF-8",
    }


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
        shell = int(hands.tmux("display-message", "-p", "-t", hands.pane, "#{pane_pid}"))
        (program,) = psutil.Process(shell).children()
        hands.close()
        wait_until(lambda: not program.is_running(), "the end of the program")
