"""Snapshots of the changed workers alone make the same report as whole snapshots after each step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from agentdash.agents.session_logs import thread_of_log
from agentdash.model.states import State
from agentdash.replay.family import Family
from agentdash.replay.step_snapshots import StepSnapshots
from agentdash.replay.streams import family_stream
from agentdash.report.exports import TimelineReport
from agentdash.report.timeline_builder import build_report
from tests.unit.rollout_files import RECORDINGS, ROLLOUTS

FOLDERS = sorted({path.parent for folder in (RECORDINGS, ROLLOUTS) for path in folder.rglob("*.jsonl")})
FAMILIES = [folder for folder in FOLDERS if len(list(folder.glob("*.jsonl"))) > 1]


def report(paths: Sequence[Path], *, redact: bool = False, ended: bool = True) -> TimelineReport:
    stream = family_stream(Family(thread_of_log(paths[0]) or "", tuple(paths)))
    return build_report("x", stream, redact=redact, ended=ended, progress=lambda _: None)


def assert_as_by_whole_snapshots(
    paths: Sequence[Path], monkeypatch: pytest.MonkeyPatch, *, redact: bool = False, ended: bool = True
) -> None:
    by_changes = report(paths, redact=redact, ended=ended)
    with monkeypatch.context() as patched:
        patched.setattr(StepSnapshots, "changed", StepSnapshots.whole)
        assert by_changes == report(paths, redact=redact, ended=ended)
    assert by_changes.rows


def test_end_of_a_thread_that_may_go_on_has_settled() -> None:
    paths = sorted((RECORDINGS / "0.169.0" / "full-access").glob("*.jsonl"))
    (worker,) = report(paths, redact=False, ended=False).workers
    assert worker.state is State.COMPLETED


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_reports_are_as_by_whole_snapshots(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted(folder.glob("*.jsonl"))
    assert_as_by_whole_snapshots(paths, monkeypatch)
    assert_as_by_whole_snapshots(paths, monkeypatch, redact=True, ended=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("folder", FAMILIES, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_reports_of_members_that_ran_at_other_times(
    folder: Path, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What parents do after, before and beside their children changes the findings of these."""
    shifted = []
    random = Random(seed)
    for path in sorted(folder.glob("*.jsonl")):
        offset = timedelta(seconds=random.choice((-600, -5, 0, 5, 600)))

        def shift(found: re.Match[str], offset: timedelta = offset) -> str:
            at = datetime.fromisoformat(found[1]) + offset
            return '"timestamp":"' + at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

        shifted.append(tmp_path / path.name)
        shifted[-1].write_text(re.sub(r'"timestamp":"([^"]+)', shift, path.read_text()))
    assert_as_by_whole_snapshots(shifted, monkeypatch)
