"""The state of a worker whose pane is gone, or that has left its pane, by what was seen of it before."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.assessments import conclude, server_gone
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import NOT_RECORDED, FleetView
from agentdash.model.memory import PastWorker
from agentdash.model.pane import NO_SERVER, PaneKey, tmux_source
from agentdash.model.process import Process
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Link, PastPane, Worker

_LASTING: Final = (
    State.COMPLETED,
    State.BLOCKED_SANDBOX,
    State.FAILED_PERMISSION,
    State.FAILED_PROVIDER,
    State.EXITED,
)
"""States that the end of the process does not change; all others end as `exited`."""
_MAX_PAST_PANES: Final = 200
"""Past panes in a snapshot, which is written as a file for sandboxed agents: 100 KB."""


def past_panes(fleet: FleetView, occupied: Container[PaneKey]) -> tuple[PastPane, ...]:
    """Return the panes whose worker is gone, the newest last.

    Panes that belong to another tmux server now, and those of servers that are not watched, are left out.

    Args:
        occupied: panes that have a worker now.
    """
    if not fleet.past_workers:
        return ()
    newest = sorted(fleet.past_workers.values(), key=lambda past: past.seen)[-_MAX_PAST_PANES:]
    agents = {process.pid: process for process in fleet.processes.values() if process.agent}
    server_pids = {(key.server, pane.server_pid) for key, pane in fleet.panes.items()}
    running = {server for server, _ in server_pids}
    found: list[PastPane] = []
    for past in newest:
        pane, server = fleet.panes.get(past.pane), past.pane.server
        is_replaced = pane is not None and pane.server_pid != past.server_pid
        if past.pane in occupied or is_replaced or not _is_watched(fleet, past.pane):
            continue
        is_restarted = server in running and (server, past.server_pid) not in server_pids
        found.append(
            PastPane(
                key=past.pane,
                worker=past.worker,
                shown=None if past.is_thread else _past_worker(fleet, past, agents.get(past.pid or 0)),
                is_stale=is_restarted or not _is_running(fleet, past.pane),
            )
        )
    return tuple(found)


def judge_past(fleet: FleetView, past: PastWorker, process: Process | None) -> Assessment:
    """Return the state of a worker that is not in its pane any more.

    Args:
        past: the worker.
        process: the live process with its pid, if that is a worker CLI.
    """
    server = fleet.sources.get(tmux_source(past.pane.server))
    if server is not None and not server.ok and server.detail not in (NO_SERVER, NOT_RECORDED):
        return server_gone(server)
    if process is not None and _is_same(process, past):
        return conclude(
            State.UNKNOWN,
            since=past.ended_at,
            why=f"its pane is gone; its process (pid {past.pid}) lives",
            source=EvidenceSource.PROCESS,
            rule="pane-gone",
            fact=facts.unclear(f"its pane is gone; its process (pid {past.pid}) lives"),
        )
    left = "it has left its pane" if past.pane in fleet.panes else "its pane is gone"
    if past.state in _LASTING:
        return conclude(
            past.state,
            since=past.since,
            why=f"{left}; it was {past.state} then",
            source=EvidenceSource.HISTORY,
            rule=past.rule or "seen-before",
        )
    before = f"; it was {past.state} when it was last seen" if past.state is not State.UNKNOWN else ""
    return conclude(
        State.EXITED,
        since=past.ended_at or past.seen,
        why=f"{left}{before}",
        source=EvidenceSource.HISTORY,
        rule="pane-left",
    )


def _past_worker(fleet: FleetView, past: PastWorker, process: Process | None) -> Worker:
    return Worker(
        id=past.worker,
        kind="pane",
        name=past.name or past.worker,
        agent=Agent(past.agent),
        assessment=judge_past(fleet, past, process),
        cwd=past.cwd,
        last_activity=past.seen,
        links=(Link(f"pane {past.pane}", "an agentdash saw it there"),),
    )


def _is_watched(fleet: FleetView, key: PaneKey) -> bool:
    """Return whether the server of a pane is read; the default one is always, and may be absent silently."""
    if key.server == "default":
        return bool(fleet.panes) or any(name.startswith(tmux_source("default")) for name in fleet.sources)
    return tmux_source(key.server) in fleet.sources


def _is_running(fleet: FleetView, key: PaneKey) -> bool:
    """Return whether the server of a pane runs, or may run."""
    server = fleet.sources.get(tmux_source(key.server))
    return server is not None and server.detail != NO_SERVER


def _is_same(process: Process, past: PastWorker) -> bool:
    return process.agent == past.agent and not process.zombie and process.key.started <= past.seen
