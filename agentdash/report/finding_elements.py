"""Evidence, findings, denials and their remedies in documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from agentdash.model.denials import LedgerEntry
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding
from agentdash.model.layer_words import FIELD_LABELS, difference
from agentdash.model.layers import LayerField
from agentdash.model.remedies import Remedy
from agentdash.model.times import day_of, iso


class EvidenceReport(msgspec.Struct):
    """One piece of evidence."""

    source: str
    at: str | None
    rule: str
    text: str
    agrees: bool
    """Whether it supports the state or verdict; contradicting evidence is listed too."""


def evidence_report(evidence: Iterable[Evidence]) -> list[EvidenceReport]:
    """Return the reports of pieces of evidence."""
    return [
        EvidenceReport(
            source=piece.source, at=iso(piece.at), rule=piece.rule, text=piece.text, agrees=piece.agrees
        )
        for piece in evidence
    ]


def remedy_fields(remedy: Remedy | None) -> dict[str, str | None]:
    """Return the three fields of a remedy in documents."""
    if remedy is None:
        return {"remedy": None, "remedy_where": None, "remedy_once": None}
    return {"remedy": remedy.text, "remedy_where": remedy.where, "remedy_once": remedy.once}


def remedy_lines(remedy: str, where: str | None, once: str | None) -> Iterator[tuple[str, str]]:
    """Yield a remedy as labelled lines for people; further lines of the same text have an empty label."""
    first, *further = remedy.splitlines()
    yield "remedy", first
    yield from (("", line) for line in further)
    if where:
        yield "where", where
    if once:
        yield "once", once


class DenialReport(msgspec.Struct):
    """All denials of one operation on one target, from the denial ledger."""

    what: Literal["filesystem", "network", "other"]
    operation: str
    target: str | None
    """Path, host or socket; null where neither output nor script names it."""
    certainty: str
    """`certain`, or `likely`: another cause could have the same words."""
    quote: str
    calls: list[str]
    """The newest calls that were denied."""
    count: int
    first: str | None
    last: str | None
    got_past: bool
    """Whether the same command, or a change of the same target, succeeded afterwards."""
    nested: str | None
    """The worker CLI that ran inside of the sandbox and failed there."""
    days: dict[str, int]
    """Denied calls by day (UTC), the newest days: `{"2026-11-20": 2}`."""
    remedy: str | None = None
    remedy_where: str | None = None
    remedy_once: str | None = None


def denial_report(entry: LedgerEntry) -> DenialReport:
    """Return the report of an entry of the denial ledger."""
    return DenialReport(
        what="other" if entry.what == "sandbox" else entry.what,
        operation=entry.operation,
        target=entry.target,
        certainty=entry.certainty,
        quote=entry.quote,
        calls=list(entry.calls),
        count=entry.count,
        first=iso(entry.first),
        last=iso(entry.last),
        got_past=entry.got_past,
        nested=entry.nested,
        days={day_of(day): count for day, count in entry.days},
        **remedy_fields(entry.remedy),
    )


class FieldReport(msgspec.Struct):
    """A cell of the layers in which two values differ."""

    name: str
    """`files`, `network`, `network_flag`, `sandbox_flag`, `seccomp`, `approval`, `reviewer`, `tmux`."""
    expected: str
    """The value it was compared with."""
    actual: str
    """The value that differs."""
    layer: str
    """The layer of the actual value: `requested`, `configured`, `applied`, `observed`."""
    reference: str
    """What it was compared with: `requested`, `configured`, `earlier` (the policy in force then),
    `allowed` (an escalation), `parent`, `before` (the policy before a change)."""
    expected_at: str | None
    """When that came into force."""
    actual_at: str | None
    """When it was observed, or came into force."""


class FindingReport(msgspec.Struct):
    """A difference between configured and observed sandbox, or a denial that stopped the worker."""

    kind: str
    direction: str
    severity: str
    message: str
    fields: list[FieldReport]
    """The cells that differ; empty for a denial."""
    evidence: list[EvidenceReport]
    remedy: str | None
    """Lines of a configuration file, or words; null where nothing narrow enough is known."""
    remedy_where: str | None = None
    """The file and the place in it for the lines; null where `remedy` is no configuration."""
    remedy_once: str | None = None
    """The shell command that starts Codex with this change for one run; null where there is none."""
    configured: str = ""
    """The configured side, quoted, with where it was read; empty where it is not known."""
    got: str = ""
    """The observed side, likewise."""
    since: str | None = None
    last: str | None = None
    count: int = 1
    """Observations that show it."""


def finding_report(finding: Finding) -> FindingReport:
    """Return the short report of a finding; `agentdash explain` has all of it."""
    return FindingReport(
        kind=finding.kind,
        direction=finding.direction,
        severity=finding.severity,
        message=finding.message,
        fields=field_reports(finding),
        evidence=evidence_report(finding.evidence),
        configured=finding.configured,
        got=finding.got,
        since=iso(finding.since),
        last=iso(finding.last),
        count=finding.count,
        **remedy_fields(finding.remedy),
    )


def field_reports(finding: Finding) -> list[FieldReport]:
    """Return the reports of the cells that differ."""
    return [
        FieldReport(
            name=field.name,
            expected=field.expected,
            actual=field.actual,
            layer=field.layer,
            reference=field.reference,
            expected_at=iso(field.expected_at),
            actual_at=iso(field.actual_at),
        )
        for field in finding.fields
    ]


def difference_lines(finding: Finding | FindingReport) -> Iterator[tuple[str, str]]:
    """Yield each cell that differs as a label and both values: `network`, `configured on, applied off`."""
    for field in finding.fields:
        expected, actual = difference(field)
        yield (
            FIELD_LABELS[LayerField(field.name)],
            f"{expected.label} {expected.text}, {actual.label} {actual.text}",
        )
