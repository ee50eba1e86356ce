"""Find the settings in Codex's configuration files that have no effect, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from agentdash.agents.codex.config.files import ConfigFile, ConfigLayers, Keys, statement
from agentdash.agents.codex.config.precedence import Asked
from agentdash.model.policy import Filesystem, Network
from agentdash.model.requested import RequestField, RequestOrigin

_TABLE: Final = "sandbox_workspace_write"
_POLICY_KEYS: Final = ("sandbox_mode", "default_permissions", _TABLE, "approval_policy", "approvals_reviewer")


class Ineffective(msgspec.Struct, frozen=True):
    """A setting without effect."""

    file: str
    line: int | None
    text: str
    why: str


def ineffective(layers: ConfigLayers, given: Asked) -> list[Ineffective]:
    """Return the settings of the files that change nothing of the policy that Codex gets, by file."""
    found: list[Ineffective] = []
    is_decided = layers.trust is not None
    why = "the project is not trusted" if is_decided else "it is not decided whether the project is trusted"
    for file in layers.disabled:
        found += [_ineffective(file, (key,), why) for key in _POLICY_KEYS if file.get(key) is not None]
    for file in (*layers.files, *layers.managed):
        found += [
            Ineffective(file.path, file.line(key), key, "no such setting is known") for key in file.unknown
        ]
    for file in layers.files:
        found += _overruled(file, given)
        found += _of_other_versions(file, given)
    return found


def _overruled(file: ConfigFile, given: Asked) -> Iterator[Ineffective]:
    """Yield the settings of a file that another one overrules."""
    decisive = given.origin(RequestField.FILESYSTEM) or given.origin(RequestField.PROFILE)
    deciding: dict[Keys, RequestOrigin | None] = {
        ("sandbox_mode",): decisive,
        ("default_permissions",): decisive,
        ("approval_policy",): given.origin(RequestField.APPROVAL),
        ("approvals_reviewer",): given.origin(RequestField.REVIEWER),
    }
    if given.policy.filesystem is Filesystem.WORKSPACE and given.policy.profile is None:
        deciding[_TABLE, "network_access"] = given.origin(RequestField.NETWORK)
        deciding[_TABLE, "writable_roots"] = given.origin(RequestField.WRITABLE_ROOTS)
    else:
        deciding[_TABLE,] = decisive
    for keys, origin in deciding.items():
        if file.get(*keys) and not (origin is not None and _is_here(origin, file, keys)):
            yield _ineffective(file, keys, _decides(origin))


def _of_other_versions(file: ConfigFile, given: Asked) -> Iterator[Ineffective]:
    tables = file.get("profiles")
    for name in tables if isinstance(tables, Mapping) else ():
        yield _ineffective(file, ("profiles", str(name)), "profiles are files of their own since 0.134")
    for key in ("domains", "transparent_tcp"):
        keys = ("permissions", given.policy.profile or "", "network", key)
        if given.policy.network is Network.ON and file.get(*keys):
            yield _ineffective(file, keys, "it needs features.network_proxy")


def _is_here(origin: RequestOrigin, file: ConfigFile, keys: Keys) -> bool:
    """Return whether an origin is this setting, or has it beside `--add-dir`."""
    return (origin.file == file.path and origin.line == file.line(*keys)) or file.path in origin.text


def _decides(origin: RequestOrigin | None) -> str:
    if origin is None:
        return "another setting decides"
    return f"{origin.where} decides ({json.dumps(origin.text) if ' ' not in origin.text else origin.text})"


def _ineffective(file: ConfigFile, keys: Keys, why: str) -> Ineffective:
    return Ineffective(file.path, file.line(*keys), statement(keys, file.get(*keys)), why)
