"""A worker in a container that shares its Codex home with this machine is one worker."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, RemoteSeen
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.remote import HostLink, LinkState, RemoteHost, RemoteWorker
from tests.unit.story import HOST, T, begun, called, held, process

FULL = Policy(Filesystem.UNRESTRICTED, Network.ON)
IN_CONTAINER = replace(HOST, pid=2, ns_pids=(77, 9))


def seen_in_box(at: float, *pids: int) -> RemoteSeen:
    """The thread, as the agentdash of a container states it."""
    there = RemoteWorker(T, "codex-thread", "running", pids=pids)
    return RemoteSeen(at=at, host=RemoteHost(HostLink("box", LinkState.CONNECTED, at), {T: there}))


def story(ns_pids: tuple[int, ...], *pids: int) -> Fleet:
    kernel = replace(IN_CONTAINER, ns_pids=ns_pids)
    env = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}
    events: list[e.Event] = [
        *begun(policy=FULL),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex", kernel=kernel),
        process(77, 50, started=104.0, kernel=kernel, env=env),
        *held(110),
        seen_in_box(111, *pids),
    ]
    return reduce(Fleet(), events)


def test_a_process_that_both_see_makes_one_worker_of_two() -> None:
    cache = WorkerCache()
    fleet = story((77, 9), 9)
    (worker,) = build_snapshot(fleet, 112.0, cache).workers
    assert (worker.id, worker.host) == (T, None)
    assert [(link.to, link.by) for link in worker.links][-1] == (
        "host box",
        "process 77 has the number 9 there",
    )
    between_commands = reduce(fleet, [seen_in_box(113)])
    assert [each.id for each in build_snapshot(between_commands, 114.0, cache).workers] == [T]


@pytest.mark.parametrize(
    ("ns_pids", "pids"), [((77, 9), (8,)), ((77, 9), ()), ((77,), (77,)), ((), (9,))], ids=str
)
def test_without_one_they_may_be_copies_of_a_thread(ns_pids: tuple[int, ...], pids: tuple[int, ...]) -> None:
    workers = build_snapshot(story(ns_pids, *pids), 112.0).workers
    assert [each.id for each in workers] == [T, f"box:{T}"]
