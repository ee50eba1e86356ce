"""The verdict on a thread's sandbox: its layers compared, and one finding per cause.

`policy_checks` compares observations with the policy, `inheritance` a policy with the one before and with the
parent's, `tmux_boundary` reports what left the sandbox through tmux.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agentdash.engine.judge.findings.command_sandbox import (
    auto_approved,
    child_mode_escalated,
    sandbox_silently_off,
)
from agentdash.engine.judge.findings.denials import denial_findings
from agentdash.engine.judge.findings.inheritance import ParentPolicy, inheritance_findings, policy_changes
from agentdash.engine.judge.findings.observations import check_observation, compare, observation_evidence
from agentdash.engine.judge.findings.remedies import denials_with_remedies
from agentdash.engine.judge.findings.requests import (
    label_findings,
    newest_request,
    request_findings,
    with_environment,
)
from agentdash.engine.judge.findings.tmux_boundary import escape_findings
from agentdash.engine.judge.findings.wording import (
    launcher_in_words,
    launcher_name,
)
from agentdash.engine.judge.findings.write_access import DenialPredictor
from agentdash.model.denials import PathFacts
from agentdash.model.events import LabelRead
from agentdash.model.evidence import EvidenceSource
from agentdash.model.findings import Finding, FindingKind, Verdict
from agentdash.model.layers import DifferingField
from agentdash.model.observation import SandboxObservation
from agentdash.model.policy import Filesystem
from agentdash.model.requested import Requested
from agentdash.model.thread import Thread
from agentdash.model.worker import Assessment, Got, Sandbox

_NO_PLACES = PathFacts()


def judge_sandbox(
    thread: Thread,
    assessment: Assessment,
    *,
    platform: str | None,
    parent_policy: ParentPolicy | None = None,
    predictor: DenialPredictor | None = None,
    places: PathFacts = _NO_PLACES,
    requests: tuple[Requested, ...] = (),
    awaits_request: bool = False,
    label: LabelRead | None = None,
) -> Sandbox:
    """Return the layers of a thread's sandbox, compared.

    Args:
        assessment: its state; a denial that stopped it is a finding, one that it got past is not.
        platform: `sys.platform` of the machine on which its live processes were seen.
        parent_policy: the policies and observations of its parent, where it has one.
        predictor: what its policy would deny the worker CLIs that it could start.
        places: what is known of the places that remedies name.
        requests: what the processes that ran it were asked for, oldest first.
        awaits_request: whether what its process was asked for is still to be read: nothing matches before.
    """
    policy = thread.policy
    if thread.helper:
        return Sandbox("unverified", policy)
    own = [_attribute(observation, thread) for observation in thread.observations if not observation.by_user]
    checked = [(s, check_observation(compare(s, thread, platform, places))) for s in own]
    different = [finding for _, found in checked for finding in found]
    worst_first = _worst_first(checked)
    different += inheritance_findings(thread, parent_policy) if parent_policy else []
    different += escape_findings(thread, places)
    if thread.agent == "codex":
        different += [*request_findings(thread, requests, parent_policy), *auto_approved(thread)]
        different += label_findings(thread, label)
    different += sandbox_silently_off(thread, requests)
    different += child_mode_escalated(thread, parent_policy, requests)
    differences = _merge(with_environment(finding, requests) for finding in different)
    mismatch = _is_mismatch(differences)
    comparable = not awaits_request and any(_is_comparable(each, thread) for each in own)
    launcher, escalation = next((s.applied for s in worst_first if s.applied), None), _escalation(thread)
    applied_words = launcher_in_words(launcher) if launcher else None
    return Sandbox(
        verdict=_verdict(mismatch=mismatch, comparable=comparable),
        configured=policy,
        applied="; ".join(filter(None, (applied_words, escalation))) or None,
        launcher=launcher_name(launcher) if launcher else None,
        escalation=escalation,
        applied_policy=next((s.applied.policy for s in worst_first if s.applied and s.applied.policy), None),
        got=_observed([each for each in worst_first if each.recorded is None], thread),
        findings=(
            *differences,
            *_unexplained(policy_changes(thread), differences),
            *denial_findings(thread, assessment.state, places),
        ),
        evidence=tuple(
            observation_evidence(observation, agrees=mismatch is _is_mismatch(found))
            for observation, found in checked
        ),
        unread=tuple(_not_observed(thread, own, requests, awaits_request=awaits_request)),
        denials=denials_with_remedies(thread, places),
        predicted_denials=predictor.predict(policy, thread.cwd) if predictor else (),
        requested=_requested(thread, requests),
    )


def _attribute(observation: SandboxObservation, thread: Thread) -> SandboxObservation:
    """Return an observation under the policy that it belongs to.

    A call whose sandbox could not be started has run no process. What was observed under its id, while the
    log was behind, belongs to a later call with the same script.
    """
    failed = thread.sandbox_failed
    if failed is None or observation.recorded is not None or failed.call not in observation.calls:
        return observation
    calls = tuple(call for call in observation.calls if call != failed.call)
    return msgspec.structs.replace(observation, calls=calls, policy=thread.policy_index_at(observation.first))


def _unexplained(changes: Iterable[Finding], differences: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the policy changes that no other finding explains."""
    dropped = {each.since for each in differences if each.kind is FindingKind.RESUME_DROPPED_POLICY}
    return (change for change in changes if change.last not in dropped)


