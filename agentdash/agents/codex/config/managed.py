"""What managed settings (`managed_config.toml`, `requirements.toml`) make of a policy that was asked for."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec.structs import replace

from agentdash.agents.codex.config.files import ConfigFile
from agentdash.agents.codex.config.permission_profiles import FULL_ACCESS, MODES, READ_ONLY, WORKSPACE
from agentdash.agents.codex.config.precedence import (
    Asked,
    approval_word,
    ask_profile,
    with_directories,
    with_network,
    with_proxy,
    without_questions,
)
from agentdash.agents.codex.config.stack import Setting, Stack, setting_of
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.model.policy import Filesystem, Network
from agentdash.model.requested import RequestField, RequestLayer

_TYPED: Final = ("sandbox", "bypass", "full-auto", "approve-for-me")
_MODE_OF: Final = {
    Filesystem.READ_ONLY: MODES[READ_ONLY],
    Filesystem.WORKSPACE: MODES[WORKSPACE],
    Filesystem.UNRESTRICTED: MODES[FULL_ACCESS],
}


def constrain(asked: Asked, stack: Stack, managed: Sequence[ConfigFile], *, cwd: str) -> Asked:
    """Return what managed settings make of a policy that was asked for.

    Args:
        asked: by all settings, `managed_config.toml` included.
        managed: `managed_config.toml` and `requirements.toml`, as far as they exist.
    """
    for file in managed:
        if stack.rules.managed_profiles and file.get("allowed_permission_profiles") is not None:
            asked = _force_profile(asked, stack, file, cwd)
    for file in managed:  # with approvals on, an unlisted mode is replaced; with approvals off, it is refused
        asked = _restrict_approval(_restrict_reviewer(asked, stack, file), file)
    for file in managed:
        asked = _restrict_modes(asked, stack, file, cwd)
        asked = _restrict_network(asked, stack, file)
    return asked


def _force_profile(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the permission profiles that are allowed: sandbox modes
    do not count any more, wherever they are set."""
    allowed = file.get("allowed_permission_profiles")
    wanted = stack.find("default_permissions")
    if wanted is not None and isinstance(allowed, Mapping) and allowed.get(wanted.value) is True:
        forced = _forced(stack, wanted, cwd)
    else:
        keys = ("default_permissions",)
        name = setting_of(file, keys, RequestLayer.MANAGED)
        listed = setting_of(file, ("allowed_permission_profiles",), RequestLayer.MANAGED)
        if name is None and listed is not None:
            name = Setting(WORKSPACE, RequestLayer.MANAGED, listed.text, listed.file, listed.line)
        if name is None:
            return asked
        forced = _forced(stack, name, cwd)
    kept = (RequestField.APPROVAL, RequestField.REVIEWER)
    origins = (*forced.origins, *(origin for origin in asked.origins if origin.field in kept))
    policy = replace(forced.policy, approval=asked.policy.approval, reviewer=asked.policy.reviewer)
    return Asked(policy=policy, origins=origins, refusal=forced.refusal or asked.refusal)


def _forced(stack: Stack, name: Setting, cwd: str) -> Asked:
    return with_proxy(stack, with_directories(stack, ask_profile(stack, name, cwd), cwd, with_mode=False))


