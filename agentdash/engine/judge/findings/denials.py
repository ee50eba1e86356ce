"""Findings about denials: those that stopped a thread, and those that its policy cannot explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.judge.findings.remedies import exclude_flags, remedy_for, startup_remedy
from agentdash.engine.judge.findings.wording import DENIAL_KINDS, make_finding, policy_in_words
from agentdash.engine.judge.states.thread_facts import stopping_denial
from agentdash.model.denials import Denial, PathFacts, Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.states import State
from agentdash.model.thread import Call, Thread

_QUOTED_CALLS: Final = 5
"""Newest calls that are quoted as evidence."""
_LISTED_CALLS: Final = 8
"""Newest calls that a finding lists."""
_Denied = tuple[Call, Denial]


def denial_findings(thread: Thread, state: State, places: PathFacts) -> Iterator[Finding]:
    """Yield findings about denied calls, except for those that the thread got past.

    Args:
        state: of the thread.
        places: what is known of the places that remedies name.
    """
    denied = [(call, call.denial) for call in thread.calls if call.denial]
    cannot_start = [(call, denial) for call, denial in denied if denial.what == "sandbox"]
    if cannot_start:
        _, newest = cannot_start[-1]
        yield _finding(
            thread,
            cannot_start,
            FindingKind.SANDBOX_CANNOT_START,
            "The sandbox itself could not be started: no command that needs it can run.",
            startup_remedy(newest.quote) if thread.agent == "codex" else None,
        )
    free = [(call, denial) for call, denial in denied if _has_full_access(thread, call)]
    # without marks of a sandbox the same words could be those of a firewall
    if free and any(map(_has_sandbox_mark, thread.observations)):
        is_flagged = any(observation.network_flag == "1" for observation in thread.observations)
        yield _finding(
            thread,
            free,
            FindingKind.DENIED_UNDER_FULL_ACCESS,
            "The policy is full access, and yet something that only a sandbox refuses was refused.",
            exclude_flags(places) if is_flagged else None,
        )
    last = next((each for each in reversed(denied) if stopping_denial(thread, each[0])), None)
    if state is State.BLOCKED_SANDBOX and last is not None and last not in cannot_start:
        yield _blocked(thread, *last, places)


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


def _blocked(thread: Thread, call: Call, denial: Denial, places: PathFacts) -> Finding:
    """Return the finding about the denial that a thread did not get past."""
    target = ""
    if denial.path:
        target = f": {denial.path} may not be written"
    elif denial.target:
        target = f": {denial.target} cannot be reached"
    script, policy = call.script or call.text, thread.policy_of(call)
    return _finding(
        thread,
        [(call, denial)],
        DENIAL_KINDS[denial.what],
        f"The last thing it tried was {'' if denial.is_certain else 'likely '}denied{target}.",
        remedy_for(denial, policy, places, script=script, by_mcp=call.is_mcp),
    )


def _finding(
    thread: Thread, denied: Sequence[_Denied], kind: FindingKind, message: str, remedy: Remedy | None
) -> Finding:
    """Return one finding about denied calls, given oldest first."""
    last, newest = denied[-1]
    times = [call.ended_at or call.at for call, _ in denied]
    evidence = [
        Evidence(denial.source, at, kind, f"`{call.text}` -> {denial.quote}")
        for (call, denial), at in zip(denied, times, strict=True)
    ]
    return make_finding(
        kind,
        message,
        configured=policy_in_words(thread.policy_of(last)),
        got=newest.quote,
        since=times[0],
        last=times[-1],
        count=len(denied),
        evidence=evidence[-_QUOTED_CALLS:],
        remedy=remedy,
        calls=[call.id for call, _ in denied[-_LISTED_CALLS:]],
    )
