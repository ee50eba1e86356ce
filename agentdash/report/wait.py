"""`agentdash wait`: how waiting for a worker ended, as the document `agentdash.wait/1` and as one line."""

from __future__ import annotations

from typing import Literal

import msgspec

from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.report.elements import ViaReport
from agentdash.report.status import WorkerReport, worker_report

Outcome = Literal["reached", "timed-out", "gone"]
"""How waiting ended. `gone`: the worker no longer exists, so it cannot reach the state."""


class WaitReport(msgspec.Struct):
    """The document of `agentdash wait --json`."""

    schema: Literal["agentdash.wait/1"]
    target: str
    """The TARGET that was given."""
    until: list[str]
    """The states that were waited for."""
    outcome: Outcome
    """How waiting ended; `gone`: the worker no longer exists."""
    waited_seconds: float
    """Seconds that it took, without the first look."""
    worker: WorkerReport | None
    """Its last known form; null if it was never seen."""
    via: ViaReport | None
    """Null if live sources were read."""


def wait_report(
    target: str,
    until: tuple[State, ...],
    outcome: Outcome,
    waited: float,
    worker: Worker | None,
    via: ViaReport | None = None,
) -> WaitReport:
    """Return the document of a wait that took `waited` seconds."""
    return WaitReport(
        schema="agentdash.wait/1",
        target=target,
        until=[str(state) for state in until],
        outcome=outcome,
        waited_seconds=round(waited, 1),
        worker=worker_report(worker) if worker else None,
        via=via,
    )


def wait_line(report: WaitReport) -> str:
    """Return the outcome as one line: `blocked-sandbox  %4 build: write denied /x`."""
    if report.worker is None:
        return f"{report.outcome}  {report.target}"
    worker = report.worker
    late = "" if report.outcome == "reached" else f"  ({report.outcome} after {report.waited_seconds:g} s)"
    return f"{worker.state}  {worker.pane or worker.id} {worker.name}: {worker.fact.text}{late}"
