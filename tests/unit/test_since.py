"""`agentdash since`: planted truths are all reported, nothing else is, and in 20 lines."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from agentdash.agents.session_logs import log_of
from agentdash.cli.since import _begin, since
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.findings import DENIAL_KINDS
from agentdash.model.fleet import Fleet, StatePeriod
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.clock import parse_time
from agentdash.report.audit import audit
from agentdash.report.since import MAX_LINES, SinceReport, since_lines, since_report
from tests.unit.rollout_files import RECORDINGS, THREAD, home_of, line
from tests.unit.story import row

NOW = 1_795_204_900.0
"""After all recordings of 0.169.0."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """All recordings of 0.169.0 as one Codex home."""
    return home_of(tmp_path / "home", *(RECORDINGS / "0.169.0").glob("*/*.jsonl")).root


def report_of(home: Path, since: float) -> SinceReport:
    """Return the report of a home of which no process lives any more."""
    fleet = Fleet()
    for path in sorted(home.rglob("*.jsonl")):
        log = log_of(path)
        assert log is not None
        fleet = reduce(fleet, log.reader().read(path.read_bytes().splitlines()))
    ended = [e.LocksSeen(at=NOW, holders={}), e.ProcessesCounted(at=NOW)]
    return since_report(build_snapshot(reduce(fleet, ended), NOW), None, since, NOW)


def rows(report: SinceReport, kind: str) -> set[tuple[str, str]]:
    """Return worker and text, up to the first colon, of the rows of a kind."""
    return {(each.worker, each.text.partition(":")[0]) for each in report.rows if each.kind == kind}


def test_denials_and_findings_are_those_of_check(home: Path) -> None:
    """Another reading of the same files, without a clock, finds the same in each thread."""
    checked = audit(sorted(home.rglob("*.jsonl"))).threads
    report = report_of(home, NOW - 86_400)
    denied = {thread.id for thread in checked if thread.denials}
    differing = {
        (thread.id, each.kind)
        for thread in checked
        for each in thread.findings
        if each.severity != "info" and each.kind not in DENIAL_KINDS
    }
    assert denied
    assert {worker for worker, _ in rows(report, "denied")} == denied
    assert differing
    assert rows(report, "finding") == differing


def test_each_failed_provider_and_each_end_is_reported(home: Path) -> None:
    scenario = {path.stem[-36:]: path.parent.name for path in (RECORDINGS / "0.169.0").glob("*/*.jsonl")}
    report = report_of(home, NOW - 86_400)
    found = {
        kind: {scenario[worker] for worker, _ in rows(report, kind)}
        for kind in ("provider", "refused", "needs-you", "done")
    }
    assert found["provider"] >= {"provider-401", "provider-500", "provider-quota"}
    assert found["refused"] == {"escalation-refused"}
    assert "killed-mid-command" in found["needs-you"]
    assert "workspace-write-network" in found["done"]


# ---------------------------------------------------------------- waiting


def waiting(
    *periods: tuple[float, float | None],
    state: State = State.RUNNING,
    last: float = NOW,
) -> Worker:
    history = tuple(
        StatePeriod(state="waiting-approval", since=begin, why="wants to run make", until=end, waits=True)
        for begin, end in periods
    )
    since = periods[-1][0]
    more = {"history": history, "last_activity": last, "started": NOW - 1_000}
    return row(THREAD, state, since=since, why="wants to run make", kind="codex-thread", **more)


def waits_of(*workers: Worker, since: float = NOW - 1_000) -> list[tuple[str, float | None, int]]:
    live, *others = [Snapshot(NOW, (worker,)) for worker in workers]
    report = since_report(live, others[0] if others else None, since, NOW)
    assert report.waited_seconds == pytest.approx(
        sum(row.seconds or 0 for row in report.rows if row.kind in ("waited", "needs-you"))
    )
    return [(row.kind, row.seconds, row.count) for row in report.rows]


def test_waits_are_summed_up() -> None:
    worker = waiting((NOW - 500, NOW - 400), (NOW - 300, NOW - 290))
    assert waits_of(worker) == [("waited", 110.0, 2)]
    assert waits_of(worker, since=NOW - 450) == [("waited", 60.0, 2)]
    assert waits_of(worker, since=NOW - 200) == []
    # what two sources saw counts once
    dashboard = waiting((NOW - 320, NOW - 250), (NOW - 100, NOW - 90))
    assert waits_of(waiting((NOW - 300, NOW - 200)), dashboard) == [("waited", 130.0, 2)]
    # one that waits still needs the user
    still = waiting((NOW - 500, NOW - 400), (NOW - 50, None), state=State.WAITING_APPROVAL)
    assert waits_of(still) == [("needs-you", 50.0, 1), ("waited", 100.0, 1)]
    # of a worker that has gone an open wait ends with its last sign of life
    gone = waiting((NOW - 500, None), state=State.EXITED, last=NOW - 450)
    assert ("waited", 50.0, 1) in waits_of(gone)


# ---------------------------------------------------------------- in 20 lines


def test_text_fits(home: Path) -> None:
    report = report_of(home, NOW - 86_400)
    assert len(report.rows) > MAX_LINES
    for width in (45, 80, 100, 200):
        printed = since_lines(report, width)
        assert len(printed) <= MAX_LINES
        assert max(map(cell_len, printed)) <= width
    kinds = {row.kind for row in report.rows}
    assert {text.split()[0] for text in printed[1:-1]} == kinds  # each kind has a line
    more = sum(map(int, re.findall(r"(\d+) more", printed[-1])))
    assert more == len(report.rows) - len(printed[1:-1])


def test_commands_lead_to_the_moment(home: Path) -> None:
    """The time in each command, parsed as `replay` parses it, is that of the row."""
    report = report_of(home, NOW - 86_400)
    assert report.rows
    for each in report.rows:
        found = re.fullmatch(r"agentdash replay (\S+) --at '?([\d :-]+)'?", each.replay)
        assert found
        assert each.at
        assert each.worker.startswith(found[1])
        at = parse_time(found[2], NOW - 3_600, NOW)
        assert at is not None
        assert abs(at - datetime.fromisoformat(each.at).timestamp()) < 1


# ---------------------------------------------------------------- the command


def test_times() -> None:
    for text, seconds in (("8h", 28_800), ("90 min", 5_400), ("99999d", NOW)):
        assert _begin(text, NOW) == NOW - seconds
    for text, why in (("yesterdayish", "is not a time"), ("2099-01-01", "is in the future")):
        with pytest.raises(click.UsageError, match=why):
            _begin(text, NOW)


@pytest.fixture
def printed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    given = ["2026-11-20 00:00", "--no-tmux", "--codex-home", str(home)]
    return lambda *flags: CliRunner().invoke(since, [*given, *flags], catch_exceptions=False).stdout


def test_command(printed: Callable[..., str]) -> None:
    document: dict[str, Any] = msgspec.json.decode(printed("--json"))
    assert document["schema"] == "agentdash.since/1"
    assert len(document["rows"]) > MAX_LINES
    assert printed().startswith("since Fri 2026-11-20 00:00, ")


def test_a_large_session_is_read_whole(home: Path, printed: Callable[..., str]) -> None:
    """By itself `status` reads its head and its tail."""
    (log,) = home.rglob("*01a1fa8b-4086*")
    *lines, last = log.read_bytes().splitlines()
    note = line("event_msg", {"type": "agent_message", "message": "x" * 1_000}, second=800)
    log.write_bytes(b"\n".join((*lines, *[note] * 3_000, last, b"")))
    rows = msgspec.json.decode(printed("--json"))["rows"]
    denied = [row for row in rows if row["kind"] == "denied" and "kanban.db" in row["text"]]
    assert [row["worker"] for row in denied] == ["01a1fa8b-4086-7a32-8c43-2abbeb466a8c"]


def test_a_source_that_is_not_there_is_no_problem() -> None:
    """Nobody needs tmux or Codex; what cannot be read is one."""
    sources = [
        e.SourceSeen(at=NOW, name="tmux default", ok=False, detail="no server running"),
        e.SourceSeen(at=NOW, name="codex", ok=False, detail="/home/me/.codex has no sessions yet"),
        e.SourceSeen(at=NOW, name="processes", ok=False, detail="Permission denied"),
    ]
    report = since_report(build_snapshot(reduce(Fleet(), sources), NOW), None, NOW - 60, NOW)
    assert report.problems == ["processes: Permission denied"]
