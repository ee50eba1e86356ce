"""Two policies compared: the one that was asked for with the one that the agent was told, a child's with its
parent's, and a thread's own with the one before.

A request counts from the start of its process to the start of the next one that ran the thread. It is
compared with the first policy that the thread states in that time: what nothing asked for is not compared,
nor is a request without such a policy. A CLI with a screen may have been given another policy there before
any file shows it: its first policy is compared only where the difference is what the settings that were read
lead to, and later policies are requests themselves.

A child inherits its parent's policy of the turn that spawns it (0.107+); a role may set its own. Approval
policies may differ without a finding: 0.1xx gave children `never`, whatever the parent's was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.wording import make_finding, policy_evidence, policy_in_words
from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Direction, Finding, FindingKind
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, DifferingField, LayerField, Reference
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.process import Process
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
"""How much a value allows, to tell narrower from wider."""
_ASKING: Final = 1
"""The same of approval policies that ask: they allow more than one that never does."""
_ROWS: Final = {
    RequestField.FILESYSTEM: LayerField.FILES,
    RequestField.NETWORK: LayerField.NETWORK,
    RequestField.WRITABLE_ROOTS: LayerField.FILES,
    RequestField.APPROVAL: LayerField.APPROVAL,
    RequestField.REVIEWER: LayerField.REVIEWER,
}
_ROOTS: Final = RequestField.WRITABLE_ROOTS
_COMPARED: Final = ("filesystem", "network", "approval", "reviewer")
_UNSTATED: Final = (None, "", "unknown")
_Earlier = Literal["parent", "before"]


class ParentPolicy(msgspec.Struct, frozen=True):
    """What a child is compared with: its parent's policies and the observations of its parent's commands."""

    policies: tuple[PolicyPeriod, ...]
    observations: tuple[SandboxObservation, ...]
    cwd: str | None = None

    def policy_at(self, at: float) -> PolicyPeriod | None:
        """Return the parent's policy in force at a time (unix seconds); None before the first."""
        return _stated_at(self.policies, at)


def parent_policy(parent: Thread | None) -> ParentPolicy | None:
    """Return what a child of this thread is compared with; None without a stated policy."""
    if parent is None or not parent.policies:
        return None
    return ParentPolicy(parent.policies, parent.observations, parent.cwd)


def _stated(periods: tuple[PolicyPeriod, ...]) -> list[PolicyPeriod]:
    """Return the policies that the log states: a grant is for its thread alone (0.171)."""
    return [replace(period, policy=period.stated, base=None) for period in periods if not period.is_by_grant]


def _stated_at(periods: tuple[PolicyPeriod, ...], at: float) -> PolicyPeriod | None:
    """Return the stated policy in force at a time (unix seconds); None before the first."""
    return next((period for period in reversed(_stated(periods)) if period.since <= at), None)


# ---------------------------------------------------------------- asked for, and told


class _Turn(NamedTuple):
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
        policy, asked, given = self.period.policy, self.request.policy, self.request.given
        if policy.network is not Network.ON:
            return policy
        if given is None:  # the proxy that was asked for may be there
            return replace(policy, network=Network.UNKNOWN) if asked.network is Network.MEDIATED else policy
        return replace(policy, network=Network.MEDIATED) if given.network is Network.MEDIATED else policy


class _Difference(NamedTuple):
    """A part of a policy that is not what was asked for."""

    field: RequestField
    asked: str
    got: str
    origin: RequestOrigin
    winner: RequestOrigin | None
    """What decided instead, or None if nothing that was read did."""

    @property
    def direction(self) -> Direction:
        """Whether more was given than asked for, or less."""
        if self.field is RequestField.REVIEWER:
            return "label"
        return "wider" if _FREEDOM.get(self.got, _ASKING) > _FREEDOM.get(self.asked, _ASKING) else "narrower"


def request_findings(
    thread: Thread, requests: Sequence[Requested], parent: ParentPolicy | None = None
) -> Iterator[Finding]:
    """Yield the findings of what the processes of a thread, or its role, were asked for and did not get."""
    for turn in _turns(thread, requests):
        if turn.request.resumes and turn.before is not None and (found := _dropped(turn, turn.before)):
            yield found
            continue
        differences = [each for each in _differences(turn, parent) if _is_certain(each, turn.request)]
        if differences:
            is_role = any(each.origin.layer is RequestLayer.ROLE for each in differences)
            kind = FindingKind.ROLE_POLICY_IGNORED if is_role else FindingKind.REQUESTED_NOT_CONFIGURED
            yield _request_finding(kind, turn, differences)


