"""Structs that several documents share, and their conversion from the model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from agentdash.model.denials import LedgerEntry, Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.fact import Fact
from agentdash.model.findings import FIELD_LABELS, Finding, difference
from agentdash.model.fleet import SourceHealth
from agentdash.model.git import Repository
from agentdash.model.layers import LayerField
from agentdash.model.policy import Policy
from agentdash.model.remote import HostLink
from agentdash.model.requested import Requested, RequestField
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.thread import PolicyPeriod
from agentdash.model.times import day_of, iso
from agentdash.model.worker import Got


class SourceReport(msgspec.Struct):
    """Health of one source."""

    name: str
    ok: bool
    detail: str


def source_report(source: SourceHealth) -> SourceReport:
    """Return the report of a source."""
    return SourceReport(source.name, source.ok, source.detail)


class ViaReport(msgspec.Struct):
    """The status file that was read instead of live sources, because agentdash ran inside of a sandbox."""

    file: str
    age_seconds: float | None
    """Null if the file does not exist."""
    pid: int | None
    """Process that wrote it."""
    problem: str | None
    """Why it could not be used, and what to do; null if it was used."""


class AgentReport(msgspec.Struct):
    """The CLI that a worker runs."""

    name: str
    version: str | None


class FactReport(msgspec.Struct):
    """What a worker does or needs, and the object it is about."""

    kind: str
    """`run`, `leave`, `edit`, `approve`, `ask`, `idle`, `denied`, `refused`, `provider`, `sandbox`, `work`,
    `done`, `stopped`, `crashed`, `quit`, `unclear`."""
    what: str
    """In a few words, before the object."""
    object: str
    """The command, path, host, question or message, whole; empty if there is none."""
    form: str
    """What the object is: `command`, `path`, `host`, `text`."""
    why: str
    """In a few words, after the object; empty if nothing more is known."""
    text: str
    """All of it on one line."""


def fact_report(fact: Fact) -> FactReport:
    """Return the report of a fact."""
    return FactReport(
        kind=fact.kind, what=fact.what, object=fact.object, form=fact.form, why=fact.why, text=fact.text
    )


class RepositoryReport(msgspec.Struct):
    """The git repository of a worker's directory; null where a part is not known."""

    root: str
    """The working tree."""
    branch: str | None
    """Null also where HEAD is detached."""
    commit: str | None
    """The commit that is checked out."""
    worktree: str | None
    """Its name, if it is a linked worktree."""
    dirty: bool | None
    """Whether tracked files differ from the last commit."""
    upstream: str | None
    """The branch that it follows, `origin/main`."""
    ahead: int | None
    """Commits that the upstream has not."""
    behind: int | None
    """Commits of the upstream that it has not."""


def repository_report(repository: Repository) -> RepositoryReport:
    """Return the report of a repository."""
    return RepositoryReport(
        root=repository.root,
        branch=repository.branch,
        commit=repository.commit,
        worktree=repository.worktree,
        dirty=repository.dirty,
        upstream=repository.upstream,
        ahead=repository.ahead,
        behind=repository.behind,
    )


class UnreadableReport(msgspec.Struct):
    """A directory or file that could not be read, so that nothing is known of what is in it."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path} cannot be read: {self.problem}"


def unreadable(error: OSError) -> UnreadableReport:
    """Return the report of an error that has a `filename`."""
    path = "?" if error.filename is None else os.fsdecode(error.filename)
    return UnreadableReport(path=clean_line(path), problem=clean_line(error.strerror or str(error)))


class HostReport(msgspec.Struct):
    """Another host that is watched, and the link to it."""

    name: str
    state: Literal["connecting", "connected", "lost"]
    """The state of the link."""
    since: str | None
    """Since when the link has been in that state: ISO 8601, UTC."""
    detail: str
    """Why it was lost; what the agentdash there could not read."""
    version: str | None
    """Of the agentdash there; null: not known yet."""
    last_news: str | None
    """Of a lost link: when something was last received; null: never, or it is not lost."""
    clock_offset_seconds: float
    """Added to the times of that host; 0 below one second."""


def host_report(link: HostLink) -> HostReport:
    """Return the report of the link to a host."""
    return HostReport(
        name=link.name,
        state=link.state.value,
        since=iso(link.at),
        detail=link.detail,
        version=link.version,
        last_news=iso(link.news_at),
        clock_offset_seconds=round(link.clock_offset, 3),
    )


# ------------------------------------------------------------ numbers with their nouns


def quantity(number: int, noun: str) -> str:
    """Return a number of things in words: `1 thread`, `2 threads`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# ------------------------------------------------------------ encode a document


