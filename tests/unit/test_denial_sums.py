"""Denials over time: by day, version and directory, in the audit and its tables."""

from __future__ import annotations

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from agentdash.documents.worker import DenialReport
from agentdash.engine.denial_sums import DenialSum, DeniedCalls, sum_denials
from agentdash.model.denials import LedgerEntry
from agentdash.report.audit import audit
from agentdash.report.check import (
    DenialSumReport,
    ThreadReport,
    check_report,
    denials_report,
    print_denials,
    unreadable_report,
)
from tests.unit.rollout_files import all_files
from tests.unit.story import begun, polled, worker
from tests.unit.test_denial_ledger import DENIED, ran

DAY = 86_400.0


def entered(times: list[float]) -> LedgerEntry:
    """Return the entry of a command that was denied at these times."""
    calls = [event for at in times for event in ran(f"c{at}", "touch /srv/board/x", DENIED, 1, at=at)]
    (entry,) = worker(begun(), *calls, polled(times[-1] + 2)).sandbox.denials
    return entry


def test_each_denied_call_is_counted_on_its_day() -> None:
    times = [10 * DAY + 5, 10 * DAY + 80_000, 11 * DAY + 1, 13 * DAY - 1]
    entry = entered(times)
    assert entry.days == ((10, 2), (11, 1), (12, 1))
    assert entry.count == 4


def test_only_the_newest_days_are_kept() -> None:
    entry = entered([day * DAY + 1 for day in range(1, 71)])
    assert (len(entry.days), entry.days[-1], entry.count) == (60, (70, 1), 70)


def test_sums_have_calls_threads_and_open_threads() -> None:
    denied = [
        DeniedCalls("a", "t1", 2, is_open=False),
        DeniedCalls("b", "t1", 9, is_open=True),
        DeniedCalls("a", "t1", 1, is_open=True),
        DeniedCalls("a", "t2", 4, is_open=True),
    ]
    assert sum_denials(denied) == [
        DenialSum("b", calls=9, threads=1, open=1),
        DenialSum("a", calls=7, threads=2, open=2),
    ]


def test_days_versions_and_directories_have_the_same_sums() -> None:
    """And the ones of the table of targets, over all recordings."""
    report = denials_report(audit(all_files()))
    calls = sum(target.count for target in report.targets)
    assert calls > 60
    for sums in (report.by_day, report.by_version, report.by_directory):
        assert sum(each.calls for each in sums) == calls
    assert [each.name for each in report.by_day] == ["2026-11-20"]
    assert {"codex 0.169.0", "codex 0.114.0"} <= {each.name for each in report.by_version}
    assert all(each.of_threads and each.threads <= each.of_threads for each in report.by_version)
    board = next(each for each in report.remedies if "/home/dev/board" in each.remedy)
    assert (board.calls, board.targets) == (10, ["/home/dev/board/kanban.db"])


def thread(name: str, days: dict[str, int], **changes: object) -> ThreadReport:
    denial = DenialReport(
        what="filesystem",
        operation="write",
        target="/b/x",
        certainty="certain",
        quote="q",
        calls=["c"],
        count=sum(days.values()),
        first=None,
        last=None,
        got_past=bool(changes.pop("got_past", False)),
        nested=None,
        days=days,
    )
    blank = replace(unreadable_report(name, "f", ""), problem=None, verdict="match", denials=[denial])
    return replace(blank, **changes)


def test_a_denial_is_open_on_its_last_day() -> None:
    past = thread("t2", {"2026-11-02": 4}, got_past=True, cli_version="0.169.0", cwd="/w")
    clean = replace(past, id="t3", denials=[])
    audited = check_report([thread("t1", {"2026-11-01": 1, "2026-11-03": 2}), past, clean])
    report = denials_report(audited)
    assert report.by_day == [
        DenialSumReport("2026-11-01", calls=1, threads=1, open=0, of_threads=None),
        DenialSumReport("2026-11-02", calls=4, threads=1, open=0, of_threads=None),
        DenialSumReport("2026-11-03", calls=2, threads=1, open=1, of_threads=None),
    ]
    assert report.by_directory == [
        DenialSumReport("/w", calls=4, threads=1, open=0, of_threads=2),
        DenialSumReport("?", calls=3, threads=1, open=1, of_threads=1),
    ]
    out = StringIO()
    print_denials(report, Console(file=out, width=100))
    shown = out.getvalue()
    assert "2026-11-02  4      ████████████████████████  1        0" in shown
    assert "codex 0.169.0" in shown
    assert "1 of 2" in shown
