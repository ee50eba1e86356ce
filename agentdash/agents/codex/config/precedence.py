"""Work out which policy was asked for, and which one Codex makes of it.

Measured with real releases (0.145 to 0.171, `tests/live/test_requested.py`), the strongest first:

1. `--dangerously-bypass-approvals-and-sandbox`, `--full-auto`, `--approve-for-me`, `-s`, `-a`.
2. `-c key=value`, the last of one key.
3. `.codex/config.toml` of a trusted project, the innermost first.
4. `NAME.config.toml` of `-p NAME`.
5. `$CODEX_HOME/config.toml`.
6. `/etc/codex/config.toml`.

These rules are applied to older and newer versions as well, and that is said.

`default_permissions` and `sandbox_mode` exclude each other: the one in the stronger layer counts, and in one
layer `default_permissions`. `[sandbox_workspace_write]` counts for `workspace-write` alone, and never beside
`default_permissions`. With nothing set, a project is `workspace-write` if its
trust is decided either way, else `read-only`.

Managed settings stand above: `/etc/codex/managed_config.toml` outranks 2 to 6, and allows `sandbox_mode`s
beyond its own only if they are read-only; `/etc/codex/requirements.toml` has the sandbox modes and approvals
that are allowed; the rules of its other keys are not known here (`files.UNREAD`). `codex exec` never asks,
whatever `approval_policy` is set (except by `--approve-for-me`, an automatic reviewer, and managed settings).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import Arguments
from agentdash.agents.codex.config.files import (
    ConfigFile,
    ConfigLayers,
    Setting,
    Stack,
    cap,
    setting_of,
)
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.versions import is_before, stand_in

FIRST_MEASURED: Final = "0.145"
LAST_MEASURED: Final = "0.171"
_WORKSPACE: Final = ":workspace"
_FULL_ACCESS: Final = "danger-full-access"
_SANDBOX_MODES: Final = ("read-only", "workspace-write", _FULL_ACCESS)
_MODES: Final = dict(zip((":read-only", _WORKSPACE, ":danger-full-access"), _SANDBOX_MODES, strict=True))
"""The built-in profiles, and the `sandbox_mode` that does the same."""
_MODE_OF: Final = dict(
    zip((Filesystem.READ_ONLY, Filesystem.WORKSPACE, Filesystem.UNRESTRICTED), _SANDBOX_MODES, strict=True)
)
_AUTO_REVIEW: Final = "auto_review"
_DEFAULT: Final = RequestLayer.DEFAULT
_PERMISSIONS: Final = ("default_permissions",)
_MODE: Final = ("sandbox_mode",)
_NEVER: Final = Setting("never", _DEFAULT, "codex exec never asks")
_PROXY: Final = ("features", "network_proxy")


def rules_of(version: str | None) -> str | None:
    """Return the measured version whose rules are applied to one that was not measured; None for a measured
    one."""
    if is_before(version, (0, 145)):
        return FIRST_MEASURED
    return stand_in(version, LAST_MEASURED)


class Asked(msgspec.Struct, frozen=True):
    """A policy, with the origin of each of its parts."""

    policy: Policy
    origins: tuple[RequestOrigin, ...] = ()
    refusal: str | None = None
    """Why Codex does not start with these settings."""

    def origin(self, field: RequestField) -> RequestOrigin | None:
        """Return where a part was set."""
        return next((origin for origin in self.origins if origin.field is field), None)

    def decided(self, setting: Setting, field: RequestField, **parts: Any) -> Asked:
        """Return it with the parts of its policy that a setting decides."""
        others = tuple(each for each in self.origins if each.field is not field)
        origins = (*others, setting.origin(field))
        return replace(self, policy=replace(self.policy, **parts), origins=origins)

    def with_approvals_of(self, other: Asked) -> Asked:
        """Return it with what the user is asked by another one, and who answers."""
        kept = (RequestField.APPROVAL, RequestField.REVIEWER)
        origins = (*self.origins, *(origin for origin in other.origins if origin.field in kept))
        policy = replace(self.policy, approval=other.policy.approval, reviewer=other.policy.reviewer)
        return Asked(policy, origins, self.refusal or other.refusal)


def request(layers: ConfigLayers, arguments: Arguments, *, cwd: str) -> tuple[Asked, Asked]:
    """Return the policy that was asked for, and the one that Codex makes of it."""
    decided = layers.trust is not None
    wanted = ask(Stack(arguments, layers.files), cwd=cwd, decided=decided)
    stack = Stack(arguments, layers.files, layers.managed)
    given = ask(stack, cwd=cwd, decided=decided)
    return wanted, _constrain(given, stack, layers.managed, cwd)


def requested(wanted: Asked, given: Asked | None) -> Requested:
    """Return a request as the model has it: only what was asked for, not what is the default."""
    kept = tuple(origin for origin in wanted.origins if origin.layer is not RequestLayer.DEFAULT)
    result = given if given is not None and given.refusal is None else None
    return Requested(
        policy=wanted.policy,
        origins=kept,
        given=result.policy if result else None,
        given_origins=result.origins if result else (),
    )


def ask(stack: Stack, *, cwd: str, decided: bool) -> Asked:
    """Return the policy that the settings of a stack ask for.

    Args:
        decided: whether the project is marked as trusted or untrusted.
    """
    found = stack.find_any(_PERMISSIONS, _MODE)
    if found is None:
        mode = "workspace-write" if decided else "read-only"
        asked = _legacy(stack, Setting(mode, _DEFAULT, "nothing is set"), cwd)
    elif found[0] == _MODE:
        asked = _legacy(stack, found[1], cwd)
    else:
        asked = _ask_profile(found[1], cwd)
    if (refusal := stack.refusal()) is not None:
        asked = replace(asked, refusal=refusal)
    return _with_approval(stack, _with_proxy(stack, _with_directories(stack, asked, cwd)))


# ---------------------------------------------------------------- files and network


def _legacy(stack: Stack, mode: Setting, cwd: str) -> Asked:
    """Return the policy of a `sandbox_mode`."""
    if mode.value not in _SANDBOX_MODES:
        return Asked(Policy(), refusal=f"`{cap(str(mode.value))}` is not a sandbox mode")
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


def _ask_profile(name: Setting, cwd: str) -> Asked:
    """Return the policy of a permission profile; one of a configuration file is named, and asks for nothing
    that could be compared."""
    wanted = str(name.value)
    if (mode := _MODES.get(wanted)) is None:
        return Asked(Policy(profile=wanted), (name.origin(RequestField.PROFILE),))
    fields = (RequestField.FILESYSTEM, RequestField.NETWORK, RequestField.PROFILE)
    policy = replace(from_sandbox_policy({"type": mode}, cwd), profile=wanted)
    return Asked(policy, tuple(map(name.origin, fields)))


def _with_directories(stack: Stack, asked: Asked, cwd: str) -> Asked:
    """Return a policy with the directories of `--add-dir`; they count where the workspace may be written."""
    added = [option for option in stack.arguments.all("add-dir") if option.value]
    if asked.policy.filesystem is not Filesystem.WORKSPACE or not added:
        return asked
    rules = tuple(PolicyRule(posixpath.normpath(posixpath.join(cwd, each.value)), "write") for each in added)
    text = cap(" ".join(each.text for each in added))
    if (roots := asked.origin(RequestField.WRITABLE_ROOTS)) is not None:
        text = cap(f"{text}; {roots}")
    typed = Setting(None, RequestLayer.ARGV, text)
    return asked.decided(typed, RequestField.WRITABLE_ROOTS, rules=(*asked.policy.rules, *rules))


def _with_proxy(stack: Stack, asked: Asked) -> Asked:
    """Return a policy with its network behind Codex's proxy, which `features.network_proxy` starts for any
    open network of a sandbox: `true`, or a table with `enabled = true` (0.171)."""
    policy, found = asked.policy, stack.find_any((*_PROXY, "enabled"), _PROXY)
    if found is None or found[1].value is not True or policy.network is not Network.ON:
        return asked
    if policy.enforced_by != "codex":
        return asked
    return asked.decided(found[1], RequestField.NETWORK, network=Network.MEDIATED)


# ---------------------------------------------------------------- approval


def _with_approval(stack: Stack, asked: Asked) -> Asked:
    """Return a policy with the approvals that the settings ask for, and what answers them."""
    approval, reviewer = stack.find("approval_policy"), stack.find("approvals_reviewer")
    if stack.arguments.mode == "exec" and stack.arguments.last("bypass", "approve-for-me") is None:
        is_managed = approval is not None and approval.layer is RequestLayer.MANAGED
        is_reviewed = approval is not None and reviewer is not None and reviewer.value == _AUTO_REVIEW
        approval = approval if is_managed or is_reviewed else _NEVER
    if approval is not None:
        asked = asked.decided(approval, RequestField.APPROVAL, approval=_approval_word(approval.value))
    if reviewer is not None:
        asked = asked.decided(reviewer, RequestField.REVIEWER, reviewer=str(reviewer.value))
    return asked


def _approval_word(value: Any) -> str:
    """Return an `approval_policy` in one word."""
    return "granular" if isinstance(value, Mapping) else cap(str(value))


# ---------------------------------------------------------------- managed settings


def _constrain(asked: Asked, stack: Stack, managed: Sequence[ConfigFile], cwd: str) -> Asked:
    """Return what `managed_config.toml` and `requirements.toml`, as far as they exist, make of a policy."""
    for file in managed:
        if file.get("allowed_permission_profiles") is not None:
            asked = _force_profile(asked, stack, file, cwd)
    for file in managed:  # with approvals on, an unlisted mode is replaced; with approvals off, it is refused
        asked = _restrict_approval(asked, file)
    for file in managed:
        asked = _restrict_modes(asked, stack, file, cwd)
    return asked


def _force_profile(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the permission profiles that are allowed: sandbox modes
    do not count any more, wherever they are set."""
    listed = setting_of(file, ("allowed_permission_profiles",))
    name = stack.find("default_permissions")
    if listed is None:
        return asked
    if name is None or not isinstance(listed.value, Mapping) or listed.value.get(name.value) is not True:
        default = setting_of(file, ("default_permissions",))
        name = default or replace(listed, value=_WORKSPACE)
    forced = _with_directories(stack, _ask_profile(name, cwd), cwd)
    return _with_proxy(stack, forced).with_approvals_of(asked)


