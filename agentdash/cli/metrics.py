"""`agentdash metrics`: the fleet in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, get_args

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


_Samples: TypeAlias = Iterable[tuple[float, Mapping[str, str]]]
"""Values with their labels."""


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
    waiting = [worker for worker in present if worker.needs_you and worker.assessment.since is not None]
    waiting.sort(key=lambda worker: worker.assessment.since or 0.0)
    states = Counter((worker.agent.name, worker.state) for worker in present)
    agents = sorted({agent for agent, _ in states}) or ["codex"]
    verdicts = Counter(worker.sandbox.verdict for worker in present)
    kinds = Counter(finding.kind for worker in present for finding in worker.sandbox.findings)
    denials: Counter[str] = Counter()
    for worker in present:
        for entry in worker.sandbox.denials:
            denials[entry.certainty] += entry.count
    past = len(snapshot.workers) - len(present)
    longest = max((_waited(worker, now) for worker in waiting), default=0.0)
    gauges: list[tuple[str, str, _Samples]] = [
        ("build_info", "Version of agentdash.", [(1, {"version": __version__})]),
        ("engine_failed", "Whether the rest is old.", [(snapshot.failure is not None, {})]),
        ("fleet_changed_timestamp_seconds", "When the fleet changed last.", [(snapshot.at, {})]),
        (
            "workers",
            "Workers by worker CLI and state, without past ones.",
            [(states[each, state], {"agent": each, "state": state}) for each in agents for state in State],
        ),
        ("past_workers", "Workers that ended before the user last looked.", [(past, {})]),
        ("needs_you_workers", "Workers that need the user.", [(snapshot.counts()["needs-you"], {})]),
        (
            "verdicts",
            "Workers by the verdict on their sandbox.",
            _counts("verdict", verdicts, get_args(Verdict)),
        ),
        ("findings", "Findings about sandboxes by kind.", _counts("kind", kinds, FindingKind)),
        ("denials", "Denials by certainty.", _counts("certainty", denials, get_args(Certainty))),
        ("longest_wait_seconds", "How long the user has been needed.", [(longest, {})]),
        (
            "worker_wait_seconds",
            "How long each worker has needed the user; those that wait longest.",
            [(_waited(worker, now), _labels(worker)) for worker in waiting[:_MAX_WAITING]],
        ),
        (
            "usage_percent",
            "Usage limits of accounts, as stated last, until their reset.",
            [(limit.window.used, _limit_labels(limit)) for limit in usage_limits(present, now)],
        ),
        (
            "source_up",
            "Whether a source of facts works.",
            [(source.ok, {"source": source.name}) for source in snapshot.sources],
        ),
    ]
    return "".join(line for gauge in gauges for line in _lines(*gauge))


def _counts(label: str, counts: Mapping[Any, float], kinds: Iterable[str]) -> _Samples:
    return [(counts[kind], {label: kind}) for kind in kinds]


def _waited(worker: Worker, now: float) -> float:
    return max(0.0, now - (worker.assessment.since or now))


def _labels(worker: Worker) -> dict[str, str]:
    return {"id": worker.id, "name": worker.name, "agent": worker.agent.name, "state": worker.state}


def _limit_labels(limit: UsageLimit) -> dict[str, str]:
    return {"agent": limit.agent, "home": limit.home, "plan": limit.window.plan, "span": limit.span}


def _lines(name: str, meaning: str, samples: _Samples) -> Iterator[str]:
    yield f"# HELP agentdash_{name} {meaning}\n# TYPE agentdash_{name} gauge\n"
    for value, labels in samples:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        number = int(value) if value == int(value) else round(value, 3)
        yield f"agentdash_{name}{{{shown}}} {number}\n" if shown else f"agentdash_{name} {number}\n"


def _escaped(value: str) -> str:
    return mask_secrets(str(value))[:_MAX_LABEL_CHARACTERS].translate(_ESCAPES)
