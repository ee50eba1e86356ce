"""The memory file: observations and pane occupants that outlive their processes."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.model.evidence import EvidenceSource
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory
from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.store.memory import Memory, MemoryFileError

DAY = 86_400.0
NOW = 1_795_204_800.0
SEEN = RememberedObservation(
    SandboxObservation(
        source=EvidenceSource.ENVIRONMENT,
        policy=-1,
        network_flag="1",
        seccomp=0,
        first=NOW,
        last=NOW + 1,
        pids=(7,),
    ),
    policy_since=NOW - 60,
)
ESCAPE = Escape(at=NOW, call="c1", pane="%9", pid=77, quote="tmux new-window")
PAST = PastWorker(PaneKey("default", "%4"), "t1", "codex", seen=NOW, server_pid=11, state=State.COMPLETED)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "state", tmp_path / "home")


def test_what_was_saved_is_read_again(memory: Memory) -> None:
    memory.save([ThreadMemory("t1", (SEEN,), (ESCAPE,))], [PAST], NOW)
    (found,) = memory.threads(["t1", "t2"])
    assert found.observations == (replace(SEEN, observation=replace(SEEN.observation, pids=())),)
    assert found.escapes == (ESCAPE,)
    assert memory.past_workers() == [PAST]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (memory.path, memory.path.parent)] == [0o600, 0o700]


def test_equal_observations_are_one_row_with_the_widest_time_for_each_policy(memory: Memory) -> None:
    memory.save([ThreadMemory("t1", (SEEN, replace(SEEN, policy_since=None)))], [], NOW)
    earlier = replace(SEEN, observation=replace(SEEN.observation, first=NOW - 5, last=NOW, count=9))
    memory.save([ThreadMemory("t1", (earlier,))], [], NOW)
    (found,) = memory.threads(["t1"])
    seen = {each.policy_since: (each.observation.first, each.observation.last) for each in found.observations}
    assert seen == {NOW - 60: (NOW - 5, NOW + 1), None: (NOW, NOW + 1)}


def test_an_older_fact_of_a_pane_does_not_replace_a_newer_one(memory: Memory) -> None:
    memory.save([], [PAST], NOW)
    memory.save([], [replace(PAST, seen=NOW - 1, state=State.RUNNING)], NOW)
    assert memory.past_workers() == [PAST]
    memory.save([], [replace(PAST, seen=NOW + 1, state=State.EXITED)], NOW)
    assert [past.state for past in memory.past_workers()] == [State.EXITED]


def test_rows_older_than_30_days_are_dropped(memory: Memory) -> None:
    memory.save([ThreadMemory("t1", (SEEN,))], [PAST], NOW)
    later = replace(PAST, worker="t2", seen=NOW + 31 * DAY)
    memory.save([], [later], NOW + 31 * DAY)
    assert (memory.threads(["t1"]), memory.past_workers()) == ([], [later])


def test_known_facts_are_not_written_again(memory: Memory) -> None:
    memory.save([ThreadMemory("t1", (SEEN,), (ESCAPE,))], [PAST], NOW)
    for reader in (memory, Memory(memory.path.parent, Path(memory._home))):
        known, workers = reader.threads(["t1"]), reader.past_workers()
        before = memory.path.stat().st_mtime_ns
        reader.save(known, [replace(worker, seen=NOW + 1) for worker in workers], NOW + 1)
        assert memory.path.stat().st_mtime_ns == before


def test_facts_of_another_version_are_left_out(memory: Memory) -> None:
    memory.save([ThreadMemory("t1", (SEEN,))], [PAST], NOW)
    with closing(sqlite3.connect(memory.path)) as database, database:
        database.execute("UPDATE fact SET fact = '{\"source\": 3}' WHERE home != ''")
        database.execute("UPDATE fact SET fact = x'ff00' WHERE home = ''")
    assert (memory.threads(["t1"]), memory.past_workers()) == ([], [])


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.write_text("no database" * 100)])
def test_a_file_that_cannot_be_used_is_an_error_in_one_line(
    memory: Memory, make: Callable[[Path], object]
) -> None:
    memory.path.parent.mkdir()
    make(memory.path)
    with pytest.raises(MemoryFileError) as failure:
        memory.save([], [PAST], NOW)
    assert "\n" not in str(failure.value)


def test_two_writers_lose_nothing(memory: Memory) -> None:
    other = Memory(memory.path.parent, Path(memory._home))
    for number in range(20):
        writer = (memory, other)[number % 2]
        writer.save([ThreadMemory(f"t{number}", (SEEN,))], [], NOW)
    assert len(memory.threads(f"t{number}" for number in range(20))) == 20
