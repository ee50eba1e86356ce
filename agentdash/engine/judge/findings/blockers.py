"""Denials that stopped a thread, a sandbox that cannot start, and denials where no sandbox should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentdash.engine.judge.findings.remedies import remedy_for, startup_remedy
from agentdash.engine.judge.findings.remedy_forms import exclude_flags
from agentdash.engine.judge.findings.wording import policy_in_words
from agentdash.engine.judge.states.denied_calls import stopping_denial
from agentdash.model.denials import Denial, PathFacts, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.states import State
from agentdash.model.thread import Call, Thread
from agentdash.model.worker import Assessment

DENIAL_KINDS: Final = {
    "filesystem": FindingKind.DENIED_FILESYSTEM,
    "network": FindingKind.DENIED_NETWORK,
    "sandbox": FindingKind.SANDBOX_CANNOT_START,
}
"""The kind of a finding about a denial, by what was denied (`Denial.what`)."""
_QUOTED_CALLS: Final = 5
"""Newest calls that are quoted as evidence."""
_LISTED_CALLS: Final = 8
"""Newest calls that a finding lists."""


def blocker_findings(thread: Thread, assessment: Assessment, places: PathFacts) -> Iterator[Finding]:
    """Yield findings about denied calls. A denial that the thread got past is none."""
    cannot_start = [call for call in thread.calls if call.denial and call.denial.what == "sandbox"]
    if cannot_start:
        yield _cannot_start(thread, cannot_start)
    free = [call for call in thread.calls if call.denial and _has_full_access(thread, call)]
    # without marks of a sandbox the same words could be those of a firewall
    if free and any(map(_has_sandbox_mark, thread.observations)):
        yield _denied_under_full_access(thread, free, places)
    call = next((c for c in reversed(thread.calls) if stopping_denial(thread, c)), None)
    if assessment.state is State.BLOCKED_SANDBOX and call and call not in cannot_start and call.denial:
        yield _blocked(thread, call, call.denial, places)


def _has_full_access(thread: Thread, call: Call) -> bool:
    policy = thread.policy_of(call)
    return policy is not None and policy.is_full_access


def _has_sandbox_mark(observation: SandboxObservation) -> bool:
    """Return whether a command of the model carried a mark of a sandbox."""
    marks = (
        observation.network_flag == "1",
        observation.sandbox_flag not in (None, UNSET),
        observation.sandboxed,
        observation.nested,
        observation.own_network,
    )
    return not observation.by_user and any(marks)


def _cannot_start(thread: Thread, calls: list[Call]) -> Finding:
    newest = calls[-1].denial
    return _finding(
        thread,
        calls,
        kind=FindingKind.SANDBOX_CANNOT_START,
        message="The sandbox itself could not be started: no command that needs it can run.",
        remedy=startup_remedy(newest.quote) if thread.agent == "codex" and newest else None,
    )


def _denied_under_full_access(thread: Thread, calls: list[Call], places: PathFacts) -> Finding:
    flagged = any(observation.network_flag == "1" for observation in thread.observations)
    return _finding(
        thread,
        calls,
        kind=FindingKind.DENIED_UNDER_FULL_ACCESS,
        message="The policy is full access, and yet something that only a sandbox refuses was refused.",
        remedy=exclude_flags(places) if flagged else None,
    )


def _blocked(thread: Thread, call: Call, denial: Denial, places: PathFacts) -> Finding:
    """Return the finding about the denial that a thread did not get past."""
    policy = thread.policy_of(call)
    target = ""
    if denial.path:
        target = f": {denial.path} may not be written"
    elif denial.target:
        target = f": {denial.target} cannot be reached"
    return _finding(
        thread,
        [call],
        kind=DENIAL_KINDS[denial.what],
        message=f"The last thing it tried was {'' if denial.is_certain else 'likely '}denied{target}.",
        remedy=remedy_for(denial, policy, places, script=call.script or call.text, by_mcp=call.is_mcp),
    )


def _finding(
    thread: Thread, calls: list[Call], *, kind: FindingKind, message: str, remedy: Remedy | None
) -> Finding:
    """Return one finding about denied calls, given oldest first."""
    last, info = calls[-1], FINDING_KINDS[kind]
    times = [call.ended_at or call.at for call in calls]
    evidence = [
        Evidence(
            source=call.denial.source if call.denial else EvidenceSource.OUTPUT,
            at=at,
            rule=kind,
            text=f"`{call.text}` -> {call.denial.quote if call.denial else ''}",
        )
        for call, at in zip(calls, times, strict=True)
    ]
    return Finding(
        kind=kind,
        direction=info.directions[0],
        severity=info.severity,
        configured=policy_in_words(thread.policy_of(last)),
        got=last.denial.quote if last.denial else "",
        message=message,
        since=times[0],
        last=times[-1],
        count=len(calls),
        evidence=tuple(evidence[-_QUOTED_CALLS:]),
        remedy=remedy,
        calls=tuple(call.id for call in calls[-_LISTED_CALLS:]),
    )