def _requested(thread: Thread, requests: tuple[Requested, ...]) -> Requested | None:
    if thread.agent == "codex":
        return newest_request(thread, requests)
    return requests[-1] if requests else None


def _is_mismatch(findings: Iterable[Finding]) -> bool:
    return any(finding.severity != "info" for finding in findings)


def _is_comparable(observation: SandboxObservation, thread: Thread) -> bool:
    """Return whether it was made under the sandbox of now, and the files of that are known.

    One made under another is compared with that; it proves nothing of what is in force now.
    """
    if observation.policy < 0 or _awaits_call(observation) or observation.recorded is not None:
        return False  # what the CLI states of itself is compared, and proves nothing
    if observation.granted == "rule" and not observation.sandboxed:
        return False
    was, now = thread.policies[observation.policy].policy, thread.policies[-1].policy
    if (was.filesystem, was.network, set(was.rules)) != (now.filesystem, now.network, set(now.rules)):
        return False
    return thread.agent == "codex" or now.filesystem is not Filesystem.UNKNOWN


def _awaits_call(observation: SandboxObservation) -> bool:
    """Return whether the log may still state the call: until then some checks cannot be made."""
    return observation.provisional and not observation.called


def _verdict(*, mismatch: bool, comparable: bool) -> Verdict:
    if mismatch:
        return "mismatch"
    return "match" if comparable else "unverified"


# ---------------------------------------------------------------- one finding per cause


