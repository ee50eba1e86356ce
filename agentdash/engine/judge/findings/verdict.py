"""The three layers of a thread, compared: its verdict and its findings, one for each cause.

`checks` compares what commands were seen to have with the policy, `inheritance` a policy with the one before and with the parent's,
`border` tells what got out through tmux, `obstacles` reads what stood in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agentdash.engine.judge.findings.blockers import blocker_findings
from agentdash.engine.judge.findings.inheritance import ParentPolicy, inherited, policy_changes
from agentdash.engine.judge.findings.policy_checks import Seen, compare, in_words, kernel_words
from agentdash.engine.judge.findings.tmux_boundary import escaped
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, Verdict
from agentdash.model.fleet import Applied, SandboxObservation, Thread
from agentdash.model.policy import Policy
from agentdash.model.worker import Assessment, Got, Sandbox


def judge_sandbox(
    thread: Thread, assessment: Assessment, platform: str | None, parent_policy: ParentPolicy | None = None
) -> Sandbox:
    """The three layers of a thread, compared.

    Args:
        thread: the thread.
        judged: its state; a denial that stopped it is a finding, one that it got past is not.
        platform: `sys.platform` of the machine its live processes were seen on.
        heritage: what its parent was told and what it got, where it has one.
    """
    policy = thread.policy
    if thread.helper:
        return Sandbox("unverified", policy)
    own = [s for s in thread.observations if not s.by_user]
    compared = [(s, compare(_beside(s, thread, platform))) for s in own]
    different = [f for _, found in compared for f in found]
    different += inherited(thread, parent_policy) if parent_policy else []
    different += escaped(thread)
    differences = _merged(different)
    mismatch = any(f.severity != "info" for f in differences)
    verdict: Verdict = "mismatch" if mismatch else "match" if own and policy is not None else "unverified"
    findings = (*differences, *policy_changes(thread), *blocker_findings(thread, assessment))
    return Sandbox(
        verdict=verdict,
        configured=policy,
        applied=_applied(thread),
        applied_policy=_applied_policy(own),
        got=_got(own),
        findings=findings,
        evidence=tuple(
            _evidence(s, agrees=mismatch is any(f.severity != "info" for f in found)) for s, found in compared
        ),
        unread=tuple(_unread(thread, own)),
    )


def _evidence(observation: SandboxObservation, *, agrees: bool) -> Evidence:
    """A sighting as a piece of evidence; `agrees`: with the verdict."""
    applied = observation.applied
    words = [observation.quote, *kernel_words(observation)]
    words += [_handed(applied)] if applied else []
    words += ["allowed to leave the sandbox"] if observation.granted == "outside" else []
    times = f"{observation.count}x: " if observation.count > 1 else ""
    return Evidence(
        observation.source, observation.first, "command-seen", times + "; ".join(filter(None, words)), agrees
    )


def _unread(thread: Thread, own: list[SandboxObservation]) -> Iterator[str]:
    """What would have told more."""
    live = [s for s in own if s.source == "environment"]
    if not own:
        yield "no command of it was seen alive, and none printed its flags"
    elif not live:
        yield "no command of it was seen alive: only what commands printed is known, and the kernel was not asked"
    if any(s.sandboxed is None for s in live):
        yield "the kernel's facts of some of its processes could not be read (macOS, or another user's)"
    if any(s.sandboxed and s.own_network is False and s.applied and s.applied.by == "nothing" for s in live):
        yield "Landlock (Codex through 0.114) leaves no mark that can be read: what it lets be written is taken from the policy"
    if users := len(thread.observations) - len(own):
        yield f"{users} kind{'s' * (users > 1)} of commands were left out: the user's own run in no sandbox"


def _beside(observation: SandboxObservation, thread: Thread, platform: str | None) -> Seen:
    period = thread.policies[observation.policy] if observation.policy >= 0 else None
    return Seen(
        observation, period, platform if observation.source == "environment" and platform else thread.platform
    )


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


def _got(own: list[SandboxObservation]) -> Got:
    """What the newest commands were seen to have, each fact from the newest sighting that has it."""
    newest = sorted(own, key=lambda s: s.last, reverse=True)
    if not newest:
        return Got()
    apart = next((s.own_network for s in newest if s.own_network is not None), None)
    return Got(
        network_flag=next((s.network_flag for s in newest if s.network_flag is not None), None),
        sandbox_flag=next((s.sandbox_flag for s in newest if s.sandbox_flag is not None), None),
        seccomp=next((s.seccomp for s in newest if s.seccomp is not None), None),
        no_new_privs=next((s.no_new_privs for s in newest if s.no_new_privs is not None), None),
        network_namespace=None if apart is None else "own" if apart else "host",
        sandboxed=next((s.sandboxed for s in newest if s.sandboxed is not None), None),
        at=newest[0].last,
        source=newest[0].source,
    )


def _handed(applied: Applied) -> str:
    """What stands above a command, in words."""
    if applied.by == "nothing":
        return "no sandbox launcher above it"
    return f"{applied.by}: {in_words(applied.policy)}" if applied.policy else applied.by


def _applied_policy(own: list[SandboxObservation]) -> Policy | None:
    newest = max((s for s in own if s.applied and s.applied.policy), key=lambda s: s.last, default=None)
    return newest.applied.policy if newest and newest.applied else None


def _applied(thread: Thread) -> str | None:
    """What Codex handed to its sandbox for the newest command, and what came of the newest wish for more than the policy grants."""
    said = []
    newest = max((s for s in thread.observations if s.applied), key=lambda s: s.last, default=None)
    if newest and newest.applied:
        said.append(_handed(newest.applied))
    call = next((c for c in (*reversed(thread.open_calls), *reversed(thread.calls)) if c.escalation), None)
    if call and call.escalation:
        wish = (
            "outside of the sandbox" if call.escalation.kind == "escalated" else "with additional permissions"
        )
        said.append(f"asked to run {wish}: {call.outcome or 'open'}")
    return "; ".join(said) or None
