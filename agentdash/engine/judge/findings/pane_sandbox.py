"""The sandbox of a worker CLI that is known by its pane: what it was asked for and has, and what a sandbox
denied it."""

from __future__ import annotations

import posixpath
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.findings.blockers import DENIAL_KINDS
from agentdash.engine.judge.findings.remedies import filesystem_remedy, network_access_remedy
from agentdash.engine.judge.findings.remedy_places import facts_of, place_of, request_of
from agentdash.engine.judge.findings.worker_sandbox import worker_layers
from agentdash.engine.judge.states.sandboxed_pane import (
    SandboxDenial,
    assess_blocked,
    network_cut_denial,
    screen_denial,
    state_path_denial,
)
from agentdash.model.denials import Denial, PathKind, Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.findings import FINDING_KINDS, Finding
from agentdash.model.fleet import FleetView, PaneOccupant
from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.model.pane import Pane
from agentdash.model.process import Process
from agentdash.model.state_paths import PredictedDenials
from agentdash.model.states import State
from agentdash.model.worker import Assessment, Sandbox, nested_worker_id

_THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
_CODEX_MARKS: Final = (NETWORK_FLAG, SANDBOX_FLAG, _THREAD_VARIABLE)
"""Variables that Codex sets for the commands that it runs."""


def judge_pane_sandbox(
    fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment
) -> Sandbox:
    """Return the observed layer of a pane's worker, and the denial that stopped it."""
    if occupant.process is None:
        return Sandbox()
    layers = worker_layers(fleet, occupant.process, str(pane.key), fleet.links.below.get(pane.key, ()))
    return replace(layers, findings=(*layers.findings, *_findings(fleet, pane, occupant, assessment)))


def judge_nested_sandbox(fleet: FleetView, nested: PaneOccupant, assessment: Assessment) -> Sandbox:
    """Return the observed layer of a worker CLI that a Codex command has started, and the path that it needs
    and may not write: also while it runs."""
    if nested.process is None:
        return Sandbox()
    found = state_path_denial(fleet, nested)
    findings: tuple[Finding, ...] = ()
    if found is not None:
        evidence = assess_blocked(found, nested.key.started, "it runs").evidence
        at = assessment.since or nested.key.started
        findings = (_finding(fleet, nested, found, at=at, evidence=evidence),)
    layers = worker_layers(fleet, nested.process, nested_worker_id(nested.key.pid))
    return replace(layers, findings=(*layers.findings, *findings), predicted_denials=_denied_paths(nested))


def _denied_paths(nested: PaneOccupant) -> tuple[PredictedDenials, ...]:
    denied = sorted((path for path in nested.paths if path.denied), key=lambda path: not path.needed)
    return (PredictedDenials(nested.agent, tuple(denied)),) if denied else ()


def _findings(
    fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment
) -> tuple[Finding, ...]:
    """Return the finding about the denial that the assessment rests on."""
    if assessment.state is not State.BLOCKED_SANDBOX:
        return ()
    found = (
        screen_denial(fleet, pane, occupant)
        or network_cut_denial(fleet, occupant, assessment.evidence[0].text)
        or state_path_denial(fleet, occupant)
    )
    if found is None:
        return ()
    at = assessment.since or found.sandbox.process.key.started
    return (_finding(fleet, occupant, found, at=at, evidence=assessment.evidence),)


def _finding(
    fleet: FleetView,
    occupant: PaneOccupant,
    found: SandboxDenial,
    *,
    at: float,
    evidence: tuple[Evidence, ...],
) -> Finding:
    """Return the finding about what the sandbox around a worker denies it."""
    denial, process = found.denial, found.sandbox.process
    kind = DENIAL_KINDS[denial.what]
    target = f": {denial.path} may not be written" if denial.path else ""
    return Finding(
        kind=kind,
        direction=FINDING_KINDS[kind].directions[0],
        severity=FINDING_KINDS[kind].severity,
        configured="not stated",
        got=f"pid {process.pid}: {found.sandbox.text}",
        message=f"The worker runs inside of a sandbox that stops it{target}.",
        since=at,
        last=at,
        count=1,
        evidence=evidence,
        remedy=_remedy(fleet, occupant, denial, process),
        pids=(process.pid,),
    )


def _remedy(fleet: FleetView, occupant: PaneOccupant, denial: Denial, process: Process) -> Remedy | None:
    """Return the settings of the Codex whose sandbox it is; words where it may be another program's."""
    env = process.env or {}
    places = facts_of(fleet, None, [process])
    is_codex = any(name in env for name in _CODEX_MARKS)
    thread = fleet.threads.get(env.get(_THREAD_VARIABLE, ""))
    kinds = {**places.kinds, **_state_paths(occupant)}
    places = replace(places, kinds=kinds, request=request_of(fleet, thread))
    policy = thread.policy if thread else None
    if denial.what == "network":
        outside = "start it from a shell outside of its sandbox, or let that sandbox reach the network"
        return network_access_remedy(policy, places) if is_codex else Remedy(outside)
    if not denial.path:
        return None
    operation = "mkdir" if places.kinds.get(denial.path) is PathKind.MISSING else denial.operation
    if is_codex:
        return filesystem_remedy(denial.path, operation, policy, places)
    place = place_of(denial.path, operation, places)
    opened = "" if place.obstacle else f", or let that sandbox write {place.directory}"
    return Remedy(f"start it from a shell outside of its sandbox{opened}")


def _state_paths(occupant: PaneOccupant) -> dict[str, PathKind]:
    """Return what is at the worker's state paths: directories, unless their name has a suffix."""
    kinds = {}
    for access in occupant.paths:
        if access.access.missing:
            kinds[access.path] = PathKind.MISSING
        elif not posixpath.splitext(access.path)[1]:
            kinds[access.path] = PathKind.DIRECTORY
    return kinds