def _restrict_modes(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the sandbox modes that are allowed: another one becomes
    read-only, or Codex does not start.

    `sandbox_mode` in `managed_config.toml` is such a list, with `read-only` beside it.
    """
    allowed, keys = file.get("allowed_sandbox_modes"), ("allowed_sandbox_modes",)
    own = file.get("sandbox_mode")
    if allowed is None and own is not None and _MODE in stack.typed:
        allowed, keys = ["read-only", own], ("sandbox_mode",)
    mode, setting = _MODE_OF.get(asked.policy.filesystem), setting_of(file, keys)
    if not isinstance(allowed, list) or mode is None or mode in allowed or setting is None:
        return asked
    if mode == _FULL_ACCESS and asked.policy.approval == "never":
        refusal = f"{mode} is not allowed by {setting.file}:{setting.line}, and approvals are off"
        return replace(asked, refusal=refusal)
    origins = (setting.origin(RequestField.FILESYSTEM), setting.origin(RequestField.NETWORK))
    return Asked(from_sandbox_policy({"type": "read-only"}, cwd), origins).with_approvals_of(asked)


def _restrict_approval(asked: Asked, file: ConfigFile) -> Asked:
    """Return the policy where an administrator lists the approval policies that are allowed: the first one
    takes the place of another. `approval_policy` in `managed_config.toml` is such a list."""
    allowed, keys = file.get("allowed_approval_policies"), ("allowed_approval_policies",)
    if allowed is None and (own := file.get("approval_policy")) is not None:
        allowed, keys = [own], ("approval_policy",)
    setting = setting_of(file, keys)
    if not isinstance(allowed, list) or not allowed or setting is None:
        return asked
    if asked.policy.approval in (None, *allowed):
        return asked
    return asked.decided(setting, RequestField.APPROVAL, approval=_approval_word(allowed[0]))
