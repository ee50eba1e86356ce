"""The denial ledger: everything that a sandbox refused stays on record, got past or not."""

from io import StringIO

import pytest
from rich.console import Console

from agentdash.model import events as e
from agentdash.model.denials import LedgerEntry, stable_target
from agentdash.model.states import State
from agentdash.report.audit import audit
from agentdash.report.check import denials_report, print_denials
from tests.unit.rollout_files import all_files
from tests.unit.story import begun, called, done, ended, polled, worker

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


def test_an_output_without_its_call_is_likely() -> None:
    """The line of the call was lost: what ran may as well have shown a text."""
    output = "OSError: [Errno 30] Read-only file system: '/srv/board/x'\n"
    (entry,) = ledger(ended("c1", output, at=102.5, exit_code=1))
    assert (entry.target, entry.certainty) == ("/srv/board/x", "likely")


@pytest.mark.parametrize(
    ("names", "stable"),
    [
        ((".config.aB3dE6", ".config.Zz9yX8"), ".config.*"),  # rsync
        (("tmp.aB3dE6gH9k", "tmp.xY1zK2pQ4r"), "tmp.*"),  # mktemp
        (("tmpab12cd_9", "tmpzz81kq0x"), "tmp*"),  # Python
        (("p.0f0e1a2b-1111-4222-8333-123456789abc", "p.9a0e1a2b-1111-4222-8333-123456789abd"), "p.*"),
        (("c.json.3145728193", "c.json.299792458"), "c.json.*"),
    ],
)
def test_random_names_of_one_temporary_file_are_one_entry(names: tuple[str, str], stable: str) -> None:
    first, second = (f"/srv/board/{name}" for name in names)
    (entry,) = ledger(
        *ran("c1", f"touch {first}", DENIED.replace("/srv/board/x", first), 1),
        *ran("c2", f"touch {second}", DENIED.replace("/srv/board/x", second), 1, at=110.0),
    )
    assert (entry.target, entry.count, entry.calls) == (second, 2, ("c1", "c2"))
    assert (entry.first, entry.last) == (102.5, 110.5)
    assert stable_target(first) == stable_target(second) == f"/srv/board/{stable}"


@pytest.mark.parametrize(
    "path",
    [
        "/tmp/sha256sum",
        "/tmp/.bashrc.backup",
        "/tmp/log-2026-11-23.txt",
        "/srv/board/.git/objects/ab/cdef0123456789abcdef0123456789abcdef01",
        "/srv/orders/20261123",
        "/srv/app/4f3d2c1b",
    ],
)
def test_names_of_what_is_kept_are_not_random(path: str) -> None:
    """Two of them are two targets: getting past one is not getting past the other."""
    assert stable_target(path) == path
    assert stable_target("/home/dev/.npm/_cacache/tmp/1a2b3c4d") == "/home/dev/.npm/_cacache/tmp/*"


def test_a_thread_that_goes_on_is_complete_and_its_ledger_still_shows() -> None:
    events = [*ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "make -s", at=110.0)]
    found = worker(begun(), *events, done(at=150.0), polled(160))
    assert found.state is State.COMPLETED
    assert [entry.got_past for entry in found.sandbox.denials] == [False]


TOUCH = "touch /srv/board/x"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (ran("c2", TOUCH, at=110.0), (True, 1)),
        (ran("c2", f"{TOUCH} 2>/dev/null || true", at=110.0), (False, 1)),
        (ran("c2", "make", at=110.0), (False, 1)),
        ([*ran("c2", TOUCH, at=110.0), *ran("c3", TOUCH, DENIED, 1, at=120.0)], (False, 2)),
    ],
)
def test_the_same_command_that_succeeds_gets_past(later: list[e.Event], expected: tuple[bool, int]) -> None:
    (entry,) = ledger(*ran("c1", TOUCH, DENIED, 1), *later)
    assert (entry.got_past, entry.count) == expected


def test_dropped_entries_are_counted_and_noted() -> None:
    events: list[e.Event] = []
    for number in range(205):
        output = DENIED.replace("/srv/board/x", f"/srv/{number}")
        events += ran(f"c{number}", f"touch /srv/{number}", output, 1, at=102.0 + number / 10)
    found = worker(begun(), *events, done(at=150.0), polled(160))
    assert len(found.sandbox.denials) == 200
    assert found.sandbox.denials[0].target == "/srv/5"
    assert "5 older denials dropped" in found.notes


def test_denials_are_summed_up_by_target() -> None:
    report = denials_report(audit(all_files()))
    assert sum(target.count for target in report.targets) > 60
    board = next(each for each in report.remedies if "/home/dev/board" in each.remedy)
    assert (board.calls, board.targets) == (10, ["/home/dev/board/kanban.db"])
    out = StringIO()
    print_denials(report, Console(file=out, width=100))
    assert "would have avoided 10 denied calls: /home/dev/board/kanban.db" in out.getvalue()