def _turns(thread: Thread, requests: Sequence[Requested]) -> Iterator[_Turn]:
    for number, request in enumerate(requests):
        if request.since is None or not request.are_arguments_known:
            continue
        later = requests[number + 1].since if number + 1 < len(requests) else None
        stated = next((at for at in thread.policy_lines if at >= request.since), None)
        if stated is None or (later is not None and stated >= later):
            continue
        if (period := _stated_at(thread.policies, stated)) is not None:
            earlier = requests[number - 1] if number else None
            yield _Turn(request, period, _stated_at(thread.policies, request.since), earlier)


def _differences(turn: _Turn, parent: ParentPolicy | None = None) -> Iterator[_Difference]:
    """Yield the parts that were asked for somewhere, and that both policies state, with different values."""
    asked, got = turn.request.policy, turn.got
    parts = [(RequestField(name), getattr(asked, name), getattr(got, name)) for name in _COMPARED]
    if asked.profile is not None and asked.profile == got.profile:
        parts.pop(0)
    missing = got.grants_less_than(asked)
    if missing and asked.filesystem is got.filesystem is Filesystem.WORKSPACE:
        parts.append((_ROOTS, f"workspace, {missing[0]}", f"workspace, not {missing[0]}"))
    for field, wanted, given in parts:
        origin = turn.request.origin(field)
        if origin is None or wanted == given or wanted in _UNSTATED or given in _UNSTATED:
            continue
        winner = _winner(turn, field)
        if winner is None and origin.layer is RequestLayer.ROLE:
            winner = _parent_as_winner(turn, field, parent)
        yield _Difference(field, str(wanted), str(given), origin, winner)


def _winner(turn: _Turn, field: RequestField) -> RequestOrigin | None:
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


def _parent_as_winner(turn: _Turn, field: RequestField, parent: ParentPolicy | None) -> RequestOrigin | None:
    """Return the policy of its parent, if the sub-agent has that in place of its role's."""
    above = parent.policy_at(turn.period.since) if parent else None
    if above is None or _value(above.policy, field) != _value(turn.period.policy, field):
        return None
    return RequestOrigin(field, RequestLayer.PARENT, "the policy of the thread that spawned it")


def _value(policy: Policy, field: RequestField) -> object:
    return getattr(policy, "filesystem" if field is _ROOTS else field.value)


def _is_certain(difference: _Difference, request: Requested) -> bool:
    """Return whether a difference is one between request and policy, and not a gap in what was read."""
    if difference.origin.layer is RequestLayer.MANAGED:
        return False
    if not request.is_fixed:
        return difference.winner is not None
    if request.changed_files and difference.origin.layer is not RequestLayer.ARGV:
        return False
    # what a run without questions does with approvals differs between versions
    return difference.field is not RequestField.APPROVAL or difference.winner is not None


def newest_request(thread: Thread, requests: Sequence[Requested]) -> Requested | None:
    """Return what was asked for last: by the newest process, or by a change in the running CLI."""
    if not requests:
        return None
    request = next((each for each in reversed(requests) if each.are_arguments_known), requests[-1])
    since = request.since
    if not request.are_arguments_known or request.is_fixed or since is None:
        return request
    changes = [each for each in thread.policies if not each.is_by_grant and each.since >= since]
    if not changes:
        return request
    was_stated = any(since <= at < changes[0].since for at in thread.policy_lines)
    return _as_request(changes[-1], request) if was_stated or len(changes) > 1 else request


def _as_request(period: PolicyPeriod, request: Requested) -> Requested:
    """Return a policy that was chosen in the running CLI as a request."""
    policy = period.stated
    origins = tuple(
        RequestOrigin(RequestField(name), RequestLayer.THREAD, period.place)
        for name in _COMPARED
        if getattr(policy, name) not in _UNSTATED
    )
    return replace(request, policy=policy, origins=origins, since=period.since, given=None, given_origins=())


# ---------------------------------------------------------------- a resumed thread


