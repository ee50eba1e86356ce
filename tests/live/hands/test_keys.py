"""Every key of every screen, and every click, does what footer and help say; nothing ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdash.tui.keys import BY_ID
from agentdash.tui.library.help import LIBRARY_KEYS
from tests.live.conftest import Screens
from tests.live.hands.checks import Screen, perform, pound
from tests.live.hands.dashboard import CLICKS, DASHBOARD, IN_PANEL, in_list, select, whole
from tests.live.hands.fleet import Fleet, real_fleet
from tests.live.hands.hands import AGENTDASH, Hands, PrivateServer, lacks, shows
from tests.live.hands.replay import DENIED, FAMILY, LIBRARY, REPLAY, REPLAY_OF_DENIAL, REPLAY_OF_WAIT

END = {"quit", "quit-now"}
"""They end the program, and so have tests of their own."""
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings" / "0.169.0"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with real_fleet() as started:
        yield started


def test_every_key_has_a_check() -> None:
    screens = (*DASHBOARD, REPLAY, REPLAY_OF_DENIAL, REPLAY_OF_WAIT, LIBRARY)
    assert {check.key for screen in screens for check in screen.checks} | END == set(BY_ID)
    assert {check.key for check in LIBRARY.checks} | END >= set(LIBRARY_KEYS)
    unchecked = {
        (screen.name, hint)
        for screen in (*DASHBOARD, LIBRARY)
        for hint in {*screen.hints} - {check.key for check in screen.checks} - END
    }
    assert not unchecked


def test_dashboard(fleet: Fleet, report_screens: Callable[[Screens], None]) -> None:
    report_screens(fleet.lab.screens)
    log = fleet.lab.root / "log"
    command = (str(AGENTDASH), "--debug-log", str(log))
    hands = Hands(fleet.lab, command, fleet.env)
    hands.until(whole, "all workers")
    hands.until(shows("≠ 1 mismatch", "! 2 need you", "4 past", "4 done"), "their states")
    for screen in DASHBOARD:
        perform(hands, screen)
    for text, seen, after in CLICKS:
        hands.until(lambda hands, seen=seen: not seen(hands), f"before a click on {text!r}")
        hands.click(text)
        hands.until(seen, f"a click on {text!r}")
        hands.do(after, f"after a click on {text!r}")
    assert "ERROR" not in log.read_text()
    hands.press("q")
    hands.until_ended(0)
    hands.close()
    (thread,) = (thread for thread in fleet.lab.threads() if _asks(fleet, thread))
    run(Hands(fleet.lab, (str(AGENTDASH), "replay", thread), fleet.env), REPLAY_OF_WAIT)

    hands = Hands(fleet.lab, command, fleet.env)
    hands.until(whole, "all workers")
    hands.do((*select("[[hello]] go"), "enter", IN_PANEL, "enter"))
    fleet.lab.run_tmux("kill-pane", "-t", fleet.panes["claude"].id)
    pound(hands, log)
    hands.close()

    outside = ("env", "-u", "TMUX", "-u", "TMUX_PANE")
    watching = (*command, "-S", str(fleet.lab.tmux))
    with PrivateServer() as server:
        for start in ((), outside):
            hands = Hands(server, (*start, *watching), fleet.env)
            hands.do((lambda hands: "[[ask]] go" in hands.rows, *select("[[ask]] go"), "o", shows("attach")))
            if start:
                hands.until(in_list, "the message to expire")
                fleet.lab.run_tmux("kill-server")
                hands.press("o")
                hands.until(lacks("a attention"), "why it does not go there")
                pound(hands, log)
            hands.close()


def _asks(fleet: Fleet, thread: str) -> bool:
    (file,) = fleet.lab.home.glob(f"sessions/*/*/*/rollout-*{thread}.jsonl")
    return "[[ask]]" in file.read_text()


def run(hands: Hands, screen: Screen) -> None:
    """Check a screen, after which the program is to have ended."""
    try:
        perform(hands, screen)
        hands.until_ended(0)
    finally:
        hands.close()


def test_replay_and_library(tmp_path: Path, report_screens: Callable[[Screens], None]) -> None:
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True)
    for name in ("kanban-board", "spawn", "provider-500"):
        for file in (RECORDINGS / name).glob("rollout-*.jsonl"):
            (folder / file.name).write_bytes(file.read_bytes())
    env = {"CODEX_HOME": str(tmp_path / "codex"), "XDG_STATE_HOME": str(tmp_path), "LANG": "C.UTF-8"}
    with PrivateServer() as server:
        report_screens(lambda: {"agentdash": server.run_tmux("capture-pane", "-p", "-t", "hands:")})
        run(Hands(server, (str(AGENTDASH), "replay", FAMILY), env), REPLAY)
        run(Hands(server, (str(AGENTDASH), "replay", DENIED), env), REPLAY_OF_DENIAL)
        hands = Hands(server, (str(AGENTDASH), "replay"), env)
        perform(hands, LIBRARY)
        hands.press("ctrl+q")
        hands.until_ended(0)
        hands.close()


def test_keys_that_end() -> None:
    with PrivateServer() as server:
        env = {"XDG_STATE_HOME": "/nonexistent", "LANG": "C.UTF-8"}
        for keys, code in ((("q",), 0), (("ctrl+q",), 0), (("?", "ctrl+q"), 0), (("ctrl+c",), 130)):
            hands = Hands(server, (str(AGENTDASH), "demo"), env)
            hands.until(in_list, "the demo")
            hands.press(*keys)
            hands.until_ended(code)
            hands.close()


def test_a_shell_continues_it() -> None:
    with PrivateServer() as server:
        hands = Hands(server, ("bash", "--norc", "-i"), {"XDG_STATE_HOME": "/nonexistent", "LANG": "C.UTF-8"})
        hands.press(f'"{AGENTDASH} demo"', "enter")
        hands.until(in_list, "the demo")
        hands.press("ctrl+z")
        hands.until(shows("Stopped"), "the shell")
        hands.press('"fg"', "enter")
        hands.until(lambda hands: in_list(hands) and lacks("Stopped")(hands), "the demo again")
        hands.close()
