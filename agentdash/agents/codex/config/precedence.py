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

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import Arguments, Option
from agentdash.agents.codex.config.files import ConfigFile, look_up
from agentdash.agents.codex.config.permission_profiles import (
    FULL_ACCESS,
    MODES,
    READ_ONLY,
    WORKSPACE,
    builtin_profile,
    custom_profile,
)
from agentdash.agents.codex.config.versions import Rules
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.model.policy import TMPDIR, Filesystem, Policy, PolicyRule
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

_FULL_ACCESS_MODE: Final = MODES[FULL_ACCESS]
_MAX_TEXT_CHARS: Final = 200
_AUTO_REVIEW: Final = "auto_review"
_TYPED: Final = ("sandbox", "bypass", "full-auto", "approve-for-me")
_MODE_OF: Final = {
    Filesystem.READ_ONLY: MODES[READ_ONLY],
    Filesystem.WORKSPACE: MODES[WORKSPACE],
    Filesystem.UNRESTRICTED: _FULL_ACCESS_MODE,
}
_DEFAULT: Final = RequestLayer.DEFAULT
Keys = tuple[str, ...]


class Setting(msgspec.Struct, frozen=True):
    """A value, and where it is set."""

    value: Any
    layer: RequestLayer
    text: str
    file: str | None = None
    line: int | None = None

    def origin(self, field: RequestField) -> RequestOrigin:
        """Return it as the origin of a part of a policy."""
        return RequestOrigin(field=field, layer=self.layer, text=self.text, file=self.file, line=self.line)


class Asked(msgspec.Struct, frozen=True):
    """A policy, with the origin of each of its parts."""

    policy: Policy
    origins: tuple[RequestOrigin, ...] = ()
    refusal: str | None = None
    """Why Codex does not start with these settings."""

    def origin(self, field: RequestField) -> RequestOrigin | None:
        """Return where a part was set."""
        return next((origin for origin in self.origins if origin.field is field), None)


