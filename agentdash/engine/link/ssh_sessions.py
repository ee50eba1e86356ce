"""Which session of ssh or mosh shows a worker, and which pane here shows that session.

Both ends of a connection name it alike: the ssh client by its socket, the session by `SSH_CONNECTION` (sshd);
the mosh client by its arguments, the session by the socket of the `mosh-server` that it descends from. The
number of that port is not random (from 60001 on), and an address may be that of several machines: a mosh
session is known only on a host that is proven to be reached by that address.

A worker is in the session whose terminal it has, or whose terminal a tmux client has that shows its pane.
"""

from __future__ import annotations

from typing import Final

from agentdash.engine.link.process_tree import ProcessTree, is_daemon, is_multiplexer
from agentdash.model.fleet import Fleet, FleetLinks
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process

_MOSH_SERVER: Final = "mosh-server"
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""Of a server that listens on all addresses of its host (`mosh --bind-server=any`)."""


class SshSessions:
    """The sessions of ssh and mosh of a fleet."""

    def __init__(self, fleet: Fleet, links: FleetLinks) -> None:
        self._tree = ProcessTree(fleet.processes.values(), {})
        self._tmux_clients: dict[str, set[str]] = {}
        """The connections of tmux clients, by their terminal."""
        for process in fleet.processes.values():
            if _is_client(process) and (connection := self._session(process)):
                known = process.terminal is not None
                terminal = process.terminal if known else (process.env or {}).get("SSH_TTY")
                self._tmux_clients.setdefault(terminal or "", set()).add(connection)
        self._panes: dict[str, PaneKey | None] = {}
        """The pane here in which a client runs, by its connection; None: there are several."""
        for key, processes in links.below.items():
            for process in processes:
                connection = process.connection
                if connection is not None and process.name != _MOSH_SERVER and not process.zombie:
                    self._panes[connection] = key if self._panes.get(connection, key) == key else None

    def pane(self, connection: str | None, address: str | None) -> PaneKey | None:
        """Return the pane here that shows a session of another host.

        Args:
            connection: of the session, as that host names it.
            address: by which this machine reaches that host, if that is proven.
        """
        if connection is None or not connection.startswith("mosh "):
            return self._panes.get(connection or "")
        _, bound, port = f"{connection}  ".split(" ")[:3]
        is_there = address is not None and bound in (address, *_ANY_ADDRESS)
        return self._panes.get(f"mosh {address} {port}") if is_there else None

    def of_pane(self, pane: Pane) -> str | None:
        """Return the connection of the only tmux client that shows a pane, and has the keyboard in it."""
        if not pane.active or len(pane.clients) != 1:
            return None
        connections = self._tmux_clients.get(pane.clients[0], set())
        return next(iter(connections)) if len(connections) == 1 else None

    def of_process(self, process: Process | None) -> str | None:
        """Return the connection of the session whose terminal a process has; None inside of a multiplexer,
        and of a daemon, which outlives the session that it was started in."""
        env = (process.env if process else None) or {}
        if process is None or is_daemon(process) or env.get("TMUX"):
            return None
        return self._session(process)

    def _session(self, process: Process) -> str | None:
        """Return the connection of the session that a process was started in, and whose terminal it has."""
        for ancestor in self._tree.above(process):
            if ancestor.name == _MOSH_SERVER:
                return ancestor.connection  # its variables are those of the ssh that started the server
        env = process.env or {}
        terminal = env.get("SSH_TTY")
        is_shown = bool(terminal) and process.terminal in (None, terminal)
        return env.get("SSH_CONNECTION") if is_shown else None


def _is_client(process: Process) -> bool:
    """Return whether this is a tmux client; a server has the environment of an earlier one."""
    return is_multiplexer(process) and process.name.endswith("client")
