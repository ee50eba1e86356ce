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


# ------------------------------------------------------------ mosh

MOSH = "mosh 10.0.0.9 60001"
MOSH_CLIENT = replace(SSH, name="mosh-client", argv=("mosh-client", "10.0.0.9", "60001"), connection=MOSH)
SERVER = Process(ProcessKey(60, 1.0), 1, "mosh-server", connection=MOSH, env=SESSION)
SHELL = Process(ProcessKey(61, 2.0), 60, "bash", env=SESSION, terminal="/dev/pts/7")


@pytest.mark.parametrize("terminal", ["/dev/pts/7", "/dev/pts/3", None])
@pytest.mark.parametrize("connection", [MOSH, None])
def test_below_a_mosh_server_the_variables_of_the_ssh_that_started_it_are_no_session(
    terminal: str | None, connection: str | None
) -> None:
    server = replace(SERVER, connection=connection)
    worker = Process(ProcessKey(62, 3.0), 61, "codex", argv=("codex",), env=SESSION, terminal=terminal)
    assert sessions(server, SHELL, worker).of_process(worker) == connection


def test_a_tmux_client_below_a_mosh_server_shows_a_pane_by_its_own_terminal() -> None:
    client = replace(CLIENT, ppid=61, key=ProcessKey(62, 3.0), terminal="/dev/pts/7")
    found = sessions(SERVER, SHELL, client)
    assert found.of_pane(replace(PANE, clients=("/dev/pts/7",))) == MOSH
    assert found.of_pane(replace(PANE, clients=("/dev/pts/3",))) is None


@pytest.mark.parametrize(
    ("session", "address", "shown"),
    [
        (MOSH, "10.0.0.9", True),
        ("mosh 0.0.0.0 60001", "10.0.0.9", True),
        (MOSH, None, False),  # the host may be another one with this address
        (MOSH, "10.0.0.8", False),
        ("mosh 10.0.0.8 60001", "10.0.0.9", False),
        ("mosh 10.0.0.9 60002", "10.0.0.9", False),
        ("mosh", "10.0.0.9", False),
    ],
)
def test_a_mosh_session_is_shown_by_the_client_of_its_port_at_the_address_of_its_host(
    session: str, address: str | None, shown: bool
) -> None:
    found = sessions(links=FleetLinks(below={PANE.key: (MOSH_CLIENT,)}))
    assert found.pane(session, address) == (PANE.key if shown else None)


def test_of_several_clients_of_a_mosh_session_none_is_known_to_show_it() -> None:
    other = PaneKey("default", "%5")
    twin = replace(MOSH_CLIENT, key=ProcessKey(42, 1.0))
    below: dict[PaneKey, tuple[Process, ...]] = {PANE.key: (MOSH_CLIENT,), other: (twin,)}
    assert sessions(links=FleetLinks(below=below)).pane(MOSH, "10.0.0.9") is None


def test_a_mosh_server_below_a_pane_is_no_client() -> None:
    found = sessions(links=FleetLinks(below={PANE.key: (SERVER,)}))
    assert found.pane(MOSH, "10.0.0.9") is None
