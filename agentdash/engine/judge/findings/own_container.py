"""The container in which Gemini CLI or Qwen Code has started itself again (`docker run`, `podman run`, `lxc
exec`): its client, which runs below the worker, and the process inside, which does the work.

The CLI names the container in the client's arguments, and in the environment of what runs inside (`--env
SANDBOX=NAME`, 12 random hexadecimal digits in Gemini CLI 0.61.0). The process inside descends from the
container engine, not from the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from agentdash.engine.judge.findings.sandbox_author import SandboxAuthor
from agentdash.engine.judge.states.sandboxed_pane import enclosing_sandbox
from agentdash.model.fleet import FleetView
from agentdash.model.observation import INHERITED
from agentdash.model.process import AGENT_NAMES, COMMAND_MARKS, Process

_PROGRAMS: Final = ("docker", "podman", "lxc")
_MARK: Final = f"{INHERITED}="


class OwnContainer(msgspec.Struct, frozen=True):
    """A container that a worker CLI has started itself in."""

    program: str
    """The container's client: `docker`."""
    author: SandboxAuthor
    inside: Process | None
    """The worker's process in the container; None where it is not seen (a virtual machine, another user) or
    not the only one."""


def own_container(fleet: FleetView, process: Process, below: Iterable[Process]) -> OwnContainer | None:
    """Return the container that a worker has started itself in; None where there is none.

    Args:
        fleet: with all processes.
        process: the worker.
        below: the processes of its pane.
    """
    mark = COMMAND_MARKS.get(process.agent or "")
    if mark is None:
        return None  # no other CLI starts itself in a container
    for client in below:
        program = client.argv[0].rpartition("/")[2] if client.argv else client.name
        if program not in _PROGRAMS or mark in (client.env or {}) or {"run", "exec"}.isdisjoint(client.argv):
            continue
        inside = _inside(fleet, process, client)
        evidence = f"pid {client.pid} below it: {' '.join(client.argv[:4])}"
        if inside is not None:
            evidence += f"; pid {inside.pid} in it: {_MARK}{(inside.env or {})[INHERITED]}"
        author = SandboxAuthor(name=AGENT_NAMES[process.agent or ""], launcher=program, evidence=evidence)
        return OwnContainer(program=program, author=author, inside=inside)
    return None


def _inside(fleet: FleetView, process: Process, client: Process) -> Process | None:
    name = _name(client.argv)
    if name is None:
        return None
    found = {
        each.pid: each
        for each in fleet.processes.values()
        if each.agent == process.agent
        and each.key.started >= client.key.started
        and (each.env or {}).get(INHERITED) == name
        and enclosing_sandbox(each, fleet.kernel) is not None
    }
    outermost = [each for each in found.values() if each.ppid not in found]
    return outermost[0] if len(outermost) == 1 else None


def _name(argv: Sequence[str]) -> str | None:
    """Return the name of the container that a client's arguments give to what runs inside."""
    given = [value for option, value in pairwise(argv) if option == "--env" and value.startswith(_MARK)]
    return given[-1].removeprefix(_MARK) or None if given else None
