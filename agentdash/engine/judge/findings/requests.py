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
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.judge.findings.inheritance import ParentPolicy
from agentdash.engine.judge.findings.wording import make_finding, policy_evidence, policy_in_words
from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Direction, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField, Reference
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
    """Yield the findings of requests that a thread did not get.

    Args:
        requests: what its processes, or its role, were asked for.
        parent: the policies of its parent, if it has one.
    """
    for turn in _turns(thread, requests):
        if turn.request.resumes and turn.before is not None and (found := _dropped(turn, turn.before)):
            yield found
            continue
        differences = [each for each in _differences(turn, parent) if _is_certain(each, turn.request)]
        if differences:
            is_role = any(each.origin.layer is RequestLayer.ROLE for each in differences)
            kind = FindingKind.ROLE_POLICY_IGNORED if is_role else FindingKind.REQUESTED_NOT_CONFIGURED
            yield _finding(kind, turn, differences)


def _turns(thread: Thread, requests: Sequence[Requested]) -> Iterator[_Turn]:
    for number, request in enumerate(requests):
        if request.since is None or not request.are_arguments_known:
            continue
        later = requests[number + 1].since if number + 1 < len(requests) else None
        stated = next((at for at in thread.policy_lines if at >= request.since), None)
        if stated is None or (later is not None and stated >= later):
            continue
        if (period := _stated_at(thread, stated)) is not None:
            earlier = requests[number - 1] if number else None
            yield _Turn(request, period, _stated_at(thread, request.since), earlier)


def _stated_at(thread: Thread, at: float) -> PolicyPeriod | None:
    """Return the policy in force at a time, without what was granted on request."""
    index = thread.policy_index_at(at)
    if index < 0:
        return None
    period = thread.policies[index]
    return replace(period, policy=period.stated, base=None)


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
    lost = turn._replace(request=kept)
    differences = []
    for each in _differences(lost):
        if each.field not in (RequestField.FILESYSTEM, RequestField.NETWORK) or _is_typed(
            request, each.field
        ):
            continue
        # where it was asked for, if the thread has it as it was asked for
        is_met = _value(request.policy, each.field) == _value(turn.period.policy, each.field)
        differences.append(
            each._replace(winner=each.winner or (request.origin(each.field) if is_met else None))
        )
    return _finding(FindingKind.RESUME_DROPPED_POLICY, lost, differences, "before") if differences else None


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


def _finding(
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
