"""Work out which policy was asked for, and which one Codex makes of it.

Measured with real releases (`versions.py` has what differs), the strongest first:

1. `--dangerously-bypass-approvals-and-sandbox`, `--full-auto`, `--approve-for-me`, `-s`. They put permission
   profiles out of force.
2. `[profiles.NAME]`, through 0.133.
3. `-c key=value`, the last of one key.
4. `.codex/config.toml` of a trusted project, the innermost first.
5. `NAME.config.toml` of `-p NAME`, from 0.134 on.
6. `$CODEX_HOME/config.toml`.
7. `/etc/codex/config.toml`.

`default_permissions` and `sandbox_mode` exclude each other: the one in the stronger layer counts, and in one
layer `default_permissions`. `[sandbox_workspace_write]` counts for `workspace-write` alone, and never beside
`default_permissions`. With nothing set, a project of which the trust is decided either way is
`workspace-write`, any other `read-only`.

Managed settings stand above: `/etc/codex/managed_config.toml` outranks 2 to 7, and allows `sandbox_mode`s
beyond its own only if they are read-only; `/etc/codex/requirements.toml` has the sandboxes and approvals that
are allowed. `codex exec` never asks, whatever `approval_policy` is set (but for `--approve-for-me`, an
automatic reviewer, and managed settings).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.config.permission_profiles import (
    FULL_ACCESS,
    MODES,
    builtin_profile,
    custom_profile,
    profile_chain,
)
from agentdash.agents.codex.config.stack import Setting, Stack, cap
from agentdash.agents.codex.config.versions import Rules
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy, PolicyRule
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin

_FULL_ACCESS_MODE: Final = MODES[FULL_ACCESS]
_AUTO_REVIEW: Final = "auto_review"
_DEFAULT: Final = RequestLayer.DEFAULT
_PERMISSIONS: Final = ("default_permissions",)
_MODE: Final = ("sandbox_mode",)
_NEVER: Final = Setting("never", _DEFAULT, "codex exec never asks")
_PROXY: Final = ("features", "network_proxy")


class Asked(msgspec.Struct, frozen=True):
    """A policy, with the origin of each of its parts."""

    policy: Policy
    origins: tuple[RequestOrigin, ...] = ()
    refusal: str | None = None
    """Why Codex does not start with these settings."""

    def origin(self, field: RequestField) -> RequestOrigin | None:
        """Return where a part was set."""
        return next((origin for origin in self.origins if origin.field is field), None)


def ask(stack: Stack, *, cwd: str, decided: bool) -> Asked:
    """Return the policy that the settings of a stack ask for.

    Args:
        decided: whether the project is marked as trusted or untrusted.
    """
    typed = _typed_mode(stack)
    found = None if typed else stack.find_any(_PERMISSIONS, _MODE)
    if typed is not None:
        asked = _legacy(stack, typed, cwd)
    elif found is None:
        mode = "workspace-write" if decided else "read-only"
        asked = _legacy(stack, Setting(mode, _DEFAULT, "nothing is set"), cwd)
    elif found[0] == _MODE:
        asked = _legacy(stack, found[1], cwd)
    else:
        asked = ask_profile(stack, found[1], cwd)
    if (refusal := stack.refusal()) is not None:
        asked = replace(asked, refusal=refusal)
    with_mode = typed is not None or (found is not None and found[0] == _MODE)
    return _with_approval(stack, with_proxy(stack, with_directories(stack, asked, cwd, with_mode=with_mode)))


# ---------------------------------------------------------------- files and network


def _typed_mode(stack: Stack) -> Setting | None:
    """Return the mode that options of the command line set."""
    for names, mode in (
        (("full-auto", "approve-for-me"), "workspace-write"),
        (("bypass",), _FULL_ACCESS_MODE),
    ):
        if (option := stack.option(*names)) is not None:
            return Setting(mode, RequestLayer.ARGV, option.text)
    option = stack.option("sandbox")
    return Setting(option.value, RequestLayer.ARGV, cap(option.text)) if option else None


def _legacy(stack: Stack, mode: Setting, cwd: str) -> Asked:
    """Return the policy of a `sandbox_mode`."""
    if mode.value not in MODES.values():
        return Asked(Policy(), refusal=f"`{cap(str(mode.value))}` is no sandbox mode")
    table: dict[str, Any] = {"type": mode.value}
    network = roots = None
    if mode.value == "workspace-write":
        network = stack.find("sandbox_workspace_write", "network_access")
        roots = stack.find("sandbox_workspace_write", "writable_roots")
        names = ("network_access", "writable_roots", "exclude_slash_tmp", "exclude_tmpdir_env_var")
        table |= {name: stack.look("sandbox_workspace_write", name) for name in names}
    origins = [mode.origin(RequestField.FILESYSTEM), (network or mode).origin(RequestField.NETWORK)]
    if roots is not None and roots.value:
        origins.append(roots.origin(RequestField.WRITABLE_ROOTS))
    return Asked(from_sandbox_policy(table, cwd), tuple(origins))


def ask_profile(stack: Stack, name: Setting, cwd: str) -> Asked:
    """Return the policy of a permission profile; one that is not understood asks for nothing that could be
    compared."""
    wanted, rules = str(name.value), stack.rules
    if not rules.builtin_profiles and stack.look("permissions") is None:
        return Asked(Policy(), refusal="this version needs a [permissions] table beside default_permissions")
    if wanted == FULL_ACCESS and not rules.full_access_profile:
        return Asked(Policy(), refusal=f"this version has no profile {FULL_ACCESS}")
    policy = builtin_profile(wanted, cwd)
    if policy is None and not wanted.startswith(":"):
        policy = custom_profile(wanted, stack.look, cwd, extends=rules.extends)
        if policy is not None and (refusal := _unsupported(policy, rules, cwd)) is not None:
            return Asked(Policy(), refusal=refusal)
    if policy is None:
        return Asked(Policy(profile=wanted), (name.origin(RequestField.PROFILE),))
    network = stack.find("permissions", wanted, "network", "enabled") or name
    return Asked(
        replace(policy, profile=wanted),
        (
            name.origin(RequestField.FILESYSTEM),
            network.origin(RequestField.NETWORK),
            name.origin(RequestField.PROFILE),
        ),
    )


def _unsupported(policy: Policy, rules: Rules, cwd: str) -> str | None:
    """Return why this version does not start with a permission profile of a file."""
    if not rules.extends and policy.has_deny:
        return "this version has no `deny` in permission profiles"
    outside = [root for root in policy.writable_roots if root not in (cwd, TMPDIR)]
    if not rules.builtin_profiles and outside:
        return f"this version cannot let {outside[0]} be written by a permission profile"
    return None


def with_directories(stack: Stack, asked: Asked, cwd: str, *, with_mode: bool) -> Asked:
    """Return a policy with the directories of `--add-dir`; they count where the workspace may be written."""
    added = [option for option in stack.options if option.name == "add-dir" and option.value]
    is_dropped = stack.honoured and with_mode and not stack.rules.add_dir_with_mode
    if asked.policy.filesystem is not Filesystem.WORKSPACE or not added or is_dropped:
        return asked
    rules = tuple(PolicyRule(posixpath.normpath(posixpath.join(cwd, each.value)), "write") for each in added)
    texts = Setting(None, RequestLayer.ARGV, cap(" ".join(each.text for each in added)))
    roots = asked.origin(RequestField.WRITABLE_ROOTS)
    origin = texts.origin(RequestField.WRITABLE_ROOTS)
    if roots is not None:
        origin = replace(origin, text=cap(f"{origin.text}; {roots}"))
    others = tuple(each for each in asked.origins if each.field is not RequestField.WRITABLE_ROOTS)
    policy = replace(asked.policy, rules=(*asked.policy.rules, *rules))
    return replace(asked, policy=policy, origins=(*others, origin))


def with_proxy(stack: Stack, asked: Asked) -> Asked:
    """Return a policy of which the network is behind Codex's proxy, where that is asked for or started.

    Listed domains and `transparent_tcp` (0.169+) of a permission profile ask for it. Codex starts it for any
    open network of a sandbox by `features.network_proxy` (0.133+), `true` or a table with `enabled = true`;
    without that they have no effect, and every host can be reached (0.171). From 0.125 to 0.130 the list of
    domains alone starts it, and through 0.120 nothing does.
    """
    policy, found = asked.policy, stack.find_any((*_PROXY, "enabled"), _PROXY)
    if policy.network is not Network.ON or policy.enforced_by != "codex":
        return asked
    by_feature = found[1] if found is not None and found[1].value is True else None
    by_profile = _of_profile(stack, policy.profile, "domains", "transparent_tcp")
    decisive = by_profile or by_feature
    if stack.honoured:
        by_list = _of_profile(stack, policy.profile, "domains") if stack.rules.domains_start_proxy else None
        decisive = by_feature if stack.rules.feature_starts_proxy else by_list
    if decisive is not None:
        return with_network(asked, Network.MEDIATED, decisive)
    if by_profile is not None:
        why = f"{by_profile.text} has no effect without features.network_proxy (0.133+)"
        return with_network(asked, Network.ON, Setting(None, _DEFAULT, why))
    return asked


def with_network(asked: Asked, network: Network, setting: Setting) -> Asked:
    """Return a policy with the network that a setting decides."""
    others = tuple(each for each in asked.origins if each.field is not RequestField.NETWORK)
    origins = (*others, setting.origin(RequestField.NETWORK))
    return replace(asked, policy=replace(asked.policy, network=network), origins=origins)


def _of_profile(stack: Stack, profile: str | None, *keys: str) -> Setting | None:
    """Return the first of these settings of the network of a permission profile, or of one that it
    extends."""
    chain = [] if profile is None else profile_chain(profile, stack.look, extends=stack.rules.extends)
    found = (stack.find("permissions", name, "network", key) for key in keys for name in chain)
    return next((each for each in found if each is not None and each.value), None)


# ---------------------------------------------------------------- approval


def _with_approval(stack: Stack, asked: Asked) -> Asked:
    """Return a policy with the approvals that the settings ask for, and what answers them."""
    reviewer = _reviewer(stack)
    approval = _approval(stack, reviewer)
    origins = [*asked.origins]
    origins += [approval.origin(RequestField.APPROVAL)] if approval else []
    origins += [reviewer.origin(RequestField.REVIEWER)] if reviewer else []
    policy = replace(
        asked.policy,
        approval=approval_word(approval.value) if approval else None,
        reviewer=str(reviewer.value) if reviewer else None,
    )
    return replace(asked, policy=policy, origins=tuple(origins))


def _reviewer(stack: Stack) -> Setting | None:
    if (option := stack.option("approve-for-me")) is not None:
        return Setting(_AUTO_REVIEW, RequestLayer.ARGV, option.text)
    return stack.find("approvals_reviewer")


def _approval(stack: Stack, reviewer: Setting | None) -> Setting | None:
    """Return when the user is to be asked."""
    for name, value in (("bypass", "never"), ("approve-for-me", "on-request")):
        if (option := stack.option(name)) is not None:
            return Setting(value, RequestLayer.ARGV, option.text)
    found = stack.find("approval_policy")
    if stack.mode == "exec":
        is_managed = found is not None and found.layer is RequestLayer.MANAGED
        is_reviewed = found is not None and reviewer is not None and reviewer.value == _AUTO_REVIEW
        if is_managed or (is_reviewed and stack.rules.exec_keeps_reviewed_approval):
            return found
        return _NEVER
    if (option := stack.option("approval")) is not None:
        return Setting(option.value, RequestLayer.ARGV, cap(option.text))
    if (option := stack.option("full-auto")) is not None:
        return Setting("on-request", RequestLayer.ARGV, option.text)
    return found


def without_questions(asked: Asked) -> Asked:
    """Return a policy of a `codex exec` whose questions nobody answers."""
    others = tuple(each for each in asked.origins if each.field is not RequestField.APPROVAL)
    policy = replace(asked.policy, approval=str(_NEVER.value))
    return replace(asked, policy=policy, origins=(*others, _NEVER.origin(RequestField.APPROVAL)))


def approval_word(value: Any) -> str:
    """Return an `approval_policy` in one word."""
    return "granular" if isinstance(value, Mapping) else cap(str(value))
