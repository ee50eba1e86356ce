"""`agentdash check --denials`: the denial ledgers of many threads, by target, day, version and directory.

As the document `agentdash.check-denials/1` and as tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from agentdash.documents.worker import DenialReport
from agentdash.engine.denial_sums import CommonRemedy, DeniedCalls, common_remedies, sum_denials
from agentdash.model.denials import stable_target
from agentdash.model.secrets import mask_fields
from agentdash.report.check import CheckReport, ThreadReport
from agentdash.report.elements import quantity

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_T = TypeVar("_T")
_MAX_LISTED: Final = 14
"""Days, versions and directories in the tables: the newest two weeks, or the worst; the document has all."""
_BAR_CELLS: Final = 24


class DeniedTargetReport(msgspec.Struct):
    """All denials of one target."""

    what: Literal["filesystem", "network", "other"]
    target: str | None
    """With `*` for random names of temporary files, where there are several; null for those of which neither
    output nor script names the target."""
    operations: list[str]
    """Operations on it that were refused."""
    certainty: str
    """`certain` if any of them is."""
    threads: list[str]
    """Ids of the threads with such a denial."""
    count: int
    """Calls that were denied."""
    open: int
    """Threads that did not get past it."""
    first: str | None
    last: str | None


class CommonRemedyReport(msgspec.Struct):
    """A remedy, and what it would have let through."""

    remedy: str
    remedy_where: str | None
    targets: list[str | None]
    """The targets that it opens."""
    calls: int
    """Denied calls that it would have avoided."""


class DenialSumReport(msgspec.Struct):
    """The denials of one day, version or directory."""

    name: str
    """The day (UTC), the worker CLI and its version, or the working directory."""
    calls: int
    """Denied calls."""
    threads: int
    """Threads with denials."""
    open: int
    """Threads that did not get past one."""
    of_threads: int | None
    """Audited threads of this version or directory, also those without denials; null for days."""


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
    by_day: list[DenialSumReport]
    """Oldest first; a day without denials is left out."""
    by_version: list[DenialSumReport]
    """Those with most denied calls first."""
    by_directory: list[DenialSumReport]
    """Likewise, by the working directories of the threads."""

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
            found.setdefault((denial.what, stable_target(denial.target)), []).append((thread.id, denial))
    targets = [_target_report(target, denials) for (_, target), denials in found.items()]
    targets.sort(key=lambda target: (-target.open, -target.count, target.target or ""))
    return DenialsReport(
        schema="agentdash.check-denials/1",
        threads=len(audit.threads),
        unreadable=audit.totals.unreadable,
        targets=targets,
        remedies=[
            _remedy_report(each)
            for each in common_remedies(denial for thread in audit.threads for denial in thread.denials)
        ],
        by_day=sorted(_sums(_denied_by_day(audit)), key=lambda each: each.name),
        by_version=_sums(_denied_by(audit, _version), Counter(map(_version, audit.threads))),
        by_directory=_sums(_denied_by(audit, _directory), Counter(map(_directory, audit.threads))),
    )


def _remedy_report(common: CommonRemedy) -> CommonRemedyReport:
    return CommonRemedyReport(
        remedy=common.remedy, remedy_where=common.where, targets=common.targets, calls=common.calls
    )


def _denied_by_day(audit: CheckReport) -> Iterator[DeniedCalls]:
    for thread in audit.threads:
        for denial in thread.denials:
            last = max(denial.days, default=None)
            for day, calls in denial.days.items():
                yield DeniedCalls(day, thread.id, calls, is_open=day == last and not denial.got_past)


def _denied_by(audit: CheckReport, name: Callable[[ThreadReport], str]) -> Iterator[DeniedCalls]:
    for thread in audit.threads:
        for denial in thread.denials:
            yield DeniedCalls(name(thread), thread.id, denial.count, is_open=not denial.got_past)


def _version(thread: ThreadReport) -> str:
    return f"{thread.agent} {thread.cli_version or '?'}"


def _directory(thread: ThreadReport) -> str:
    return thread.cwd or "?"


def _sums(denied: Iterable[DeniedCalls], audited: Mapping[str, int] | None = None) -> list[DenialSumReport]:
    return [
        DenialSumReport(
            name=each.name,
            calls=each.calls,
            threads=each.threads,
            open=each.open,
            of_threads=audited[each.name] if audited is not None else None,
        )
        for each in sum_denials(denied)
    ]


def _target_report(stable: str | None, denials: list[tuple[str, DenialReport]]) -> DeniedTargetReport:
    reports = [denial for _, denial in denials]
    targets = {denial.target for denial in reports}
    certain = any(denial.certainty == "certain" for denial in reports)
    return DeniedTargetReport(
        what=reports[0].what,
        target=stable if len(targets) > 1 else reports[0].target,
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


def _sums_table(title: str, sums: Sequence[DenialSumReport]) -> Table:
    """Return a table with a bar for each number of calls."""
    from rich.table import Table  # noqa: PLC0415 - documents need no tables
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in (title, "CALLS", "", "THREADS", "OPEN"):
        table.add_column(column, no_wrap=column != "DIRECTORY", overflow="fold")
    most = max(each.calls for each in sums)
    for each in sums:
        of_threads = f" of {each.of_threads}" if each.of_threads is not None else ""
        bar = "█" * max(1, round(_BAR_CELLS * each.calls / most))
        cells = (each.name, str(each.calls), bar, f"{each.threads}{of_threads}", str(each.open))
        table.add_row(*map(Text, cells))
    return table


def print_denials(report: DenialsReport, console: Console) -> None:
    """Print the targets as a table, secrets masked."""
    from rich.table import Table  # noqa: PLC0415 - documents need no tables
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

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
    for title, sums in (
        ("DAY (UTC)", report.by_day[-_MAX_LISTED:]),
        ("VERSION", report.by_version[:_MAX_LISTED]),
        ("DIRECTORY", report.by_directory[:_MAX_LISTED]),
    ):
        if sums:
            console.print()
            console.print(_sums_table(title, sums))
    for common in report.remedies:
        named = ", ".join(target or "not named" for target in common.targets)
        console.print(Text(f"\n{common.remedy}"))
        where = f" ({common.remedy_where})" if common.remedy_where else ""
        calls = quantity(common.calls, "denied call")
        console.print(Text(f"  would have avoided {calls}: {named}{where}"), style="dim")
    unreadable = f", {report.unreadable} unreadable" if report.unreadable else ""
    threads, targets = quantity(report.threads, "thread"), quantity(len(report.targets), "denied target")
    console.print(Text(f"{threads}{unreadable}, {targets}"))
