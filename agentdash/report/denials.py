"""`agentdash check --denials`: the denial ledgers of many threads by target, as the document
`agentdash.check-denials/1` and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdash.model.secrets import mask_fields
from agentdash.report.check import CheckReport
from agentdash.report.common_remedies import CommonRemedyReport, common_remedies
from agentdash.report.elements import DenialReport

_T = TypeVar("_T")


class DeniedTargetReport(msgspec.Struct):
    """All denials of one target."""

    what: Literal["filesystem", "network", "other"]
    target: str | None
    """Null for those of which neither output nor script names the target."""
    operations: list[str]
    """Operations on it that were refused."""
    certainty: str
    """`certain` if any of them is."""
    threads: list[str]
    count: int
    """Calls that were denied."""
    open: int
    """Threads that did not get past it."""
    first: str | None
    last: str | None


class DenialsReport(msgspec.Struct):
    """The document of `agentdash check --denials --json`."""

    schema: Literal["agentdash.check-denials/1"]
    threads: int
    unreadable: int
    """Number of files and directories that could not be read."""
    targets: list[DeniedTargetReport]
    """Those that stopped most threads first."""
    remedies: list[CommonRemedyReport]
    """The set of remedies that would have avoided them; paths and hosts of one table are one."""

    @property
    def exit_code(self) -> int:
        """0: no denials that no success came after. 1: there are some. 2: something could not be read."""
        if self.unreadable:
            return 2
        return 1 if any(target.open for target in self.targets) else 0


def denials_report(audit: CheckReport) -> DenialsReport:
    """Return the denials of an audit by target."""
    found: dict[tuple[str, str | None], list[tuple[str, DenialReport]]] = {}
    for thread in audit.threads:
        for denial in thread.denials:
            found.setdefault((denial.what, denial.target), []).append((thread.id, denial))
    targets = [_target_report(denials) for denials in found.values()]
    targets.sort(key=lambda target: (-target.open, -target.count, target.target or ""))
    return DenialsReport(
        schema="agentdash.check-denials/1",
        threads=len(audit.threads),
        unreadable=audit.totals.unreadable,
        targets=targets,
        remedies=common_remedies(denial for thread in audit.threads for denial in thread.denials),
    )


def _target_report(denials: list[tuple[str, DenialReport]]) -> DeniedTargetReport:
    reports = [denial for _, denial in denials]
    certain = any(denial.certainty == "certain" for denial in reports)
    return DeniedTargetReport(
        what=reports[0].what,
        target=reports[0].target,
        operations=_distinct(denial.operation for denial in reports),
        certainty="certain" if certain else "likely",
        threads=_distinct(thread for thread, _ in denials),
        count=sum(denial.count for denial in reports),
        open=len({thread for thread, denial in denials if not denial.got_past}),
        first=min((denial.first for denial in reports if denial.first), default=None),
        last=max((denial.last for denial in reports if denial.last), default=None),
    )


def _distinct(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


def print_denials(report: DenialsReport, console: Console) -> None:
    """Print the targets as a table, secrets masked."""
    report = mask_fields(report)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("WHAT", "CALLS", "THREADS", "OPEN", "OPERATIONS", "TARGET"):
        table.add_column(column, no_wrap=column != "TARGET", overflow="fold")
    for target in report.targets:
        what = target.what if target.certainty == "certain" else f"{target.what} (likely)"
        table.add_row(
            Text(what),
            Text(str(target.count)),
            Text(str(len(target.threads))),
            Text(str(target.open)),
            Text(", ".join(target.operations)),
            Text(target.target or "not named"),
        )
    if report.targets:
        console.print(table)
    for common in report.remedies:
        named = ", ".join(target or "not named" for target in common.targets)
        console.print(Text(f"\n{common.remedy}"))
        where = f" ({common.remedy_where})" if common.remedy_where else ""
        console.print(Text(f"  for {named}{where}"), style="dim")
    unreadable = f", {report.unreadable} unreadable" if report.unreadable else ""
    console.print(Text(f"{report.threads} threads{unreadable}, {len(report.targets)} denied targets"))
