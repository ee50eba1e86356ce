"""Keys that arrive in one read of the terminal, ahead of the input that they open."""

from __future__ import annotations

from pathlib import Path

from tests.live.hands.hands import AGENTDASH, Hands, lacks, shows
from tests.live.tmux import TmuxServer

TIMES = 5
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def close(hands: Hands, shown: str) -> None:
    """Press escape, and wait until this text is gone."""
    hands.press("escape")
    hands.until(lacks(shown), f"{shown} to close")


def found_quit(hands: Hands) -> bool:
    """Return whether the palette has `quit` in its input, and as its only hit."""
    words = [line.strip() for line in hands.text.split("\n")]
    return "Back, and from the list: quit." in hands.text and words.count("quit") == 2


def test_a_filter_and_a_command(tmp_path: Path) -> None:
    command = (str(AGENTDASH), "demo", "--speed", "0.25")
    with TmuxServer() as server, Hands(server, command, {"XDG_STATE_HOME": str(tmp_path)}) as hands:
        for _ in range(TIMES):
            for text in ("Pus", "state:failed", "tqt"):
                hands.until(shows("? help"), "the list")
                hands.press(f'"/{text}"')
                hands.until(shows(f" / {text}"), "the filter")
                close(hands, f" / {text}")
            hands.until(shows("? help"), "the list")
            hands.press('":quit"')
            hands.until(found_quit, "the palette")
            close(hands, "from the list")
        hands.until(shows("? help"), "the list")


def test_keys_behind_an_enter(tmp_path: Path) -> None:
    day = tmp_path / "home" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for file in sorted(RECORDINGS.glob("0.169.0/*/*.jsonl")):
        (day / file.name).write_bytes(file.read_bytes())
    command = (str(AGENTDASH), "replay", "--codex-home", str(tmp_path / "home"))
    with TmuxServer() as server, Hands(server, command, {"XDG_STATE_HOME": str(tmp_path)}) as hands:
        for _ in range(TIMES):
            hands.until(shows("? help"), "the library")
            hands.press('"/o\rSsandbox\r?"')
            for shown in (
                "every term has to match",
                '"sandbox"',
                " / o ",
            ):  # the help, the search, the filter
                hands.until(shows(shown), shown)
                close(hands, shown)
        hands.until(shows("? help"), "the library")
