"""`agentdash metrics`: its text as Prometheus's own parser reads it."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from agentdash import __version__
from agentdash.cli.metrics import metrics_text
from agentdash.model.events import SourceSeen
from agentdash.model.states import Group, State
from agentdash.model.worker import Snapshot
from tests.unit.story import row

NOW = 1_763_000_000.0
Labels = frozenset[tuple[str, str]]


def parsed(text: str) -> dict[tuple[str, Labels], float]:
    """Return all samples; fails where two have the same name and labels, which Prometheus refuses."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def value(found: dict[tuple[str, Labels], float], metric: str, /, **labels: str) -> float:
    return found[f"agentdash_{metric}", frozenset(labels.items())]


def test_numbers() -> None:
    workers = (
        row("%1", State.WAITING_INPUT, since=NOW - 90),
        row("%2"),
        row("%3", agent="claude"),
        row("%4", State.COMPLETED, standing=Group.PAST),
    )
    found = parsed(metrics_text(Snapshot(NOW - 5, workers), NOW))
    assert value(found, "workers", agent="codex", state="running") == 1
    assert value(found, "workers", agent="claude", state="running") == 1
    assert value(found, "workers", agent="claude", state="waiting-input") == 0
    assert value(found, "past_workers") == 1
    assert value(found, "needs_you_workers") == 1
    assert value(found, "longest_wait_seconds") == 90
    labels = {"id": "%1", "name": "build", "agent": "codex", "state": "waiting-input"}
    assert value(found, "worker_wait_seconds", **labels) == 90
    assert value(found, "fleet_changed_timestamp_seconds") == NOW - 5
    assert value(found, "build_info", version=__version__) == 1


def test_empty_fleet_has_all_series_of_alerts() -> None:
    found = parsed(metrics_text(Snapshot(NOW), NOW))
    assert value(found, "workers", agent="codex", state="blocked-sandbox") == 0
    assert value(found, "findings", kind="network-open") == 0
    assert value(found, "longest_wait_seconds") == 0


@given(name=st.text(max_size=200), source=st.text(max_size=50))
def test_any_label_is_one_value(name: str, source: str) -> None:
    workers = (row("%1", State.WAITING_INPUT, since=NOW, name=name),)
    sources = (SourceSeen(at=NOW, name=source, ok=False, detail=""),)
    text = metrics_text(Snapshot(NOW, workers, sources), NOW)
    found = parsed(text)
    (waits,) = (dict(labels) for kind, labels in found if kind == "agentdash_worker_wait_seconds")
    assert waits["name"] == name[:120]
    assert value(found, "source_up", source=source) == 0
