"""Snapshots of the workers that a step has changed are those of whole snapshots after each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentdash.agents.session_logs import thread_of_log
from agentdash.model.worker import Worker
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import Family
from agentdash.replay.step_snapshots import StepSnapshots
from agentdash.replay.streams import family_stream
from tests.unit.rollout_files import RECORDINGS, ROLLOUTS

FOLDERS = sorted({path.parent for folder in (RECORDINGS, ROLLOUTS) for path in folder.rglob("*.jsonl")})
FAMILIES = [folder for folder in FOLDERS if len(list(folder.glob("*.jsonl"))) > 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", [*FAMILIES, *FOLDERS[::8]], ids=lambda folder: f"{folder.parent.name}-{folder.name}"
)
def test_what_changed_is_as_in_whole_snapshots(folder: Path) -> None:
    paths = sorted(folder.glob("*.jsonl"))
    cursor = Cursor(family_stream(Family(thread_of_log(paths[0]) or "", tuple(paths))))
    in_part, whole = StepSnapshots(cursor), StepSnapshots(cursor)
    known: dict[str, Worker] = {}
    while (step := cursor.advance()) is not None:
        in_part.touch(step.events)
        known |= {worker.id: worker for worker in in_part.changed().workers}
        for worker in whole.whole().workers:
            shown = known[worker.id]
            assert (shown.assessment, shown.sandbox) == (worker.assessment, worker.sandbox)
