"""`agentdash metrics`: the fleet in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, get_args

import click

from agentdash import __version__
from agentdash.cli.fleet_access import exit_code, read_fleet
from agentdash.cli.options import FLEET_OPTIONS, config_of, options
from agentdash.cli.output import print_text
from agentdash.model.denials import Certainty
from agentdash.model.findings import FindingKind, Verdict
from agentdash.model.secrets import mask_secrets
from agentdash.model.states import Group, State
from agentdash.model.usage_limits import UsageLimit, usage_limits
from agentdash.model.worker import Snapshot, Worker

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MAX_LABEL_CHARACTERS: Final = 120
_MAX_WAITING: Final = 200
"""Workers with a series of their own: each label value is a series that Prometheus keeps for weeks."""


class _Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


@click.command()
@options(FLEET_OPTIONS)
def metrics(**given: Any) -> int:
    """Print the fleet in Prometheus's text format: workers by state, findings by kind, seconds waiting.

    Exit code 2: the engine failed, or a server or host that was named cannot be read.

    \b
    agentdash metrics > /var/lib/node_exporter/agentdash.prom    for the textfile collector
    """
    snapshot, _ = read_fleet(config_of(given), None)
    print_text(metrics_text(snapshot, time.time()), nl=False)
    return exit_code(snapshot, given)


def metrics_text(snapshot: Snapshot, now: float) -> str:
    """Return the metrics of a snapshot. Past workers count in `agentdash_past_workers` alone.

    Zeros are printed as well: an alert on a series that vanishes never fires.

    Args:
        now: unix seconds, for what lasts still.
    """
    present = [worker for worker in snapshot.workers if worker.group is not Group.PAST]
    waiting = sorted(
        (worker for worker in present if worker.needs_you and worker.assessment.since is not None),
        key=lambda worker: worker.assessment.since or 0.0,
    )
    past = len(snapshot.workers) - len(present)
    verdicts = Counter(worker.sandbox.verdict for worker in present)
    kinds = Counter(finding.kind for worker in present for finding in worker.sandbox.findings)
    denials: Counter[str] = Counter()
    for worker in present:
        for entry in worker.sandbox.denials:
            denials[entry.certainty] += entry.count
    limits = [_Sample(limit.window.used, _limit_labels(limit)) for limit in usage_limits(present, now)]
    by_verdict = _counts("verdict", verdicts, get_args(Verdict))
    longest = max((_waited(worker, now) for worker in waiting), default=0.0)
    gauges: list[tuple[str, str, Iterable[_Sample]]] = [
        ("build_info", "Version of agentdash.", [_Sample(1, {"version": __version__})]),
        ("engine_failed", "Whether the rest is old.", [_Sample(snapshot.failure is not None)]),
        ("fleet_changed_timestamp_seconds", "When the fleet changed last.", [_Sample(snapshot.at)]),
        ("workers", "Workers by worker CLI and state, without past ones.", _states(present)),
        ("past_workers", "Workers that ended before the user last looked.", [_Sample(past)]),
        ("needs_you_workers", "Workers that need the user.", [_Sample(snapshot.counts()["needs-you"])]),
        ("verdicts", "Workers by the verdict on their sandbox.", by_verdict),
        ("findings", "Findings about sandboxes by kind.", _counts("kind", kinds, FindingKind)),
        ("denials", "Denials by certainty.", _counts("certainty", denials, get_args(Certainty))),
        (
            "longest_wait_seconds",
            "How long the user has been needed.",
            [_Sample(longest)],
        ),
        (
            "worker_wait_seconds",
            "How long each worker has needed the user; those that wait longest.",
            [_Sample(_waited(worker, now), _labels(worker)) for worker in waiting[:_MAX_WAITING]],
        ),
        ("usage_percent", "Usage limits of accounts, as stated last, until their reset.", limits),
        (
            "source_up",
            "Whether a source of facts works.",
            [_Sample(source.ok, {"source": source.name}) for source in snapshot.sources],
        ),
    ]
    return "".join(line for gauge in gauges for line in _lines(*gauge))


def _counts(label: str, counts: Mapping[Any, float], kinds: Iterable[str]) -> list[_Sample]:
    return [_Sample(counts[kind], {label: kind}) for kind in kinds]


def _states(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter((worker.agent.name, worker.state) for worker in workers)
    for agent in sorted({agent for agent, _ in counts}) or ["codex"]:
        for state in State:
            yield _Sample(counts[agent, state], {"agent": agent, "state": state})


def _waited(worker: Worker, now: float) -> float:
    return max(0.0, now - (worker.assessment.since or now))


def _labels(worker: Worker) -> dict[str, str]:
    return {"id": worker.id, "name": worker.name, "agent": worker.agent.name, "state": worker.state}


def _limit_labels(limit: UsageLimit) -> dict[str, str]:
    return {"agent": limit.agent, "home": limit.home, "plan": limit.window.plan, "span": limit.span}


def _lines(name: str, meaning: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP agentdash_{name} {meaning}\n# TYPE agentdash_{name} gauge\n"
    for sample in samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
        value = int(sample.value) if sample.value == int(sample.value) else round(sample.value, 3)
        yield f"agentdash_{name}{{{labels}}} {value}\n" if labels else f"agentdash_{name} {value}\n"


def _escaped(value: str) -> str:
    return mask_secrets(str(value))[:_MAX_LABEL_CHARACTERS].translate(_ESCAPES)