def document_json(document: msgspec.Struct, *, indent: int | None = 2) -> bytes:
    """Return JSON without a final newline, secrets masked; without an indent on one line."""
    encoded = msgspec.json.encode(mask_fields(document))
    return encoded if indent is None else msgspec.json.format(encoded, indent=indent)


# ------------------------------------------------------------
# Evidence, findings, denials and their remedies in documents


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


# ------------------------------------------------------------
# Requests, policies and what was observed of a sandbox in documents


class RequestOriginReport(msgspec.Struct):
    """Where one part of a request was set."""

    field: str
    """`filesystem`, `network`, `writable_roots`, `approval`, `reviewer`, `profile`."""
    layer: str
    """`argv`, `environment`, `thread setting`, `role`, `profile`, `project config`, `user config` ..."""
    file: str | None
    line: int | None
    text: str


class RequestedReport(msgspec.Struct):
    """What was asked for; null or empty where nothing asked for it."""

    filesystem: str | None
    network: str | None
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None
    origin: list[RequestOriginReport]
    """Where each part was set."""
    environment: list[str]
    """Settings that keep `PATH`, `HOME` or `CODEX_HOME` from commands, or that set sandbox flags for them."""
    since: str | None
    """When it was asked for."""
    as_of: str | None
    """When the configuration files were read, if they have changed since; null: as they were then."""


def requested_report(requested: Requested) -> RequestedReport:
    """Return the report of a request."""
    policy = requested.policy

    def asked(field: RequestField, value: str | None) -> str | None:
        return value if requested.origin(field) is not None else None

    return RequestedReport(
        filesystem=asked(RequestField.FILESYSTEM, policy.filesystem.value),
        network=asked(RequestField.NETWORK, policy.network.value),
        writable_roots=list(policy.writable_roots) if requested.origin(RequestField.FILESYSTEM) else [],
        approval=asked(RequestField.APPROVAL, policy.approval),
        reviewer=asked(RequestField.REVIEWER, policy.reviewer),
        origin=[
            RequestOriginReport(
                field=origin.field.value,
                layer=origin.layer.value,
                file=origin.file,
                line=origin.line,
                text=origin.text,
            )
            for origin in requested.origins
        ],
        environment=[str(rule) for rule in requested.environment],
        since=iso(requested.since),
        as_of=iso(requested.read_at),
    )


class PolicyReport(msgspec.Struct):
    """A policy and when it came into force."""

    since: str | None
    origin: str
    """What stated it: the record of the session log."""
    line: int
    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None


def policy_report(period: PolicyPeriod) -> PolicyReport:
    """Return the report of a policy with its origin."""
    policy = period.policy
    return PolicyReport(
        since=iso(period.since),
        origin=period.origin,
        line=period.line,
        filesystem=str(policy.filesystem),
        network=str(policy.network),
        writable_roots=list(policy.writable_roots),
        approval=policy.approval,
        reviewer=policy.reviewer,
    )


class ConfiguredReport(msgspec.Struct):
    """The policy in force."""

    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None


def configured_report(policy: Policy) -> ConfiguredReport:
    """Return the report of a policy."""
    return ConfiguredReport(
        filesystem=str(policy.filesystem),
        network=str(policy.network),
        writable_roots=list(policy.writable_roots),
        approval=policy.approval,
    )


class GotReport(msgspec.Struct):
    """What was observed of the newest command; null where it was not observed."""

    network_flag: str | None
    sandbox_flag: str | None
    seccomp: int | None
    no_new_privs: bool | None
    network_namespace: str | None
    sandboxed: bool | None


def got_report(got: Got) -> GotReport:
    """Return the report of what was observed."""
    return GotReport(
        network_flag=got.network_flag,
        sandbox_flag=got.sandbox_flag,
        seccomp=got.seccomp,
        no_new_privs=got.no_new_privs,
        network_namespace=got.network_namespace,
        sandboxed=got.sandboxed,
    )