def _merge(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding per cause (kind and configured side), counted, the oldest first."""
    by_cause: dict[tuple[str, str], Finding] = {}
    for finding in found:
        cause = (finding.kind, finding.configured)
        known = by_cause.get(cause)
        by_cause[cause] = finding if known is None else _merge_two(known, finding)
    return tuple(sorted(by_cause.values(), key=lambda finding: finding.since))


def _merge_two(known: Finding, finding: Finding) -> Finding:
    """Return two findings of one cause as one: the first, unless the kernel has shown a label since."""
    first, latest = (known, finding) if known.since <= finding.since else (finding, known)
    base = latest if latest.direction == "label" else first
    return msgspec.structs.replace(
        base,
        since=first.since,
        last=max(known.last, finding.last),
        count=known.count + finding.count,
        evidence=tuple(dict.fromkeys((*known.evidence, *finding.evidence))),
        calls=tuple(dict.fromkeys((*known.calls, *finding.calls))),
        pids=tuple(dict.fromkeys((*known.pids, *finding.pids))),
        fields=_merge_fields(first.fields, latest.fields),
    )


def _merge_fields(
    first: tuple[DifferingField, ...], latest: tuple[DifferingField, ...]
) -> tuple[DifferingField, ...]:
    """Return each cell once, with its latest values."""
    cells = {(field.name, field.layer, field.reference): field for field in (*first, *latest)}
    return tuple(cells.values())


# ---------------------------------------------------------------- what was observed


def _not_observed(
    thread: Thread, own: list[SandboxObservation], requests: tuple[Requested, ...], *, awaits_request: bool
) -> Iterator[str]:
    """Yield what could not be observed, and limits the verdict."""
    if awaits_request:
        yield "it has just started: what it was asked for is not read yet"
    if requests and requests[-1].rules_of is not None:
        measured = requests[-1].rules_of
        yield f"{thread.version} was not measured: what was asked for is by the rules of {measured}"
    live = [s for s in own if s.source is EvidenceSource.ENVIRONMENT]
    if not own:
        yield "no command of it was seen alive, and none printed its flags"
    elif not live:
        yield "no command of it was seen alive: only printed output is known, and no kernel facts"
    rules = dict.fromkeys(s.rule for s in own if s.rule and not s.sandboxed)
    if rules:
        yield f"what the sandbox holds, by commands that {', '.join(rules)} may have let out of it"
    if any(map(_awaits_call, live)):
        yield "the call that started some of its processes is not in its log yet"
    if any(s.sandboxed is None for s in live):
        yield "the kernel's facts of some of its processes could not be read (macOS, or another user's)"
    if any(map(_may_be_landlock, live)):
        yield (
            "Landlock (Codex through 0.114) leaves no mark that can be read: what it lets be written is taken"
            " from the policy"
        )
    if users := len(thread.observations) - len(own):
        yield f"{users} kind{'s' * (users > 1)} of commands were left out: the user's own run in no sandbox"


def _may_be_landlock(observation: SandboxObservation) -> bool:
    applied = observation.applied
    without_launcher = applied is not None and applied.by == "nothing"
    return bool(observation.sandboxed) and observation.own_network is False and without_launcher


def _worst_first(
    checked: Iterable[tuple[SandboxObservation, list[Finding]]],
) -> list[SandboxObservation]:
    """Return the observations in the order in which their facts are shown: those that differ from the policy,
    then the others, each the newest first. What is well must not hide what is not."""
    in_order = sorted(checked, key=lambda each: (_is_mismatch(each[1]), each[0].last), reverse=True)
    return [observation for observation, _ in in_order]


def _observed(own: list[SandboxObservation], thread: Thread) -> Got:
    """Return what commands had, each fact from the first observation that has it."""
    if not own:
        return Got()
    own_network = next((s.own_network for s in own if s.own_network is not None), None)
    return Got(
        network_flag=next((s.network_flag for s in own if s.network_flag is not None), None),
        sandbox_flag=next((s.sandbox_flag for s in own if s.sandbox_flag is not None), None),
        seccomp=next((s.seccomp for s in own if s.seccomp is not None), None),
        no_new_privs=next((s.no_new_privs for s in own if s.no_new_privs is not None), None),
        network_namespace=None if own_network is None else "own" if own_network else "host",
        sandboxed=next((s.sandboxed for s in own if s.sandboxed is not None), None),
        at=own[0].last,
        source=own[0].source,
        under_earlier_policy=own[0].policy < len(thread.policies) - 1,
    )


def _escalation(thread: Thread) -> str | None:
    """Return the newest escalation that was asked for, and its outcome."""
    calls = (*reversed(thread.open_calls), *reversed(thread.calls))
    call = next((call for call in calls if call.escalation), None)
    if call is None or call.escalation is None:
        return None
    escalated = call.escalation.kind == "escalated"
    extent = "outside of the sandbox" if escalated else "with additional permissions"
    return f"asked to run {extent}: {call.outcome or 'open'}"