def _dropped(turn: _Turn, before: PolicyPeriod) -> Finding | None:
    """Return the finding of a resumed thread that no longer has the policy it had (openai/codex#40149).

    `codex exec resume` takes its policy from the configuration (0.114 to 0.169). What its command line asks
    for is no loss, nor is a change of the configuration that the thread had its policy from.
    """
    request = turn.request
    if not request.is_fixed or not _was_typed(turn, before):
        return None
    kept = replace(_as_request(before, request), given=request.given, given_origins=request.given_origins)
    lost, differences = turn._replace(request=kept), []
    for each in _differences(lost):
        field = each.field
        if field not in (RequestField.FILESYSTEM, RequestField.NETWORK) or _is_typed(request, field):
            continue
        # where it was asked for, if the thread has it as it was asked for
        is_met = _value(request.policy, field) == _value(turn.period.policy, field)
        differences.append(each._replace(winner=each.winner or (request.origin(field) if is_met else None)))
    if not differences:
        return None
    return _request_finding(FindingKind.RESUME_DROPPED_POLICY, lost, differences, "before")


def _was_typed(turn: _Turn, before: PolicyPeriod) -> bool:
    """Return whether the policy before came from a command line or a screen, not from the configuration."""
    earlier, written = turn.earlier, turn.request.files_written
    if earlier is not None and (earlier.since or 0.0) <= before.since:
        return not earlier.is_fixed or _is_typed(earlier, RequestField.FILESYSTEM)
    return written is None or written < before.since


def _is_typed(request: Requested, field: RequestField) -> bool:
    origin = request.origin(field)
    return origin is not None and origin.layer is RequestLayer.ARGV


# ---------------------------------------------------------------- wording


def _request_finding(
    kind: FindingKind, turn: _Turn, differences: Sequence[_Difference], reference: Reference = "requested"
) -> Finding:
    directions = {each.direction for each in differences}
    direction = next(each for each in ("wider", "narrower", "label") if each in directions)
    asked = [f"{_ROWS[each.field].value} {each.asked}" for each in differences]
    parts, got = ", ".join(asked), ", ".join(f"{_ROWS[each.field].value} {each.got}" for each in differences)
    origins = {str(each.origin): each.origin for each in differences}
    winners = {str(each.winner): each.winner for each in differences if each.winner is not None}
    period, since = turn.period, turn.request.since
    message = f"Asked for: {parts} ({', '.join(origins)}). The thread has {got}."
    if kind is FindingKind.RESUME_DROPPED_POLICY:
        message = f"The resumed thread had {parts}, and now has {got}: the policy was not kept."
    elif kind is FindingKind.ROLE_POLICY_IGNORED:
        message = f"The role asks for {parts} ({', '.join(origins)}), and the sub-agent has {got}."
    rules = f" (by the rules of {turn.request.rules_of})" if turn.request.rules_of else ""
    decided = (
        f"Decided by {', '.join(winners)}{rules}." if winners else "No setting that was read explains it."
    )
    at = since or period.since
    return make_finding(
        kind,
        f"{message} {decided}",
        direction=direction,
        severity="danger" if direction == "wider" else None,
        configured="; ".join(f"{part} ({d.origin})" for part, d in zip(asked, differences, strict=True)),
        got=f"{policy_in_words(period.policy)} ({period.place})",
        since=period.since,
        evidence=[
            *(Evidence(_source(each), at, "requested", text) for text, each in origins.items()),
            *(Evidence(_source(each), at, "overridden-by", text) for text, each in winners.items()),
            policy_evidence(period),
        ],
        fields=[
            DifferingField(_ROWS[d.field], d.asked, d.got, "configured", reference, since, period.since)
            for d in differences
        ],
    )


def _source(origin: RequestOrigin) -> EvidenceSource:
    if origin.file is not None:
        return EvidenceSource.CONFIG
    return EvidenceSource.ROLLOUT if origin.layer is RequestLayer.THREAD else EvidenceSource.PROCESS


# ---------------------------------------------------------------- run by a server


