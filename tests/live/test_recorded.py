"""A recorded run of a real Codex in tmux: its replay from files shows what live has shown."""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from agentdash.agents.codex.home import CodexHome
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import find_family
from agentdash.replay.journal import journal_streams
from agentdash.replay.streams import family_stream
from tests.live.conftest import OpenLab
from tests.live.patience import command_seconds, scaled, until
from tests.live.watched import thread_in, watching
from tests.unit.planted_secrets import LONG, PLANTED, SHORT, leaks

SKEW_S = scaled(1.0)
"""Live may be late: files and processes are polled, and snapshots built at most ten times a second."""
HELD = {"run": f"sleep {command_seconds(3)}; echo done"}
DENIED = {"run": "touch /usr/denied"}


class Shown(NamedTuple):
    """The compared columns of a row."""

    state: State
    verdict: str
    findings: tuple[str, ...]
    pane: str | None
    seccomp: int | None


def shown(worker: Worker) -> Shown:
    sandbox, pane = worker.sandbox, str(worker.pane.key) if worker.pane else None
    kinds = tuple(sorted(f.kind for f in sandbox.findings))
    return Shown(worker.state, sandbox.verdict, kinds, pane, sandbox.got.seccomp)


def rows(snapshot: Snapshot) -> dict[str, Shown]:
    return {w.id: shown(w) for w in snapshot.workers if w.kind == "codex-thread"}


def over(snapshot: Snapshot) -> bool:
    """Return whether a parent and two children have ended, one of them with a verdict."""
    threads = [w for w in snapshot.workers if w.kind == "codex-thread"]
    have_ended = all(w.state in (State.COMPLETED, State.BLOCKED_SANDBOX) for w in threads)
    return len(threads) == 3 and have_ended and any(w.sandbox.verdict == "match" for w in threads)


async def test_recorded_run_replays_as_it_was(codex: OpenLab, tmp_path: Path) -> None:
    lab = codex(
        {
            "parent": [{"spawn": ["one", "two"]}, {"wait": True}, {"say": "both"}],
            "one": [HELD, {"say": "1"}],
            "two": [DENIED, {"say": "2"}],
        }
    )
    seen: list[Snapshot] = []
    async with watching(lab, tmp_path) as watched:
        pane = await lab.tui()
        pane.submit("[[parent]] go")
        await watched.until_snapshot(over, seen)
        await until(
            lambda: (watched.fleet.processes_at or 0.0) > seen[-1].at,
            "another poll of processes, which is recorded as well",
        )
    lab.run_tmux("kill-server")
    lab.stop_daemon()

    parent = next(w.id for w in seen[-1].workers if w.children)
    family = find_family(CodexHome(lab.home), parent)
    assert len(family.paths) == 3
    cursor = Cursor(family_stream(family, journal_streams(tmp_path, family, time.time() + 3_600)))
    past: list[tuple[float, Fleet]] = []
    while (beat := cursor.advance()) is not None:
        past.append((beat.at, cursor.fleet))

    for snapshot in seen:
        before = [fleet for at, fleet in past if at <= snapshot.at - SKEW_S][-1:]
        near = [fleet for at, fleet in past if abs(at - snapshot.at) <= SKEW_S]
        replayed = [rows(build_snapshot(fleet, snapshot.at)) for fleet in (*before, *near)]
        for thread, row in rows(snapshot).items():
            assert row in [then.get(thread) for then in replayed], (thread, snapshot.at, replayed)
    last = rows(seen[-1])
    assert rows(build_snapshot([fleet for at, fleet in past if at <= seen[-1].at][-1], seen[-1].at)) == last
    assert {row.findings for row in last.values()} == {(), ("denied-filesystem",)}
    assert last[parent].pane is not None
    children = {worker.id: worker for worker in seen[-1].workers if worker.depth == 1}
    assert {worker.parent for worker in children.values()} == {parent}
    (above,) = (worker for worker in seen[-1].workers if worker.id == parent)
    assert set(above.children) == children.keys()
    assert ("match", 2) in {(row.verdict, row.seccomp) for row in last.values()}


async def test_recording_and_exports_have_none_of_the_secrets(codex: OpenLab, tmp_path: Path) -> None:
    """They are in a prompt, in what a command prints, in its arguments and environment, and in an answer."""
    planted = tmp_path / "planted.txt"
    planted.write_text("\n".join(PLANTED))
    sleep = f"python3 -c 'import time; time.sleep({command_seconds(4)})'"
    arguments = f"--password={SHORT} -H 'Authorization: Bearer {LONG}' postgresql://u:{SHORT}@h/db"
    command = f"cat {planted}; env API_TOKEN={SHORT} AWS_SECRET_ACCESS_KEY={LONG} {sleep} {arguments}"
    lab = codex({"work": [{"run": command}, {"say": "\n\n".join(PLANTED[:50])}]})
    journal = tmp_path / "journal"
    async with watching(lab, journal) as watched:
        lab.exec(f"[[work]] login with --password={SHORT} and Bearer {LONG}", "-s", "danger-full-access")
        await watched.until(thread_in(State.COMPLETED))

    (thread,) = lab.threads()
    (rollout,) = lab.rollouts()
    assert len(leaks(rollout.read_text("utf-8"))) > 100
    recorded = "".join(path.read_text("utf-8") for path in sorted(journal.iterdir()))
    assert "import time; time.sleep" in recorded
    assert "planted.txt" in recorded
    assert leaks(recorded) == []

    exports = [tmp_path / name for name in ("x.md", "x.html")]
    replay = ("replay", thread, "--journal", str(journal), "--export")
    printed = ""
    for arguments in (*((*replay, str(path)) for path in exports), ("check", "--json")):
        done = await asyncio.to_thread(lab.agentdash, *arguments, HOME=str(lab.user))
        assert done.returncode in (0, 1), done.stderr
        printed += done.stdout + done.stderr
    written = [path.read_text("utf-8") for path in exports]
    assert all("login" in text for text in written)
    stored = [path.read_text("utf-8", "replace") for path in lab.state.rglob("*") if path.is_file()]
    assert stored
    for text in (printed, *written, *stored):
        assert leaks(text) == []
