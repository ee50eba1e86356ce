"""Findings of CLIs that decide for each command whether it runs in their sandbox (Claude Code).

`sandbox-off-for-command`: the sandbox that was described to the agent did not hold a command: it asked for
that (`dangerouslyDisableSandbox`), or a setting excludes it. `sandbox-silently-off`: a sandbox is switched
on in the settings, and commands run without one. `child-mode-escalated`: a sub-agent may do more without
being asked than its session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.judge.findings.comparison import Comparison
from agentdash.engine.judge.findings.inheritance import ParentPolicy
from agentdash.engine.judge.findings.wording import at_line, policy_in_words
from agentdash.model.denials import Remedy
from agentdash.model.events import SandboxFailed
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind
from agentdash.model.layers import NO_SANDBOX, DifferingField, LayerField
from agentdash.model.observation import SandboxObservation
from agentdash.model.policy import Filesystem
from agentdash.model.requested import Requested, RequestField
from agentdash.model.thread import Call, PolicyPeriod, Thread

_MODES: Final = {"plan": 0, "default": 1, "dontAsk": 1, "acceptEdits": 2, "auto": 3, "bypassPermissions": 4}
"""How much each permission mode of Claude Code allows without a question."""
_LOG_TOLERANCE_S: Final = 1.0
"""How much earlier than the first line of a log the sandbox may be described in it."""
_INSTALL: Final = Remedy(
    "install what the sandbox needs (bubblewrap and socat on Linux), and start Claude Code again;"
    ' with "failIfUnavailable": true in "sandbox" it refuses to start without one'
)
_RESTART: Final = Remedy(
    "start Claude Code again, when the reason is mended: it does not try again by itself"
)


def sandbox_off_for_command(seen: Comparison) -> Finding | None:
    """Return a finding where a command ran outside of the sandbox that was described to the agent."""
    policy, observation = seen.policy, seen.observation
    if policy.enforced_by != "agent" or not policy.restricts_files or not _is_outside(observation):
        return None
    asked = observation.granted == "outside"
    if asked and observation.approved:
        why = "it asked for that, and a person allowed it"
    elif asked:
        why = "it asked for that (`dangerouslyDisableSandbox`), and no person was asked"
    else:
        why = "it did not ask for that; commands that `sandbox.excludedCommands` names do so"
    return seen.finding(
        FindingKind.SANDBOX_OFF_FOR_COMMAND,
        f"The command ran outside of the sandbox: {why}.",
        fields=(
            seen.differs(
                LayerField.FILES,
                expected=policy.filesystem.value,
                actual=NO_SANDBOX,
                layer="applied" if observation.recorded is False else "observed",
            ),
        ),
        severity="info" if asked and observation.approved else None,
        remedy=_forbid_flag() if asked else None,
    )


def _is_outside(observation: SandboxObservation) -> bool:
    return observation.recorded is False or (observation.sandboxed is False and observation.called)


def _forbid_flag() -> Remedy:
    return Remedy(
        text='{ "sandbox": { "allowUnsandboxedCommands": false } }',
        where="settings.json of Claude Code, beside the other keys of `sandbox`",
    )


# ---------------------------------------------------------------- switched on, and not there


def sandbox_silently_off(thread: Thread, requests: Sequence[Requested]) -> Iterator[Finding]:
    """Yield a finding where commands run without the sandbox that the settings switch on."""
    if thread.agent == "codex":
        return
    outside = [o for o in thread.observations if not o.by_user and _is_outside(o) and o.granted is None]
    if thread.sandbox_failed is not None:
        later = [o for o in outside if o.last > thread.sandbox_failed.at]
        yield _failed(thread, thread.sandbox_failed, later)
        return
    request = next((each for each in reversed(requests) if _asks_for_sandbox(each)), None)
    if request is None or request.read_at is not None:
        return  # read after it was written: which settings were in force is not known
    since = (request.since or 0.0) - _LOG_TOLERANCE_S
    told = next((p for p in thread.policies if p.since >= since and p.policy.is_full_access), None)
    unknown = [o for o in outside if _is_unstated(o, thread) and o.first >= since]
    if told is not None:
        yield _silently_off(request, told, [o for o in outside if o.last >= told.since])
    elif unknown and not request.excluded:
        yield _silently_off(request, None, unknown)


def _asks_for_sandbox(request: Requested) -> bool:
    asked = request.origin(RequestField.FILESYSTEM) is not None
    return asked and request.policy.filesystem is Filesystem.WORKSPACE


def _is_unstated(observation: SandboxObservation, thread: Thread) -> bool:
    """Return whether neither a sandbox nor the lack of one was described to the agent (up to 2.1.240)."""
    if observation.policy < 0:
        return True
    return thread.policies[observation.policy].policy.filesystem is Filesystem.UNKNOWN


def _silently_off(
    request: Requested, told: PolicyPeriod | None, outside: Sequence[SandboxObservation]
) -> Finding:
    origin = request.origin(RequestField.FILESYSTEM)
    since = told.since if told else min(o.first for o in outside)
    evidence = [
        Evidence(
            source=EvidenceSource.CONFIG,
            at=request.since or since,
            rule="sandbox-requested",
            text=str(origin),
        )
    ]
    if told is not None:
        evidence.append(
            Evidence(
                source=EvidenceSource.TRANSCRIPT,
                at=told.since,
                rule="sandbox-instructions",
                text=at_line(told.line, "the model is told of no sandbox"),
            )
        )
    return _finding(
        message="The settings switch the sandbox on, and commands run without it: Claude Code goes on so"
        f" where what the sandbox needs is missing.{_unless(request)}",
        expected=request.policy.filesystem.value,
        expected_at=request.since,
        configured=str(origin),
        got=_got(outside) or "the model is told of no sandbox",
        since=since,
        outside=outside,
        evidence=evidence,
        remedy=_INSTALL,
    )


def _unless(request: Requested) -> str:
    """Return what else would look the same, of a process whose arguments are not known."""
    if request.are_arguments_known:
        return ""
    return " Arguments (`--settings`) that switched it off would look the same."


def _failed(thread: Thread, failed: SandboxFailed, outside: Sequence[SandboxObservation]) -> Finding:
    evidence = [
        Evidence(source=EvidenceSource.TRANSCRIPT, at=failed.at, rule="sandbox-failed", text=failed.text)
    ]
    before = next((p for p in thread.policies if p.since <= failed.at and p.policy.has_agent_sandbox), None)
    return _finding(
        message="The sandbox could not be started, and is off for the rest of the session: later commands run"
        " without it.",
        expected=Filesystem.WORKSPACE.value,
        expected_at=before.since if before else None,
        configured=policy_in_words(before.policy) if before else "a sandbox, by the words of the failure",
        got=_got(outside) or failed.text,
        since=failed.at,
        outside=outside,
        evidence=evidence,
        remedy=_RESTART,
    )


def _got(outside: Sequence[SandboxObservation]) -> str:
    return outside[-1].quote or "not sandboxed" if outside else ""


def _finding(
    *,
    message: str,
    expected: str,
    expected_at: float | None,
    configured: str,
    got: str,
    since: float,
    outside: Sequence[SandboxObservation],
    evidence: Sequence[Evidence],
    remedy: Remedy,
) -> Finding:
    info = FINDING_KINDS[FindingKind.SANDBOX_SILENTLY_OFF]
    last = max((o.last for o in outside), default=since)
    seen = tuple(
        Evidence(source=o.source, at=o.last, rule="command-outside", text=o.quote or "not sandboxed")
        for o in outside
    )
    return Finding(
        kind=FindingKind.SANDBOX_SILENTLY_OFF,
        direction=info.directions[0],
        severity=info.severity,
        configured=configured,
        got=got,
        message=message,
        since=since,
        last=last,
        count=max(1, sum(o.count for o in outside)),
        evidence=(*evidence, *seen),
        remedy=remedy,
        calls=tuple(dict.fromkeys(call for o in outside for call in o.calls)),
        pids=tuple(dict.fromkeys(pid for o in outside for pid in o.pids)),
        fields=(
            DifferingField(
                name=LayerField.FILES,
                expected=expected,
                actual=NO_SANDBOX,
                layer="applied" if any(o.recorded is False for o in outside) else "configured",
                reference="requested",
                expected_at=expected_at,
                actual_at=last,
            ),
        ),
    )


# ---------------------------------------------------------------- sub-agents


def child_mode_escalated(
    thread: Thread, parent: ParentPolicy | None, requests: Sequence[Requested]
) -> Iterator[Finding]:
    """Yield a finding where a sub-agent's calls were allowed by a wider permission mode than its session's.

    2.1.330 states what allowed a call. Of earlier versions the role's own mode counts, which these follow
    unless the session's is wider.
    """
    if thread.agent == "codex" or parent is None or thread.created_at is None:
        return
    above = parent.policy_at(thread.created_at)
    mode = above.policy.approval if above is not None else None
    if above is None or mode not in _MODES:
        return
    known = (each for each in requests if each.policy.approval in _MODES and each.read_at is None)
    role = next(known, None)
    calls = [call for call in (*thread.calls, *thread.open_calls) if call.kind in ("command", "patch")]
    by_mode = [call for call in calls if call.allowed_by == "mode"]
    if by_mode and _MODES[mode] <= _MODES["default"]:
        yield _escalated(above, mode, role, by_mode)
    elif role is not None and _MODES[role.policy.approval or ""] > _MODES[mode]:
        ran = [call for call in calls if call.allowed_by is None and _has_run(call)]
        if ran and all(call.sandboxed is None for call in ran):  # a version that does not state it
            yield _escalated(above, mode, role, ran)


def _has_run(call: Call) -> bool:
    return call.outcome in ("ended", "running", "timed-out")


def _escalated(above: PolicyPeriod, mode: str, role: Requested | None, calls: Sequence[Call]) -> Finding:
    info = FINDING_KINDS[FindingKind.CHILD_MODE_ESCALATED]
    origin = role.origin(RequestField.APPROVAL) if role is not None else None
    child_mode = role.policy.approval if role is not None else None
    wider = f"`{child_mode}`, by its role" if child_mode else "a wider mode"
    first = calls[0]
    return Finding(
        kind=FindingKind.CHILD_MODE_ESCALATED,
        direction=info.directions[0],
        severity=info.severity,
        configured=f"permission mode {mode} of its session",
        got=str(origin) if origin else "its calls are allowed by its mode",
        message=f"The sub-agent runs in {wider}, its session in `{mode}`: its calls are not asked about.",
        since=first.at,
        last=max(call.ended_at or call.at for call in calls),
        count=len(calls),
        evidence=tuple(_mode_evidence(above, mode, role, first)),
        calls=tuple(call.id for call in calls),
        fields=(
            DifferingField(
                name=LayerField.APPROVAL,
                expected=mode,
                actual=child_mode or "allowed by its mode",
                layer="configured",
                reference="parent",
                expected_at=above.since,
                actual_at=first.at,
            ),
        ),
    )


def _mode_evidence(above: PolicyPeriod, mode: str, role: Requested | None, call: Call) -> Iterator[Evidence]:
    """Yield what shows the mode of a session, of a call of its sub-agent, and of the sub-agent's role."""
    text, transcript = f"the session's mode is {mode}", EvidenceSource.TRANSCRIPT
    yield Evidence(source=transcript, at=above.since, rule="permission-mode", text=text)
    rule = "allowed-by-mode" if call.allowed_by == "mode" else "ran-without-a-question"
    yield Evidence(source=transcript, at=call.at, rule=rule, text=at_line(call.line, call.text))
    if role is not None and (origin := role.origin(RequestField.APPROVAL)) is not None:
        at = role.since or above.since
        yield Evidence(source=EvidenceSource.CONFIG, at=at, rule="role-mode", text=str(origin))
