"""`agentdash check`: an audit of rollouts, as the document `agentdash.check/2`, as text and as SARIF;
`--denials`, as `agentdash.check-denials/2` and a table.

`audit.py` runs the audit.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from urllib.parse import quote

import msgspec

from agentdash.agents.session_logs import agent_of_log
from agentdash.documents.worker import (
    DenialReport,
    FindingReport,
    PolicyReport,
    RequestedReport,
    document,
)
from agentdash.guide import sections
from agentdash.model.denials import stable_target
from agentdash.model.findings import DENIAL_KINDS, DIRECTIONS, FINDING_KINDS, MEANINGS, FindingKind, Verdict
from agentdash.model.secrets import mask_fields
from agentdash.model.worker import Worker
from agentdash.report.elements import (
    UnreadableReport,
    denial_line,
    difference_lines,
    print_denial,
    print_finding,
    quantity,
    remedy_lines,
    say,
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
    kinds = Counter(kind for thread in threads for kind in {finding.kind for finding in thread.findings})
    denials = [denial for thread in threads for denial in thread.denials]
    verdicts = {each: sum(thread.verdict == each for thread in threads) for each in get_args(Verdict)}
    totals = TotalsReport(
        threads=len(threads),
        **verdicts,
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
    for thread in report.threads:
        _print_thread(thread, console)
    totals = report.totals
    verdicts = f"{totals.match} match, {totals.mismatch} mismatch, {totals.unverified} unverified"
    parts = [verdicts, f"{totals.unreadable} unreadable" if totals.unreadable else ""]
    if totals.denials:
        parts.append(f"{quantity(totals.denials, 'denial')} ({totals.open_denials} unresolved)")
    say(console, f"{quantity(totals.threads, 'thread')}: {', '.join(filter(None, parts))}")


def _print_thread(thread: ThreadReport, console: Console) -> None:
    denials = [
        denial
        for denial in thread.denials
        if not denial.got_past and not any(is_about(finding, denial) for finding in thread.findings)
    ]
    if thread.findings or denials:
        say(console, f"{thread.id}  {thread.agent} {thread.cli_version or '?'}", style="bold")
    for finding in thread.findings:
        print_finding(finding, console, 2)
    for denial in denials:
        print_denial(denial, console, 2)


# ------------------------------------------------------------
# The results of an audit one by one: findings, open denials, unverified threads


UNVERIFIED: Final = "unverified"
"""The kind of the result of a thread without observations."""
DENIED_OTHER: Final = "denied-other"
"""The kind of an open denial that is neither one of files nor one of the network."""
RESULT_KINDS: Final[dict[str, str]] = {
    **{kind.value: meaning for kind, meaning in MEANINGS.items()},
    DENIED_OTHER: "a denied operation, neither of files nor of the network, that the worker did not get past",
    UNVERIFIED: "nothing was observed that could be compared with the policy",
}
"""What each kind of result means, in one line."""
_KIND_OF_DENIAL: Final = {
    "filesystem": FindingKind.DENIED_FILESYSTEM,
    "network": FindingKind.DENIED_NETWORK,
    "other": DENIED_OTHER,
}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, a denial that no success came after, or an unverified thread."""

    thread: ThreadReport
    kind: str
    """One of `RESULT_KINDS`."""
    about: str
    """What it is about, without times, so that it is the same in each audit: the target of a denial, or the
    values that differ."""
    message: str
    direction: str | None = None
    """Null for an unverified thread."""
    severity: str = "warning"
    details: tuple[str, ...] = ()
    """Further lines: differences, quotes, the remedy."""


def results(report: CheckReport) -> Iterator[Result]:
    """Yield the results of all threads, as far as they could be read."""
    for thread in report.threads:
        open_denials = [denial for denial in thread.denials if not denial.got_past]
        for finding in thread.findings:
            denial = next((each for each in open_denials if is_about(finding, each)), None)
            if denial is not None:
                open_denials.remove(denial)  # one cause, one result
            yield _of_finding(thread, finding, denial)
        yield from (_of_denial(thread, denial) for denial in open_denials)
        if thread.verdict == UNVERIFIED and thread.problem is None:
            meaning = RESULT_KINDS[UNVERIFIED]
            yield Result(thread=thread, kind=UNVERIFIED, about=UNVERIFIED, message=meaning)


def _of_finding(thread: ThreadReport, finding: FindingReport, denial: DenialReport | None) -> Result:
    differences = [f"{label}: {text}" for label, text in difference_lines(finding)]
    quotes = [f"{evidence.source}: {evidence.text}" for evidence in finding.evidence]
    return Result(
        thread=thread,
        kind=finding.kind,
        about=_target(denial) if denial else "; ".join(sorted(differences)) or finding.message,
        message=finding.message,
        direction=finding.direction,
        severity=finding.severity,
        details=(*differences, *quotes, *_remedy(finding)),
    )


