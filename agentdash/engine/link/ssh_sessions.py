"""Which ssh session shows a worker, and which pane here shows that session.

Both ends of a connection name it alike: the client by its socket, the session by `SSH_CONNECTION` (sshd). A
worker is in the session whose terminal it has, or whose terminal a tmux client has that shows its pane.
"""

from __future__ import annotations

from agentdash.engine.link.process_tree import is_daemon, is_multiplexer
from agentdash.model.fleet import Fleet
from agentdash.model.links import FleetLinks
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process


class SshSessions:
    """The ssh sessions of a fleet.

    Args:
        fleet: everything known.
        links: what belongs together in it.
    """

    def __init__(self, fleet: Fleet, links: FleetLinks) -> None:
        self._fleet = fleet
        self._tmux_clients: dict[str, set[str]] = {}
        """The connections of tmux clients, by their terminal."""
        for process in fleet.processes.values():
            env = process.env or {}
            if _is_client(process) and env.get("SSH_TTY") and env.get("SSH_CONNECTION"):
                self._tmux_clients.setdefault(env["SSH_TTY"], set()).add(env["SSH_CONNECTION"])
        self.panes: dict[str, PaneKey] = {}
        """The pane here in which an ssh client runs, by its connection."""
        for key, processes in links.below.items():
            for process in processes:
                if process.connection is not None and not process.zombie:
                    self.panes[process.connection] = key

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
        if process is None or is_daemon(process) or env.get("TMUX") or not env.get("SSH_TTY"):
            return None
        return env.get("SSH_CONNECTION")


def _is_client(process: Process) -> bool:
    """Return whether this is a tmux client; a server has the environment of an earlier one."""
    return is_multiplexer(process) and process.name.endswith("client")
