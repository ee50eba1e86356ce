"""Name the source of evidence by the worker CLI: the log of Claude Code is its transcript."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.worker import Assessment, Sandbox


def by_transcript(assessment: Assessment, sandbox: Sandbox) -> tuple[Assessment, Sandbox]:
    """Return both with the transcript as source in place of a rollout."""
    findings = tuple(replace(finding, evidence=_renamed(finding.evidence)) for finding in sandbox.findings)
    return (
        replace(assessment, evidence=_renamed(assessment.evidence)),
        replace(sandbox, evidence=_renamed(sandbox.evidence), findings=findings),
    )


def _renamed(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(
        replace(each, source=EvidenceSource.TRANSCRIPT) if each.source is EvidenceSource.ROLLOUT else each
        for each in evidence
    )
