"""Ties between panes here and workers there: only by a connection that both ends name alike."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.engine.link.process_tree import SshSessions
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.fleet import Fleet, FleetLinks
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.remote import HostLink, LinkState, RemoteHost
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Worker

CONNECTION = "10.0.0.1 53122 10.0.0.9 22"
SESSION = {"SSH_TTY": "/dev/pts/3", "SSH_CONNECTION": CONNECTION}
PANE = Pane(
    key=PaneKey("default", "%4"),
    session="s",
    window="1:w",
    pid=40,
    command="ssh",
    active=True,
    clients=("/dev/pts/3",),
)
SSH = Process(ProcessKey(41, 1.0), 40, "ssh", argv=("ssh", "gpu2"), connection=CONNECTION)
CLIENT = Process(ProcessKey(50, 1.0), 1, "tmux: client", env=SESSION)


def sessions(*processes: Process, links: FleetLinks = FleetLinks()) -> SshSessions:  # noqa: B008 - frozen
    return SshSessions(Fleet(processes={process.key: process for process in processes}), links)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, CONNECTION),
        ({"env": {**SESSION, "TMUX": "/tmp/x,1,0"}}, None),
        ({"env": {"SSH_CONNECTION": CONNECTION}}, None),
        ({"env": None}, None),
        ({"argv": ("codex", "app-server", "--listen")}, None),
        ({"terminal": "/dev/pts/3"}, CONNECTION),
        ({"terminal": "/dev/pts/4"}, None),  # of screen, dtach: the variables are of an earlier session
        ({"terminal": ""}, None),
    ],
)
def test_the_session_of_a_process(changes: dict[str, Any], expected: str | None) -> None:
    process = Process(ProcessKey(9, 1.0), 1, "codex", argv=("codex",), env=SESSION)
    assert sessions().of_process(replace(process, **changes)) == expected


@pytest.mark.parametrize(
    ("pane", "clients", "expected"),
    [
        (PANE, (CLIENT,), CONNECTION),
        (replace(PANE, active=False), (CLIENT,), None),
        (replace(PANE, clients=()), (CLIENT,), None),
        (replace(PANE, clients=("/dev/pts/3", "/dev/pts/4")), (CLIENT,), None),
        (replace(PANE, clients=("/dev/pts/4",)), (CLIENT,), None),
        (PANE, (replace(CLIENT, name="tmux: server"),), None),
        (PANE, (replace(CLIENT, env={"SSH_TTY": "/dev/pts/3"}),), None),
        (PANE, (replace(CLIENT, terminal="/dev/pts/3"),), CONNECTION),
        (PANE, (replace(CLIENT, terminal="/dev/pts/4"),), None),
    ],
)
def test_the_session_that_shows_a_pane(
    pane: Pane, clients: tuple[Process, ...], expected: str | None
) -> None:
    assert sessions(*clients).of_pane(pane) == expected


def shown_in(ssh: Process, connection: str | None, state: LinkState = LinkState.CONNECTED) -> PaneKey | None:
    """Return the pane of a worker of another host."""
    worker = Worker(
        id="gpu2:a",
        kind="codex-thread",
        name="a",
        agent=Agent("codex"),
        assessment=Assessment(State.RUNNING, None, ""),
        host="gpu2",
        ssh_connection=connection,
    )
    fleet = Fleet(
        panes={PANE.key: PANE},
        processes={ssh.key: ssh},
        processes_at=1.0,
        links=FleetLinks(below={PANE.key: (ssh,)}),
        remotes={"gpu2": RemoteHost(HostLink("gpu2", state, 1.0), {"a": worker})},
    )
    (row,) = build_snapshot(fleet, 2.0).workers
    return row.pane.key if row.pane else None


def test_a_pane_here_shows_the_worker_of_the_same_connection() -> None:
    assert shown_in(SSH, CONNECTION) == PANE.key
    assert shown_in(SSH, CONNECTION.replace("53122", "53123")) is None
    assert shown_in(SSH, None) is None
    assert shown_in(replace(SSH, connection=None), CONNECTION) is None
    assert shown_in(replace(SSH, zombie=True), CONNECTION) is None
