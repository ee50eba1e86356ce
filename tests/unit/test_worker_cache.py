"""The cache of workers: with it, each snapshot of a session equals the one that is built without."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.judge.findings.verdict import Surroundings, judge_sandbox
from agentdash.engine.judge.states.thread_facts import thread_facts
from agentdash.engine.judge.states.thread_state import judge_thread
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.engine.thread_worker import FIELDS_OF_TALK
from agentdash.model.fleet import Fleet
from agentdash.model.thread import Thread
from tests.unit.test_recordings import LATER, RECORDINGS, scenarios

VERSIONS = sorted({version for version, _ in scenarios()})
LINUX = Surroundings(platform="linux")


def fleets(version: str, scenario: str) -> list[Fleet]:
    """Return the fleet after each line of a recording."""
    found = [Fleet()]
    for path in sorted((RECORDINGS / version / scenario).glob("*.jsonl")):
        thread = re.search(r"([0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$", path.name)
        assert thread
        reader = RolloutReader(thread[1])
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            found.append(reduce(found[-1], reader.read([line], number)))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_cached_workers_are_those_judged_anew(version: str) -> None:
    compared = 0
    for _, scenario in (each for each in scenarios() if each[0] == version):
        cache = WorkerCache()
        for fleet in fleets(version, scenario):
            assert build_snapshot(fleet, LATER, cache) == build_snapshot(fleet, LATER)
            compared += bool(fleet.threads)
    assert compared > 50


class Unread:
    """A value that fails whatever is done with it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the sandbox is judged by a field of the talk: .{name}")

    def __bool__(self) -> bool:
        raise AssertionError("the sandbox is judged by a field of the talk")

    __iter__ = __len__ = __contains__ = __eq__ = __lt__ = __hash__ = __bool__


@pytest.mark.parametrize("version", VERSIONS)
def test_sandboxes_are_judged_without_what_the_model_writes(version: str) -> None:
    threads: list[tuple[Fleet, Thread]] = []
    for _, scenario in (each for each in scenarios() if each[0] == version):
        fleet = fleets(version, scenario)[-1]
        threads += [(fleet, thread) for thread in fleet.threads.values()]
    assert len(threads) > 5
    for fleet, thread in threads:
        assessment = judge_thread(thread_facts(fleet, thread, fleet.links))
        unread: dict[str, Any] = dict.fromkeys(FIELDS_OF_TALK, Unread())
        expected = judge_sandbox(thread, assessment, LINUX)
        assert judge_sandbox(replace(thread, **unread), assessment, LINUX) == expected
