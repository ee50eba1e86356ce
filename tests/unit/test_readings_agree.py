"""check, status, library, replay and export say the same of every session, also of odd ones."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.worker import Worker
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import Family, find_family
from agentdash.replay.library.library import Library
from agentdash.replay.player import Player
from agentdash.replay.streams import family_stream
from agentdash.report.audit import audit
from agentdash.report.exports import build_report
from tests.unit.rollout_files import (
    BORN,
    RECORDINGS,
    ROLLOUTS,
    THREAD,
    VERSIONS,
    answer,
    call,
    event,
    files,
    line,
    meta,
)

pytestmark = pytest.mark.slow  # reads each recording by six commands

WRITTEN = BORN + 3_600.0
"""When the files were changed: after all of their lines."""
NAME = f"rollout-2026-11-20T19-59-47-{THREAD}.jsonl"
CHILD = "01a1fa8b-9999-7501-a214-dc60155cd481"
CHILD_NAME = f"rollout-2026-11-20T19-59-50-{CHILD}.jsonl"
Files = Iterable[tuple[str, bytes]]


class Reading(NamedTuple):
    """What one part of agentdash says of a thread."""

    state: str
    verdict: str
    findings: frozenset[str]
    denials: frozenset[tuple[str | None, int, bool]] = frozenset()
    """Target, calls, and whether no success came after."""


def of_worker(worker: Worker) -> Reading:
    sandbox = worker.sandbox
    kinds = frozenset(str(finding.kind) for finding in sandbox.findings)
    denials = frozenset((each.target, each.count, not each.got_past) for each in sandbox.denials)
    return Reading(str(worker.state), str(sandbox.verdict), kinds, denials)


def checked(home: CodexHome) -> dict[str, Reading]:
    return {
        thread.id: Reading(
            thread.state,
            thread.verdict,
            frozenset(str(finding.kind) for finding in thread.findings),
            frozenset((each.target, each.count, not each.got_past) for each in thread.denials),
        )
        for thread in audit(home.rollouts()).threads
    }


async def live(home: CodexHome) -> dict[str, Reading]:
    clock = SystemClock()
    config = Config(codex_home=home.root, tmux=False, sessions=None)
    snapshot = await Hub(live_sources(config, clock), clock).once()
    return {worker.id: of_worker(worker) for worker in snapshot.workers if worker.kind == "codex-thread"}


def listed(home: CodexHome) -> dict[str, tuple[str, str, frozenset[str], bool]]:
    """Return what the library shows: of denials, whether there are any."""
    library = Library(home, SystemClock())
    rows = {entry.key: entry for entry in library.entries()}
    rows |= {entry.key: entry for entry in library.fill(list(rows.values()))}
    return {
        row.id: (str(row.state), str(row.verdict), frozenset(row.findings), row.denied)
        for row in rows.values()
        if not row.helper
    }


def families(home: CodexHome) -> list[Family]:
    found: dict[str, Family] = {}
    for path in home.rollouts():
        if (thread := thread_id(path)) not in found:
            family = find_family(home, str(path))
            found |= dict.fromkeys((thread_id(each) or "" for each in family.paths), family)
            assert thread in found
    return list({family.paths: family for family in found.values()}.values())


def replayed(home: CodexHome) -> dict[str, Reading]:
    """Return what players show at the end."""
    ends: dict[str, Reading] = {}
    for family in families(home):
        clock = VirtualClock(0)
        player = Player(family, clock)
        player.index.read()
        player.seek(1)
        snapshot = build_snapshot(player.read().fleet, clock.now())
        ends |= {worker.id: of_worker(worker) for worker in snapshot.workers}
    return ends


def exported(home: CodexHome) -> dict[str, Reading]:
    reports = [build_report(family.thread, family_stream(family), ended=True) for family in families(home)]
    return {each.id: of_worker(each) for report in reports for each in report.workers}


async def assert_agreement(home: CodexHome) -> dict[str, Reading]:
    """Compare all readings of a home, and return one of them."""
    readings = checked(home)
    assert readings
    assert await live(home) == readings
    in_brief = {thread: (*each[:3], bool(each.denials)) for thread, each in readings.items()}
    assert listed(home) == in_brief
    assert replayed(home) == readings
    assert exported(home) == readings
    return readings


def home_of(folder: Path, contents: Files) -> CodexHome:
    home = CodexHome(folder)
    day = home.sessions / "2026/11/20"
    day.mkdir(parents=True)
    for name, content in contents:
        (day / name).write_bytes(content)
        os.utime(day / name, (WRITTEN, WRITTEN))
    return home


def contents(*paths: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in paths]


@pytest.mark.parametrize("version", VERSIONS)
async def test_recordings(version: str, tmp_path: Path) -> None:
    paths = sorted((RECORDINGS / version).glob("*/*.jsonl"))
    readings = await assert_agreement(home_of(tmp_path, contents(*paths)))
    assert len(readings) == len(paths)


@pytest.mark.parametrize("folder", sorted(ROLLOUTS.glob("*/*/")), ids=lambda path: path.name)
async def test_made_rollouts(folder: Path, tmp_path: Path) -> None:
    await assert_agreement(home_of(tmp_path, contents(*folder.glob("*.jsonl*"))))


# ---------------------------------------------------------------- odd files

SCENARIOS = ("workspace-write", "kanban-board", "full-access-leaked-flags", "escalation-refused")
SAMPLES = [
    (version, scenario) for version in ("0.20.0", "0.36.0", "0.114.0", "0.169.0") for scenario in SCENARIOS
]


def without_newline(data: bytes) -> bytes:
    return data.rstrip(b"\n")


def torn(data: bytes) -> bytes:
    return data.rstrip(b"\n")[:-20]


FOREIGN = b'\nnot json\n{"type":"future_kind","x":1}\n\xff\xfe\n'
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "without-newline": without_newline,
    "torn": torn,
    "with-returns": lambda data: data.replace(b"\n", b"\r\n"),
    "with-blank-lines": lambda data: data.replace(b"\n", b"\n\n"),
    "without-header": lambda data: data.split(b"\n", 1)[1],
    "header-alone": lambda data: data.split(b"\n", 1)[0],
    "with-foreign-lines": lambda data: data.replace(b"\n", FOREIGN, 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_odd_rollouts(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    paths = [path for version, scenario in SAMPLES for path in files(version, scenario)]
    odd = [(name, change(content)) for name, content in contents(*paths)]
    readings = await assert_agreement(home_of(tmp_path, odd))
    assert len(readings) == len(paths)


@pytest.mark.parametrize("change", [bytes, without_newline, torn])
async def test_compressed_rollouts(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    paths = [path for version, scenario in SAMPLES[4:] for path in files(version, scenario)]
    packed = [(f"{name}.zst", zstandard.compress(change(content))) for name, content in contents(*paths)]
    await assert_agreement(home_of(tmp_path, packed))


async def test_truncated_compressed_rollout(tmp_path: Path) -> None:
    ((name, content),) = contents(*files("0.169.0", "full-access"))
    readings = await assert_agreement(home_of(tmp_path, [(f"{name}.zst", zstandard.compress(content)[:-30])]))
    assert {reading.state for reading in readings.values()} == {"unreachable"}


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"hello\nworld\n", b"hello", b'{"a":1}\n', b"\xff" * 500, b"[" * 100_000],
    ids=["empty", "blank", "text", "text-without-newline", "json", "bytes", "deep"],
)
async def test_files_that_are_no_rollouts(content: bytes, tmp_path: Path) -> None:
    readings = await assert_agreement(home_of(tmp_path, [(NAME, content)]))
    assert readings == {THREAD: Reading("unreachable", "unverified", frozenset())}


# ---------------------------------------------------------------- odd families

POLICY = {
    "cwd": "/home/dev/api",
    "approval_policy": "never",
    "sandbox_policy": {"type": "danger-full-access"},
}
CLEAN = "HOME=/home/dev\nPATH=/bin\nSHELL=/bin/bash\nUSER=dev\n_=/usr/bin/env\n"


def member(header: dict[str, object], output: str, *, policy: dict[str, object] | None = None) -> bytes:
    """Return a rollout whose one command dumps its environment."""
    lines = (
        meta(cli_version="0.114.0", **header),
        event("task_started", turn_id="t"),
        line("turn_context", policy or POLICY),
        event("user_message", message="go"),
        call("exec_command", {"cmd": "env"}),
        answer(f"Exit code: 0\nOutput:\n{output}"),
        event("task_complete", turn_id="t", last_agent_message="done"),
    )
    return b"\n".join(lines) + b"\n"


def child(output: str, **more: dict[str, object]) -> bytes:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    return member({"id": CHILD, "source": spawn, "parent_thread_id": THREAD}, output, **more)


async def test_child_that_got_less(tmp_path: Path) -> None:
    """openai/codex#14357: only the children's shells have the flag."""
    flagged = child(f"CODEX_SANDBOX_NETWORK_DISABLED=1\n{CLEAN}")
    readings = await assert_agreement(home_of(tmp_path, [(NAME, member({}, CLEAN)), (CHILD_NAME, flagged)]))
    assert "child-got-less" in readings[CHILD].findings
    assert readings[THREAD] == Reading("completed", "match", frozenset())


