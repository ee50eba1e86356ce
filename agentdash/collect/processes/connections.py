"""The TCP connection of an ssh client: by it a host knows the session that the client shows."""

from __future__ import annotations

import socket

import psutil

from agentdash.model.sanitize import clean_line


def ssh_connection(pid: int) -> str | None:
    """Return the connection of an ssh client as `SSH_CONNECTION` has it: address and port of the
    client, of the server; None where it has none, or shares it with other clients (`ControlMaster`)."""
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
