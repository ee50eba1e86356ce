"""Sessions of Claude Code in the library, `sessions`, search, replay and exports, as those of Codex."""

import json
import os
import shutil
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.collect.clock import SystemClock
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.worker import Worker
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import find_family
from agentdash.replay.library.library import Library
from agentdash.replay.player import Player
from agentdash.replay.streams import family_stream
from agentdash.report.audit import audit, find_logs
from agentdash.report.exports import build_report
from agentdash.report.sessions import read_sessions
from tests.unit.rollout_files import DATA

VERSIONS = sorted(path.name for path in (DATA / "claude").iterdir() if path.is_dir())
assert len(VERSIONS) > 2


def claude_home(folder: Path, version: str) -> ClaudeHome:
    """Return a configuration directory with the transcripts of all recorded cases."""
    for case in sorted((DATA / "claude" / version).iterdir()):
        if (case / "projects").is_dir():
            shutil.copytree(case / "projects", folder / "projects", dirs_exist_ok=True)
    home = ClaudeHome(folder)
    assert sum(1 for _ in home.transcripts()) > 5
    return home


def reading(worker: Worker) -> tuple[str, str, set[str]]:
    kinds = {str(finding.kind) for finding in worker.sandbox.findings}
    return str(worker.state), str(worker.sandbox.verdict), kinds


def aged_home(folder: Path, count: int) -> tuple[ClaudeHome, list[str]]:
    """Return a home with sessions whose files were all changed just now, as after a copy, in a wrong order;
    and the sessions, the newest first."""
    project = folder / "projects" / "-work"
    project.mkdir(parents=True)
    random = Random(1)
    ids = [str(uuid.UUID(int=random.getrandbits(128))) for _ in range(count)]
    newest = datetime(2026, 11, 20, tzinfo=UTC)
    for number, session in enumerate(ids):
        head = {"type": "user", "sessionId": session, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/work"}
        last = {**head, "timestamp": (newest - timedelta(hours=number)).isoformat()}
        lines = [
            {**head, "message": {"role": "user", "content": f"prompt {number}"}},
            {**last, "message": {"role": "user", "content": "x" * (6_000 if number % 2 else 10)}},
            {"type": "last-prompt", "lastPrompt": '"timestamp":"2027-01-01T00:00:00Z"', "sessionId": session},
        ]
        path = project / f"{session}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        changed = time.time() - count + number  # the oldest is the newest by its time of change
        os.utime(path, (changed, changed))
    return ClaudeHome(folder), ids


def test_the_newest_is_the_one_with_the_newest_record(tmp_path: Path) -> None:
    home, ids = aged_home(tmp_path, 40)
    library = Library(CodexHome(tmp_path / "none"), SystemClock(), home)
    assert [entry.id for entry in library.entries()] == ids
    report = read_sessions(tmp_path / "none", 5, tmp_path)
    assert {session.id for session in report.sessions} == set(ids[:5])


@pytest.mark.parametrize("version", VERSIONS)
def test_readings_agree(version: str, tmp_path: Path) -> None:
    """check = library = replay = export, also in what their settings asked for."""
    home = claude_home(tmp_path, version)
    paths, unreadable = find_logs(CodexHome(tmp_path / "none"), home, ())
    assert (set(paths), unreadable) == ({path for _, path in home.transcripts()}, [])
    checked = {
        thread.id: (thread.state, thread.verdict, {str(finding.kind) for finding in thread.findings})
        for thread in audit(paths).threads
    }
    assert len(checked) == len(paths)
    library = Library(CodexHome(tmp_path / "none"), SystemClock(), home)
    rows = {entry.key: entry for entry in library.entries()}
    rows |= {entry.key: entry for entry in library.fill(list(rows.values()))}
    assert {row.id: (str(row.state), row.verdict, set(row.findings)) for row in rows.values()} == checked
    assert {(row.agent, row.version) for row in rows.values()} == {("claude", version)}
    for path in paths:
        family = find_family(CodexHome(tmp_path / "none"), str(path))
        clock = VirtualClock(0)
        player = Player(family, clock)
        player.index.read()
        player.seek(1)
        snapshot = build_snapshot(player.read().fleet, clock.now())
        report = build_report(family.thread, family_stream(family), ended=True)
        shown = {worker.id: reading(worker) for worker in snapshot.workers}
        assert shown == {each.id: reading(each) for each in report.workers}
        assert shown == {thread: checked[thread] for thread in shown}
        assert family.thread in shown
