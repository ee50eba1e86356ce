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
from agentdash.engine.judge.findings.wording import (
    make_finding,
    period_in_words,
    policy_evidence,
    policy_in_words,
)
from agentdash.model.events import LabelRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Direction, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField, Reference
from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.model.pane import ScreenLabel
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.thread import PolicyPeriod, Thread

_FREEDOM: Final = {
    Filesystem.READ_ONLY: 0,
    Filesystem.WORKSPACE: 1,
    Filesystem.CUSTOM: 1,
    Filesystem.UNRESTRICTED: 2,
    Network.OFF: 0,
    Network.MEDIATED: 1,
    Network.ON: 2,
    "never": 0,
}
"""How much a value allows, to distinguish narrower from wider. An approval policy that asks allows more
than one that never does."""
_ASKING: Final = 1


# ---------------------------------------------------------------- what differs, and what decided it


class RequestTurn(msgspec.Struct, frozen=True):
    """A request, and the policy that the thread stated first after it."""

    request: Requested
    period: PolicyPeriod
    before: PolicyPeriod | None
    """The policy of the thread before the request."""
    earlier: Requested | None
    """The request before."""

    @property
    def got(self) -> Policy:
        """The policy that the thread has: Codex states a network behind its proxy as on (0.130 to 0.171)."""
        policy, given = self.period.policy, self.request.given
        if given is None or given.network is not Network.MEDIATED or policy.network is not Network.ON:
            return policy
        return replace(policy, network=Network.MEDIATED)


class RequestDifference(msgspec.Struct, frozen=True):
    """One part of a policy that is not what was asked for."""

    field: RequestField
    name: LayerField
    asked: str
    got: str
    origin: RequestOrigin
    winner: RequestOrigin | None
    """What decided instead; None: nothing that was read."""
    direction: Direction


def differences_of(turn: RequestTurn) -> Iterator[RequestDifference]:
    """Yield the parts that were asked for, and are otherwise in the policy that the thread stated."""
    asked, got = turn.request.policy, turn.got
    is_same_profile = asked.profile is not None and asked.profile == got.profile
    if (
        _is_known(asked.filesystem, got.filesystem)
        and asked.filesystem is not got.filesystem
        and not is_same_profile
    ):
        yield from _difference(turn, RequestField.FILESYSTEM, asked.filesystem, got.filesystem)
    is_network_known = _is_known(asked.network, got.network) and not _may_be_mediated(turn)
    if is_network_known and asked.network is not got.network:
        yield from _difference(turn, RequestField.NETWORK, asked.network, got.network)
    if asked.filesystem is Filesystem.WORKSPACE and got.filesystem is Filesystem.WORKSPACE:
        yield from _missing_roots(turn)
    if asked.approval is not None and got.approval is not None and asked.approval != got.approval:
        yield from _difference(turn, RequestField.APPROVAL, asked.approval, got.approval)
    if asked.reviewer is not None and got.reviewer is not None and asked.reviewer != got.reviewer:
        yield from _difference(turn, RequestField.REVIEWER, asked.reviewer, got.reviewer)


def _may_be_mediated(turn: RequestTurn) -> bool:
    """Return whether the network may be behind the proxy that was asked for, which is not stated."""
    asked, given = turn.request.policy.network, turn.request.given
    return asked is Network.MEDIATED and turn.got.network is Network.ON and given is None


def _is_known(*values: str) -> bool:
    return "unknown" not in values


_ROWS: Final = {
    RequestField.FILESYSTEM: LayerField.FILES,
    RequestField.NETWORK: LayerField.NETWORK,
    RequestField.WRITABLE_ROOTS: LayerField.FILES,
    RequestField.APPROVAL: LayerField.APPROVAL,
    RequestField.REVIEWER: LayerField.REVIEWER,
}


def _difference(turn: RequestTurn, field: RequestField, asked: str, got: str) -> Iterator[RequestDifference]:
    origin = turn.request.origin(field)
    if origin is None:
        return
    yield RequestDifference(
        field=field,
        name=_ROWS[field],
        asked=str(asked),
        got=str(got),
        origin=origin,
        winner=winner_of(turn, field),
        direction=_direction(field, asked, got),
    )


def _missing_roots(turn: RequestTurn) -> Iterator[RequestDifference]:
    """Yield a difference where a directory that was asked for by name may not be written."""
    origin = turn.request.origin(RequestField.WRITABLE_ROOTS)
    if origin is None:
        return
    missing = turn.period.policy.grants_less_than(turn.request.policy)
    if missing:
        yield RequestDifference(
            field=RequestField.WRITABLE_ROOTS,
            name=LayerField.FILES,
            asked=f"{turn.request.policy.filesystem}, {missing[0]}",
            got=f"{turn.period.policy.filesystem}, not {missing[0]}",
            origin=origin,
            winner=winner_of(turn, RequestField.WRITABLE_ROOTS),
            direction="narrower",
        )


def _direction(field: RequestField, asked: str, got: str) -> Direction:
    if field is RequestField.REVIEWER:
        return "label"
    return "wider" if _FREEDOM.get(got, _ASKING) > _FREEDOM.get(asked, _ASKING) else "narrower"


