"""Tmux across the boundary of a sandbox: parsed requests, and escapes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.engine.judge.findings.tmux_boundary import parse_tmux_request
from agentdash.model import events as e
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Network, Policy
from agentdash.model.process import Kernel, Process, ProcessKey
from tests.unit.story import (
    FULL,
    HOST,
    SANDBOXED,
    WORKSPACE,
    begun,
    called,
    ended,
    polled,
    process,
    worker,
)

ONLINE = replace(WORKSPACE, network=Network.ON)


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("tmux new-window -d 'make'", ("new-window", None)),
        ("cd x && tmux -L lab split-window -h", ("split-window", "-L lab")),
        ("tmux -S /tmp/s -f /dev/null new -d", ("new", "/tmp/s")),
        ("tmux send-keys -t work:1 'rm x' Enter", ("send-keys", None)),
        ("tmux list-panes -a", None),
        ("echo tmux new-window", None),
        ("grep -rn 'tmux new-window' .", None),
    ],
)
def test_parse_tmux_request(command: str, asked: tuple[str, str | None] | None) -> None:
    found = parse_tmux_request(command)
    assert (found and found[:2]) == asked


KEY = PaneKey("default", "%9")


def asked_tmux(
    policy: Policy, command: str, *, started: float = 101.5, kernel: Kernel = HOST, server: Kernel = HOST
) -> list[e.Event]:
    """A thread whose command asked tmux for something; a pane's process started at a time."""
    return [
        *begun(policy=policy),
        called(text=command),
        ended(exit_code=0),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        e.ProcessSeen(at=90, process=Process(ProcessKey(30, 80.0), 1, "tmux: server", kernel=server)),
        e.PaneSeen(at=102, pane=Pane(KEY, "work", "1:x", 31, "make", server_pid=30)),
        process(31, 30, started=started, kernel=kernel),
        *polled(110),
    ]


def opened(policy: Policy, command: str, **how: Any) -> list[str]:
    return [f.kind for f in worker(asked_tmux(policy, command, **how)).sandbox.findings]


def test_escape_by_an_opened_pane() -> None:
    assert opened(ONLINE, "tmux new-window -d make") == ["tmux-escape"]


@pytest.mark.parametrize(
    ("policy", "command", "started", "kernel", "server"),
    [
        (FULL, "tmux new-window -d make", 101.5, HOST, HOST),  # nothing held it
        (WORKSPACE, "tmux new-window -d make", 101.5, HOST, HOST),  # without a network a rule let it out
        (ONLINE, "tmux new-window -d make", 50.0, HOST, HOST),  # that pane was there before
        (ONLINE, "tmux new-window -d make", 101.5, SANDBOXED, SANDBOXED),  # the server is inside, too
        (ONLINE, "tmux -L other new-window", 101.5, HOST, HOST),  # another server
    ],
)
def test_no_escape(policy: Policy, command: str, started: float, kernel: Kernel, server: Kernel) -> None:
    assert opened(policy, command, started=started, kernel=kernel, server=server) == []


def test_escape_by_typed_keys() -> None:
    assert opened(ONLINE, "tmux send-keys -t %9 'touch /x' Enter", started=50.0) == ["tmux-escape"]
    assert opened(ONLINE, "tmux send-keys -t %3 'touch /x' Enter", started=50.0) == []
