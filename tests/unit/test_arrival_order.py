"""What a command had is compared with its own policy, in whatever order its log and its process are read.

The truth of each case is the same story with the whole log read first.
"""

from collections.abc import Sequence
from itertools import product

import msgspec
import pytest

from agentdash.engine.reduce.calls import without_occasions
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, memory_of
from agentdash.model.policy import Policy
from agentdash.model.process import Kernel, ProcessKey
from tests.unit.story import (
    CWD,
    FULL,
    HOST,
    SANDBOXED,
    WORKSPACE,
    T,
    begun,
    called,
    done,
    ended,
    held,
    process,
)

FLAGS = ({}, {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, {"CODEX_SANDBOX": "seatbelt"})
STARTED = 101.6
"""When the command's process started: after its call, and before its log was read."""


def log(first: Policy, second: Policy) -> list[e.Event]:
    """A turn under one policy, and a command in the next turn, under another."""
    return [
        *begun(policy=first),
        done(at=100.5),
        e.TurnStarted(thread=T, at=101, line=12),
        e.PolicySet(thread=T, at=101, line=13, policy=second, origin="turn_context", cwd=CWD),
        msgspec.structs.replace(called(at=101.5), line=14),
    ]


def command(kernel: Kernel, flags: dict[str, str], pid: int = 51, started: float = STARTED) -> list[e.Event]:
    """The Codex, and the shell of the command; a pass that finds them."""
    env = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", **flags}
    return [
        process(50, 10, started=90.0, agent="codex", name="codex"),
        process(pid, 50, started=started, kernel=kernel, name="bash", argv=("bash", "-c", "pytest"), env=env),
        *held(101.7),
    ]


def judged(events: Sequence[e.Event]) -> tuple[object, ...]:
    """Return the verdict, the findings and what is remembered, without times."""
    fleet = reduce(Fleet(), events)
    (worker,) = (worker for worker in build_snapshot(fleet, 113.0).workers if worker.id == T)
    found = [(f.kind, f.configured, f.got, f.direction, f.count, f.pids) for f in worker.sandbox.findings]
    remembered = memory_of(fleet.threads[T]).observations
    timeless = [(known.policy_since, without_occasions(known.observation)) for known in remembered]
    return worker.sandbox.verdict, sorted(found), timeless


def agrees(lines: list[e.Event], seen: list[e.Event], after: list[e.Event], *between: e.Event) -> None:
    """Hold every order of reading against that in which the whole log is read first."""
    truth = judged([*lines, *seen, *between, *after])
    for read in range(len(lines)):
        assert judged([*lines[:read], *seen, *between, *lines[read:], *after]) == truth


@pytest.mark.parametrize(
    ("first", "second", "kernel", "flags"),
    list(product((WORKSPACE, FULL), (WORKSPACE, FULL), (HOST, SANDBOXED), FLAGS)),
)
def test_a_command(first: Policy, second: Policy, kernel: Kernel, flags: dict[str, str]) -> None:
    """It runs on; it ends before its log is read; its log is read again; it belongs to a script, whose own id
    is in no log while it runs."""
    lines, seen = log(first, second), command(kernel, flags)
    agrees(lines, seen, held(102.2))
    gone = [e.ProcessGone(at=101.9, key=ProcessKey(51, STARTED)), *held(101.9)]
    agrees(lines, seen, [ended(at=101.8), *held(102.2)], *gone)
    truth = judged([*lines, *seen, *held(102.2)])[:2]
    for read in range(len(lines)):
        again = [*lines[:read], *seen, e.FileReset(thread=T, at=101.8), *lines, *held(102.2)]
        assert judged(again)[:2] == truth
    script = msgspec.structs.replace(lines[-1], call="s1", tool="exec")
    earlier = [msgspec.structs.replace(script, call="s0", at=100.2, line=5), ended("s0", at=100.4)]
    agrees([*lines[:4], *earlier, *lines[4:-1], script], seen, held(102.2))


def test_nothing_matches_before_the_call_is_read() -> None:
    lines = log(WORKSPACE, WORKSPACE)
    verdict, found, remembered = judged([*lines[:-1], *command(HOST, {})])
    assert (verdict, found, remembered) == ("unverified", [], [])


def test_a_command_without_a_call_counts_once_it_has_ended() -> None:
    """The user's own command, whose call Codex does not log."""
    gone = [e.ProcessGone(at=101.9, key=ProcessKey(51, STARTED)), *held(102.0), *held(112.0)]
    verdict, found, remembered = judged([*log(WORKSPACE, WORKSPACE)[:-1], *command(SANDBOXED, {}), *gone])
    assert (verdict, found, len(remembered)) == ("match", [], 1)
