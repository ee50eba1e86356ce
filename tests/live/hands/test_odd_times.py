"""Keys at times and places where they mean nothing: nothing ends, no action fails, and the next key works."""

import signal
from pathlib import Path

import psutil
import pytest

from agentdash.tui.keys import KEYS
from tests.live.hands.hands import AGENTDASH, FAILED, Hands, shows
from tests.live.patience import wait_until
from tests.live.tmux import TmuxServer

ENDING = {"quit"}
"""Keys that end the program."""
EVERY = tuple(part for key in KEYS if key.id not in ENDING for part in key.keys.split(","))
OPENERS = ("", "enter", "m", "w", "?", ":", "/", "D", "S")
"""What opens the screens, boxes and inputs of all apps."""
THEME = shows("Theme: ")
CASES = (
    (("--no-tmux",), (80, 24)),
    (("demo", "--speed", "8"), (45, 50)),
    (("demo", "--speed", "8"), (120, 36)),
)
"""Without workers, and with many."""


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of an agentdash that has nothing to watch."""
    (folder / "codex" / "sessions").mkdir(parents=True)
    return {
        "HOME": str(folder),
        "CODEX_HOME": str(folder / "codex"),
        "XDG_STATE_HOME": str(folder),
        "LANG": "C.UTF-8",
    }


def program_of(hands: Hands) -> psutil.Process:
    """Return the process in the pane of `hands`."""
    shell = int(hands.tmux("display-message", "-p", "-t", hands.pane, "#{pane_pid}"))
    (program,) = psutil.Process(shell).children()
    return program


@pytest.mark.parametrize(("command", "size"), CASES, ids=str)
def test_every_key_twice_on_every_screen(
    command: tuple[str, ...], size: tuple[int, int], tmp_path: Path
) -> None:
    """All at once, while the terminal changes its size."""
    log = tmp_path / "log"
    whole = (str(AGENTDASH), *command, "--debug-log", str(log))
    with TmuxServer() as server, Hands(server, whole, environment(tmp_path), size) as hands:
        for number, opener in enumerate(OPENERS):
            hands.press(*filter(None, (opener,)), *EVERY, *EVERY)
            hands.resize(number % 3)
        hands.resize(0)

        def press_again(hands: Hands) -> object:
            hands.press("escape")
            hands.pause()
            hands.press("t")
            hands.pause()
            return THEME(hands)

        hands.until(press_again, "the theme")
        # the palette of Textual fails at a page key until its list is laid out
        failed = log.read_text().split("ERROR")[1:]
        assert [each for each in failed if "textual/command.py" not in each] == []
        assert FAILED not in hands.text


def test_ctrl_z_without_a_shell_stops_nothing(tmp_path: Path) -> None:
    """It is a signal until the app reads keys, and nothing could continue the program."""
    with TmuxServer() as server, Hands(server, (str(AGENTDASH), "--no-tmux"), environment(tmp_path)) as hands:
        hands.until(shows("? help"), "the dashboard")
        program_of(hands).send_signal(signal.SIGTSTP)
        hands.press("t")
        hands.until(THEME, "the theme")


def test_a_client_that_goes_and_a_session_that_ends(tmp_path: Path) -> None:
    with TmuxServer() as server:
        with Hands(server, (str(AGENTDASH), "demo"), environment(tmp_path)) as hands:
            hands.until(shows("a next"), "the demo")
            hands.tmux("detach-client", "-s", "hands")
            hands.press("t")
            hands.until(THEME, "the theme, without a client")
            program = program_of(hands)
        wait_until(lambda: not program.is_running(), "the end of the program")
