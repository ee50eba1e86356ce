"""The parts of a policy that a thread has otherwise than was asked for, and what decided them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.inheritance import ParentPolicy
from agentdash.model.findings import Direction
from agentdash.model.layers import LayerField
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.thread import PolicyPeriod

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
