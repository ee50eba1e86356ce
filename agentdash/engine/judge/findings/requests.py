"""Compare what was asked for with what the agent was told that it has.

A request counts from the start of its process to the start of the next one that ran the thread. It is
compared with the first policy that the thread states in that time: what nothing asked for is not compared,
nor is a request without such a policy.

A CLI with a screen may have been given another policy there before any file shows it: its first policy is
compared only where the difference is what the settings that were read lead to, and later policies are
requests themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.inheritance import ParentPolicy
from agentdash.engine.judge.findings.request_differences import (
    RequestDifference,
    RequestTurn,
    decisive_request,
    differences_of,
    is_certain,
    with_parent,
)
from agentdash.engine.judge.findings.wording import period_in_words, policy_in_words
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField, Reference
from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.model.policy import Filesystem, Network
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.thread import PolicyPeriod, Thread

_FLAG_KINDS: Final = {
    FindingKind.STALE_NETWORK_FLAG: NETWORK_FLAG,
    FindingKind.ESCALATED_FLAG_LEFT: NETWORK_FLAG,
    FindingKind.FOREIGN_SANDBOX_FLAG: SANDBOX_FLAG,
}
"""The variable that each finding is about."""


def request_findings(
    thread: Thread, requests: Sequence[Requested], parent: ParentPolicy | None = None
) -> Iterator[Finding]:
    """Yield the findings of requests that a thread did not get.

    Args:
        requests: what its processes, or its role, were asked for.
        parent: the policies of its parent, where it has one.
    """
    for turn in _turns(thread, requests):
        if turn.request.resumes and turn.before is not None and (found := _dropped(turn)) is not None:
            yield found
            continue
        differences = [each for each in differences_of(turn) if is_certain(each, turn)]
        if differences:
            yield _finding(turn, [with_parent(each, turn, parent) for each in differences])


def newest_request(thread: Thread, requests: Sequence[Requested]) -> Requested | None:
    """Return what was asked for last: by the newest process, or by a change in the running CLI."""
    if not requests:
        return None
    request = next((each for each in reversed(requests) if each.are_arguments_known), requests[-1])
    if not request.are_arguments_known:
        return request
    if request.is_fixed or request.since is None:
        return request
    own = [period for period in thread.policies if not period.is_by_grant]
    changes = [period for period in own if period.since >= request.since]
    if not changes or (
        len(changes) == 1 and not _was_stated_between(thread, request.since, changes[0].since)
    ):
        return request
    return _as_request(changes[-1], request)


def with_environment(finding: Finding, requests: Sequence[Requested]) -> Finding:
    """Return a finding about a sandbox flag with the setting that gives this flag to commands."""
    flag = _FLAG_KINDS.get(finding.kind)
    if flag is None or not requests:
        return finding
    rules = [rule for rule in requests[-1].environment if rule.effect == "sets" and flag in rule.names]
    if not rules:
        return finding
    evidence = Evidence(
        source=EvidenceSource.CONFIG, at=finding.since, rule="environment-policy", text=str(rules[0])
    )
    message = f"{finding.message} {rules[0]}."
    return replace(finding, message=message, evidence=(*finding.evidence, evidence))


# ---------------------------------------------------------------- which policy answers which request


def _turns(thread: Thread, requests: Sequence[Requested]) -> Iterator[RequestTurn]:
    for number, request in enumerate(requests):
        if request.since is None or not request.are_arguments_known:
            continue
        later = requests[number + 1].since if number + 1 < len(requests) else None
        stated = next((at for at in thread.policy_lines if at >= request.since), None)
        if stated is None or (later is not None and stated >= later):
            continue
        index = thread.policy_index_at(stated)
        if index < 0:
            continue
        before = thread.policy_index_at(request.since)
        yield RequestTurn(
            request=request,
            period=_without_grants(thread.policies[index]),
            before=_without_grants(thread.policies[before]) if before >= 0 else None,
            earlier=requests[number - 1] if number else None,
        )


def _without_grants(period: PolicyPeriod) -> PolicyPeriod:
    return replace(period, policy=period.stated, base=None)


def _was_stated_between(thread: Thread, start: float, end: float) -> bool:
    return any(start <= at < end for at in thread.policy_lines)


def _as_request(period: PolicyPeriod, request: Requested) -> Requested:
    """Return a policy that was chosen in the running CLI as a request."""
    text = period.place
    policy = period.stated
    stated = {
        RequestField.FILESYSTEM: policy.filesystem is not Filesystem.UNKNOWN,
        RequestField.NETWORK: policy.network is not Network.UNKNOWN,
        RequestField.APPROVAL: policy.approval is not None,
        RequestField.REVIEWER: policy.reviewer is not None,
    }
    origins = tuple(
        RequestOrigin(field=field, layer=RequestLayer.THREAD, text=text)
        for field, is_stated in stated.items()
        if is_stated
    )
    return replace(request, policy=policy, origins=origins, since=period.since, given=None, given_origins=())


# ---------------------------------------------------------------- wording


def _dropped(turn: RequestTurn) -> Finding | None:
    """Return the finding of a resumed thread that no longer has the policy it had (openai/codex#40149).

    `codex exec resume` takes its policy from the configuration (0.114 to 0.169). What its command line asks
    for is no loss, nor is a change of the configuration that the thread had its policy from.
    """
    before = turn.before
    if before is None or not turn.request.is_fixed:
        return None
    if not _was_typed(turn, before):
        return None
    lost = msgspec.structs.replace(turn, request=_request_of(before, turn.request))
    differences = [
        each
        for each in differences_of(lost)
        if each.field in (RequestField.FILESYSTEM, RequestField.NETWORK)
        and not _is_typed(turn.request, each.field)
    ]
    if not differences:
        return None
    won = [
        each if each.winner else replace(each, winner=decisive_request(turn, each.field))
        for each in differences
    ]
    return _finding(lost, won, kind=FindingKind.RESUME_DROPPED_POLICY, reference="before")


def _was_typed(turn: RequestTurn, before: PolicyPeriod) -> bool:
    """Return whether the policy before came from a command line or a screen, not from the configuration."""
    earlier = turn.earlier
    if earlier is not None and (earlier.since or 0.0) <= before.since:
        return not earlier.is_fixed or _is_typed(earlier, RequestField.FILESYSTEM)
    written = turn.request.files_written
    return written is None or written < before.since


def _is_typed(request: Requested, field: RequestField) -> bool:
    origin = request.origin(field)
    return origin is not None and origin.layer is RequestLayer.ARGV


def _request_of(before: PolicyPeriod, request: Requested) -> Requested:
    """Return the policy before as what a resumed thread was asked to keep."""
    return replace(_as_request(before, request), given=request.given, given_origins=request.given_origins)


def _finding(
    turn: RequestTurn,
    differences: Sequence[RequestDifference],
    kind: FindingKind | None = None,
    reference: Reference = "requested",
) -> Finding:
    is_role = any(each.origin.layer is RequestLayer.ROLE for each in differences)
    kind = kind or (FindingKind.ROLE_POLICY_IGNORED if is_role else FindingKind.REQUESTED_NOT_CONFIGURED)
    directions = {each.direction for each in differences}
    direction = next(each for each in ("wider", "narrower", "label") if each in directions)
    period = turn.period
    return Finding(
        kind=kind,
        direction=direction,
        severity="danger" if direction == "wider" else FINDING_KINDS[kind].severity,
        configured="; ".join(_asked_in_words(each) for each in differences),
        got=f"{policy_in_words(period.policy)} ({period.place})",
        message=_message(kind, differences, turn.request),
        since=period.since,
        last=period.since,
        count=1,
        evidence=tuple(_evidence(turn, differences)),
        fields=tuple(_field(turn, each, reference) for each in differences),
    )


def _asked_in_words(difference: RequestDifference) -> str:
    return f"{_what(difference)} {difference.asked} ({difference.origin})"


def _what(difference: RequestDifference) -> str:
    return "files" if difference.name is LayerField.FILES else difference.name.value


def _message(kind: FindingKind, differences: Sequence[RequestDifference], request: Requested) -> str:
    asked = ", ".join(f"{_what(each)} {each.asked}" for each in differences)
    got = ", ".join(f"{_what(each)} {each.got}" for each in differences)
    origins = ", ".join(dict.fromkeys(str(each.origin) for each in differences))
    winners = list(dict.fromkeys(str(each.winner) for each in differences if each.winner is not None))
    because = f"Decided by {', '.join(winners)}." if winners else _without_winner(request)
    if winners and request.rules_of is not None:
        because = f"{because[:-1]} (by the rules of {request.rules_of})."
    if kind is FindingKind.RESUME_DROPPED_POLICY:
        return f"The resumed thread had {asked}, and now has {got}: the policy was not kept. {because}"
    if kind is FindingKind.ROLE_POLICY_IGNORED:
        return f"The role asks for {asked} ({origins}), and the sub-agent has {got}. {because}"
    return f"Asked for: {asked} ({origins}). The thread has {got}. {because}"


def _without_winner(request: Requested) -> str:
    """Return why no setting is named as the one that decides."""
    if request.changed_files:
        return f"What decides it is not known: written since its start: {', '.join(request.changed_files)}."
    if request.given is None:
        return "What decides it is not known: the rules of this version, or some of its settings, are not."
    return "No setting that was read explains it; those of a device or a cloud account cannot be read."


def _evidence(turn: RequestTurn, differences: Sequence[RequestDifference]) -> Iterator[Evidence]:
    since = turn.request.since or turn.period.since
    asked = {str(each.origin): each.origin for each in differences}
    won = {str(each.winner): each.winner for each in differences if each.winner is not None}
    for text, origin in asked.items():
        yield Evidence(source=_source(origin), at=since, rule="requested", text=text)
    for text, winner in won.items():
        yield Evidence(source=_source(winner), at=since, rule="overridden-by", text=text)
    yield Evidence(
        source=EvidenceSource.ROLLOUT,
        at=turn.period.since,
        rule="policy-in-force",
        text=period_in_words(turn.period),
    )


def _source(origin: RequestOrigin) -> EvidenceSource:
    if origin.file is not None:
        return EvidenceSource.CONFIG
    return EvidenceSource.ROLLOUT if origin.layer is RequestLayer.THREAD else EvidenceSource.PROCESS


def _field(turn: RequestTurn, difference: RequestDifference, reference: Reference) -> DifferingField:
    return DifferingField(
        name=difference.name,
        expected=difference.asked,
        actual=difference.got,
        layer="configured",
        reference=reference,
        expected_at=turn.request.since,
        actual_at=turn.period.since,
    )
