"""The connection of a mosh client or server: by its real UDP sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agentdash.collect.processes.sensor import mosh_connection

CLIENT = ("mosh-client", "-# build1 |", "10.0.0.9", "60001")


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    """Yield two bound UDP sockets of this process."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
        for each in opened:
            each.bind(("127.0.0.1", 0))
        yield opened


def test_a_client_that_is_answered_has_one_socket(sockets: list[socket.socket]) -> None:
    assert mosh_connection(os.getpid(), CLIENT) is None  # it has opened a second one: nothing answers
    sockets[1].close()
    assert mosh_connection(os.getpid(), CLIENT) == "mosh 10.0.0.9 60001"
    sockets[0].close()
    assert mosh_connection(os.getpid(), CLIENT) is None


def test_a_server_is_known_by_its_socket(sockets: list[socket.socket]) -> None:
    port = sockets[0].getsockname()[1]
    sockets[1].close()
    assert mosh_connection(os.getpid(), ("/usr/bin/mosh-server", "new")) == f"mosh 127.0.0.1 {port}"
