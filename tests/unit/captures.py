"""The real screens of `tests/data/panes`: one file for each version of a CLI, each capture behind a line of
JSON that names it."""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

CHANGE_LOGS = Path(__file__).parent.parent / "data" / "changes"
"""Sessions that change files, one for each CLI and version; `after.json` has the workspace after each."""
PANES = Path(__file__).parent.parent / "data" / "panes"
FOLDERS = sorted(path.stem for path in PANES.glob("*-[0-9]*.txt"))
"""`codex-0.171.0`, `claude-2.1.332` ..."""


class Capture(NamedTuple):
    """One screen, as `tmux capture-pane -p` printed it."""

    text: str
    facts: dict[str, Any]
    """The pane's title, whether its cursor was shown, and its size."""

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


@cache
def captures(version: str) -> dict[str, Capture]:
    """Return the captures of one version of a CLI, by their names."""
    _, *pieces = (PANES / f"{version}.txt").read_text("utf-8").split("\f")
    found = {}
    for piece in pieces:
        head, _, text = piece.partition("\n")
        facts = json.loads(head)
        found[facts.pop("name")] = Capture(text, facts)
    return found
