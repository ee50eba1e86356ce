"""`agentdash status --brief`: each worker in at most 400 bytes, as the document `agentdash.brief/1`."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.model.findings import Finding, Verdict
from agentdash.model.secrets import mask_secrets
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import ViaReport

MAX_WORKER_BYTES: Final = 400
"""Of one worker in UTF-8: an agent reads 20 of them in about 2,000 tokens."""
_MAX_ID_BYTES: Final = 64
_MAX_NAME_BYTES: Final = 40
_MAX_PANE_BYTES: Final = 40
_MAX_FINDINGS: Final = 3
_MAX_PROBLEM_BYTES: Final = 200
_CUT: Final = "…"


class BriefWorkerReport(msgspec.Struct, omit_defaults=True):
    """One worker in brief; what is not known or does not apply is left out."""

    id: str
    """Thread id, pane or `pid:PID`: a TARGET of `explain`, which shows all of it."""
    name: str
    """Its name; ends in `…` where it is cut."""
    agent: str
    """The worker CLI: `codex`, `claude` ..."""
    state: str
    """Its state, as in `agentdash.status/1`."""
    why: str
    """What it does or needs, with its object; ends in `…` where it is cut."""
    verdict: Verdict
    """`match`, `mismatch` or `unverified`."""
    since: str | None = None
    """When the state began."""
    pane: str | None = None
    """Its tmux pane."""
    needs_you: bool = False
    """Whether it needs the user now."""
    findings: list[str] = []
    """Kinds of its findings, worst first, without those that are for information; the last is `+N` where
    there are more."""
    remedy: str | None = None
    """What helps against the first of them; left out where it does not fit whole."""


class BriefReport(msgspec.Struct):
    """The document of `agentdash status --brief`. Times are ISO 8601 in UTC."""

    schema: Literal["agentdash.brief/1"]
    """Name and version of the document."""
    generated_at: str
    """When the fleet was read."""
    problems: list[str]
    """What could not be observed: sources that fail, and why the status file could not be used."""
    workers: list[BriefWorkerReport]
    """The workers, as `status` lists them."""


def brief_report(snapshot: Snapshot, via: ViaReport | None = None) -> BriefReport:
    """Return the document of a snapshot."""
    problems = [f"{source.name}: {source.detail}" for source in snapshot.failing_sources]
    problems += [f"engine: {snapshot.failure.text}"] if snapshot.failure is not None else []
    problems += [via.problem] if via is not None and via.problem else []
    return BriefReport(
        schema="agentdash.brief/1",
        generated_at=iso(snapshot.at) or "",
        problems=[_cut(mask_secrets(problem), _MAX_PROBLEM_BYTES) for problem in dict.fromkeys(problems)],
        workers=[brief_worker(worker) for worker in snapshot.workers],
    )


def brief_json(report: BriefReport) -> bytes:
    """Return the document with one line for each worker, without a final newline."""
    head = msgspec.json.encode(replace(report, workers=[])).removesuffix(b"]}")
    lines = b",\n".join(msgspec.json.encode(worker) for worker in report.workers)
    return head + (b"\n" + lines + b"\n" if lines else b"") + b"]}"


def brief_worker(worker: Worker) -> BriefWorkerReport:
    """Return a worker in at most `MAX_WORKER_BYTES`."""
    pane = str(worker.pane.key) if worker.pane else None
    findings = [finding for finding in worker.sandbox.findings if finding.severity != "info"]
    report = BriefWorkerReport(
        id=_cut(worker.id, _MAX_ID_BYTES),
        name=_cut(mask_secrets(worker.name), _MAX_NAME_BYTES),
        agent=worker.agent.name,
        state=str(worker.state),
        why="",
        verdict=worker.sandbox.verdict,
        since=iso(worker.assessment.since),
        pane=pane if pane != worker.id and _json_bytes(pane or "") <= _MAX_PANE_BYTES else None,
        needs_you=worker.needs_you,
        findings=_kinds(findings),
    )
    why = mask_secrets(worker.fact.text)
    remedy = next((finding.remedy.text for finding in findings if finding.remedy), None)
    if remedy is not None:
        whole = replace(report, why=why, remedy=mask_secrets(remedy))
        if _size(whole) <= MAX_WORKER_BYTES:
            return whole
    return replace(report, why=_cut(why, MAX_WORKER_BYTES - _size(report)))


def _kinds(findings: list[Finding]) -> list[str]:
    kinds = list(dict.fromkeys(str(finding.kind) for finding in findings))
    if len(kinds) <= _MAX_FINDINGS:
        return kinds
    return [*kinds[: _MAX_FINDINGS - 1], f"+{len(kinds) - _MAX_FINDINGS + 1}"]


def _size(report: BriefWorkerReport) -> int:
    return len(msgspec.json.encode(report))


def _json_bytes(text: str) -> int:
    """Return the size of a text between the quotes of JSON, where `"` and a backslash take two bytes."""
    return len(msgspec.json.encode(text)) - 2


def _cut(text: str, longest: int) -> str:
    """Return a text in at most `longest` bytes of JSON, with `…` at the end where it is cut."""
    if _json_bytes(text) <= longest:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _json_bytes(text[:middle] + _CUT) <= longest:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _CUT
