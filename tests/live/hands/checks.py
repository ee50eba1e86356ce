"""What a key does, as rows of tables, and how such rows are performed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agentdash.tui.keys import BY_ID, KEYS
from agentdash.tui.primitives.footer import hints
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import UNICODE
from tests.live.hands.hands import Hands, Seen, Step, shows

FAILED = "That failed: "
"""How the message of an action that has failed begins."""

ENDING = {"quit", "quit-now", "copy-text"}
"""Keys that end the program, the last one where no text is selected."""
EVERY = tuple(part for key in KEYS if key.id not in ENDING for part in key.keys.split(","))
OPENERS = ("", "enter", "m", "L", "Z", "w", "?", ":", "/", "D", "S")
"""What opens the screens, boxes and inputs of all apps."""
THEME = shows("Theme: ")


class Check(NamedTuple):
    """A key of the program's table, and what it must do."""

    key: str
    """Its id in `agentdash/tui/keys.py`: every key that it has is pressed."""
    seen: Seen | None
    """What is seen when it was pressed, and was not before; None: only `after` shows it."""
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    """What is done then: a closer look, and the way back."""


class Screen(NamedTuple):
    """A screen with what is pressed there."""

    name: str
    hints: tuple[str, ...]
    """The ids of its footer: what it shows is clicked too."""
    open: tuple[Step, ...]
    close: tuple[Step, ...]
    checks: tuple[Check, ...]


def perform(hands: Hands, screen: Screen) -> None:
    """Press every key of a screen, and click what its footer shows."""
    hands.do(screen.open, f"{screen.name} opens")
    for check in screen.checks:
        for key in BY_ID[check.key].keys.split(","):
            _perform(hands, check, key, f"{screen.name}: {key} ({check.key})")
    footer = plain(hints(screen.hints, hands.columns, UNICODE))
    for check in screen.checks:
        if _hint(check.key) in footer:
            _perform(hands, check, None, f"{screen.name}: a click on {check.key}")
    hands.do(screen.close, f"{screen.name} closes")


def _perform(hands: Hands, check: Check, key: str | None, what: str) -> None:
    hands.do(check.before, f"{what}, before")
    if (seen := check.seen) is not None:
        hands.until(lambda hands: not seen(hands), f"{what}: not to be seen before")
    if key is not None:
        hands.press(key)
    else:
        _click_hint(hands, check.key)
    if seen is not None:
        hands.until(seen, what)
    assert FAILED not in hands.text, f"{what}\n{hands.text}"
    hands.do(check.after, f"{what}, after")


def _hint(key: str) -> str:
    return f" {BY_ID[key].shown[0]} {BY_ID[key].label}"


def _click_hint(hands: Hands, key: str) -> None:
    """Click a hint in the footer, once no message stands there."""
    hint = _hint(key)
    hands.until(lambda hands: hint in hands.text, f"the hint {hint!r}")
    hands.click(hint)


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
