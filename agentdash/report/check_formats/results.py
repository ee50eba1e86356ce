"""The results of an audit one by one: findings, open denials, unverified threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from agentdash.model.denials import stable_target
from agentdash.model.findings import DENIAL_KINDS, FINDING_KINDS, FindingKind
from agentdash.report.check import CheckReport, ThreadReport
from agentdash.report.finding_elements import DenialReport, FindingReport, difference_lines, remedy_lines
from agentdash.report.quantities import quantity

UNVERIFIED: Final = "unverified"
"""The kind of the result of a thread of which nothing was observed."""
DENIED_OTHER: Final = "denied-other"
"""The kind of an open denial that is neither one of files nor one of the network."""
RESULT_KINDS: Final[dict[str, str]] = {
    **{kind.value: info.meaning for kind, info in FINDING_KINDS.items()},
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
    at: str | None = None
    """The time of the first observation, as its line in the session log has it."""
    line: int | None = None
    """The number of that line."""
    is_known: bool = False
    """Whether the baseline has it."""
    is_failing: bool = False
    """Whether it fails the check."""


def results(report: CheckReport) -> Iterator[Result]:
    """Yield the results of all threads, as far as they could be read, none of them failing."""
    for thread in report.threads:
        open_denials = [denial for denial in thread.denials if not denial.got_past]
        for finding in thread.findings:
            denial = next((each for each in open_denials if _is_about(finding, each)), None)
            if denial is not None:
                open_denials.remove(denial)  # one cause, one result
            yield _of_finding(thread, finding, denial)
        yield from (_of_denial(thread, denial) for denial in open_denials)
        if thread.verdict == UNVERIFIED and thread.problem is None:
            yield _of_unverified(thread)


def _is_about(finding: FindingReport, denial: DenialReport) -> bool:
    """Return whether a finding is about this entry of the denial ledger."""
    if finding.kind not in DENIAL_KINDS:
        return False
    is_named = denial.target is not None and f" {denial.target} " in finding.message
    return is_named or any(evidence.text.endswith(f"-> {denial.quote}") for evidence in finding.evidence)


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
        at=finding.since or next((evidence.at for evidence in finding.evidence), None),
    )


def _of_denial(thread: ThreadReport, denial: DenialReport) -> Result:
    certainty = "denied" if denial.certainty == "certain" else "likely denied"
    calls = quantity(denial.count, "call")
    kind = _KIND_OF_DENIAL.get(denial.what, DENIED_OTHER)
    if denial.what == "other" and denial.operation == "start":
        kind = FindingKind.SANDBOX_CANNOT_START.value
    return Result(
        thread=thread,
        kind=kind,
        about=_target(denial),
        message=f"{certainty}, and nothing succeeded after it: {denial.operation} "
        f"{denial.target or '(target not named)'}, {calls}",
        direction="narrower",
        details=(denial.quote, *_remedy(denial)),
        at=denial.first,
    )


def _of_unverified(thread: ThreadReport) -> Result:
    return Result(thread=thread, kind=UNVERIFIED, about=UNVERIFIED, message=RESULT_KINDS[UNVERIFIED])


def _target(denial: DenialReport) -> str:
    return stable_target(denial.target) or f"{denial.operation}: {denial.quote}"


def _remedy(report: FindingReport | DenialReport) -> Iterator[str]:
    if report.remedy:
        for label, line in remedy_lines(report.remedy, report.remedy_where, report.remedy_once):
            yield f"{label}: {line}" if label else line
