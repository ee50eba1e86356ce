"""The connection of a client of ssh or mosh: it identifies on a host the session that the client shows."""

# ruff: noqa: PLC0415 - most machines run no such client, and psutil starts slowly

from __future__ import annotations

import socket
from collections.abc import Sequence

from agentdash.model.sanitize import clean_line


def ssh_connection(pid: int) -> str | None:
    """Return the connection of an ssh client as `SSH_CONNECTION` has it: address and port of the
    client, of the server; None where it has none, or shares it with other clients (`ControlMaster`)."""
    import psutil

    try:
        connections = psutil.Process(pid).net_connections("all")
    except (psutil.Error, OSError):
        return None
    if any(each.family == socket.AF_UNIX and each.laddr for each in connections):
        return None  # the socket of a master: a session of another client may be meant
    found = {
        f"{each.laddr.ip} {each.laddr.port} {each.raddr.ip} {each.raddr.port}"
        for each in connections
        if each.status == psutil.CONN_ESTABLISHED and each.raddr
    }
    return clean_line(found.pop()) if len(found) == 1 else None


def mosh_connection(pid: int, argv: Sequence[str]) -> str | None:
    """Return the server of a mosh client, or of a `mosh-server` itself, as `mosh ADDRESS PORT`.

    Of a server these are of its UDP socket. Of a client they are its last two arguments, while the server
    answers: after 10 seconds without an answer a client opens further sockets, and keeps them for 60 seconds
    (mosh 1.2 to 1.4, `network.cc`). None where there is more than one socket, or none can be read, and of a
    stopped process, which opens none (`ctrl-^ ctrl-z`).
    """
    import psutil

    try:
        process = psutil.Process(pid)
        is_stopped = process.status() == psutil.STATUS_STOPPED
        sockets = [] if is_stopped else process.net_connections("udp")
    except (psutil.Error, OSError):
        return None
    if len(sockets) != 1 or len(argv) < 2:
        return None
    is_client = argv[0].rpartition("/")[2] == "mosh-client"
    address, port = argv[-2:] if is_client else sockets[0].laddr
    return clean_line(f"mosh {address} {port}")