async def test_child_with_another_policy(tmp_path: Path) -> None:
    drifted = child(CLEAN, policy={**POLICY, "sandbox_policy": {"type": "read-only"}})
    readings = await assert_agreement(home_of(tmp_path, [(NAME, member({}, CLEAN)), (CHILD_NAME, drifted)]))
    assert "child-policy-drift" in readings[CHILD].findings


async def test_child_without_its_parent(tmp_path: Path) -> None:
    readings = await assert_agreement(home_of(tmp_path, [(CHILD_NAME, child(CLEAN))]))
    assert readings == {CHILD: Reading("completed", "match", frozenset())}


@pytest.mark.parametrize("parent", [CHILD, THREAD], ids=["each other", "itself"])
async def test_parents_in_a_circle(parent: str, tmp_path: Path) -> None:
    first = member({"parent_thread_id": parent}, CLEAN)
    await assert_agreement(home_of(tmp_path, [(NAME, first), (CHILD_NAME, child(CLEAN))]))


async def test_named_archived_and_twice(tmp_path: Path) -> None:
    """A plain file counts before its compressed twin."""
    content = member({}, CLEAN)
    home = home_of(tmp_path, [(NAME, content), (f"{NAME}.zst", zstandard.compress(content[:-200]))])
    home.archived.mkdir()
    (home.archived / CHILD_NAME).write_bytes(child(CLEAN))
    (tmp_path / "session_index.jsonl").write_text(json.dumps({"id": CHILD, "thread_name": "named"}) + "\n")
    readings = await assert_agreement(home)
    assert set(readings) == {THREAD, CHILD}
    reports = [build_report(each.thread, family_stream(each), ended=True) for each in families(home)]
    assert "named" in {worker.name for report in reports for worker in report.workers}


async def test_resumed_after_a_crash(tmp_path: Path) -> None:
    """The line that the crash tore has no newline: the next one follows it."""
    content = member({}, CLEAN)
    await assert_agreement(home_of(tmp_path, [(NAME, torn(content) + content.split(b"\n", 1)[1])]))
