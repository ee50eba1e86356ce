"""What stands in a row beside what a worker does, and the usage limits in the header."""

import pytest
from msgspec.structs import replace

from agentdash.config import ThresholdSettings
from agentdash.model.changes import Edit, SameFile
from agentdash.model.states import State
from agentdash.model.thread import Tokens
from agentdash.model.times import local_time
from agentdash.model.tokens import UsageWindow
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.cells import COLUMNS, layout, row_lines
from agentdash.tui.fleet.header import limits
from agentdash.tui.fleet.rows import Row
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import UNICODE, Look
from agentdash.tui.worker.overview import summary

from . import sample_fleet
from .rendering import LOOK

NOW = LOOK.now
RESETS = NOW + 3_600


def worker(name: str = "w", *windows: UsageWindow, home: str = "/home/dev/.codex") -> Worker:
    why, file = ("works on what it was asked to do in some detail", f"{home}/sessions/rollout-{name}.jsonl")
    return sample_fleet.worker(name, State.RUNNING, why, 60, file=file, tokens=Tokens(limits=windows))


def window(used: float, age: float = 60, minutes: int = 300) -> UsageWindow:
    return UsageWindow(used=used, resets_at=RESETS, minutes=minutes, at=NOW - age)


@pytest.mark.parametrize(("cells", "marks"), [(160, 2), (120, 2), (80, 1), (44, 0)])
def test_marks_stand_where_there_is_room(cells: int, marks: int) -> None:
    edits = Edit("/r/app.py", NOW - 60, "apply_patch update app.py"), Edit("/t/app.py", NOW - 300, "Edit x")
    same = SameFile("src/app.py", edits[0], "other", "Fix the header", edits[1])
    marked = replace(worker(), same_files=(same,), tokens=Tokens(context=90, window=100))
    look = Look(NOW, UNICODE, ThresholdSettings(context=80))
    (line,) = row_lines((Row("w"), marked), layout(COLUMNS, cells, UNICODE), cells, look)
    assert [each in plain(line) for each in ("context 90 %", "2 edit app.py")] == [marks > 0, marks > 1]
    shown = " ".join(" ".join(plain(line) for line in summary(marked, 80, look, 24)).split())
    assert "threshold: context 90 %" in shown
    assert "apply_patch update app.py, by Fix the header" in shown


def test_limits_that_are_nearly_used_up() -> None:
    clock = local_time(RESETS, NOW)

    def shown(*workers: Worker) -> list[str]:
        return [each.text.strip() for each in limits(Snapshot(NOW, workers), LOOK)]

    assert shown(worker("a", window(69.4), window(99, minutes=10_080))) == [f"codex 7d 99 % → {clock}"]
    assert shown(worker("a", window(112.4, age=7_300))) == [f"codex 5h 112 % → {clock} (2h ago)"]
    two = worker("a", window(82)), worker("b", window(71), home="/home/dev/.codex-work")
    assert shown(*two) == [f".codex 5h 82 % → {clock}", f".codex-work 5h 71 % → {clock}"]
