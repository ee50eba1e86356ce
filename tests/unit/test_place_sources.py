"""The source of what surrounds workers: their git repositories."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentdash.collect.clock import SystemClock
from agentdash.collect.git import GitSource
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.events import RepositorySeen
from agentdash.model.fleet import Fleet, PaneOccupant
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

KEY = PaneKey("default", "%1")


def fleet_of(process: Process | None) -> Fleet:
    if process is None:
        return Fleet()
    occupant = PaneOccupant("opencode", process.key, process)
    return Fleet(occupants={KEY: occupant}, processes={process.key: process})


def test_repositories_are_emitted_when_they_change(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "-b", "topic", str(tmp_path / "a")], check=True)
    source = GitSource(SystemClock())
    fleet = fleet_of(Process(ProcessKey(5, 1.0), 1, "opencode", cwd=str(tmp_path / "a"), agent="opencode"))
    (seen,) = source._read(fleet)
    assert isinstance(seen, RepositorySeen)
    assert seen.repository
    assert (seen.directory, seen.repository.branch) == (str(tmp_path / "a"), "topic")
    assert source._read(fleet) == []
    (tmp_path / "a" / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    (seen,) = source._read(fleet)
    assert reduce(fleet, [seen]).repositories[str(tmp_path / "a")].branch == "other"
    (tmp_path / "a" / ".git" / "HEAD").unlink()
    (gone,) = source._read(fleet)
    assert reduce(reduce(fleet, [seen]), [gone]).repositories == {}
    assert source._read(Fleet()) == []
