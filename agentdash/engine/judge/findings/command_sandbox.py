"""Findings about commands that run without the sandbox of their CLI.

`sandbox-silently-off`: a sandbox is switched on in the settings of Claude Code, and commands run without one.
`child-mode-escalated`: a sub-agent may do more without being asked than its session. `auto-approved-outside`:
an automatic reviewer of Codex let a command leave a read-only sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.judge.findings.observations import is_outside
from agentdash.engine.judge.findings.policies import ParentPolicy
from agentdash.engine.judge.findings.wording import at_line, make_finding, period_in_words, policy_in_words
from agentdash.model.denials import Remedy
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
    if (failed := thread.sandbox_failed) is not None:
        before = next(
            (p for p in thread.policies if p.since <= failed.at and p.policy.has_agent_sandbox), None
        )
        yield _silently_off(
            "The sandbox could not be started, and is off for the rest of the session: later commands run"
            " without it.",
            policy_in_words(before.policy) if before else "a sandbox, by the words of the failure",
            before.since if before else None,
            [Evidence(EvidenceSource.TRANSCRIPT, failed.at, "sandbox-failed", failed.text)],
            [o for o in outside if o.last > failed.at],
            _RESTART,
        )
        return
    request = next((each for each in reversed(requests) if _asks_for_sandbox(each)), None)
    if request is None or request.read_at is not None:
        return  # read after it was written: which settings were in force is not known
    since, asked = (request.since or 0.0) - _LOG_TOLERANCE_S, str(request.origin(RequestField.FILESYSTEM))
    told = next((p for p in thread.policies if p.since >= since and p.policy.is_full_access), None)
    # up to 2.1.240 neither a sandbox nor the lack of one is described to the agent
    states_none = all(p.policy.filesystem is Filesystem.UNKNOWN for p in thread.policies)
    outside = [o for o in outside if (o.last >= told.since if told else o.first >= since)]
    if told is None and not (outside and states_none and not request.excluded):
        return
    at = told.since if told else outside[0].first
    evidence = [Evidence(EvidenceSource.CONFIG, request.since or at, "sandbox-requested", asked)]
    if told is not None:
        text = at_line(told.line, "the model is told of no sandbox")
        evidence.append(Evidence(EvidenceSource.TRANSCRIPT, at, "sandbox-instructions", text))
    unless = " Arguments (`--settings`) that switched it off would look the same."
    yield _silently_off(
        "The settings switch the sandbox on, and commands run without it: Claude Code goes on so where what"
        f" the sandbox needs is missing.{'' if request.are_arguments_known else unless}",
        asked,
        request.since,
        evidence,
        outside,
        _INSTALL,
        at,
    )


def _asks_for_sandbox(request: Requested) -> bool:
    is_asked = request.origin(RequestField.FILESYSTEM) is not None
    return is_asked and request.policy.filesystem is Filesystem.WORKSPACE


def _silently_off(
    message: str,
    configured: str,
    expected_at: float | None,
    evidence: Sequence[Evidence],
    outside: Sequence[SandboxObservation],
    remedy: Remedy,
    since: float | None = None,
) -> Finding:
    """Return the finding about commands outside.

    Args:
        evidence: the last piece is what was observed if no command was seen yet.
        outside: what the commands were seen to have, oldest first.
        since: when it began (unix seconds); None: with the last piece of evidence.
    """
    since = evidence[-1].at if since is None else since
    last = max((o.last for o in outside), default=since)
    layer: Layer = "applied" if any(o.recorded is False for o in outside) else "configured"
    expected = Filesystem.WORKSPACE.value
    seen = [Evidence(o.source, o.last, "command-outside", o.quote or "not sandboxed") for o in outside]
    return make_finding(
        FindingKind.SANDBOX_SILENTLY_OFF,
        message,
        configured=configured,
        got=[*evidence, *seen][-1].text,
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
        has_run = ("ended", "running", "timed-out")
        ran = [call for call in calls if call.allowed_by is None and call.outcome in has_run]
        if ran and all(call.sandboxed is None for call in ran):  # a version that does not state it
            yield _escalated(above, mode, role, ran)


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
    let_out = []
    for call in (*thread.calls, *thread.open_calls):
        index, escalation = thread.policy_index_of(call), call.escalation
        has_run = call.outcome == "running" or (call.outcome == "ended" and call.exit_code is not None)
        if index < 0 or escalation is None or escalation.kind != "escalated" or not has_run:
            continue
        policy = thread.policies[index].policy
        if policy.reviewer in _AUTO_REVIEWERS and policy.filesystem is Filesystem.READ_ONLY:
            let_out.append((call, thread.policies[index]))
    if not let_out:
        return
    call, period = let_out[0]
    reviewer, since = period.policy.reviewer or "", period.since
    policy_text = f"{period_in_words(period)}, reviewer {reviewer}"
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
            Evidence(EvidenceSource.ROLLOUT, since, "policy-in-force", policy_text),
            Evidence(EvidenceSource.ROLLOUT, call.at, "escalation", at_line(call.line, call.text)),
        ),
        calls=(each.id for each, _ in let_out),
        fields=[
            DifferingField(LayerField.REVIEWER, "user", reviewer, "configured", "configured", since, call.at)
        ],
    )