class Stack:
    """The settings of one Codex, by layer, the weakest first.

    Args:
        arguments: of its process.
        files: its configuration files, the weakest first; managed ones are left out here.
        rules: of its version.
        managed: `managed_config.toml`, if it is to count.
        honoured: whether arguments are left out that this version drops without a word.
    """

    def __init__(
        self,
        arguments: Arguments,
        files: Sequence[ConfigFile],
        rules: Rules,
        *,
        managed: ConfigFile | None = None,
        honoured: bool = False,
    ) -> None:
        self.rules = rules
        self.honoured = honoured
        self.options = [
            option
            for option in arguments.options
            if not honoured or not _is_dropped(option, arguments, rules)
        ]
        self.mode = arguments.mode
        self._files = list(files)
        self._managed = managed
        self._overrides = list(arguments.overrides())
        self._profile = self._profile_table() if rules.profile_tables else None

    def option(self, *names: str) -> Option | None:
        """Return the last option of these names."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def find(self, *keys: str) -> Setting | None:
        """Return the strongest setting of a key."""
        return next(self._settings(keys), None)

    def look(self, *keys: str) -> Any:
        """Return the strongest value of a key."""
        found = self.find(*keys)
        return None if found is None else found.value

    def find_sandbox(self) -> tuple[str, Setting] | None:
        """Return the strongest of `default_permissions` and `sandbox_mode`, with its key."""
        for layer in self._layers():
            for key in ("default_permissions", "sandbox_mode"):
                if (found := layer((key,))) is not None:
                    return key, found
        return None

    def refusal(self) -> str | None:
        """Return why this version does not start with these profiles."""
        rules, named = self.rules, self.option("profile")
        if rules.profile_tables:
            is_missing = named is not None and self._profile is None
            return f"there is no [profiles.{_cap(named.value)}]" if named and is_missing else None
        if self.find("profile") is not None:
            return "`profile` selects no table any more: use -p NAME with NAME.config.toml"
        if named is not None and self.find("profiles", named.value) is not None:
            return (
                f"-p {_cap(named.value)} beside [profiles.{_cap(named.value)}]: move it to a file of its own"
            )
        return None

    def _settings(self, keys: Keys) -> Iterator[Setting]:
        for layer in self._layers():
            if (found := layer(keys)) is not None:
                yield found

    def _layers(self) -> Iterator[Any]:
        """Yield a function for each layer that looks a key up in it, the strongest first."""
        if self._managed is not None:
            yield _of_file(self._managed)
        if self._profile is not None:
            file, name = self._profile
            yield lambda keys: _setting(file, ("profiles", name, *keys), RequestLayer.PROFILE)
        if self._overrides:
            yield self._of_overrides
        for file in reversed(self._files):
            yield _of_file(file)

    def _of_overrides(self, keys: Keys) -> Setting | None:
        """Look a key up in all `-c`: they are one layer, and the last one that sets it counts."""
        each = (_of_override(one.keys, one.value, one.text)(keys) for one in reversed(self._overrides))
        return next((found for found in each if found is not None), None)

    def _profile_table(self) -> tuple[ConfigFile, str] | None:
        """Return the file and the name of the `[profiles.NAME]` table that is selected."""
        option = self.option("profile")
        named: list[Any] = [option.value] if option else []
        named += [each.value for each in reversed(self._overrides) if each.keys == ("profile",)]
        named += [file.get("profile") for file in reversed(self._files)]
        name = next((each for each in named if isinstance(each, str)), None)
        if name is None:
            return None
        tables = (file for file in reversed(self._files) if file.get("profiles", name) is not None)
        file = next(tables, None)
        return None if file is None else (file, name)


def ask(stack: Stack, *, cwd: str, decided: bool) -> Asked:
    """Return the policy that the settings of a stack ask for.

    Args:
        stack: the settings.
        cwd: the working directory.
        decided: whether the project is marked as trusted or untrusted.
    """
    typed = _typed_mode(stack)
    found = None if typed else stack.find_sandbox()
    if typed is not None:
        asked = _legacy(stack, typed, cwd)
    elif found is None:
        mode = "workspace-write" if decided else "read-only"
        asked = _legacy(stack, Setting(mode, _DEFAULT, "nothing is set"), cwd)
    elif found[0] == "sandbox_mode":
        asked = _legacy(stack, found[1], cwd)
    else:
        asked = _profile(stack, found[1], cwd)
    if (refusal := stack.refusal()) is not None:
        asked = replace(asked, refusal=refusal)
    with_mode = typed is not None or (found is not None and found[0] == "sandbox_mode")
    return _with_approval(stack, _with_directories(stack, asked, cwd, with_mode=with_mode))


def constrain(asked: Asked, stack: Stack, managed: Sequence[ConfigFile], *, cwd: str) -> Asked:
    """Return what managed settings make of a policy that was asked for.

    Args:
        asked: by all settings, `managed_config.toml` included.
        stack: these settings.
        managed: `managed_config.toml` and `requirements.toml`, as far as they exist.
        cwd: the working directory.
    """
    for file in managed:
        if stack.rules.managed_profiles and file.get("allowed_permission_profiles") is not None:
            asked = _force_profile(asked, stack, file, cwd)
    for file in managed:
        asked = _restrict_modes(asked, stack, file, cwd)
        asked = _restrict_approval(asked, file)
    return asked


# ---------------------------------------------------------------- settings


def _of_file(file: ConfigFile) -> Any:
    return lambda keys: _setting(file, keys, file.layer)


def _setting(file: ConfigFile, keys: Keys, layer: RequestLayer) -> Setting | None:
    value = file.get(*keys)
    if value is None:
        return None
    return Setting(value, layer, statement(keys, value), file.path, file.line(*keys))


def _of_override(keys: Keys, value: Any, text: str) -> Any:
    def look(wanted: Keys) -> Setting | None:
        found = value
        if wanted[: len(keys)] != keys:
            return None
        if len(wanted) > len(keys):
            found = look_up(value, wanted[len(keys) :]) if isinstance(value, Mapping) else None
        return None if found is None else Setting(found, RequestLayer.ARGV, _cap(text))

    return look


def statement(keys: Keys, value: Any) -> str:
    """Return a setting on one line, as in a configuration file."""
    if isinstance(value, Mapping):
        return f"[{'.'.join(keys)}]"
    return _cap(f"{'.'.join(keys)} = {json.dumps(value, ensure_ascii=False, default=str)}")


def _cap(text: str) -> str:
    return clean_line(text, _MAX_TEXT_CHARS)


def dropped_options(arguments: Arguments, rules: Rules) -> list[Option]:
    """Return the options that a version may leave out without a word."""
    found = [option for option in arguments.options if _is_dropped(option, arguments, rules)]
    if not rules.add_dir_with_mode:
        found += [option for option in arguments.all("add-dir") if option not in found]
    return found


def _is_dropped(option: Option, arguments: Arguments, rules: Rules) -> bool:
    in_exec = arguments.mode == "exec" and option.before and not rules.root_options_reach_exec
    return in_exec and option.name in ("sandbox", "profile", "add-dir", "full-auto", "approval")


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
    return Setting(option.value, RequestLayer.ARGV, _cap(option.text)) if option else None


def _legacy(stack: Stack, mode: Setting, cwd: str) -> Asked:
    """Return the policy of a `sandbox_mode`."""
    if mode.value not in MODES.values():
        return Asked(Policy(), refusal=f"`{_cap(str(mode.value))}` is no sandbox mode")
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


def _profile(stack: Stack, name: Setting, cwd: str) -> Asked:
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


def _with_directories(stack: Stack, asked: Asked, cwd: str, *, with_mode: bool) -> Asked:
    """Return a policy with the directories of `--add-dir`; they count where the workspace may be written."""
    added = [option for option in stack.options if option.name == "add-dir" and option.value]
    is_dropped = stack.honoured and with_mode and not stack.rules.add_dir_with_mode
    if asked.policy.filesystem is not Filesystem.WORKSPACE or not added or is_dropped:
        return asked
    rules = tuple(PolicyRule(posixpath.normpath(posixpath.join(cwd, each.value)), "write") for each in added)
    texts = Setting(None, RequestLayer.ARGV, _cap(" ".join(each.text for each in added)))
    roots = asked.origin(RequestField.WRITABLE_ROOTS)
    origin = texts.origin(RequestField.WRITABLE_ROOTS)
    if roots is not None:
        origin = replace(origin, text=_cap(f"{origin.text}; {roots}"))
    others = tuple(each for each in asked.origins if each.field is not RequestField.WRITABLE_ROOTS)
    policy = replace(asked.policy, rules=(*asked.policy.rules, *rules))
    return replace(asked, policy=policy, origins=(*others, origin))


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
        approval=_approval_word(approval.value) if approval else None,
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
        return Setting("never", _DEFAULT, "codex exec never asks")
    if (option := stack.option("approval")) is not None:
        return Setting(option.value, RequestLayer.ARGV, _cap(option.text))
    if (option := stack.option("full-auto")) is not None:
        return Setting("on-request", RequestLayer.ARGV, option.text)
    return found


def _approval_word(value: Any) -> str:
    return "granular" if isinstance(value, Mapping) else _cap(str(value))


# ---------------------------------------------------------------- managed settings


def _force_profile(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the permission profiles that are allowed: sandbox modes
    do not count any more, wherever they are set."""
    allowed = file.get("allowed_permission_profiles")
    wanted = stack.find("default_permissions")
    if wanted is not None and isinstance(allowed, Mapping) and allowed.get(wanted.value) is True:
        forced = _with_directories(stack, _profile(stack, wanted, cwd), cwd, with_mode=False)
    else:
        keys: Keys = ("default_permissions",)
        name = _setting(file, keys, RequestLayer.MANAGED)
        listed = _setting(file, ("allowed_permission_profiles",), RequestLayer.MANAGED)
        if name is None and listed is not None:
            name = Setting(WORKSPACE, RequestLayer.MANAGED, listed.text, listed.file, listed.line)
        if name is None:
            return asked
        forced = _with_directories(stack, _profile(stack, name, cwd), cwd, with_mode=False)
    kept = (RequestField.APPROVAL, RequestField.REVIEWER)
    origins = (*forced.origins, *(origin for origin in asked.origins if origin.field in kept))
    policy = replace(forced.policy, approval=asked.policy.approval, reviewer=asked.policy.reviewer)
    return Asked(policy=policy, origins=origins, refusal=forced.refusal or asked.refusal)


