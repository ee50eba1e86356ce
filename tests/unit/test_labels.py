"""Labels and pins of the user: kept for the session of a worker, in the state directory."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.demo.day import demo_hub
from agentdash.documents.read_worker import read_worker
from agentdash.documents.worker import WorkerReport, document
from agentdash.engine.judge.attention import NO_SESSION, bookmark_of, is_of
from agentdash.engine.user_attention import UserAttention
from agentdash.model.worker import Snapshot, Worker
from agentdash.store.attention import AttentionFile, AttentionSource


def demo() -> Snapshot:
    return asyncio.run(demo_hub(at=60.0)[0].once())


def of_kind(kind: str) -> Worker:
    return next(each for each in demo().workers if each.kind == kind)


def test_labels_and_pins_reach_other_dashboards_and_documents(tmp_path: Path) -> None:
    file = AttentionFile(tmp_path, Path("/home"))
    hub, clock = demo_hub(at=60.0)
    thread = next(each for each in asyncio.run(hub.once()).workers if each.kind == "codex-thread")
    user = UserAttention(hub, clock, file.change)
    assert user.mark(thread, "  payment\x1b[31m retries ", pinned=True) is None
    other, _ = demo_hub(at=60.0)
    other.take(asyncio.run(AttentionSource(file, clock).poll(other.fleet)))
    shown = next(each for each in asyncio.run(other.once()).workers if each.id == thread.id)
    assert (shown.title, shown.name, shown.pinned) == ("payment retries", thread.name, True)
    report = document(WorkerReport, shown)
    assert (report.label, report.pinned) == ("payment retries", True)
    there = read_worker(report, "build")
    assert (there.title, there.pinned) == ("payment retries", False)
    assert user.mark(shown, "", pinned=False) is None
    assert file.read().bookmarks == ()


@pytest.mark.parametrize(
    ("kind", "change", "is_the_session"),
    [
        ("codex-thread", {"started": None}, True),
        ("pane", {}, True),
        ("pane", {"started": 1.0}, False),
        ("pane", {"started": None}, False),
    ],
)
def test_the_next_session_in_a_pane_has_no_label(kind: str, change: dict, is_the_session: bool) -> None:
    worker = of_kind(kind)
    mark = bookmark_of(worker, "mine", pinned=False)
    assert mark is not None
    assert is_of(mark, replace(worker, **change)) is is_the_session


def test_a_pane_without_a_known_start_has_no_label() -> None:
    worker = replace(of_kind("pane"), started=None)
    assert UserAttention(*demo_hub(at=60.0)).mark(worker, "mine", pinned=True) == NO_SESSION


def test_secrets_in_labels_are_masked_and_labels_are_short() -> None:
    label = f"key ghp_0123456789abcdefghijABCDEFGHIJ012345 {'x' * 500}"
    mark = bookmark_of(of_kind("pane"), label, pinned=False)
    assert mark is not None
    assert "ghp_01234" not in mark.label
    assert len(mark.label) <= 80