def _of_denial(thread: ThreadReport, denial: DenialReport) -> Result:
    cannot_start = denial.what == "other" and denial.operation == "start"
    return Result(
        thread=thread,
        kind=FindingKind.SANDBOX_CANNOT_START if cannot_start else _KIND_OF_DENIAL[denial.what],
        about=_target(denial),
        message=f"nothing succeeded after it: {denial_line(denial)}",
        direction="narrower",
        details=tuple(_remedy(denial)),
    )


def _target(denial: DenialReport) -> str:
    return stable_target(denial.target) or f"{denial.operation}: {denial.quote}"


def _remedy(report: FindingReport | DenialReport) -> Iterator[str]:
    if report.remedy:
        for label, line in remedy_lines(report.remedy, report.remedy_where, report.remedy_once):
            yield f"{label}: {line}" if label else line


# ------------------------------------------------------------
# What fails `agentdash check --fail-on`


ANY: Final = "any"
"""Every result but unverified threads; what fails a check without options."""
FAIL_ON: Final = (ANY, UNVERIFIED, *DIRECTIONS, *(kind for kind in RESULT_KINDS if kind != UNVERIFIED))
"""The values of `--fail-on`."""


def is_failing(result: Result, fail_on: Collection[str]) -> bool:
    """Return whether a result fails the check."""
    if result.kind == UNVERIFIED:
        return UNVERIFIED in fail_on
    return not {ANY, result.kind, result.direction}.isdisjoint(fail_on)


def gate_report(report: CheckReport, fail_on: Sequence[str]) -> GateReport:
    """Return how many results of an audit fail the check."""
    failing = sum(is_failing(result, fail_on) for result in results(report))
    return GateReport(fail_on=list(dict.fromkeys(fail_on)), failing=failing)


def print_gate(report: CheckReport, gate: GateReport, console: Console) -> None:
    """Print what fails the check, and the counts, secrets masked."""
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    found: list[Result] = mask_fields(list(results(report)))
    for result in found:
        if is_failing(result, gate.fail_on):
            console.print(Text(f"fails: {result.thread.id}  {result.kind}  {result.about}"))
    console.print(Text(f"{gate.failing} of {len(found)} fail on {', '.join(gate.fail_on)}"))


# ------------------------------------------------------------
# SARIF 2.1.0, for code scanning. It has what GitHub's needs beyond the schema (its "SARIF support"): a full
# description and help for each rule, a region and `primaryLocationLineHash` for each result, and the
# directory of absolute paths.


_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"danger": "error", "warning": "warning", "info": "note"}
_FINGERPRINTS: Final = ("agentdash/v1", "primaryLocationLineHash")
"""Names of the hash of kind, thread and `Result.about`; the second is the only one that GitHub reads."""
_REGION: Final = {"startLine": 1}
"""A result is about a whole file: GitHub shows none without a region."""
_MAX_DESCRIPTION_CHARS: Final = 1000
"""GitHub's limit of `fullDescription.text`."""


def sarif(report: CheckReport, *, version: str, cwd: Path) -> str:
    """Return the document.

    Args:
        cwd: paths below this directory are relative to it.
    """
    fail_on = report.gate.fail_on if report.gate is not None else (ANY,)
    run = {
        "tool": {
            "driver": {"name": "agentdash", "version": version, "rules": list(map(_rule, RESULT_KINDS))}
        },
        "invocations": [_invocation(report, cwd)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, is_failing(result, fail_on), cwd) for result in results(report)],
    }
    run_document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(mask_fields(run_document)), indent=2).decode()


def _rule(kind: str) -> dict[str, Any]:
    severity = FINDING_KINDS[FindingKind(kind)].severity if kind in list(FindingKind) else "warning"
    help_text = sections().get(kind, RESULT_KINDS[kind])
    description = " ".join(help_text.partition("\n\n")[0].split())
    return {
        "id": kind,
        "shortDescription": {"text": RESULT_KINDS[kind]},
        "fullDescription": {"text": description[:_MAX_DESCRIPTION_CHARS]},
        "help": {"text": help_text, "markdown": help_text},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _invocation(report: CheckReport, cwd: Path) -> dict[str, Any]:
    """Return what SARIF has of the run itself: whether everything could be read."""
    return {
        "executionSuccessful": not report.totals.unreadable,
        "exitCode": report.exit_code,
        "workingDirectory": {"uri": f"{cwd.as_uri().rstrip('/')}/"},
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": str(each)}, "locations": [_location(each.path, cwd)]}
            for each in report.problems
        ],
    }


