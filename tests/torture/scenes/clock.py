"""Clocks that step while the dashboard runs, and clocks that are wrong from the start (libfaketime)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes, quits, whole

_LIBRARY: Final = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
_STEPS: Final = ("+1h", "-1h", "+1d", "-1d", "@1970-01-02 00:00:00", "@2100-01-01 00:00:00", "+0")
"""As libfaketime reads them: relative to now, or absolute."""


def _fake(stage: Stage, time: str) -> Path:
    """Give all agentdashes of a scene the time in a file, which is returned."""
    file = stage.place.root / "time"
    file.write_text(f"{time}\n")
    file.chmod(0o644)
    stage.late_env |= {
        "LD_PRELOAD": str(_LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    return file


def _missing() -> str | None:
    return "libfaketime is not installed" if _LIBRARY is None else None


@scene("the clock is wrong", missing=_missing)
def wrong(stage: Stage) -> Iterator[str]:
    for time in _STEPS:
        _fake(stage, time)
        for problem in whole(stage.run("status", "--json", "--all", "--no-tmux")):
            yield f"{time}: {problem}"
        if (code := stage.run("check").code) not in (0, 1):
            yield f"{time}: check exits with {code}"


@scene("the clock steps by an hour, a day, to 1970 and to 2100 under the dashboard", missing=_missing)
def steps(stage: Stage) -> Iterator[str]:
    file = _fake(stage, "+0")
    terminal = stage.open_screen("--record", str(stage.place.root / "journal"))
    rollout = next(stage.place.day.iterdir())
    for time in _STEPS:
        file.write_text(f"{time}\n")
        with rollout.open("a") as log:
            log.write('{"timestamp":"2026-11-20T22:05:00Z","type":"event_msg","payload":{}}\n')
        drawn = len(terminal.output)
        terminal.press(b"?")
        terminal.press(b"\x1b")

        def reacts(drawn: int = drawn) -> bool:
            terminal.read()
            return len(terminal.output) > drawn

        if not becomes(reacts):
            yield f"{time}: does not react"
    yield from quits(terminal)
