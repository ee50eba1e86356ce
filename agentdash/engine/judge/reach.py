"""What a worker could reach where none of its commands runs: by its policy, with this user's rights."""

from __future__ import annotations

from agentdash.model.policy import Network, Policy
from agentdash.model.reach import Certainty, Reach, Reached


def reach_by_policy(own: Reach, policy: Policy) -> Reach:
    """Return what commands under a policy may reach, if they have this user's rights otherwise.

    Args:
        own: what agentdash itself reaches, which is in no sandbox.
    """
    if policy.is_full_access:
        return Reach(own.targets, own.limits, "policy")
    return Reach(tuple(_under(each, policy) for each in own.targets), ("its sandbox",), "policy")


def _under(each: Reached, policy: Policy) -> Reached:
    if each.certainty == "cannot":
        return each
    match each.target.action:
        case "write":
            allowed = policy.may_write(each.target.path)
        case "connect":
            allowed = {Network.ON: True, Network.OFF: False}.get(policy.network)
        case _:
            allowed = None if policy.has_deny else True
    if allowed is False:
        return Reached(each.target, "cannot", "its policy")
    certainty: Certainty = "unknown" if allowed is None or each.certainty == "unknown" else "may"
    return Reached(each.target, certainty, each.how)
