"""`agentdash check`: an audit of rollouts, as the document `agentdash.check/2` and as text; `--denials`, as
`agentdash.check-denials/2` and a table.

`audit.py` runs the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from agentdash.agents.session_logs import agent_of_log
from agentdash.documents.worker import (
    DenialReport,
    FindingReport,
    PolicyReport,
    RequestedReport,
    document,
)
from agentdash.model.denials import stable_target
from agentdash.model.findings import DENIAL_KINDS
from agentdash.model.secrets import mask_fields
from agentdash.model.worker import Worker
from agentdash.report.elements import (
    UnreadableReport,
    print_denial,
    print_finding,
    quantity,
    say,
    text_table,
)

if TYPE_CHECKING:
    from rich.console import Console


class ThreadReport(msgspec.Struct):
    """One audited thread."""

    id: str
    file: str
    agent: str
    """The worker CLI: `codex`, `claude`."""
    parent: str | None = None
    cli_version: str | None = None
    """Version of the worker CLI that wrote the file."""
    verdict: str = "unverified"
    state: str = "unreachable"
    requested: RequestedReport | None = None
    """What its process was asked for, where agentdash saw that; otherwise what configuration files that are
    older than the thread ask for as of now. Null if neither is known."""
    policies: list[PolicyReport] = []
    findings: list[FindingReport] = []
    denials: list[DenialReport] = []
    """The denial ledger: also denials that the thread got past."""
    notes: list[str] = []
    """What was skipped or could not be parsed."""
    problem: str | None = None
    """Why the file cannot be read, or not whole."""
    cwd: str | None = None


class TotalsReport(msgspec.Struct):
    """Counts over all threads."""

    threads: int
    match: int
    mismatch: int
    unverified: int
    unreadable: int
    """Files, and directories."""
    findings: dict[str, int]
    """Number of threads with each kind of finding."""
    denials: int
    """Entries of all denial ledgers."""
    open_denials: int
    """Those that no success came after."""


class GateReport(msgspec.Struct):
    """What `--fail-on` decided."""

    fail_on: list[str]
    """Kinds and directions of findings, `any`, `unverified`."""
    failing: int
    """Results that fail the check: findings, denials that no success came after, unverified threads."""


class CheckReport(msgspec.Struct):
    """The document of `agentdash check --json`."""

    schema: Literal["agentdash.check/2"]
    threads: list[ThreadReport]
    unreadable_directories: list[UnreadableReport]
    """Directories that may contain more rollouts, but cannot be listed."""
    totals: TotalsReport
    """Number of threads by verdict."""
    gate: GateReport | None = None
    """Null without `--fail-on`."""

    @property
    def problems(self) -> list[UnreadableReport]:
        """Everything that could not be read."""
        files = [UnreadableReport(each.file, each.problem) for each in self.threads if each.problem]
        return [*self.unreadable_directories, *files]

    @property
    def exit_code(self) -> int:
        """0: clean. 1: findings, or denials that no success came after; with a gate, what it lets fail. 2:
        something could not be read."""
        if self.totals.unreadable:
            return 2
        if self.gate is not None:
            return 1 if self.gate.failing else 0
        return 1 if self.totals.findings or self.totals.open_denials else 0


def check_report(threads: Sequence[ThreadReport], unreadable: Sequence[UnreadableReport] = ()) -> CheckReport:
    """Return the document of audited threads, and of directories that cannot be listed."""
    verdicts = Counter(thread.verdict for thread in threads)
    kinds = Counter(kind for thread in threads for kind in {finding.kind for finding in thread.findings})
    denials = [denial for thread in threads for denial in thread.denials]
    totals = TotalsReport(
        threads=len(threads),
        match=verdicts["match"],
        mismatch=verdicts["mismatch"],
        unverified=verdicts["unverified"],
        unreadable=len(unreadable) + sum(thread.problem is not None for thread in threads),
        findings=dict(sorted(kinds.items())),
        denials=len(denials),
        open_denials=sum(not denial.got_past for denial in denials),
    )
    return CheckReport(
        schema="agentdash.check/2",
        threads=list(threads),
        unreadable_directories=list(unreadable),
        totals=totals,
    )


def thread_report(worker: Worker, file: str) -> ThreadReport:
    """Return the report of a thread; `file` is its sanitized path."""
    sandbox = worker.sandbox
    return document(
        ThreadReport,
        worker,
        file=file,
        agent=worker.agent.name,
        cli_version=worker.agent.version,
        verdict=sandbox.verdict,
        requested=sandbox.requested,
        findings=sandbox.findings,
        denials=sandbox.denials,
        problem=None,
    )


def unreadable_report(thread: str, file: str, problem: str) -> ThreadReport:
    """Return the report of a file that cannot be read."""
    return ThreadReport(id=thread, file=file, agent=agent_of_log(Path(file)), problem=problem)


def is_about(finding: FindingReport, denial: DenialReport) -> bool:
    """Return whether a finding is about this entry of the denial ledger."""
    if finding.kind not in DENIAL_KINDS:
        return False
    is_named = denial.target is not None and f" {denial.target} " in finding.message
    return is_named or any(evidence.text.endswith(f"-> {denial.quote}") for evidence in finding.evidence)


def print_check(report: CheckReport, console: Console) -> None:
    """Print the findings and the open denials by thread, and the totals; secrets masked."""
    report = mask_fields(report)
    for directory in report.unreadable_directories:
        say(console, str(directory))
    for thread in report.threads:
        _print_thread(thread, console)
    totals = report.totals
    verdicts = f"{totals.match} match, {totals.mismatch} mismatch, {totals.unverified} unverified"
    unreadable = f", {totals.unreadable} unreadable" if totals.unreadable else ""
    denials = f", {quantity(totals.denials, 'denial')} ({totals.open_denials} unresolved)"
    denials = denials if totals.denials else ""
    say(console, f"{quantity(totals.threads, 'thread')}: {verdicts}{unreadable}{denials}")


def _print_thread(thread: ThreadReport, console: Console) -> None:
    denials = [
        denial
        for denial in thread.denials
        if not denial.got_past and not any(is_about(finding, denial) for finding in thread.findings)
    ]
    if thread.problem:
        say(console, f"{thread.file} cannot be read: {thread.problem}")
    if thread.findings or denials:
        say(console, f"{thread.id}  {thread.agent} {thread.cli_version or '?'}", style="bold")
    for finding in thread.findings:
        print_finding(finding, console, 2)
    for denial in denials:
        print_denial(denial, console, 2)


# ------------------------------------------------------------
# `agentdash check --denials`: the denial ledgers of many threads by target


_T = TypeVar("_T")


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


class DenialsReport(msgspec.Struct):
    """The document of `agentdash check --denials --json`."""

    schema: Literal["agentdash.check-denials/2"]
    threads: int
    unreadable: int
    """Number of files and directories that could not be read."""
    targets: list[DeniedTargetReport]
    """Those that stopped most threads first."""
    remedies: list[CommonRemedyReport]
    """What would have avoided them, each once."""

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
        schema="agentdash.check-denials/2",
        threads=len(audit.threads),
        unreadable=audit.totals.unreadable,
        targets=targets,
        remedies=_remedies(denial for thread in audit.threads for denial in thread.denials),
    )


def _remedies(denials: Iterable[DenialReport]) -> list[CommonRemedyReport]:
    """Return the remedies, each once, those that would have avoided most calls first."""
    found: dict[str, list[DenialReport]] = {}
    for denial in denials:
        if denial.remedy is not None:
            found.setdefault(denial.remedy, []).append(denial)
    reports = [
        CommonRemedyReport(
            remedy=remedy,
            remedy_where=group[0].remedy_where,
            targets=_distinct(denial.target for denial in group),
            calls=sum(denial.count for denial in group),
        )
        for remedy, group in found.items()
    ]
    return sorted(reports, key=lambda report: -report.calls)


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


def print_denials(report: DenialsReport, console: Console) -> None:
    """Print the targets as a table, secrets masked."""
    report = mask_fields(report)
    rows = [
        (
            target.what if target.certainty == "certain" else f"{target.what} (likely)",
            str(target.count),
            str(len(target.threads)),
            str(target.open),
            ", ".join(target.operations),
            target.target or "not named",
        )
        for target in report.targets
    ]
    if rows:
        columns = ("WHAT", "CALLS", "THREADS", "OPEN", "OPERATIONS", "TARGET")
        console.print(text_table(columns, rows, folded=("TARGET",)))
    for common in report.remedies:
        named = ", ".join(target or "not named" for target in common.targets)
        console.print(f"\n{common.remedy}", markup=False)
        where = f" ({common.remedy_where})" if common.remedy_where else ""
        calls = quantity(common.calls, "denied call")
        say(console, f"would have avoided {calls}: {named}{where}", 2, style="dim")
    unreadable = f", {report.unreadable} unreadable" if report.unreadable else ""
    threads, targets = quantity(report.threads, "thread"), quantity(len(report.targets), "denied target")
    say(console, f"{threads}{unreadable}, {targets}")
