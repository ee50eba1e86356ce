"""The workers that the first look saw in panes, as what is remembered of panes: they may be gone by now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentdash.agents.identify import identify
from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.collect.processes.first_look import Glimpse, taken
from agentdash.collect.tmux.servers import servers
from agentdash.model.events import Event, PanesRecalled
from agentdash.model.fleet import Fleet
from agentdash.model.memory import PastWorker, argument_digests
from agentdash.model.pane import PaneKey, tmux_source
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel


class FirstLookSource:
    """Emits the workers of panes that were there at the first look, once."""

    name = "first look"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return those whose panes are gone, or had lost them before their processes were read."""
        workers = [past for glimpse in taken() if (past := _worker(glimpse)) is not None]
        known = fleet.panes.keys() & fleet.occupants.keys()
        gone = [past for past in workers if past.pane not in known and _is_watched(fleet, past.pane)]
        return [PanesRecalled(at=self._clock.now(), workers=tuple(gone))] if gone else []

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit nothing: there is only one first look."""


def _is_watched(fleet: Fleet, pane: PaneKey) -> bool:
    return tmux_source(pane.server) in fleet.sources


def _worker(glimpse: Glimpse) -> PastWorker | None:
    """Return the worker CLI in a pane, or None if none is known."""
    commands = [command for each in glimpse.commands for command in _started_by(each)]
    found = next((one for command in commands if (one := identify(command)) is not None), None)
    if found is None:
        return None
    (server,) = servers((), [Path(glimpse.socket)], default=False)
    key = PaneKey(server.label, clean_line(glimpse.pane))
    arguments = [digest for command in commands for digest in argument_digests(clean_arguments(command))]
    return PastWorker(
        pane=key,
        worker=str(key),
        agent=found.agent,
        seen=glimpse.at,
        server_pid=glimpse.server_pid,
        cwd=clean_line(glimpse.cwd) if glimpse.cwd else None,
        pid=glimpse.pid,
        started=glimpse.started,
        arguments=tuple(dict.fromkeys(arguments)),
    )


def _started_by(command: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a command, and the one that the shell in it is about to start."""
    yield command
    if "-c" in command[:-1]:
        command = _words(command[command.index("-c") + 1])
    rest = list(command)
    while rest and ("=" in rest[0] or rest[0].rpartition("/")[2] == "env"):
        rest.pop(0)
    yield rest


def _words(script: str) -> list[str]:
    """Return the words of a script; none where it is not one that can be split."""
    words = shlex.shlex(script, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        return list(words)
    except ValueError:
        return []
