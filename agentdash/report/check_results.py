"""The results of an audit one by one: findings, open denials, unverified threads.

Which of them fail the check, and all of them as SARIF.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from agentdash.documents.worker import DenialReport, FindingReport
from agentdash.guide import sections
from agentdash.model.denials import stable_target
from agentdash.model.findings import DIRECTIONS, FINDING_KINDS, MEANINGS, FindingKind
from agentdash.model.secrets import mask_fields
from agentdash.report.check import CheckReport, GateReport, ThreadReport, is_about
from agentdash.report.elements import denial_line, difference_lines, remedy_lines

if TYPE_CHECKING:
    from rich.console import Console

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
    "filesystem": FindingKind.DENIED_FILESYSTEM.value,
    "network": FindingKind.DENIED_NETWORK.value,
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
    kind = _KIND_OF_DENIAL.get(denial.what, DENIED_OTHER)
    if denial.what == "other" and denial.operation == "start":
        kind = FindingKind.SANDBOX_CANNOT_START.value
    return Result(
        thread=thread,
        kind=kind,
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
        "tool": {"driver": {"name": "agentdash", "version": version, "rules": _rules()}},
        "invocations": [_invocation(report, cwd)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, is_failing(result, fail_on), cwd) for result in results(report)],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(mask_fields(document)), indent=2).decode()


def _rules() -> list[dict[str, Any]]:
    guide = sections()
    return [_rule(kind, guide.get(kind, meaning)) for kind, meaning in RESULT_KINDS.items()]


def _rule(kind: str, help_text: str) -> dict[str, Any]:
    severity = FINDING_KINDS[FindingKind(kind)].severity if kind in list(FindingKind) else "warning"
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
            {
                "level": "error",
                "message": {"text": str(problem)},
                "locations": [_location(problem.path, cwd)],
            }
            for problem in report.problems
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
