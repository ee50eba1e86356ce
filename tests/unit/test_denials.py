"""A denial is one only where the policy makes it plausible."""

from __future__ import annotations

import pytest

from agentdash.facts.policy import Filesystem, Network, Policy, Rule
from agentdash.judge.denials import denial
from agentdash.judge.remedy import writable_root

CWD = "/home/dev/project"
WORKSPACE = Policy(Filesystem.WORKSPACE, Network.OFF, (Rule("/", "read"), Rule(CWD, "write"), Rule("/tmp", "write")))
ONLINE = Policy(Filesystem.WORKSPACE, Network.ON, WORKSPACE.rules)
FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
BOARD = "python3 -c \"import sqlite3,os; c=sqlite3.connect(os.path.expanduser('~/board/kanban.db'))\""


@pytest.mark.parametrize(
    ("output", "what", "path"),
    [
        ("touch: cannot touch '/home/dev/x': Read-only file system", "filesystem", "/home/dev/x"),
        ("touch: cannot touch '/home/dev/x': Permission denied", "filesystem", "/home/dev/x"),
        ("Error: EROFS: read-only file system, mkdir '/home/dev/.local'", "filesystem", "/home/dev/.local"),
        ("OSError: [Errno 30] Read-only file system: '/home/dev/.aider'", "filesystem", "/home/dev/.aider"),
        ("error: Failed to initialize cache at `/home/dev/.cache/uv`\n Read-only file system (os error 30)", "filesystem", None),
        ("error connecting to /tmp/tmux-0/lab (Operation not permitted)", "network", None),
        ("Error: connect EPERM 127.0.0.1:5432", "network", None),
        ("bwrap: setting up uid map: Permission denied", "sandbox", None),
    ],
)
def test_denied(output: str, what: str, path: str | None) -> None:
    found = denial("cmd", output, WORKSPACE, CWD)
    assert found is not None
    assert (found.what, found.path, found.certain) == (what, path, True)
    assert found.quote in output


@pytest.mark.parametrize(
    ("output", "policy"),
    [
        ("cat: /home/dev/project/x: Permission denied", WORKSPACE),  # may be written: its mode, not the sandbox
        ("mkdir: cannot create directory '/tmp/x': Permission denied", WORKSPACE),
        ("touch: cannot touch '/home/dev/x': Read-only file system", None),
        ("error connecting to /tmp/tmux-0/lab (Operation not permitted)", ONLINE),
        ("curl: (6) Could not resolve host: example.com", ONLINE),
        ("No such file or directory", WORKSPACE),
        ("ssh: Permission denied (publickey).", WORKSPACE),
    ],
)
def test_an_ordinary_failure(output: str, policy: Policy | None) -> None:
    assert denial("cmd", output, policy, CWD) is None


def test_under_full_access_no_word_is_certain() -> None:
    found = denial("cmd", "touch: cannot touch '/home/dev/x': Read-only file system", FULL, CWD)
    assert found is not None
    assert not found.certain
    assert denial("cmd", "curl: (6) Could not resolve host: example.com", FULL, CWD) is None


def test_a_database_is_found_in_the_command() -> None:
    found = denial(BOARD, "sqlite3.OperationalError: unable to open database file", WORKSPACE, CWD)
    assert found is not None
    assert found.path == "/home/dev/board/kanban.db"
    assert writable_root(found.path, WORKSPACE) == 'sandbox_workspace_write.writable_roots = ["/home/dev/board"]'


def test_a_name_that_does_not_resolve_is_uncertain() -> None:
    found = denial("curl x", "curl: (6) Could not resolve host: example.com", WORKSPACE, CWD)
    assert found is not None
    assert not found.certain


def test_no_remedy_for_what_may_be_written() -> None:
    assert writable_root("/tmp/x.db", WORKSPACE) is None
