"""Workers of other hosts: their documents become rows that state the same, whatever else is in them."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from agentdash.collect.remote.link import SchemaError, parse_change
from agentdash.demo.day import demo_events
from agentdash.documents.read_worker import read_worker
from agentdash.documents.worker import ChangeReport, WorkerReport, document
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot, unreachable
from agentdash.model.fleet import Fleet, RemoteSeen
from agentdash.model.remote import HostLink, LinkState, RemoteHost
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker

LINK = HostLink("build1", LinkState.CONNECTED, 1.0, version="1")
_STEPS = 25


def demo_snapshots() -> Iterator[Snapshot]:
    """Yield the demo's fleet at several times: it shows every finding."""
    _, events = demo_events()
    fleet = Fleet()
    size = len(events) // _STEPS + 1
    for start in range(0, len(events), size):
        batch = events[start : start + size]
        fleet = reduce(fleet, batch)
        yield build_snapshot(fleet, batch[-1].at)


@pytest.fixture(scope="module")
def workers() -> list[Worker]:
    return [worker for snapshot in demo_snapshots() for worker in snapshot.workers]


def line(report: WorkerReport, change: str = "added") -> bytes:
    return msgspec.json.encode(
        ChangeReport(schema="agentdash.change/2", at="2026-01-01T00:00:00.000Z", change=change, worker=report)
    )


def parsed(report: WorkerReport) -> WorkerReport:
    worker = parse_change(line(report)).worker
    assert worker is not None
    return worker


def here(report: WorkerReport) -> WorkerReport:
    """Return the report of the same worker without what depends on the place of the reader."""
    return replace(
        report,
        id=report.id.removeprefix("build1:"),
        parent=report.parent and report.parent.removeprefix("build1:"),
        children=[],
        host=None,
    )


@pytest.mark.slow
def test_a_row_states_what_its_host_states(workers: list[Worker]) -> None:
    kinds = {finding.kind for worker in workers for finding in worker.sandbox.findings}
    assert len(kinds) > 15
    assert len({worker.state for worker in workers}) > 6
    for worker in workers:
        stated = document(WorkerReport, worker)
        row = read_worker(parsed(stated), "build1")
        assert here(document(WorkerReport, row)) == here(stated)
        assert (row.id, row.host, row.pane, row.notes) == (f"build1:{worker.id}", "build1", None, ())


@pytest.mark.slow
def test_children_are_those_of_their_host() -> None:
    last = list(demo_snapshots())[-1]
    stated = {w.id: read_worker(parsed(document(WorkerReport, w)), "build1") for w in last.workers}
    fleet = reduce(Fleet(), [RemoteSeen(at=1.0, host=RemoteHost(LINK, stated))])
    rows = build_snapshot(fleet, last.at).workers
    assert len(rows) == len(last.workers)
    assert {(w.id, w.parent, w.depth, w.children) for w in rows} == {
        (
            f"build1:{w.id}",
            w.parent and f"build1:{w.parent}",
            w.depth,
            tuple(f"build1:{child}" for child in w.children),
        )
        for w in last.workers
    }
    assert any(row.children for row in rows)


def test_a_lost_link_leaves_no_state(workers: list[Worker]) -> None:
    link = HostLink("build1", LinkState.LOST, 50.0, detail="Connection refused", news_at=40.0)
    for worker in workers:
        row = unreachable(worker, link)
        assert (row.state, row.assessment.since, row.stalled) == (State.UNREACHABLE, 40.0, None)
        assert not row.needs_you
        assert "Connection refused" in row.assessment.why
        assert "00:00:40" in row.assessment.why


# ---------------------------------------------------------------- what is not understood


def test_what_a_later_version_adds_is_said(workers: list[Worker]) -> None:
    stated = document(WorkerReport, next(worker for worker in workers if worker.sandbox.findings))
    raw = msgspec.json.decode(line(stated))
    worker = raw["worker"]
    worker["state"] = "dreaming"
    worker["new"] = {"a": [1]}
    worker["sandbox"]["findings"][0]["kind"] = "teleported"
    parsed_worker = parse_change(msgspec.json.encode(raw)).worker
    assert parsed_worker is not None
    row = read_worker(parsed_worker, "build1")
    assert row.state is State.UNKNOWN
    assert len(row.sandbox.findings) == len(stated.sandbox.findings) - 1
    assert [note.split(":")[0] for note in row.notes] == [
        "state of another version",
        "finding of another version",
    ]


@pytest.mark.parametrize(
    ("schema", "where"), [("agentdash.change/3", "update it here"), ("agentdash.change/1", "update it there")]
)
def test_another_schema_names_the_side_to_update(schema: str, where: str) -> None:
    with pytest.raises(SchemaError, match=where):
        parse_change(msgspec.json.encode({"schema": schema, "change": "added"}))


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"\xff\xfe",
        b'{"schema": "x/1", "change": "added"}',
        b'{"schema": "agentdash.change/2", "change": "added", "worker": {"id": 4}}',
        b'{"schema": "agentdash.change/2", "change": "added", "worker": {"state": "running"}}',
        b'{"schema": "agentdash.change/2", "change": "added", "worker": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_change(text)


def test_texts_are_sanitized_and_bounded(workers: list[Worker]) -> None:
    stated = document(WorkerReport, workers[0])
    evil = "\x1b]0;owned\x07\u202e\x9b31m" + "x" * 100_000
    raw = msgspec.json.decode(line(stated))
    raw["worker"] |= {"name": evil, "why": evil, "cwd": evil, "id": evil, "pids": [2**62] * 10_000}
    raw["worker"]["fact"]["object"] = evil
    raw["worker"]["evidence"] = [{"source": "screen", "at": None, "rule": evil, "text": evil, "agrees": True}]
    worker = parse_change(msgspec.json.encode(raw)).worker
    assert worker is not None
    row = read_worker(worker, "build1")
    texts = [row.name, row.id, row.cwd or "", row.assessment.why, row.fact.object]
    texts += [piece.text + piece.rule for piece in row.assessment.evidence]
    assert len(texts) == 6
    for text in texts:
        assert text.isprintable() or "\n" in text
        assert not set(text) & set("\x1b\x07\u202e\x9b")
        assert len(text) < 20_000
    assert len(row.pids) <= 2000
    assert max(row.pids) <= 1 << 53
