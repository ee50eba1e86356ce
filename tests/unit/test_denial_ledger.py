"""The denial ledger: everything that a sandbox refused stays on record, got past or not."""

from __future__ import annotations

import tomllib

import pytest

from agentdash.model import events as e
from agentdash.model.denials import LedgerEntry
from agentdash.model.states import State
from agentdash.report.audit import audit
from agentdash.report.denials import denials_report
from tests.unit.rollout_files import all_files
from tests.unit.story import CWD, begun, called, done, ended, polled, worker

DENIED = "touch: cannot touch '/srv/board/x': Read-only file system\n"


def ran(call: str, script: str, output: str = "", exit_code: int = 0, *, at: float = 102.0) -> list[e.Event]:
    """A command with its end."""
    return [called(call, script, at=at), ended(call, output, at=at + 0.5, exit_code=exit_code)]


def ledger(*events: e.Event) -> list[LedgerEntry]:
    return list(worker(begun(), *events, done(at=150.0), polled(160)).sandbox.denials)


def test_a_denial_is_entered_with_operation_target_and_call() -> None:
    (entry,) = ledger(*ran("c1", "touch /srv/board/x", DENIED, 1))
    assert (entry.what, entry.operation, entry.target) == ("filesystem", "create", "/srv/board/x")
    assert (entry.certainty, entry.count, entry.calls, entry.got_past) == ("certain", 1, ("c1",), False)
    assert (entry.first, entry.last) == (102.5, 102.5)


def test_repeated_denials_are_one_entry() -> None:
    (entry,) = ledger(
        *ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "touch /srv/board/x", DENIED, 1, at=110.0)
    )
    assert (entry.count, entry.calls, entry.first, entry.last) == (2, ("c1", "c2"), 102.5, 110.5)


def test_a_thread_that_goes_on_is_complete_and_its_ledger_still_shows() -> None:
    events = [*ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "make -s", at=110.0)]
    found = worker(begun(), *events, done(at=150.0), polled(160))
    assert found.state is State.COMPLETED
    assert [entry.got_past for entry in found.sandbox.denials] == [False]


def test_the_same_command_that_succeeds_later_got_past() -> None:
    events = [*ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "touch /srv/board/x", at=110.0)]
    assert [entry.got_past for entry in ledger(*events)] == [True]


def test_a_change_of_the_same_target_got_past() -> None:
    events = [*ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "cp y /srv/board/x", at=110.0)]
    assert [entry.got_past for entry in ledger(*events)] == [True]


def test_reading_the_target_or_another_success_is_not_past() -> None:
    for script in ("cat /srv/board/x", "ls -l /srv/board/x", "touch /srv/board/xy", "true"):
        events = [*ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", script, at=110.0)]
        assert [entry.got_past for entry in ledger(*events)] == [False], script


def test_a_target_in_the_workspace_is_named_relative_to_it() -> None:
    denied = "fatal: Unable to create '.git/index.lock': Read-only file system\n"
    events = [*ran("c1", "git add x", denied, 128), *ran("c2", "touch .git/index.lock", at=110.0)]
    (entry,) = ledger(*events)
    assert (entry.target, entry.got_past) == (f"{CWD}/.git/index.lock", True)


def test_denied_again_is_open_again() -> None:
    events = [
        *ran("c1", "touch /srv/board/x", DENIED, 1),
        *ran("c2", "touch /srv/board/x", at=110.0),
        *ran("c3", "touch /srv/board/x", DENIED, 1, at=120.0),
    ]
    (entry,) = ledger(*events)
    assert (entry.got_past, entry.count) == (False, 2)


def test_dropped_entries_are_counted_and_noted() -> None:
    events = [
        event
        for number in range(205)
        for event in ran(
            f"c{number}",
            f"touch /srv/{number}",
            f"touch: cannot touch '/srv/{number}': Read-only file system\n",
            1,
            at=102.0 + number / 10,
        )
    ]
    found = worker(begun(), *events, done(at=150.0), polled(160))
    assert len(found.sandbox.denials) == 200
    assert found.sandbox.denials[0].target == "/srv/5"
    assert "5 older denials dropped" in found.notes


def test_a_network_denial_names_the_host_and_is_likely() -> None:
    events = ran("c1", "curl https://example.org/x", "curl: (6) Could not resolve host: example.org\n", 6)
    found = worker(begun(), *events, done(at=150.0), polled(160))
    (entry,) = found.sandbox.denials
    assert (entry.what, entry.operation, entry.target) == ("network", "resolve", "example.org")
    assert entry.certainty == "likely"
    assert found.state is State.BLOCKED_SANDBOX
    assert [finding.kind for finding in found.sandbox.findings] == ["denied-network"]
    assert "likely" in found.assessment.why


@pytest.mark.slow
def test_denials_of_many_threads_are_listed_by_target_with_one_set_of_remedies() -> None:
    report = denials_report(audit(all_files()))
    targets = {target.target: target for target in report.targets}
    board = targets["/home/dev/board/kanban.db"]
    assert (board.what, board.operations, board.open) == ("filesystem", ["sqlite"], len(board.threads))
    assert targets["example.com"].certainty == "likely" or targets["example.com"].what == "network"
    roots = [common for common in report.remedies if "writable_roots" in common.remedy]
    assert [common.targets for common in roots] == [["/home/dev/board/kanban.db"]]
    assert tomllib.loads(roots[0].remedy) == {
        "sandbox_workspace_write": {"writable_roots": ["/home/dev/board"]}
    }
    assert report.exit_code == 1
