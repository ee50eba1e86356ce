"""Denials, summed up by target."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from agentdash.report.audit import audit
from agentdash.report.check import denials_report, print_denials
from tests.unit.rollout_files import all_files


def test_denials_are_summed_up_by_target() -> None:
    report = denials_report(audit(all_files()))
    assert sum(target.count for target in report.targets) > 60
    board = next(each for each in report.remedies if "/home/dev/board" in each.remedy)
    assert (board.calls, board.targets) == (10, ["/home/dev/board/kanban.db"])
    out = StringIO()
    print_denials(report, Console(file=out, width=100))
    assert "would have avoided 10 denied calls: /home/dev/board/kanban.db" in out.getvalue()