def remote_directory_finding(client: Process | None, thread: Thread) -> tuple[Finding, ...]:
    """Return the finding about a `codex exec --remote` whose thread runs in another directory: it is that of
    the server, whatever the client was started in (0.171)."""
    if client is None or not (client.once and client.is_remote):
        return ()
    if None in (client.cwd, thread.cwd) or client.cwd == thread.cwd:
        return ()
    at, own, other = client.key.started, str(client.cwd), str(thread.cwd)
    quote = f"`{' '.join(client.argv[:4])} ...` (pid {client.pid}) was started in {own}"
    finding = make_finding(
        FindingKind.REQUESTED_NOT_CONFIGURED,
        f"`--remote` runs the task in the directory of its server, {other}, and not in {own}.",
        direction="label",
        configured=quote,
        got=f"the thread runs in {other}",
        since=thread.created_at or at,
        evidence=[Evidence(EvidenceSource.PROCESS, at, "started-in", quote)],
        remedy=Remedy("start the app-server in the directory of the task, or `codex exec` without --remote"),
        pids=[client.pid],
        fields=[DifferingField(LayerField.FILES, own, other, "configured", "requested", at)],
    )
    return (finding,)


# ---------------------------------------------------------------- parents and children, before and after


def inheritance_findings(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield how a child differs from its parent: in its policies, and in the network of its commands."""
    for period in _stated(thread.policies):
        above = parent.policy_at(period.since)
        if above is None:
            continue
        if direction := _drift(above.policy, period.policy, parent.cwd, thread.cwd):
            extent = "more" if direction == "wider" else "less"
            role = f" Its role, {thread.role}, may set a policy of its own." if thread.role else ""
            message = (
                f"Children inherit their parent's policy; this one grants {extent} than its parent's.{role}"
            )
            kind = FindingKind.CHILD_POLICY_DRIFT
            found = _policy_finding(kind, message, above, period, "parent", direction)
            yield replace(found, severity="danger") if direction == "wider" else found
        yield from _reviewer_drift(above, period, "parent")
    yield from _network_less_than_parent(thread, parent)


def policy_changes(thread: Thread) -> Iterator[Finding]:
    """Yield one finding for all changes of a thread's own policy, and one for each change of its reviewer."""
    pairs = list(pairwise(period for period in _stated(thread.policies) if _is_known(period.policy)))
    changes = [(was, now) for was, now in pairs if _differs(was.policy, now.policy)]
    if changes:
        was, now = changes[-1]
        before, after = was.policy.brief(), now.policy.brief()
        change = f"from {before} to {after}"
        if before == after:
            fields = [f"{f.name}: {f.expected} to {f.actual}" for f in _policy_fields(was, now, "before")]
            change = f"({', '.join(fields) or 'paths protected inside the writable ones'})"
        is_online = now.policy.network is Network.ON and was.policy.network is not Network.ON
        is_wider = bool(was.policy.grants_less_than(now.policy)) or is_online
        message = f"Its policy changed {change}: commands are held against the one in force then."
        direction: Direction = "wider" if is_wider else "narrower"
        finding = _policy_finding(FindingKind.POLICY_CHANGED, message, was, now, "before", direction)
        yield replace(finding, since=changes[0][1].since, count=len(changes))
    for was, now in pairs:
        yield from _reviewer_drift(was, now, "before")


def _is_known(policy: Policy) -> bool:
    return policy.filesystem is not Filesystem.UNKNOWN and policy.network is not Network.UNKNOWN


def _differs(was: Policy, now: Policy) -> bool:
    """Return whether two policies differ in what both of them state."""
    same: dict[str, Any] = {"reviewer": now.reviewer, "profile": now.profile}
    if set(was.rules) == set(now.rules):
        same["rules"] = now.rules  # the strictest of those that fit a path decides, whatever the order
    if None in (was.approval, now.approval):
        same["approval"] = now.approval
    return replace(was, **same) != now


def _drift(parent: Policy, child: Policy, parent_cwd: str | None, child_cwd: str | None) -> Direction | None:
    """Return whether a child may do less or more than its parent, apart from their directories."""
    if not (_is_known(parent) and _is_known(child)):
        return None
    has_own_directory = child_cwd != parent_cwd
    gained = set(parent.grants_less_than(child)) - ({child_cwd} if has_own_directory else set())
    lost = set(child.grants_less_than(parent)) - ({parent_cwd} if has_own_directory else set())
    if gained or _FREEDOM[child.network] > _FREEDOM[parent.network]:
        return "wider"
    return "narrower" if lost or child.network is not parent.network else None


def _reviewer_drift(was: PolicyPeriod, now: PolicyPeriod, reference: _Earlier) -> Iterator[Finding]:
    """Yield the finding where others answer approvals than before, or than those of the parent."""
    before, after = was.policy.reviewer, now.policy.reviewer
    if not before or not after or before == after:
        return
    earlier = "its parent's" if reference == "parent" else "before"
    message = f"Approvals are answered by {after}, {earlier} were by {before}."
    finding = _policy_finding(FindingKind.REVIEWER_DRIFT, message, was, now, reference)
    field = DifferingField(LayerField.REVIEWER, before, after, "configured", reference, was.since, now.since)
    yield replace(finding, configured=f"reviewer {before}", got=f"reviewer {after}", fields=(field,))


def _policy_finding(
    kind: FindingKind,
    message: str,
    was: PolicyPeriod,
    now: PolicyPeriod,
    reference: _Earlier,
    direction: Direction | None = None,
) -> Finding:
    """Return a finding about two policies."""
    fields = list(_policy_fields(was, now, reference))
    got = policy_in_words(now.policy)
    paths = next((field.actual for field in fields if field.name is LayerField.FILES), "")
    if "," in paths:  # the same kind of policy, for other paths
        got = got.replace(f"files {now.policy.filesystem}", f"files {paths}")
    return make_finding(
        kind,
        message,
        configured=policy_in_words(was.policy),
        got=got,
        since=now.since,
        evidence=map(policy_evidence, (was, now)),
        direction=direction,
        fields=fields,
    )


def _policy_fields(was: PolicyPeriod, now: PolicyPeriod, reference: _Earlier) -> Iterator[DifferingField]:
    """Yield the configured cells in which two policies differ."""
    before, after = was.policy, now.policy
    lost, gained = after.grants_less_than(before), before.grants_less_than(after)
    files = str(after.filesystem)
    if before.filesystem is after.filesystem and (lost or gained):
        files = f"{files}, {f'not {lost[0]}' if lost else f'also {gained[0]}'}"
    cells = [
        (LayerField.FILES, str(before.filesystem), files),
        (LayerField.NETWORK, str(before.network), str(after.network)),
    ]
    if reference == "before":
        approvals = (before.approval or "not stated", after.approval or "not stated")
        cells.append((LayerField.APPROVAL, *approvals))
    for name, expected, actual in cells:
        if expected != actual:
            yield DifferingField(name, expected, actual, "configured", reference, was.since, now.since)


def _network_less_than_parent(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield a finding where a child's commands lack the granted network that its parent's have."""
    parents = _under_a_network(parent.observations, parent.policies)
    cut = [each for each in _under_a_network(thread.observations, thread.policies) if _is_cut(each)]
    if not parents or not cut or any(map(_is_cut, parents)):
        return
    free, first = parents[0], min(cut, key=lambda each: each.first)
    name, expected, actual, lack = LayerField.NETWORK, HOST_NETWORK, OWN_NETWORK, "do not"
    if first.own_network is None:
        name, lack = LayerField.NETWORK_FLAG, "carry the flag that marks it as off"
        expected, actual = free.network_flag or UNSET, first.network_flag or UNSET
    yield make_finding(
        FindingKind.CHILD_GOT_LESS,
        f"Parent and child were granted the network: the parent's commands have it, the child's {lack}.",
        configured=policy_in_words(thread.policies[first.policy].policy),
        got=f"{first.quote}; its parent: {free.quote}",
        since=first.first,
        last=max(each.last for each in cut),
        count=sum(each.count for each in cut),
        evidence=(
            Evidence(free.source, free.first, "parent-got", free.quote),
            Evidence(first.source, first.first, "child-got", first.quote),
        ),
        calls=first.calls,
        pids=first.pids,
        fields=[DifferingField(name, expected, actual, "observed", "parent", free.last, first.last)],
    )


def _under_a_network(
    observations: tuple[SandboxObservation, ...], policies: tuple[PolicyPeriod, ...]
) -> list[SandboxObservation]:
    """Return what the model's commands had while the policy in force granted the network."""
    return [
        each
        for each in observations
        if not each.by_user and each.policy >= 0 and policies[each.policy].policy.network is Network.ON
    ]


def _is_cut(observation: SandboxObservation) -> bool:
    """Return whether a command has no network, by the kernel or else by the flag."""
    is_own = observation.own_network
    return observation.network_flag == "1" if is_own is None else is_own
