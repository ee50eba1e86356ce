"""Targets of the command line: workers by pane, of one server or several, present or past."""

from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from agentdash.cli import fleet_access
from agentdash.cli.fleet_access import find, with_server_of
from agentdash.config import Config
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, PastPane, Snapshot, Worker

HERE, OTHER = PaneKey("default", "%4"), PaneKey("-L work", "%4")


def worker(name: str, key: PaneKey | None = None) -> Worker:
    pane = Pane(key, "s", "1:w", 1, "node") if key else None
    return Worker(name, "pane", name, Agent("codex"), Assessment(State.RUNNING, None, ""), pane=pane)


@pytest.fixture(autouse=True)
def _outside_of_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_access, "own_server", lambda: None)


def ids(snapshot: Snapshot, target: str) -> list[str]:
    return [found.id for found in find(snapshot, target).workers]


def test_every_form_of_a_pane_is_a_target() -> None:
    for target in ("%4", "work:%4", "-L work %4"):
        assert ids(Snapshot(1.0, (worker("a", OTHER), worker("b"))), target) == ["a"]
    both = Snapshot(1.0, (worker("a", HERE), worker("b", OTHER)))
    assert (ids(both, "default:%4"), ids(both, "work:%4")) == (["a"], ["b"])


def test_a_worker_of_another_host_has_its_ids_there_too() -> None:
    there = Worker("box:01a1fa8b", "pane", "n", Agent("codex"), Assessment(State.RUNNING, None, ""))
    snapshot = Snapshot(1.0, (replace(there, host="box", pane_there="%70000"), worker("a", OTHER)))
    for target in ("01a1fa8b", "01a1f", "box:01a1fa8b", "box:01a1", "box:%70000"):
        assert ids(snapshot, target) == [there.id], target
    for target in ("%70000", "box:%7000", "1fa8b", "bo"):
        assert ids(snapshot, target) == [], target


def test_pane_of_several_servers_is_the_callers_own_or_ambiguous(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Snapshot(1.0, (worker("a", HERE), worker("b", OTHER)))
    with pytest.raises(click.UsageError, match=r"choose from default:%4, work:%4$"):
        ids(both, "%4")
    for server, expected in (("-L work", ["b"]), ("default", ["a"])):
        monkeypatch.setattr(fleet_access, "own_server", lambda server=server: server)
        assert ids(both, "%4") == expected


def test_own_pane_without_a_worker_is_not_that_of_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Snapshot(1.0, (worker("b", OTHER),), idle_panes=(HERE,))
    assert ids(snapshot, "%4") == ["b"]
    monkeypatch.setattr(fleet_access, "own_server", lambda: "default")
    found = find(snapshot, "%4")
    assert (found.workers, found.pane) == ((), HERE)


def test_past_pane_is_its_thread_or_its_last_worker() -> None:
    ended = worker("%4")
    past = (PastPane(HERE, "t1"), PastPane(OTHER, "-L work %4", shown=ended))
    snapshot = Snapshot(1.0, (worker("t1"),), past=past)
    assert ids(snapshot, "default:%4") == ["t1"]
    found = find(snapshot, "work:%4")
    assert (found.workers, found.has_ended) == ((ended,), True)


def test_pane_of_an_ended_server_counts_last() -> None:
    past = (PastPane(HERE, "t1", is_stale=True),)
    assert ids(Snapshot(1.0, (worker("t1"), worker("b", OTHER)), past=past), "%4") == ["b"]
    assert ids(Snapshot(1.0, (worker("t1"),), past=past), "%4") == ["t1"]


def test_server_of_a_target_is_watched() -> None:
    assert with_server_of(Config(), "work:%4").socket_names == ("work",)
    assert with_server_of(Config(), "-L work %4").socket_names == ("work",)
    assert with_server_of(Config(), "/tmp/s:%4").socket_paths == (Path("/tmp/s"),)
    assert with_server_of(Config(), "%4") == with_server_of(Config(), "default:%4") == Config()
