"""The home directory that the commands of a thread have."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.engine.detect.home_paths import home_of
from agentdash.model.fleet_draft import FleetView
from agentdash.model.process import Process
from agentdash.model.thread import Thread

_CODEX_HOME = "/.codex/"
"""The usual place of Codex's own files in a home directory."""


def home_directory(fleet: FleetView, thread: Thread) -> str | None:
    """Return the home directory of a thread's commands, by the best evidence; None where there is none.

    That is `HOME` of its processes; else the home that its working directory lies in by the customs of Linux
    and macOS; else the directory that has its `.codex`; else that of this machine's user, where its rollout
    lies in it.
    """
    for process in _processes(fleet, thread.id):
        home = (process.env or {}).get("HOME", "")
        if home.startswith("/"):
            return home.rstrip("/") or None
    if customary := home_of(thread.cwd):
        return customary
    rollout = thread.file.path if thread.file else thread.path or ""
    if rollout.startswith("/") and _CODEX_HOME in rollout:
        return rollout.partition(_CODEX_HOME)[0] or None
    own = fleet.host.home if fleet.host else None
    return own if own and rollout.startswith(own.rstrip("/") + "/") else None


def _processes(fleet: FleetView, thread: str) -> Iterator[Process]:
    yield from fleet.links.commands.get(thread, ())
    owner = fleet.links.owners.get(thread)
    if owner is not None and owner.key is not None and owner.key in fleet.processes:
        yield fleet.processes[owner.key]
