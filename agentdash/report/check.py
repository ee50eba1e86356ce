"""`agentdash check`: an audit of rollouts, as the document `agentdash.check/1` and as text; `--denials`, as
`agentdash.check-denials/2` and a table.

`audit.py` runs the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from agentdash.agents.session_logs import is_transcript
from agentdash.documents.worker import (
    DenialReport,
    FindingReport,
    RequestedReport,
    denial_report,
    finding_report,
    requested_report,
)
from agentdash.engine.denial_sums import CommonRemedy, common_remedies
from agentdash.model.denials import stable_target
from agentdash.model.secrets import mask_fields
from agentdash.model.worker import Worker
from agentdash.report.elements import (
    PolicyReport,
    UnreadableReport,
    difference_lines,
    policy_report,
    quantity,
    remedy_lines,
    text_table,
)

if TYPE_CHECKING:
    from rich.console import Console


class ThreadReport(msgspec.Struct):
    """One audited thread."""

    id: str
    parent: str | None
    file: str
    agent: str
    """The worker CLI: `codex`, `claude`."""
    cli_version: str | None
    """Version of the worker CLI that wrote the file."""
    verdict: str
    state: str
    requested: RequestedReport | None
    """What its process was asked for, where agentdash saw that; otherwise what configuration files that are
    older than the thread ask for as of now. Null if neither is known."""
    policies: list[PolicyReport]
    findings: list[FindingReport]
    denials: list[DenialReport]
    """The denial ledger: also denials that the thread got past."""
    notes: list[str]
    """What was skipped or could not be parsed."""
    problem: str | None
    """Why the file cannot be read, or not whole."""
    host: str | None = None
    """The host that it was audited on; null: this machine."""
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
    """What `--fail-on` and `--baseline` decided."""

    fail_on: list[str]
    """Kinds and directions of findings, `any`, `unverified`."""
    baseline: str | None
    """The file of known results."""
    failing: int
    """Results that fail the check: findings, denials that no success came after, unverified threads."""
    known: int
    """Results that do not, since the baseline has them."""


class CheckReport(msgspec.Struct):
    """The document of `agentdash check --json`."""

    schema: Literal["agentdash.check/1"]
    threads: list[ThreadReport]
    unreadable_directories: list[UnreadableReport]
    """Directories that may contain more rollouts, but cannot be listed."""
    totals: TotalsReport
    """Number of threads by verdict."""
    gate: GateReport | None = None
    """Null without `--fail-on`, `--baseline` and `--write-baseline`."""

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
        schema="agentdash.check/1",
        threads=list(threads),
        unreadable_directories=list(unreadable),
        totals=totals,
    )


def thread_report(worker: Worker, file: str) -> ThreadReport:
    """Return the report of a thread; `file` is its sanitized path."""
    return ThreadReport(
        id=worker.id,
        parent=worker.parent,
        file=file,
        agent=worker.agent.name,
        cli_version=worker.agent.version,
        verdict=worker.sandbox.verdict,
        state=str(worker.state),
        requested=requested_report(worker.sandbox.requested),
        policies=[policy_report(period) for period in worker.policies],
        findings=[finding_report(finding, FindingReport) for finding in worker.sandbox.findings],
        denials=[denial_report(entry) for entry in worker.sandbox.denials],
        notes=list(worker.notes),
        problem=None,
        cwd=worker.cwd,
    )


def unreadable_report(thread: str, file: str, problem: str) -> ThreadReport:
    """Return the report of a file that cannot be read."""
    return ThreadReport(
        id=thread,
        parent=None,
        file=file,
        agent="claude" if is_transcript(Path(file)) else "codex",
        cli_version=None,
        verdict="unverified",
        state="unreachable",
        requested=None,
        policies=[],
        findings=[],
        denials=[],
        notes=[],
        problem=problem,
    )


def denial_line(denial: DenialReport) -> str:
    """Return an entry of the ledger in one line."""
    certainty = "denied" if denial.certainty == "certain" else "likely denied"
    past = ", got past" if denial.got_past else ""
    quote = denial.quote.replace("\n", " ")
    return (
        f"{certainty} {denial.what} {denial.operation} {denial.target or '?'} {denial.count}x{past}: {quote}"
    )


def _named(thread: ThreadReport) -> str:
    return f"{thread.host}:{thread.id}" if thread.host else thread.id


def _print_remedy(report: FindingReport | DenialReport, console: Console) -> None:
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    if report.remedy:
        for label, line in remedy_lines(report.remedy, report.remedy_where, report.remedy_once):
            console.print(Text(f"  {label + ':' if label else '':<8}{line}"))


def print_check(report: CheckReport, console: Console) -> None:
    """Print the findings by thread, and the totals; secrets masked."""
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    report = mask_fields(report)
    for directory in report.unreadable_directories:
        console.print(Text(str(directory)))
    for thread in report.threads:
        if thread.problem:
            console.print(Text(f"{thread.file}: cannot be read: {thread.problem}"))
        for finding in thread.findings:
            version = thread.cli_version or "?"
            console.print(
                Text(f"{_named(thread)}  {thread.agent} {version}  {finding.kind}  ({finding.direction})")
            )
            console.print(Text(f"  {finding.message}"))
            for label, text in difference_lines(finding):
                console.print(Text(f"  {label}: {text}"))
            for evidence in finding.evidence:
                console.print(Text(f"  {evidence.source} {evidence.at or ''}  {evidence.text}"), style="dim")
            _print_remedy(finding, console)
        for denial in thread.denials:
            if not denial.got_past:
                console.print(Text(f"{_named(thread)}  {denial_line(denial)}"))
                _print_remedy(denial, console)
    totals = report.totals
    verdicts = f"{totals.match} match, {totals.mismatch} mismatch, {totals.unverified} unverified"
    unreadable = f", {totals.unreadable} unreadable" if totals.unreadable else ""
    denials = f", {totals.denials} denials ({totals.open_denials} not got past)" if totals.denials else ""
    console.print(Text(f"{quantity(totals.threads, 'thread')}: {verdicts}{unreadable}{denials}"))


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
            found.setdefault((denial.what, stable_target(denial.target)), []).append((thread.id, denial))
    targets = [_target_report(target, denials) for (_, target), denials in found.items()]
    targets.sort(key=lambda target: (-target.open, -target.count, target.target or ""))
    return DenialsReport(
        schema="agentdash.check-denials/2",
        threads=len(audit.threads),
        unreadable=audit.totals.unreadable,
        targets=targets,
        remedies=[
            _remedy_report(each)
            for each in common_remedies(denial for thread in audit.threads for denial in thread.denials)
        ],
    )


def _remedy_report(common: CommonRemedy) -> CommonRemedyReport:
    return CommonRemedyReport(
        remedy=common.remedy, remedy_where=common.where, targets=common.targets, calls=common.calls
    )


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
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

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
        console.print(Text(f"\n{common.remedy}"))
        where = f" ({common.remedy_where})" if common.remedy_where else ""
        calls = quantity(common.calls, "denied call")
        console.print(Text(f"  would have avoided {calls}: {named}{where}"), style="dim")
    unreadable = f", {report.unreadable} unreadable" if report.unreadable else ""
    threads, targets = quantity(report.threads, "thread"), quantity(len(report.targets), "denied target")
    console.print(Text(f"{threads}{unreadable}, {targets}"))
