"""What is kept of a session does not grow with its length: after four times as many events it is as much."""

import gc
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.process import Process, ProcessKey
from agentdash.model.tokens import ModelUsage, TokenUsage
from tests.unit.story import T, called, ended
from tests.unit.test_recordings import LATER, RECORDINGS

FEW: Final = 250
"""More than any limit of a thread's histories."""
MANY: Final = 4 * FEW
TOLERANCE: Final = 1.02
"""Numbers become longer."""


def kept_bytes(*roots: object) -> int:
    """Return the size of everything that can be reached from some objects, but for code."""
    seen = {id(root): root for root in roots}
    pending = list(roots)
    while pending:
        for each in gc.get_referents(pending.pop()):
            if id(each) not in seen and not isinstance(each, type | ModuleType) and not callable(each):
                seen[id(each)] = each
                pending.append(each)
    return sum(map(sys.getsizeof, seen.values()))


def policy(number: int) -> Policy:
    return Policy(Filesystem.READ_ONLY if number % 2 else Filesystem.WORKSPACE, Network.OFF)


def usage(number: int) -> tuple[ModelUsage, ...]:
    return (ModelUsage(model="gpt-5", usage=TokenUsage(input=number)),)


Make = Callable[[int], list[e.ThreadEvent]]
KINDS: Final[dict[str, Make]] = {
    "turns": lambda n: [
        e.TurnStarted(at=n, thread=T, line=n),
        e.TurnEnded(at=n, thread=T, line=n, how="completed", message=f"done {n}"),
    ],
    "failed turns": lambda n: [
        e.TurnStarted(at=n, thread=T, line=n),
        e.TurnEnded(at=n, thread=T, line=n, how="aborted", error=f"error {n}", reason=f"reason {n}"),
    ],
    "messages": lambda n: [
        e.MessageLogged(at=n, thread=T, line=n, role="user", text=f"do {n}" * 9),
        e.MessageLogged(at=n, thread=T, line=n, role="agent", text=f"done {n}" * 9),
    ],
    "calls": lambda n: [call(n), end(n, f"printed {n}\n" * 200)],
    "calls that never end": lambda n: [call(n)],
    "ends of unknown calls": lambda n: [end(n, f"printed {n}\n" * 200)],
    "background commands": lambda n: [
        call(n),
        replace(end(n, "", outcome="running"), session=str(n)),
        end(n, ""),
    ],
    "calls that drive tmux": lambda n: [call(n, f"tmux send-keys {n}"), end(n, "")],
    "denials": lambda n: [
        call(n, f"touch /elsewhere/{n}"),
        end(n, f"touch: cannot touch '/elsewhere/{n}': Read-only file system", exit_code=1),
    ],
    "printed flags": lambda n: [
        call(n, "env"),
        end(n, f"CODEX_SANDBOX=seatbelt\nCODEX_SANDBOX_NETWORK_DISABLED=1\nN={n}"),
    ],
    "violations": lambda n: [
        call(n),
        end(n, "", exit_code=1),
        e.ViolationLogged(
            at=n,
            thread=T,
            call=f"call {n}",
            resource="filesystem",
            reason="read_only_file_system",
            path=f"/elsewhere/{n}",
        ),
    ],
    "policies": lambda n: [
        e.PolicySet(at=n, thread=T, line=n, policy=policy(0), origin="turn_context", cwd=f"/srv/{n}")
    ],
    "tokens": lambda n: [
        e.TokensCounted(at=n, thread=T, line=n, total=n, by_model=usage(n), context=n, window=n)
    ],
    "troubles": lambda n: [e.TroubleLogged(at=n, thread=T, text=f"retry {n}")],
    "failures of the sandbox": lambda n: [
        e.SandboxFailed(at=n, thread=T, line=n, call=f"call {n}", text=f"failed {n}")
    ],
    "skipped lines": lambda n: [e.LineSkipped(at=n, thread=T, line=n, what="unknown", detail=f"kind {n}")],
    "names": lambda n: [e.ThreadNamed(at=n, thread=T, name=f"name {n}")],
    "files": lambda n: [
        e.FileSeen(at=n, thread=T, path=f"/sessions/{n}.jsonl", size=n, modified=n),
        e.FileGapSkipped(at=n, thread=T),
    ],
}
UNBOUNDED: Final = {
    e.ThreadStarted: "one of a file",
    e.ChildSpawned: "a child is a thread, which is kept as well",
    e.FileReset: "forgets",
    e.FileGone: "forgets",
    e.StatusPushed: "not of a file",
}
"""Events of threads that are not counted here, and why."""


