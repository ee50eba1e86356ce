"""Clocks step back in the middle of a session: what is said of it is decided by the order of its lines."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.report.audit import audit
from agentdash.report.check import ThreadReport
from tests.unit.rollout_files import RECORDINGS, files
from tests.unit.story import CWD, FULL, WORKSPACE, T, begun, called, done, ended, polled, worker

pytestmark = pytest.mark.slow  # replays many recordings

DENIED = "touch: cannot touch '/srv/board/x': Read-only file system\n"
SCENARIOS = ("workspace-write", "read-only", "kanban-board", "escalation-refused", "full-access-leaked-flags")


def essence(report: ThreadReport) -> tuple[object, ...]:
    findings = sorted(finding.kind for finding in report.findings)
    denials = sorted((d.what, d.target or "", d.certainty, d.got_past) for d in report.denials)
    return (report.state, report.verdict, findings, denials)


def stepped(line: str, by: timedelta) -> str:
    record = json.loads(line)
    at = datetime.fromisoformat(record["timestamp"]) + by
    return json.dumps({**record, "timestamp": at.isoformat().replace("+00:00", "Z")})


@pytest.mark.parametrize("version", ["0.36.0", "0.98.0", "0.114.0", "0.169.0"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recordings_with_a_clock_that_steps(version: str, scenario: str, tmp_path: Path) -> None:
    (path,) = files(version, scenario, RECORDINGS)
    lines = path.read_text("utf-8").splitlines()
    (whole,) = audit([path]).threads
    for number in range(1, len(lines), 3):
        for hours in (-24, -1, 1):
            later = [stepped(line, timedelta(hours=hours)) for line in lines[number:]]
            copy = tmp_path / path.name
            copy.write_text("\n".join([*lines[:number], *later, ""]), "utf-8")
            (report,) = audit([copy]).threads
            assert essence(report) == essence(whole), (number, hours)


def policy_set(*, at: float, line: int) -> e.Event:
    return e.PolicySet(thread=T, at=at, line=line, policy=FULL, origin="turn_context", cwd=CWD)


def test_a_command_is_held_against_the_policy_of_the_lines_before_it() -> None:
    story = (
        begun(policy=WORKSPACE),
        replace(called("c1", "touch /srv/board/x", at=50.0), line=6),
        replace(ended("c1", DENIED, at=51.0, exit_code=1), line=7),
        policy_set(at=52.0, line=8),
        done(at=53.0),
    )
    found = worker(*story, polled(160))
    assert [(entry.target, entry.certainty) for entry in found.sandbox.denials] == [
        ("/srv/board/x", "certain")
    ]
    assert "denied-under-full-access" not in [finding.kind for finding in found.sandbox.findings]
