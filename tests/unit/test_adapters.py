"""Adapters of worker CLIs: discovery, the shared source of session files, and what a new CLI needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from agentdash.agents.adapter import Adapter
from agentdash.agents.registry import adapters
from agentdash.collect.clock import SystemClock
from agentdash.collect.sources.workers import SessionFileSource
from agentdash.model.events import Event, SessionSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process, ProcessKey

PACKAGE = Path(__file__).parents[2] / "agentdash"
KEY = ProcessKey(7, 1.0)

TOML = """
[identify]
programs = ["robin"]

[screen]
prompt = '^robin>'
footer = '^$'

[[rules]]
id = "done"
state = "completed"
region = "tail"
lines = 1
all = ['^robin>$']
prompt = true

[state]
paths = [{ path = "$HOME/.robin", what = "sessions" }]
"""

ADAPTER = """
from pathlib import Path

from agentdash.agents.adapter import Adapter
from agentdash.model.events import SessionSeen


class RobinSessionFiles:
    def read(self, process, at, *, is_alone=True):
        try:
            status = Path((process.env or {})["HOME"], ".robin", str(process.pid)).read_text().strip()
        except OSError:
            return None
        return SessionSeen(at=at, key=process.key, agent="robin", status=status, since=at)


class RobinAdapter(Adapter):
    session_files = RobinSessionFiles()


ADAPTER = RobinAdapter
"""

SCRIPT = """
import asyncio, os, sys
from pathlib import Path

from agentdash.agents.identify import identify
from agentdash.agents.screen_reader import read_screen
from agentdash.agents.state_paths import state_paths
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process, ProcessKey

home = Path(sys.argv[1])
identity = identify(["/usr/local/bin/robin", "--fast"])
assert identity is not None and (identity.agent, identity.role) == ("robin", "worker"), identity
reading = read_screen("robin", ["hello", "robin> "])
assert (reading.state, reading.rule) == ("completed", "robin.done"), reading
assert [row.path for row in state_paths()["robin"]] == ["$HOME/.robin"]
process = Process(ProcessKey(7, 1.0), 1, "robin", env={"HOME": str(home)}, agent=identity.agent)
(source,) = [s for s in live_sources(Config(codex_home=home), SystemClock()) if s.name == "session files"]
events = asyncio.run(source.poll(Fleet(processes={process.key: process})))
print(*(f"{event.agent} {event.status}" for event in events))
"""


def fleet(*processes: Process) -> Fleet:
    return Fleet(processes={process.key: process for process in processes})


class Scripted:
    """Session files whose status is set by the test."""

    def __init__(self) -> None:
        self.status: str | None = "busy"

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        del is_alone
        if self.status is None:
            return None
        return SessionSeen(at=at, key=process.key, agent="claude", status=self.status, since=1.0)


async def polled(source: SessionFileSource, state: Fleet) -> list[str | None]:
    events: list[Event] = list(await source.poll(state))
    return [event.status for event in events if isinstance(event, SessionSeen)]


def test_adapters_with_code() -> None:
    with_code = {name for name, adapter in adapters().items() if type(adapter) is not Adapter}
    assert with_code == {"codex", "claude", "copilot", "gemini", "kilo", "opencode", "qwen"}
    assert [name for name, adapter in adapters().items() if adapter.session_files] == [
        "claude",
        "copilot",
        "gemini",
        "kilo",
        "opencode",
        "qwen",
    ]
    assert [name for name, adapter in adapters().items() if adapter.keeps_session_logs] == ["codex"]


async def test_only_changed_session_files_are_emitted() -> None:
    files = Scripted()
    source = SessionFileSource(SystemClock(), {"claude": files})
    running = fleet(Process(KEY, 1, "claude", agent="claude"))
    assert await polled(source, running) == ["busy"]
    assert await polled(source, running) == []
    files.status = "idle"
    assert await polled(source, running) == ["idle"]
    assert await polled(source, Fleet()) == []
    assert await polled(source, running) == ["idle"], "forgotten with its process"


async def test_processes_of_other_agents_are_not_read() -> None:
    source = SessionFileSource(SystemClock(), {"claude": Scripted()})
    others = fleet(Process(KEY, 1, "gemini", agent="gemini"), Process(ProcessKey(8, 1.0), 1, "bash"))
    assert await polled(source, others) == []


def test_new_cli_needs_a_toml_and_an_adapter_only(tmp_path: Path) -> None:
    """Two files added to a copy of the package: identified, screen read, state paths known, session file
    emitted."""
    package = tmp_path / "agentdash"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "agents" / "robin.toml").write_text(TOML)
    (package / "agents" / "robin.py").write_text(ADAPTER)
    home = tmp_path / "home"
    (home / ".robin").mkdir(parents=True)
    (home / ".robin" / "7").write_text("waiting\n")
    command = [sys.executable, "-B", "-c", SCRIPT, str(home)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "robin waiting\n"
