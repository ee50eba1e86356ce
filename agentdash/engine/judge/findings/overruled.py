"""Remedies that were asked for already, or that an administrator keeps from having an effect.

A setting that was typed or configured, and lost, is no remedy: what decides instead is named.
"""

from __future__ import annotations

from agentdash.engine.judge.findings.remedy_places import is_at_or_below
from agentdash.model.denials import PathFacts, PathKind
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin


def instead_of_workspace(facts: PathFacts) -> str | None:
    """Return what decides instead of `workspace-write` for a read-only thread; None where that would help."""
    request = facts.request
    if request is None:
        return None
    decisive = _managed(request, RequestField.FILESYSTEM)
    is_kept_away = decisive is not None and '"workspace-write"' not in decisive.text
    is_asked = (
        request.policy.filesystem is Filesystem.WORKSPACE
        and request.origin(RequestField.FILESYSTEM) is not None
    )
    return _decides(request, RequestField.FILESYSTEM) if is_asked or is_kept_away else None


def instead_of_root(path: str, policy: Policy | None, facts: PathFacts) -> str | None:
    """Return what decides instead of a further writable root; None where one would help.

    Args:
        path: what is to be written.
        policy: the one in force, with a writable root.
        facts: with the request.
    """
    request = facts.request
    if request is None or policy is None:
        return None
    fields = (RequestField.WRITABLE_ROOTS, RequestField.FILESYSTEM)
    field = next((each for each in fields if request.origin(each) is not None), None)
    is_asked = request.policy.filesystem is Filesystem.WORKSPACE and request.policy.may_write(path)
    if field is not None and is_asked and not policy.may_write(path):
        roots = (root for root in request.policy.writable_roots if is_at_or_below(path, root))
        if any(facts.kinds.get(root) is PathKind.MISSING for root in roots):
            return (
                f"{request.origin(field)} names a directory that does not exist: create it, and start again"
            )
        return _decides(request, field)
    if _managed(request, RequestField.WRITABLE_ROOTS) is not None:
        return _decides(request, RequestField.WRITABLE_ROOTS)
    has_forced_profile = (
        _has_profile(policy, facts) and _managed(request, RequestField.FILESYSTEM) is not None
    )
    return _decides(request, RequestField.FILESYSTEM) if has_forced_profile else None


def instead_of_network(wanted: Network, policy: Policy | None, facts: PathFacts) -> str | None:
    """Return what decides instead of a setting of the network; None where one would help.

    Args:
        wanted: what the setting would ask for.
        policy: the one in force.
        facts: with the request.
    """
    request = facts.request
    if request is None:
        return None
    is_asked = request.policy.network is wanted and request.origin(RequestField.NETWORK) is not None
    decisive = _managed(request, RequestField.NETWORK)
    # the network of a mode, or of a profile, is opened by a setting of its own where the user may choose that
    is_of_mode = decisive is not None and decisive.text.startswith("sandbox_mode")
    is_kept_away = decisive is not None and (not is_of_mode or _has_profile(policy, facts))
    return _decides(request, RequestField.NETWORK) if is_asked or is_kept_away else None


def can_be_asked(policy: Policy | None, facts: PathFacts) -> bool:
    """Return whether a Codex that never asks would ask with `-a on-request`."""
    request = facts.request
    if policy is None or policy.approval != "never" or request is None:
        return True
    is_asked = request.policy.approval == "on-request" and request.origin(RequestField.APPROVAL) is not None
    return not is_asked and _managed(request, RequestField.APPROVAL) is None


def _managed(request: Requested, field: RequestField) -> RequestOrigin | None:
    """Return the setting of an administrator that decides a part."""
    origin = request.given_origin(field)
    return origin if origin is not None and origin.layer is RequestLayer.MANAGED else None


def _decides(request: Requested, field: RequestField) -> str:
    """Return what decides a part instead of what was asked for, in words."""
    asked, given = request.origin(field), request.given_origin(field)
    if given is not None and given != asked:
        return f"{given} decides, whatever is asked for"
    if asked is not None and asked.file in request.changed_files:
        return f"{asked} was written after its start: start it again"
    chosen = "" if request.is_fixed else ": another one may have been chosen in it (`/permissions`)"
    return f"{asked} was not kept{chosen}"


def _has_profile(policy: Policy | None, facts: PathFacts) -> bool:
    return facts.profile is not None or (policy is not None and policy.profile is not None)
