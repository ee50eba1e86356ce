"""The three layers of a thread, compared: its verdict and its findings, one for each cause.

`checks` compares what commands were seen to have with the policy, `inheritance` a policy with the one before and with the parent's,
`obstacles` reads what stood in the way.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentdash.facts.fleet import Sighting, Thread
from agentdash.facts.worker import Finding, Got, Judged, Sandbox, Verdict
from agentdash.judge.checks import Seen, compare, in_words
from agentdash.judge.inheritance import Heritage, inherited, policy_changes
from agentdash.judge.obstacles import obstacles


def judge_sandbox(thread: Thread, judged: Judged, platform: str | None, heritage: Heritage | None = None) -> Sandbox:
    """The three layers of a thread, compared.

    Args:
        thread: the thread.
        judged: its state; a denial that stopped it is a finding, one that it got past is not.
        platform: `sys.platform` of the machine its live processes were seen on.
        heritage: what its parent was told and what it got, where it has one.
    """
    policy = thread.policy
    if thread.helper:
        return Sandbox("unverified", policy, None, _got(thread))
    own = [s for s in thread.sightings if not s.by_user]
    different = [f for s in own for f in compare(_beside(s, thread, platform))]
    different += inherited(thread, heritage) if heritage else []
    differences = _merged(different)
    mismatch = any(f.severity != "info" for f in differences)
    verdict: Verdict = "mismatch" if mismatch else "match" if own and policy is not None else "unverified"
    findings = (*differences, *policy_changes(thread), *obstacles(thread, judged))
    return Sandbox(verdict, policy, _applied(thread), _got(thread), findings)


def _beside(sighting: Sighting, thread: Thread, platform: str | None) -> Seen:
    period = thread.policies[sighting.policy] if sighting.policy >= 0 else None
    return Seen(sighting, period, platform if sighting.source == "environment" and platform else thread.platform)


def _merged(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per cause: what several sightings show is said once, and counted."""
    by_cause: dict[tuple[str, str], Finding] = {}
    for finding in found:
        cause = (finding.kind, finding.configured)
        if (known := by_cause.get(cause)) is None:
            by_cause[cause] = finding
            continue
        first, latest = (known, finding) if known.since <= finding.since else (finding, known)
        stronger = latest if latest.direction == "label" else first
        by_cause[cause] = msgspec.structs.replace(
            stronger,
            since=first.since,
            last=max(known.last, finding.last),
            count=known.count + finding.count,
            evidence=tuple(dict.fromkeys((*known.evidence, *finding.evidence))),
            calls=tuple(dict.fromkeys((*known.calls, *finding.calls))),
            pids=tuple(dict.fromkeys((*known.pids, *finding.pids))),
        )
    return tuple(sorted(by_cause.values(), key=lambda f: f.since))


def _got(thread: Thread) -> Got:
    """What the newest commands were seen to have, each fact from the newest sighting that has it."""
    newest = sorted((s for s in thread.sightings if not s.by_user), key=lambda s: s.last, reverse=True)
    if not newest:
        return Got()
    own = next((s.own_network for s in newest if s.own_network is not None), None)
    return Got(
        network_flag=next((s.network_flag for s in newest if s.network_flag is not None), None),
        sandbox_flag=next((s.sandbox_flag for s in newest if s.sandbox_flag is not None), None),
        seccomp=next((s.seccomp for s in newest if s.seccomp is not None), None),
        no_new_privs=next((s.no_new_privs for s in newest if s.no_new_privs is not None), None),
        network_namespace=None if own is None else "own" if own else "host",
        sandboxed=next((s.boxed for s in newest if s.boxed is not None), None),
        at=newest[0].last,
        source=newest[0].source,
    )


def _applied(thread: Thread) -> str | None:
    """What Codex handed to its sandbox for the newest command, and what came of the newest wish for more than the policy grants."""
    said = []
    newest = max((s for s in thread.sightings if s.applied), key=lambda s: s.last, default=None)
    if newest and newest.applied:
        policy = newest.applied.policy
        said.append(f"{newest.applied.by}: {in_words(policy)}" if policy else newest.applied.by)
    call = next((c for c in (*reversed(thread.open_calls), *reversed(thread.calls)) if c.escalation), None)
    if call and call.escalation:
        wish = "outside of the sandbox" if call.escalation.kind == "escalated" else "with additional permissions"
        said.append(f"asked to run {wish}: {call.outcome or 'open'}")
    return "; ".join(said) or None
