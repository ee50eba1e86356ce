"""The state of a worker CLI that a command of a Codex thread has started: it has no screen."""

from __future__ import annotations

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.assessments import conclude
from agentdash.engine.judge.states.sandboxed_pane import STANDSTILL_S, assess_blocked, state_path_denial
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import FleetView, PaneOccupant
from agentdash.model.states import State
from agentdash.model.worker import Assessment


def judge_nested(fleet: FleetView, nested: PaneOccupant) -> Assessment:
    """Return the state of a nested worker CLI: blocked where it sits still and may not write a path that it
    needs, else running."""
    denial = state_path_denial(fleet, nested)
    still_since = max(fleet.busy.get(nested.key, 0.0), nested.key.started)
    if denial is not None and (fleet.processes_at or 0.0) - still_since >= STANDSTILL_S:
        return assess_blocked(denial, still_since, "it sits still")
    text = f"pid {nested.key.pid} runs, started by a command of its thread"
    return conclude(
        State.RUNNING,
        since=nested.key.started,
        why=text,
        source=EvidenceSource.PROCESS,
        rule="nested-worker",
        fact=facts.by_status("busy", ""),
    )
