"""What stood in a thread's way: denials that stopped it, a sandbox that cannot start, denials where nothing should deny."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.engine.judge.findings.policy_checks import in_words
from agentdash.engine.judge.findings.remedies import EXCLUDE_FLAGS, network, writable_root
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import UNSET, Call, Denial, SandboxObservation, Thread
from agentdash.model.policy import Network
from agentdash.model.states import State
from agentdash.model.worker import Assessment


def blocker_findings(thread: Thread, assessment: Assessment) -> Iterator[Finding]:
    """The findings that calls and their outputs tell of. A denial that the thread got past is none."""
    cannot_start = [c for c in thread.calls if c.denial and c.denial.what == "sandbox"]
    if cannot_start:
        yield _cannot_start(thread, cannot_start)
    free = [c for c in thread.calls if c.denial and _is_full_access(thread, c)]
    if free and any(
        _is_marked(s) for s in thread.observations
    ):  # the words alone could be those of a firewall
        yield _under_full_access(thread, free)
    call = next((c for c in reversed(thread.calls) if c.denial and c.denial.certain), None)
    if assessment.state is State.BLOCKED_SANDBOX and call and call.denial and call not in cannot_start:
        yield _blocked(thread, call, call.denial)


def _is_full_access(thread: Thread, call: Call) -> bool:
    policy = thread.policy_at(call.at)
    return policy is not None and policy.enforced_by == "nobody"


def _is_marked(observation: SandboxObservation) -> bool:
    """Whether a command was seen to carry a mark of a sandbox."""
    marks = (
        observation.network_flag == "1",
        observation.sandbox_flag not in (None, UNSET),
        observation.sandboxed,
        observation.nested,
        observation.own_network,
    )
    return not observation.by_user and any(marks)


def _cannot_start(thread: Thread, calls: list[Call]) -> Finding:
    return _finding(
        thread,
        calls,
        kind=FindingKind.SANDBOX_CANNOT_START,
        message="The sandbox itself could not be started: no command that needs it can run on this machine.",
        remedy="codex doctor",
    )


def _under_full_access(thread: Thread, calls: list[Call]) -> Finding:
    flags = any(s.network_flag == "1" for s in thread.observations)
    return _finding(
        thread,
        calls,
        kind=FindingKind.DENIED_UNDER_FULL_ACCESS,
        message="The policy is full access, and yet something that only a sandbox refuses was refused.",
        remedy=EXCLUDE_FLAGS if flags else None,
    )


def _blocked(thread: Thread, call: Call, denial: Denial) -> Finding:
    """The denial that a thread did not get past: no difference between the layers, but what stands in the way."""
    policy = thread.policy_at(call.at) or thread.policy
    remedy = None
    if denial.what == "filesystem" and denial.path:
        remedy = writable_root(denial.path, policy, denial.quote)
    elif denial.what == "network" and policy and policy.network is not Network.ON:
        remedy = network(policy, denial.quote)
    return _finding(
        thread,
        [call],
        kind=FindingKind(f"denied-{denial.what}"),
        message=f"The last thing it tried was denied{f': {denial.path} may not be written' if denial.path else ''}.",
        remedy=remedy,
    )


def _finding(
    thread: Thread, calls: list[Call], *, kind: FindingKind, message: str, remedy: str | None
) -> Finding:
    """One finding about calls that were denied, the oldest first."""
    times = [c.ended_at or c.at for c in calls]
    last = calls[-1]
    policy = thread.policy_at(last.at) or thread.policy
    quotes = [
        Evidence(_source(c), at, kind, f"`{c.text}` -> {c.denial.quote}")
        for c, at in zip(calls, times, strict=True)
        if c.denial
    ]
    return Finding(
        kind=kind,
        direction="stricter",
        severity="warning",
        configured=in_words(policy) if policy else "not stated",
        got=last.denial.quote if last.denial else "",
        message=message,
        since=times[0],
        last=times[-1],
        count=len(calls),
        evidence=tuple(quotes[-5:]),
        remedy=remedy,
        calls=tuple(c.id for c in calls[-8:]),
    )


def _source(call: Call) -> str:
    return call.denial.source if call.denial else "output"
