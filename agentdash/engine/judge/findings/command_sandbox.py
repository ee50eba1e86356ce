"""Findings about commands that run without the sandbox of their CLI.

`sandbox-silently-off`: a sandbox is switched on in the settings of Claude Code, and commands run without one.
`child-mode-escalated`: a sub-agent may do more without being asked than its session. `auto-approved-outside`:
an automatic reviewer of Codex let a command leave a read-only sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.judge.findings.inheritance import ParentPolicy
from agentdash.engine.judge.findings.observations import is_outside
from agentdash.engine.judge.findings.wording import at_line, make_finding, period_in_words, policy_in_words
from agentdash.model.denials import Remedy
from agentdash.model.events import SandboxFailed
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import NO_SANDBOX, DifferingField, Layer, LayerField
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
_AUTO_REVIEWERS: Final = ("auto_review", "guardian_subagent")
"""`approvals_reviewer` values of an automatic reviewer (0.145+, and its name before)."""


# ---------------------------------------------------------------- switched on, and not there


def sandbox_silently_off(thread: Thread, requests: Sequence[Requested]) -> Iterator[Finding]:
    """Yield a finding where commands run without the sandbox that the settings switch on."""
    if thread.agent == "codex":
        return
    outside = [o for o in thread.observations if not o.by_user and is_outside(o) and o.granted is None]
    if thread.sandbox_failed is not None:
        yield _failed(thread, thread.sandbox_failed, outside)
        return
    request = next((each for each in reversed(requests) if _asks_for_sandbox(each)), None)
    if request is None or request.read_at is not None:
        return  # read after it was written: which settings were in force is not known
    since = (request.since or 0.0) - _LOG_TOLERANCE_S
    told = next((p for p in thread.policies if p.since >= since and p.policy.is_full_access), None)
    if told is not None:
        yield _silently_off(request, told, [o for o in outside if o.last >= told.since])
        return
    # up to 2.1.240 neither a sandbox nor the lack of one is described to the agent
    states_none = all(p.policy.filesystem is Filesystem.UNKNOWN for p in thread.policies)
    outside = [o for o in outside if o.first >= since]
    if outside and states_none and not request.excluded:
        yield _silently_off(request, None, outside)


def _asks_for_sandbox(request: Requested) -> bool:
    is_asked = request.origin(RequestField.FILESYSTEM) is not None
    return is_asked and request.policy.filesystem is Filesystem.WORKSPACE


def _silently_off(
    request: Requested, told: PolicyPeriod | None, outside: Sequence[SandboxObservation]
) -> Finding:
    origin, unsaid = str(request.origin(RequestField.FILESYSTEM)), "the model is told of no sandbox"
    since = told.since if told else outside[0].first
    evidence = [Evidence(EvidenceSource.CONFIG, request.since or since, "sandbox-requested", origin)]
    if told is not None:
        text = at_line(told.line, unsaid)
        evidence.append(Evidence(EvidenceSource.TRANSCRIPT, since, "sandbox-instructions", text))
    unless = " Arguments (`--settings`) that switched it off would look the same."
    return _finding(
        "The settings switch the sandbox on, and commands run without it: Claude Code goes on so where what"
        f" the sandbox needs is missing.{'' if request.are_arguments_known else unless}",
        request.since,
        configured=origin,
        got=unsaid,
        since=since,
        outside=outside,
        evidence=evidence,
        remedy=_INSTALL,
    )


def _failed(thread: Thread, failed: SandboxFailed, outside: Sequence[SandboxObservation]) -> Finding:
    before = next((p for p in thread.policies if p.since <= failed.at and p.policy.has_agent_sandbox), None)
    return _finding(
        "The sandbox could not be started, and is off for the rest of the session: later commands run"
        " without it.",
        before.since if before else None,
        configured=policy_in_words(before.policy) if before else "a sandbox, by the words of the failure",
        got=failed.text,
        since=failed.at,
        outside=[o for o in outside if o.last > failed.at],
        evidence=[Evidence(EvidenceSource.TRANSCRIPT, failed.at, "sandbox-failed", failed.text)],
        remedy=_RESTART,
    )


def _finding(
    message: str,
    expected_at: float | None,
    *,
    configured: str,
    got: str,
    since: float,
    outside: Sequence[SandboxObservation],
    evidence: Sequence[Evidence],
    remedy: Remedy,
) -> Finding:
    """Return the finding about commands outside.

    Args:
        got: what was observed if no command was seen yet.
        outside: what the commands were seen to have, oldest first.
    """
    last = max((o.last for o in outside), default=since)
    layer: Layer = "applied" if any(o.recorded is False for o in outside) else "configured"
    expected = Filesystem.WORKSPACE.value
    seen = [Evidence(o.source, o.last, "command-outside", o.quote or "not sandboxed") for o in outside]
    return make_finding(
        FindingKind.SANDBOX_SILENTLY_OFF,
        message,
        configured=configured,
        got=seen[-1].text if seen else got,
        since=since,
        last=last,
        count=max(1, sum(o.count for o in outside)),
        evidence=(*evidence, *seen),
        remedy=remedy,
        calls=dict.fromkeys(call for o in outside for call in o.calls),
        pids=dict.fromkeys(pid for o in outside for pid in o.pids),
        fields=[
            DifferingField(LayerField.FILES, expected, NO_SANDBOX, layer, "requested", expected_at, last)
        ],
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
    role = next((each for each in requests if each.policy.approval in _MODES and each.read_at is None), None)
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
    origin = role.origin(RequestField.APPROVAL) if role is not None else None
    child_mode = role.policy.approval if role is not None else None
    wider = f"`{child_mode}`, by its role" if child_mode else "a wider mode"
    first, transcript = calls[0], EvidenceSource.TRANSCRIPT
    rule = "allowed-by-mode" if first.allowed_by == "mode" else "ran-without-a-question"
    evidence = [
        Evidence(transcript, above.since, "permission-mode", f"the session's mode is {mode}"),
        Evidence(transcript, first.at, rule, at_line(first.line, first.text)),
    ]
    if role is not None and origin is not None:
        evidence.append(Evidence(EvidenceSource.CONFIG, role.since or above.since, "role-mode", str(origin)))
    actual = child_mode or "allowed by its mode"
    return make_finding(
        FindingKind.CHILD_MODE_ESCALATED,
        f"The sub-agent runs in {wider}, its session in `{mode}`: its calls are not asked about.",
        configured=f"permission mode {mode} of its session",
        got=str(origin) if origin else "its calls are allowed by its mode",
        since=first.at,
        last=max(call.ended_at or call.at for call in calls),
        count=len(calls),
        evidence=evidence,
        calls=(call.id for call in calls),
        fields=[
            DifferingField(LayerField.APPROVAL, mode, actual, "configured", "parent", above.since, first.at)
        ],
    )


# ---------------------------------------------------------------- an automatic reviewer


def auto_approved(thread: Thread) -> Iterator[Finding]:
    """Yield a finding where commands left a read-only sandbox while an automatic reviewer answers approvals
    (openai/codex#36570)."""
    let_out = list(_let_out(thread))
    if not let_out:
        return
    call, period = let_out[0]
    reviewer = period.policy.reviewer or ""
    policy = f"{period_in_words(period)}, reviewer {reviewer}"
    yield make_finding(
        FindingKind.AUTO_APPROVED_OUTSIDE,
        "A command left the read-only sandbox, and approvals are answered by an automatic reviewer,"
        " not by the user.",
        configured=policy_in_words(period.policy),
        got=f"ran outside the sandbox: {call.text}",
        since=call.at,
        last=max(each.at for each, _ in let_out),
        count=len(let_out),
        evidence=(
            Evidence(EvidenceSource.ROLLOUT, period.since, "policy-in-force", policy),
            Evidence(EvidenceSource.ROLLOUT, call.at, "escalation", at_line(call.line, call.text)),
        ),
        calls=(each.id for each, _ in let_out),
        fields=[
            DifferingField(
                LayerField.REVIEWER, "user", reviewer, "configured", "configured", period.since, call.at
            )
        ],
    )


def _let_out(thread: Thread) -> Iterator[tuple[Call, PolicyPeriod]]:
    """Yield the calls that left a read-only sandbox by an automatic reviewer, with the policy in force."""
    for call in (*thread.calls, *thread.open_calls):
        index = thread.policy_index_of(call)
        if index < 0 or call.escalation is None or call.escalation.kind != "escalated":
            continue
        period = thread.policies[index]
        is_auto = period.policy.reviewer in _AUTO_REVIEWERS
        has_run = call.outcome == "running" or (call.outcome == "ended" and call.exit_code is not None)
        if is_auto and has_run and period.policy.filesystem is Filesystem.READ_ONLY:
            yield call, period
