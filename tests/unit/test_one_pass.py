"""A single pass, as `status` and `explain` make it, knows what was seen of threads before."""

import shutil
from pathlib import Path

import pytest

from agentdash.agents.claude.home import thread_id
from agentdash.cli.live_hub import live_hub
from agentdash.collect.clock import SystemClock
from agentdash.config import Config, state_folder
from agentdash.model.evidence import EvidenceSource
from agentdash.model.memory import RememberedObservation, ThreadMemory
from agentdash.model.observation import SandboxObservation
from agentdash.store.memory import Memory
from tests.unit.rollout_files import RECORDINGS

CLAUDE = Path(__file__).parents[1] / "data" / "claude" / "2.1.330"


def copy_sessions(tmp_path: Path) -> dict[str, Path]:
    """Copy a session of each CLI whose sessions are threads; return their ids and files."""
    transcript = next(path for path in CLAUDE.glob("*/projects/**/*.jsonl") if "subagents" not in path.parts)
    rollout = next(RECORDINGS.glob("0.169.0/*/rollout-*.jsonl"))
    places = {
        transcript: tmp_path / "claude" / "projects" / "-home-me-ws",
        rollout: tmp_path / "codex" / "sessions" / "2026" / "11" / "20",
    }
    for file, folder in places.items():
        folder.mkdir(parents=True)
        shutil.copy(file, folder)
    return {thread_id(transcript) or "": transcript, rollout.stem[-36:]: rollout}


async def test_what_was_seen_of_threads_is_recalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    threads, now = copy_sessions(tmp_path), SystemClock().now()
    seen = SandboxObservation(
        source=EvidenceSource.KERNEL, policy=-1, seccomp=2, first=now, last=now, pids=(7,)
    )
    config = Config(codex_home=tmp_path / "codex", claude_home=tmp_path / "claude", tmux=False, sessions=None)
    memories = [ThreadMemory(each, (RememberedObservation(seen),)) for each in threads]
    Memory(state_folder(), tmp_path / "codex").save(memories, [], now)
    hub = live_hub(config, SystemClock()).hub
    for _ in range(2):
        await hub.once()
        found = {each: [o.seccomp for o in hub.fleet.threads[each].observations] for each in threads}
        assert all(2 in seen for seen in found.values()), found