def call(number: int, script: str = "") -> e.CallStarted:
    return called(f"call {number}", script or f"make {number}", at=number)


def end(number: int, output: str, **more: object) -> e.CallEnded:
    return ended(f"call {number}", output, at=number, **more)


def started() -> list[e.Event]:
    return [
        e.FileSeen(at=1, thread=T, path="/sessions/1.jsonl", size=1, modified=1),
        e.ThreadStarted(at=1, thread=T, line=1, cwd="/work", version="0.169.0"),
        e.PolicySet(at=1, thread=T, line=1, policy=policy(1), origin="turn_context"),
    ]


def growth(step: Callable[[int], tuple[object, ...]]) -> float:
    """Return how much more is kept after many steps than after few; a step returns what keeps something."""
    kept: dict[int, int] = {}
    for number in range(1, 1 + MANY):
        roots = step(999 + number)
        if number in (FEW, MANY):
            kept[number] = kept_bytes(*roots)
    return kept[MANY] / kept[FEW]


@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_keeps_no_more_of_many_events_than_of_few(kind: str) -> None:
    fleet, cache = reduce(Fleet(), started()), WorkerCache()

    def step(number: int) -> tuple[object, ...]:
        nonlocal fleet
        fleet = reduce(fleet, KINDS[kind](number))
        if number % 50 in (0, 49):
            build_snapshot(fleet, LATER, cache)
        return fleet, cache

    assert growth(step) <= TOLERANCE


def test_all_events_of_threads_are_counted() -> None:
    made = {type(event) for make in KINDS.values() for event in make(1)}
    assert made | UNBOUNDED.keys() >= set(e.ThreadEvent.__subclasses__())


def test_a_reader_keeps_no_more_of_many_turns_than_of_few() -> None:
    (recorded,) = (RECORDINGS / "0.169.0/workspace-write").glob("*.jsonl")
    lines = recorded.read_text().splitlines()
    reader = RolloutReader(recorded.stem[-36:])
    reader.read([line.encode() for line in lines])

    def step(number: int) -> tuple[object, ...]:
        turn = [re.sub(r"call_([0-9a-f]{12})", rf"call_\g<1>{number}", line) for line in lines[7:]]
        reader.read([line.encode() for line in turn])
        return (reader,)

    assert growth(step) <= TOLERANCE


def test_workers_that_are_gone_are_forgotten() -> None:
    cache = WorkerCache()

    def step(number: int) -> tuple[object, ...]:
        thread = f"{number:08x}-0000-7000-8000-000000000001"
        build_snapshot(reduce(Fleet(), [replace(event, thread=thread) for event in started()]), LATER, cache)
        return (cache,)

    assert growth(step) <= 1.5  # a few of them are forgotten at once


def test_processes_that_are_gone_are_forgotten() -> None:
    fleet, cache = reduce(Fleet(), started()), WorkerCache()

    def step(number: int) -> tuple[object, ...]:
        nonlocal fleet
        key = ProcessKey(number, float(number))
        argv = ("codex", "exec", f"task {number}")
        process = Process(key=key, ppid=1, name="codex", argv=argv, agent="codex", cwd=f"/srv/{number}")
        for event in (e.ProcessSeen(at=number, process=process), e.ProcessGone(at=number, key=key)):
            fleet = reduce(fleet, [event, e.ProcessesCounted(at=number)])
            build_snapshot(fleet, LATER, cache)
        return fleet, cache

    assert growth(step) <= TOLERANCE