def _restrict_modes(asked: Asked, stack: Stack, file: ConfigFile, cwd: str) -> Asked:
    """Return the policy where an administrator lists the sandbox modes that are allowed: another one becomes
    read-only, or Codex does not start.

    `sandbox_mode` in `managed_config.toml` is such a list, with `read-only` beside it.
    """
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
    setting = _setting(file, keys, RequestLayer.MANAGED)
    if setting is None:
        return asked
    is_refused = stack.rules.refuses_forced_sandbox and mode == _FULL_ACCESS_MODE
    if is_refused and asked.policy.approval == "never":
        refusal = f"{mode} is not allowed by {setting.file}:{setting.line}, and approvals are off"
        return replace(asked, refusal=refusal)
    fallback = from_sandbox_policy({"type": "read-only"}, cwd)
    origins = [setting.origin(RequestField.FILESYSTEM), setting.origin(RequestField.NETWORK)]
    kept = (RequestField.APPROVAL, RequestField.REVIEWER)
    origins += [origin for origin in asked.origins if origin.field in kept]
    policy = replace(fallback, approval=asked.policy.approval, reviewer=asked.policy.reviewer)
    return replace(asked, policy=policy, origins=tuple(origins))


def _restrict_approval(asked: Asked, file: ConfigFile) -> Asked:
    """Return the policy where an administrator lists the approval policies that are allowed: the first one
    takes the place of another."""
    allowed = file.get("allowed_approval_policies")
    if not isinstance(allowed, list) or not allowed or asked.policy.approval in (None, *allowed):
        return asked
    setting = _setting(file, ("allowed_approval_policies",), RequestLayer.MANAGED)
    if setting is None:
        return asked
    others = tuple(origin for origin in asked.origins if origin.field is not RequestField.APPROVAL)
    policy = replace(asked.policy, approval=_approval_word(allowed[0]))
    return replace(asked, policy=policy, origins=(*others, setting.origin(RequestField.APPROVAL)))
