"""The denial ledger: everything that a sandbox refused stays on record, got past or not."""

from __future__ import annotations

import tomllib

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.denials import LedgerEntry, stable_target
from agentdash.model.policy import Policy, PolicyRule
from agentdash.report.audit import audit
from agentdash.report.check import denials_report
from tests.unit.rollout_files import all_files
from tests.unit.story import CWD, FULL, WORKSPACE, T, begun, called, done, ended, polled, worker

DENIED = "touch: cannot touch '/srv/board/x': Read-only file system\n"


def ran(call: str, script: str, output: str = "", exit_code: int = 0, *, at: float = 102.0) -> list[e.Event]:
    """A command with its end."""
    return [called(call, script, at=at), ended(call, output, at=at + 0.5, exit_code=exit_code)]


def ledger(*events: e.Event) -> list[LedgerEntry]:
    return list(worker(begun(), *events, done(at=150.0), polled(160)).sandbox.denials)


def test_an_output_without_its_call_is_likely() -> None:
    """The line of the call was lost: what ran may as well have shown a text."""
    output = "OSError: [Errno 30] Read-only file system: '/srv/board/x'\n"
    (entry,) = ledger(ended("c1", output, at=102.5, exit_code=1))
    assert (entry.target, entry.certainty) == ("/srv/board/x", "likely")


def test_repeated_denials_are_one_entry() -> None:
    (entry,) = ledger(
        *ran("c1", "touch /srv/board/x", DENIED, 1), *ran("c2", "touch /srv/board/x", DENIED, 1, at=110.0)
    )
    assert (entry.count, entry.calls, entry.first, entry.last) == (2, ("c1", "c2"), 102.5, 110.5)


@pytest.mark.parametrize(
    ("names", "stable"),
    [
        ((".config.aB3dE6", ".config.Zz9yX8"), ".config.*"),  # rsync
        (("tmp.aB3dE6gH9k", "tmp.xY1zK2pQ4r"), "tmp.*"),  # mktemp
        (("tmpab12cd_9", "tmpzz81kq0x"), "tmp*"),  # Python
        (
            ("p.0f0e1a2b-1111-4222-8333-123456789abc.tmp", "p.9a0e1a2b-1111-4222-8333-123456789abd.tmp"),
            "p.*.tmp",
        ),
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


def got_past(
    script: str, *, denied: str = "touch /srv/board/x", output: str = "", printed: str = DENIED
) -> bool:
    """Whether a script that exits with 0 later got past the denial of another one."""
    (entry, *_) = ledger(*ran("c1", denied, printed, 1), *ran("c2", script, output, at=110.0))
    return entry.got_past


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("touch /srv/board/x", True),
        ("cp y /srv/board/x", True),
        ("cd /srv/board && cp /tmp/y x && ls", True),
        ("bash -c 'touch /srv/board/x'", True),
        ("python3 -c \"open('/srv/board/x', 'w').write('1')\"", True),
        ("sqlite3 /srv/board/x 'insert into tasks values (1)'", True),
        ("sqlite3 /srv/board/x 'select * from tasks'", False),
        ('echo "/srv/board/x is read-only"', False),
        ("touch /srv/board/xy", False),
        ("test -e /srv/board/x || touch y", False),
        ("if [ -w /srv/board/x ]; then touch /srv/board/x; fi", False),
        ("touch /srv/board/x 2>/dev/null || true", False),
        ("cat /srv/board/x; ls -l /srv/board/x", False),
        ("cp /srv/board/x y", False),
        ("./report --for /srv/board/x", False),
    ],
)
def test_writing_a_target_is_past_and_naming_it_is_not(script: str, expected: bool) -> None:
    assert got_past(script) is expected


def test_the_same_program_with_the_same_target_is_past() -> None:
    printed = "board: /srv/board/x: Read-only file system\n"
    assert got_past(
        "board done --file /srv/board/x 7", denied="board done --file /srv/board/x 6", printed=printed
    )
    assert not got_past(
        "board show --file /srv/board/x", denied="board done --file /srv/board/x 6", printed=printed
    )


RESOLVED_NOT = "curl: (6) Could not resolve host: example.org\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("curl -sS https://example.org/y", True),
        ("curl -s https://example.org/y | head -3", False),
        ("curl -so y https://example.org/y; ls", False),
        ("curl https://example.org/y | head -3", True),
        ("git clone https://example.org/a.git", True),
        ("npm config set registry https://example.org", False),
        ("echo https://example.org/y", False),
        ("curl https://api.example.org/y", False),
    ],
)
def test_a_host_is_reached_by_what_connects_to_it(script: str, expected: bool) -> None:
    assert got_past(script, denied="curl -sS https://example.org/x", printed=RESOLVED_NOT) is expected


def test_denied_again_is_open_again() -> None:
    events = [
        *ran("c1", "touch /srv/board/x", DENIED, 1),
        *ran("c2", "touch /srv/board/x", at=110.0),
        *ran("c3", "touch /srv/board/x", DENIED, 1, at=120.0),
    ]
    (entry,) = ledger(*events)
    assert (entry.got_past, entry.count) == (False, 2)


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


# ---------------------------------------------------------------- the policy that was in force


def set_policy(policy: Policy, at: float) -> e.Event:
    return e.PolicySet(thread=T, at=at, line=7, policy=policy, origin="turn_context", cwd=CWD)


def roots_of(entry: LedgerEntry) -> list[str]:
    assert entry.remedy is not None
    roots = tomllib.loads(entry.remedy.text)["sandbox_workspace_write"]["writable_roots"]
    return list(roots)


def test_a_remedy_is_of_the_policy_in_force_when_the_call_was_made() -> None:
    """The policy changed while the command ran, and again afterwards."""
    more = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv/later", "write")))
    (entry,) = ledger(
        called("c1", "touch /srv/board/x", at=102.0),
        set_policy(more, 103.0),
        ended("c1", DENIED, at=104.0, exit_code=1),
        set_policy(FULL, 105.0),
    )
    assert (entry.policy, roots_of(entry)) == (0, ["/srv/board"])


def test_a_policy_that_was_stated_later_is_no_measure() -> None:
    """The head of the file was not read."""
    logged = e.ViolationLogged(
        thread=T, at=102.5, call="c1", resource="filesystem", reason="read_only_file_system", path="/srv/b/x"
    )
    started = [event for event in begun() if not isinstance(event, e.PolicySet)]
    later = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv/later", "write")))
    found = worker(
        started, called("c1", "./tool", at=102.0), ended("c1", "no\n", exit_code=1), logged,
        set_policy(later, 110.0), done(at=150.0), polled(160),
    )  # fmt: skip
    (entry,) = found.sandbox.denials
    assert (entry.policy, roots_of(entry)) == (-1, ["/srv/b"])
    assert entry.remedy is not None
    assert entry.remedy.once is None  # it would replace roots that are not known
    assert [f.configured for f in found.sandbox.findings if f.kind == "denied-filesystem"] == ["not stated"]
