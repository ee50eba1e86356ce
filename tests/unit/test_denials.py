"""A denial is one only where the policy makes it plausible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentdash.engine.detect.denials import (
    _DATABASE,
    _NETWORK,
    _NO_SANDBOX,
    _READ_ONLY,
    _REFUSED,
    _SOCKET,
    _UNRESOLVED,
    _UNWRITTEN,
    _telling,
    denial,
)
from agentdash.engine.judge.findings.remedies import network, writable_root
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule

CWD = "/home/dev/project"
WORKSPACE = Policy(
    Filesystem.WORKSPACE, Network.OFF, (PolicyRule("/", "read"), PolicyRule(CWD, "write"), PolicyRule("/tmp", "write"))
)
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
        (
            "error: Failed to initialize cache at `/home/dev/.cache/uv`\n Read-only file system (os error 30)",
            "filesystem",
            None,
        ),
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
        (
            "cat: /home/dev/project/x: Permission denied",
            WORKSPACE,
        ),  # may be written: its mode, not the sandbox
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


def test_what_0_50_leaves_of_a_refusal_is_about_what_the_command_names() -> None:
    """Real: 0.49 and 0.50 keep no more of it than this."""
    said = "failed in sandbox: Permission denied"
    found = denial("touch /etc/x", said, WORKSPACE, CWD)
    assert found is not None
    assert (found.path, found.quote, found.certain) == ("/etc/x", said, True)
    assert denial("touch /tmp/x", said, WORKSPACE, CWD) is None
    assert denial("make install", said, WORKSPACE, CWD) is None
    assert denial("cat /etc/x", "Permission denied", WORKSPACE, CWD) is None


@pytest.mark.parametrize(
    "line",
    [
        *(
            "Read-only file system",
            "read-only file system",
            "EROFS",
            "os error 30",
            "[Errno 30]",
            "errno: -30",
            "os error 13",
            "Errno 13",
        ),
        *(
            "Permission denied",
            "EACCES",
            "Operation not permitted",
            "EPERM",
            "Errno 1",
            "unable to open database file",
        ),
        *(
            "attempt to write a readonly database",
            "SQLITE_READONLY",
            "SQLITE_CANTOPEN",
            "readonly database",
            "FailedToOpenSocket",
        ),
        *(
            "Network access was denied by",
            "Network access to example.com is blocked by",
            "Domain not in allowlist",
        ),
        *(
            "Temporary failure in name resolution",
            "Could not resolve host",
            "could not resolve host",
            "EAI_AGAIN",
        ),
        *("Name or service not known", "nodename nor servname", "curl: (7)", "Network is unreachable"),
        *(
            "connection broken by 'NewConnectionError",
            "bwrap: no",
            "thread 'main' panicked at linux-sandbox/src/lib.rs",
        ),
        "due to an error writing to the directory: /home/dev/.npm/_logs",
    ],
)
def test_a_line_that_a_rule_reads_is_found(line: str) -> None:
    """Lines are found by a few words, and read by rules: whatever a rule reads has one of the words."""
    rules = (_READ_ONLY, _REFUSED, _DATABASE, _NETWORK, _SOCKET, _UNRESOLVED, _NO_SANDBOX, _UNWRITTEN)
    assert any(rule.search(line) for rule in rules)
    assert _telling(f"one\n  {line}\ntwo {line}") == [line, f"two {line}"]


def test_a_database_is_found_in_the_command() -> None:
    found = denial(BOARD, "sqlite3.OperationalError: unable to open database file", WORKSPACE, CWD)
    assert found is not None
    assert found.path == "/home/dev/board/kanban.db"
    assert (
        writable_root(found.path, WORKSPACE) == 'sandbox_workspace_write.writable_roots = ["/home/dev/board"]'
    )


def test_a_name_that_does_not_resolve_is_uncertain() -> None:
    found = denial("curl x", "curl: (6) Could not resolve host: example.com", WORKSPACE, CWD)
    assert found is not None
    assert not found.certain


def test_no_remedy_for_what_may_be_written() -> None:
    assert writable_root("/tmp/x.db", WORKSPACE) is None


RUN = "/home/dev/run/ws"
RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "denials.jsonl").read_text("utf-8").splitlines()
]


def sandbox(profile: str) -> Policy:
    roots = () if profile == "read-only" else (RUN, "/tmp")
    rules = (
        PolicyRule("/", "read"),
        *(PolicyRule(root, "write") for root in roots),
        *(PolicyRule(f"{root}/.git", "read") for root in roots),
    )
    network = Network.ON if profile.endswith("network") else Network.OFF
    return Policy(Filesystem.WORKSPACE if roots else Filesystem.READ_ONLY, network, rules)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['name']}-{case['profile']}")
def test_what_commands_printed_in_the_sandbox_of_0_169(case: dict[str, Any]) -> None:
    """50 commands under three profiles; what each is read as was looked through by hand."""
    found = denial(case["command"], case["output"], sandbox(case["profile"]), RUN)
    assert (found and [found.what, found.path, found.certain]) == case["denied"]


@pytest.mark.parametrize(
    ("path", "quote", "root"),
    [
        ("/home/dev/board/kanban.db", "unable to open database file", "/home/dev/board"),
        ("/home/dev/.cache/uv", "Failed to initialize cache at `/home/dev/.cache/uv`", "/home/dev/.cache/uv"),
        ("/home/dev/.local", "mkdir: cannot create directory '/home/dev/.local'", "/home/dev/.local"),
        ("/home/dev/nope", "touch: cannot touch '/home/dev/nope'", "/home/dev/nope"),
        ("~/nope", "touch: cannot touch '~/nope'", "~/nope"),
        ("~/board/x", "touch: cannot touch '~/board/x'", "~/board"),
        ("/etc/hosts", "/etc/hosts: Read-only file system", "/etc/hosts"),
        ("/srv/app/data/lock", "cannot lock", "/srv/app/data"),
    ],
)
def test_the_narrowest_remedy(path: str, quote: str, root: str) -> None:
    assert writable_root(path, WORKSPACE, quote) == f'sandbox_workspace_write.writable_roots = ["{root}"]'


def test_a_domain_is_narrower_than_the_network() -> None:
    mediated = Policy(Filesystem.WORKSPACE, Network.MEDIATED, WORKSPACE.rules, profile=":workspace")
    quote = 'Network access to "api.example.com" was blocked by policy.'
    assert (
        network(mediated, quote) == 'permissions.workspace.network.domains = { "api.example.com" = "allow" }'
    )
    assert network(WORKSPACE, quote) == "sandbox_workspace_write.network_access = true"
