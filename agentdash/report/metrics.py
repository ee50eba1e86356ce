"""`agentdash metrics`: the fleet in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, get_args

from agentdash import __version__
from agentdash.model.denials import Certainty
from agentdash.model.findings import SEVERITIES, FindingKind, Verdict
from agentdash.model.secrets import mask_secrets
from agentdash.model.states import Group, State
from agentdash.model.worker import Snapshot, Worker

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MAX_LABEL_CHARACTERS: Final = 120
_MAX_WAITING: Final = 200
"""Workers with a series of their own: each label value is a series that Prometheus keeps for weeks."""


class _Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


def metrics_text(snapshot: Snapshot, now: float) -> str:
    """Return the metrics of a snapshot. Past workers count in `agentdash_past_workers` alone.

    Args:
        now: unix seconds, for what lasts still.
    """
    present = [worker for worker in snapshot.workers if worker.group is not Group.PAST]
    waiting = sorted(
        (worker for worker in present if worker.needs_you and worker.assessment.since is not None),
        key=lambda worker: worker.assessment.since or 0.0,
    )
    past = len(snapshot.workers) - len(present)
    failed = snapshot.failure is not None
    parts = (
        _gauge("build_info", "Version of agentdash.", [_Sample(1, {"version": __version__})]),
        _gauge("engine_failed", "Whether the engine failed, so that the rest is old.", [_Sample(failed)]),
        _gauge("fleet_changed_timestamp_seconds", "When the fleet changed last.", [_Sample(snapshot.at)]),
        _gauge("workers", "Workers by worker CLI and state, without past ones.", _states(present)),
        _gauge("past_workers", "Workers that ended before the user last looked.", [_Sample(past)]),
        _gauge("needs_you_workers", "Workers that need the user.", [_Sample(snapshot.counts()["needs-you"])]),
        _gauge("verdicts", "Workers by the verdict on their sandbox.", _verdicts(present)),
        _gauge("findings", "Findings about sandboxes by kind.", _findings(present)),
        _gauge("findings_by_severity", "Findings about sandboxes by severity.", _severities(present)),
        _gauge("denials", "Denials in the ledgers of workers by certainty.", _denials(present)),
        _gauge(
            "longest_wait_seconds",
            "How long the user has been needed, by the worker that has waited longest; 0 if none does.",
            [_Sample(max((_waited(worker, now) for worker in waiting), default=0.0))],
        ),
        _gauge(
            "worker_wait_seconds",
            "How long each worker has needed the user; those that wait longest.",
            [_Sample(_waited(worker, now), _labels(worker)) for worker in waiting[:_MAX_WAITING]],
        ),
        _gauge(
            "source_up",
            "Whether a source of facts works.",
            [_Sample(source.ok, {"source": source.name}) for source in snapshot.sources],
        ),
    )
    return "".join(line for part in parts for line in part)


def _states(workers: Iterable[Worker]) -> Iterator[_Sample]:
    """Yield the number of workers by CLI and state, also the zeros: a series that vanishes fires no alert."""
    counts = Counter((worker.agent.name, worker.state) for worker in workers)
    for agent in sorted({agent for agent, _ in counts}) or ["codex"]:
        for state in State:
            yield _Sample(counts[agent, state], {"agent": agent, "state": state})


def _verdicts(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(worker.sandbox.verdict for worker in workers)
    for verdict in get_args(Verdict):
        yield _Sample(counts[verdict], {"verdict": verdict})


def _findings(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(finding.kind for worker in workers for finding in worker.sandbox.findings)
    for kind in FindingKind:
        yield _Sample(counts[kind], {"kind": kind})


def _severities(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(finding.severity for worker in workers for finding in worker.sandbox.findings)
    for severity in SEVERITIES:
        yield _Sample(counts[severity], {"severity": severity})


def _denials(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts: Counter[str] = Counter()
    for worker in workers:
        for entry in worker.sandbox.denials:
            counts[entry.certainty] += entry.count
    for certainty in get_args(Certainty):
        yield _Sample(counts[certainty], {"certainty": certainty})


def _waited(worker: Worker, now: float) -> float:
    return max(0.0, now - (worker.assessment.since or now))


def _labels(worker: Worker) -> dict[str, str]:
    return {"id": worker.id, "name": worker.name, "agent": worker.agent.name, "state": worker.state}


def _gauge(name: str, meaning: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP agentdash_{name} {meaning}\n# TYPE agentdash_{name} gauge\n"
    for sample in samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
        value = int(sample.value) if sample.value == int(sample.value) else round(sample.value, 3)
        yield f"agentdash_{name}{{{labels}}} {value}\n" if labels else f"agentdash_{name} {value}\n"


def _escaped(value: str) -> str:
    masked = mask_secrets(str(value))
    return masked[:_MAX_LABEL_CHARACTERS].translate(_ESCAPES)