def _result(result: Result, fails: bool, cwd: Path) -> dict[str, Any]:
    is_undecided = result.kind == UNVERIFIED and not fails
    thread = result.thread
    identity = f"{result.kind}\0{thread.id}\0{result.about}".encode()
    return {
        "ruleId": result.kind,
        "kind": "open" if is_undecided else "fail",
        "level": "none" if is_undecided else _LEVELS[result.severity],
        "message": {"text": "\n".join((result.message, *result.details))},
        "locations": [_location(thread.file, cwd)],
        "partialFingerprints": dict.fromkeys(_FINGERPRINTS, hashlib.sha256(identity).hexdigest()),
        "properties": {
            "thread": thread.id,
            "agent": f"{thread.agent} {thread.cli_version or '?'}",
            "about": result.about,
            "direction": result.direction,
            "failing": fails,
        },
    }


def _location(file: str, cwd: Path) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": uri_in(cwd, file)}, "region": _REGION}}


def uri_in(base: Path, file: str) -> str:
    """Return the URI of a file: a relative reference if it is below a directory, else a `file:` URI.

    Args:
        base: absolute.
        file: relative to `base`, or absolute.
    """
    path = Path(os.path.normpath(base / file))
    if path.is_relative_to(base):
        return quote(path.relative_to(base).as_posix())
    return f"file://{quote(path.as_posix())}"


# ------------------------------------------------------------
# `agentdash check --denials`: the denial ledgers of many threads by target


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
    by_target: defaultdict[tuple[str, str | None], list[tuple[str, DenialReport]]] = defaultdict(list)
    by_remedy: defaultdict[str, list[DenialReport]] = defaultdict(list)
    for thread in audit.threads:
        for denial in thread.denials:
            by_target[denial.what, stable_target(denial.target)].append((thread.id, denial))
            if denial.remedy is not None:
                by_remedy[denial.remedy].append(denial)
    targets = [_target_report(target, denials) for (_, target), denials in by_target.items()]
    remedies = [
        CommonRemedyReport(
            remedy=remedy,
            remedy_where=denials[0].remedy_where,
            targets=list(dict.fromkeys(denial.target for denial in denials)),
            calls=sum(denial.count for denial in denials),
        )
        for remedy, denials in by_remedy.items()
    ]
    return DenialsReport(
        schema="agentdash.check-denials/2",
        threads=len(audit.threads),
        unreadable=audit.totals.unreadable,
        targets=sorted(targets, key=lambda each: (-each.open, -each.count, each.target or "")),
        remedies=sorted(remedies, key=lambda each: -each.calls),
    )


def _target_report(stable: str | None, found: list[tuple[str, DenialReport]]) -> DeniedTargetReport:
    denials = [denial for _, denial in found]
    return DeniedTargetReport(
        what=denials[0].what,
        target=stable if len({denial.target for denial in denials}) > 1 else denials[0].target,
        operations=list(dict.fromkeys(denial.operation for denial in denials)),
        certainty=min(denial.certainty for denial in denials),  # `certain` before `likely`
        threads=list(dict.fromkeys(thread for thread, _ in found)),
        count=sum(denial.count for denial in denials),
        open=len({thread for thread, denial in found if not denial.got_past}),
        first=min(filter(None, (denial.first for denial in denials)), default=None),
        last=max(filter(None, (denial.last for denial in denials)), default=None),
    )


def print_denials(report: DenialsReport, console: Console) -> None:
    """Print the targets as a table, secrets masked."""
    from rich.table import Table  # noqa: PLC0415 - documents need no tables
    from rich.text import Text  # noqa: PLC0415 - as above

    report = mask_fields(report)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("WHAT", "CALLS", "THREADS", "OPEN", "OPERATIONS", "TARGET"):
        table.add_column(column, no_wrap=column != "TARGET", overflow="fold")
    for target in report.targets:
        what = target.what if target.certainty == "certain" else f"{target.what} (likely)"
        counts = map(str, (target.count, len(target.threads), target.open))
        cells = (what, *counts, ", ".join(target.operations), target.target or "not named")
        table.add_row(*map(Text, cells))
    if report.targets:
        console.print(table)
    for common in report.remedies:
        named = ", ".join(target or "not named" for target in common.targets)
        console.print(f"\n{common.remedy}", markup=False)
        where = f" ({common.remedy_where})" if common.remedy_where else ""
        calls = quantity(common.calls, "denied call")
        say(console, f"would have avoided {calls}: {named}{where}", 2, style="dim")
    unreadable = f", {report.unreadable} unreadable" if report.unreadable else ""
    threads, targets = quantity(report.threads, "thread"), quantity(len(report.targets), "denied target")
    say(console, f"{threads}{unreadable}, {targets}")