def winner_of(turn: RequestTurn, field: RequestField) -> RequestOrigin | None:
    """Return what decided a part instead of the request, if the settings that were read lead to what the
    thread has."""
    given, changed = turn.request.given, turn.request.changed_files
    if given is None or _value(given, field) != _value(turn.got, field):
        return None
    origin = turn.request.given_origin(field)
    if origin is None or origin == turn.request.origin(field):
        return None
    is_uncertain = bool(changed) and (origin.layer is not RequestLayer.MANAGED or origin.file in changed)
    return None if is_uncertain else origin


def decisive_request(turn: RequestTurn, field: RequestField) -> RequestOrigin | None:
    """Return where a part was asked for, if the thread has it as it was asked for."""
    is_met = _value(turn.request.policy, field) == _value(turn.period.policy, field)
    return turn.request.origin(field) if is_met else None


def _value(policy: Policy, field: RequestField) -> object:
    return {
        RequestField.FILESYSTEM: policy.filesystem,
        RequestField.NETWORK: policy.network,
        RequestField.WRITABLE_ROOTS: policy.filesystem,
        RequestField.APPROVAL: policy.approval,
        RequestField.REVIEWER: policy.reviewer,
        RequestField.PROFILE: policy.profile,
    }[field]


def is_certain(difference: RequestDifference, turn: RequestTurn) -> bool:
    """Return whether a difference is one between request and policy, and not a gap in what was read."""
    request = turn.request
    if difference.origin.layer is RequestLayer.MANAGED:
        return False
    if not request.is_fixed:
        return difference.winner is not None
    if request.changed_files and difference.origin.layer is not RequestLayer.ARGV:
        return False
    # what a run without questions does with approvals differs between versions
    return difference.field is not RequestField.APPROVAL or difference.winner is not None


def with_parent(
    difference: RequestDifference, turn: RequestTurn, parent: ParentPolicy | None
) -> RequestDifference:
    """Return a difference of a role that is explained by the parent's policy, which the sub-agent has."""
    above = parent.policy_at(turn.period.since) if parent else None
    is_role = difference.origin.layer is RequestLayer.ROLE
    if above is None or not is_role or difference.winner is not None:
        return difference
    if _value(above.policy, difference.field) != _value(turn.period.policy, difference.field):
        return difference
    text = "the policy of the thread that spawned it"
    return replace(difference, winner=RequestOrigin(difference.field, RequestLayer.PARENT, text))


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
    evidence = Evidence(EvidenceSource.CONFIG, finding.since, "environment-policy", str(rules[0]))
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
    return make_finding(
        kind,
        _message(kind, differences, turn.request),
        direction=direction,
        severity="danger" if direction == "wider" else FINDING_KINDS[kind].severity,
        configured="; ".join(_asked_in_words(each) for each in differences),
        got=f"{policy_in_words(period.policy)} ({period.place})",
        since=period.since,
        evidence=_evidence(turn, differences),
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
        yield Evidence(_source(origin), since, "requested", text)
    for text, winner in won.items():
        yield Evidence(_source(winner), since, "overridden-by", text)
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


# ---------------------------------------------------------------- what the screen states
# A label is wrong only if no policy of the thread was ever as it says: it may be of an earlier turn. One that
# can change without a line in the log (`/status` of a TUI) is compared once a later turn has stated a policy.


def label_findings(thread: Thread, read: LabelRead | None) -> Iterator[Finding]:
    """Yield a finding where the screen of a thread states another sandbox than the thread has."""
    if read is None or not thread.policies:
        return
    if not read.label.is_fixed and not any(at > read.at for at in thread.policy_lines):
        return
    differences = [_label_difference(read.label, period.policy) for period in thread.policies]
    index = max(thread.policy_index_at(read.at), 0)
    found = differences[index]
    if found is None or None in differences:
        return
    yield _label_finding(read, thread.policies[index], *found)


def _label_difference(label: ScreenLabel, policy: Policy) -> tuple[LayerField, str, str] | None:
    """Return the part in which a policy is not what a label states, with both values."""
    if "unknown" not in (label.filesystem, policy.filesystem) and label.filesystem is not policy.filesystem:
        return LayerField.FILES, label.filesystem, policy.filesystem
    if Network.UNKNOWN not in (label.network, policy.network) and label.network is not policy.network:
        return LayerField.NETWORK, label.network, policy.network
    missing = [root for root in label.roots if policy.may_write(root) is False]
    if missing:
        return LayerField.FILES, f"{label.filesystem}, {missing[0]}", f"{policy.filesystem}, not {missing[0]}"
    return None


def _label_finding(
    read: LabelRead, period: PolicyPeriod, field: LayerField, stated: str, got: str
) -> Finding:
    return make_finding(
        FindingKind.LABEL_WRONG,
        f"The screen states {field.value} {stated}, and the thread has {got}.",
        configured=f"{policy_in_words(period.policy)} ({period.place})",
        got=f"the screen states: {read.label.text}",
        since=read.at,
        evidence=(
            Evidence(EvidenceSource.SCREEN, read.at, "screen-label", read.label.text),
            policy_evidence(period),
        ),
        fields=(
            DifferingField(
                name=field,
                expected=stated,
                actual=got,
                layer="configured",
                reference="screen",
                expected_at=read.at,
                actual_at=period.since,
            ),
        ),
    )