def _restrict_modes(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the sandbox modes that are allowed: another one becomes
    read-only, or Codex does not start.

    `sandbox_mode` in `managed_config.toml` is such a list, with `read-only` beside it.
    """
    allowed, keys = _of_this_host(file), ("remote_sandbox_config",)
    if allowed is None:
        allowed, keys = file.get("allowed_sandbox_modes"), ("allowed_sandbox_modes",)
    if (
        allowed is None
        and (own := file.get("sandbox_mode")) is not None
        and stack.option(*_TYPED) is not None
    ):
        allowed, keys = ["read-only", own], ("sandbox_mode",)
    mode = _MODE_OF.get(asked.policy.filesystem)
    if not isinstance(allowed, list) or mode is None or mode in allowed:
        return asked
    setting = setting_of(file, keys, RequestLayer.MANAGED)
    if setting is None:
        return asked
    is_refused = stack.rules.refuses_forced_sandbox and mode == MODES[FULL_ACCESS]
    if is_refused and asked.policy.approval == "never":
        refusal = f"{mode} is not allowed by {setting.file}:{setting.line}, and approvals are off"
        return replace(asked, refusal=refusal)
    fallback = from_sandbox_policy({"type": "read-only"}, cwd)
    origins = [setting.origin(RequestField.FILESYSTEM), setting.origin(RequestField.NETWORK)]
    kept = (RequestField.APPROVAL, RequestField.REVIEWER)
    origins += [origin for origin in asked.origins if origin.field in kept]
    policy = replace(fallback, approval=asked.policy.approval, reviewer=asked.policy.reviewer)
    return replace(asked, policy=policy, origins=tuple(origins))


def _of_this_host(file: ConfigFile) -> Any:
    """Return the sandbox modes of the first `[[remote_sandbox_config]]` whose patterns match the name of this
    machine; None without one."""
    tables = file.get("remote_sandbox_config")
    for table in tables if isinstance(tables, list) else ():
        patterns = table.get("hostname_patterns") if isinstance(table, Mapping) else None
        names = [each.lower() for each in patterns or () if isinstance(each, str)]
        if any(fnmatchcase(socket.gethostname().lower(), name) for name in names):
            return table.get("allowed_sandbox_modes")
    return None


def _restrict_network(asked: Asked, stack: Stack, file: ConfigFile) -> Asked:
    """Return the policy where an administrator has the network behind Codex's proxy (0.171)."""
    if asked.policy.network is not Network.ON or asked.policy.enforced_by != "codex":
        return asked
    for keys in (("features", "network_proxy"), ("experimental_network", "enabled")):
        setting = setting_of(file, keys, RequestLayer.MANAGED)
        if setting is not None and setting.value is True and stack.rules.feature_starts_proxy:
            return with_network(asked, Network.MEDIATED, setting)
    return asked


def _restrict_reviewer(asked: Asked, stack: Stack, file: ConfigFile) -> Asked:
    """Return the policy where an administrator lists what may answer approval requests (0.171): the first one
    takes the place of another, and of the user, who answers where nothing is set. `codex exec` then never
    asks."""
    setting = setting_of(file, ("allowed_approvals_reviewers",), RequestLayer.MANAGED)
    if setting is None or not isinstance(setting.value, list) or not setting.value:
        return asked
    if (asked.policy.reviewer or "user") in setting.value:
        return asked
    others = tuple(origin for origin in asked.origins if origin.field is not RequestField.REVIEWER)
    policy = replace(asked.policy, reviewer=str(setting.value[0]))
    asked = replace(asked, policy=policy, origins=(*others, setting.origin(RequestField.REVIEWER)))
    return without_questions(asked) if stack.mode == "exec" else asked


def _restrict_approval(asked: Asked, file: ConfigFile) -> Asked:
    """Return the policy where an administrator lists the approval policies that are allowed: the first one
    takes the place of another. `approval_policy` in `managed_config.toml` is such a list."""
    allowed, keys = file.get("allowed_approval_policies"), ("allowed_approval_policies",)
    if allowed is None and (own := file.get("approval_policy")) is not None:
        allowed, keys = [own], ("approval_policy",)
    if not isinstance(allowed, list) or not allowed or asked.policy.approval in (None, *allowed):
        return asked
    setting = setting_of(file, keys, RequestLayer.MANAGED)
    if setting is None:
        return asked
    others = tuple(origin for origin in asked.origins if origin.field is not RequestField.APPROVAL)
    policy = replace(asked.policy, approval=approval_word(allowed[0]))
    return replace(asked, policy=policy, origins=(*others, setting.origin(RequestField.APPROVAL)))
