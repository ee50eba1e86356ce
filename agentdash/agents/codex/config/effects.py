"""Find the settings in Codex's configuration files that have no effect, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from agentdash.agents.codex.config.argv import Arguments
from agentdash.agents.codex.config.files import ConfigFile, ConfigLayers
from agentdash.agents.codex.config.precedence import Asked
from agentdash.agents.codex.config.stack import statement
from agentdash.model.policy import Filesystem, Network
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin


class Ineffective(msgspec.Struct, frozen=True):
    """A setting without effect."""

    file: str
    line: int | None
    text: str
    why: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{where}: {self.text} has no effect: {self.why}"


def ineffective(layers: ConfigLayers, arguments: Arguments, given: Asked) -> list[Ineffective]:
    """Return the settings of the files that change nothing of the policy, by file.

    Args:
        arguments: of the Codex that is meant.
        given: the policy that it gets.
    """
    found: list[Ineffective] = []
    for file in layers.disabled:
        why = (
            "the project is not trusted"
            if layers.trust
            else "it is not decided whether the project is trusted"
        )
        found += [_ineffective(file, (key,), why) for key in _POLICY_KEYS if file.get(key) is not None]
    for file in (*layers.files, *layers.managed):
        found += [
            Ineffective(file.path, file.line(key), key, "no such setting is known") for key in file.unknown
        ]
    for file in layers.files:
        found += _sandbox_settings(file, given)
        found += _approval_settings(file, arguments, given)
        found += _profile_settings(file)
        found += _domain_settings(file, given)
    return found


_POLICY_KEYS = (
    "sandbox_mode",
    "default_permissions",
    "sandbox_workspace_write",
    "approval_policy",
    "approvals_reviewer",
)


def _sandbox_settings(file: ConfigFile, given: Asked) -> Iterator[Ineffective]:
    decisive = given.origin(RequestField.FILESYSTEM) or given.origin(RequestField.PROFILE)
    for key in ("sandbox_mode", "default_permissions"):
        if file.get(key) is not None and not _is_here(decisive, file, (key,)):
            yield _ineffective(file, (key,), _decides(decisive))
    table = file.get("sandbox_workspace_write")
    if not isinstance(table, Mapping):
        return
    has_profile = given.policy.profile is not None
    if given.policy.filesystem is not Filesystem.WORKSPACE or has_profile:
        reason = "a permission profile is in force" if has_profile else "the mode is not workspace-write"
        yield _ineffective(file, ("sandbox_workspace_write",), f"{reason} ({_decides(decisive)})")
        return
    for key, field in (
        ("network_access", RequestField.NETWORK),
        ("writable_roots", RequestField.WRITABLE_ROOTS),
    ):
        keys = ("sandbox_workspace_write", key)
        origin = given.origin(field)
        if file.get(*keys) and not (_is_here(origin, file, keys) or (origin and file.path in origin.text)):
            yield _ineffective(file, keys, _decides(origin))


def _domain_settings(file: ConfigFile, given: Asked) -> Iterator[Ineffective]:
    for key in ("domains", "transparent_tcp"):
        keys = ("permissions", given.policy.profile or "", "network", key)
        if given.policy.network is Network.ON and file.get(*keys):
            yield _ineffective(file, keys, "it needs features.network_proxy")


def _approval_settings(file: ConfigFile, arguments: Arguments, given: Asked) -> Iterator[Ineffective]:
    for key, field in (
        ("approval_policy", RequestField.APPROVAL),
        ("approvals_reviewer", RequestField.REVIEWER),
    ):
        origin = given.origin(field)
        if file.get(key) is None or _is_here(origin, file, (key,)):
            continue
        in_exec = arguments.mode == "exec" and origin is not None and origin.layer is RequestLayer.DEFAULT
        yield _ineffective(file, (key,), "`codex exec` never asks" if in_exec else _decides(origin))


def _profile_settings(file: ConfigFile) -> Iterator[Ineffective]:
    table = file.get("profiles")
    if not isinstance(table, Mapping):
        return
    for name in table:
        yield _ineffective(file, ("profiles", str(name)), "profiles are files of their own since 0.134")


def _is_here(origin: RequestOrigin | None, file: ConfigFile, keys: tuple[str, ...]) -> bool:
    """Return whether an origin is this setting."""
    if origin is None or origin.file != file.path:
        return False
    return origin.line == file.line(*keys)


def _decides(origin: RequestOrigin | None) -> str:
    if origin is None:
        return "another setting decides"
    return f"{origin.where} decides ({json.dumps(origin.text) if ' ' not in origin.text else origin.text})"


def _ineffective(file: ConfigFile, keys: tuple[str, ...], why: str) -> Ineffective:
    return Ineffective(file.path, file.line(*keys), statement(keys, file.get(*keys)), why)
