"""Every key of every screen, and every click, does what footer and help say; nothing ends."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdash.tui.keys import BY_ID, KEYS
from agentdash.tui.library.app import HINTS as LIBRARY_HINTS
from agentdash.tui.library.app import LIBRARY_KEYS
from agentdash.tui.replay_app import HINTS as REPLAY_HINTS
from tests.live.conftest import Screens
from tests.live.hands.dashboard import FOOTERS, WALKS, in_list, select, whole
from tests.live.hands.fleet import Fleet, real_fleet
from tests.live.hands.hands import AGENTDASH, Hands, Walk, shows
from tests.live.hands.replay import DENIAL, DENIED, FAMILY, LIBRARY, REPLAY
from tests.live.tmux import TmuxServer

END = {"q", "ctrl+q"}
"""They end the program, and so have tests of their own."""
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings" / "0.169.0"
EMPTY = {"XDG_STATE_HOME": "/nonexistent", "LANG": "C.UTF-8"}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with real_fleet() as started:
        yield started


def pressed(walk: Walk) -> set[object]:
    return {deed for deed, _ in walk}


def test_every_key_is_pressed() -> None:
    walks = (*WALKS.values(), REPLAY, DENIAL, LIBRARY)
    assert {part for key in KEYS for part in key.keys.split(",")} <= END.union(*map(pressed, walks))
    replay = (*WALKS["moves"], *WALKS["opens"], *REPLAY, *DENIAL)
    library = (*LIBRARY_HINTS, *{*LIBRARY_KEYS, "down", "up", "top", "bottom"} - {"back"})
    for hints, walk in (*FOOTERS, (REPLAY_HINTS, replay), (library, LIBRARY)):
        for hint in hints:
            assert END.union(pressed(walk), {"escape"}) & {*BY_ID[hint].keys.split(",")}, hint


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_dashboard(
    walk: Walk, fleet: Fleet, tmp_path: Path, report_screens: Callable[[Screens], None]
) -> None:
    report_screens(fleet.lab.screens)
    log = tmp_path / "log"
    env = {**fleet.env, "XDG_STATE_HOME": str(tmp_path)}
    with Hands(fleet.lab, (str(AGENTDASH), "--debug-log", str(log)), env) as hands:
        hands.until(whole, "all workers")
        hands.until(shows("1 sandbox problem", "2 need you", "4 PAST", "4 done"), "their states")
        hands.walk(walk)
        assert "ERROR" not in log.read_text()


@pytest.mark.parametrize("start", [(), ("env", "-u", "TMUX", "-u", "TMUX_PANE")], ids=["in tmux", "outside"])
def test_go_to_a_pane_of_another_server(start: tuple[str, ...], fleet: Fleet) -> None:
    """`o` says how to get there."""
    command = (*start, str(AGENTDASH), "-S", str(fleet.lab.tmux))
    with TmuxServer() as server, Hands(server, command, fleet.env) as hands:
        hands.until(whole, "all workers")
        hands.walk(select("[[ask]] go"))
        pressed = 0.0

        def told(hands: Hands) -> bool:
            """Press `o` again once its message has gone: it stays for five seconds, which a busy machine may
            miss."""
            nonlocal pressed
            if time.monotonic() > pressed + 8:
                pressed = time.monotonic()
                hands.press("o")
            return shows("attach")(hands)

        hands.until(told, "how to get there")


@pytest.mark.parametrize(
    ("arguments", "walk"),
    [((FAMILY,), REPLAY), ((DENIED,), DENIAL), ((), LIBRARY)],
    ids=["replay", "denial", "library"],
)
def test_replay(
    arguments: tuple[str, ...], walk: Walk, tmp_path: Path, report_screens: Callable[[Screens], None]
) -> None:
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True)
    for name in ("kanban-board", "spawn", "provider-500"):
        for file in (RECORDINGS / name).glob("rollout-*.jsonl"):
            (folder / file.name).write_bytes(file.read_bytes())
    env = {"CODEX_HOME": str(tmp_path / "codex"), "XDG_STATE_HOME": str(tmp_path), "LANG": "C.UTF-8"}
    with TmuxServer() as server:
        report_screens(server.screens)
        with Hands(server, (str(AGENTDASH), "replay", *arguments), env) as hands:
            hands.walk(walk)
            hands.until_ended(0)


@pytest.mark.parametrize(
    ("keys", "codes"),
    [("q", (0,)), ("ctrl+q", (0, 130)), ("? ctrl+q", (0, 130)), ("ctrl+c", (130,))],  # 130: ended by force
)
def test_keys_that_end(keys: str, codes: tuple[int, ...]) -> None:
    with TmuxServer() as server, Hands(server, (str(AGENTDASH), "demo"), EMPTY) as hands:
        hands.until(in_list, "the demo")
        hands.press(*keys.split())
        hands.until_ended(*codes)
