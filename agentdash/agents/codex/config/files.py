"""Read configuration files of Codex: only what concerns the sandbox is kept, with the lines of its keys.

Values of other keys (providers, MCP servers, tokens) are dropped as soon as a file is parsed. `auth.json` is
never opened.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from agentdash.files import read_text
from agentdash.model.requested import RequestLayer
from agentdash.model.sanitize import clean_line

KEPT: Final = frozenset(
    (
        *("sandbox_mode", "sandbox_workspace_write", "approval_policy", "approvals_reviewer"),
        *("default_permissions", "permissions", "profile", "profiles", "projects", "project_root_markers"),
        *("shell_environment_policy", "agents", "features"),
        *("allowed_sandbox_modes", "allowed_permission_profiles", "allowed_approval_policies"),
        *("allowed_approvals_reviewers", "experimental_network", "remote_sandbox_config"),
    )
)
"""Top-level keys that are kept: all that the rules look up. The last six are of `requirements.toml`."""
_POLICY_WORDS: Final = ("sandbox", "approval", "permission", "network_access", "writable_roots")
"""Parts of names by which an unknown key was meant to concern the sandbox."""
_KNOWN_POLICY_KEYS: Final = frozenset(
    (
        *(
            "permission_profile",
            "include_permissions_instructions",
            "approval_presets",
            "sandbox_private_desktop",
        ),
        *("guardian_approval", "include_apply_patch_tool"),
    )
)
"""Names with such a part that some version has for something else."""
_MAX_STATEMENT_LINES: Final = 400
"""Lines of one value: an array of roots has dozens."""


class ConfigFile(msgspec.Struct, frozen=True):
    """One configuration file."""

    layer: RequestLayer
    path: str
    """As Codex has it: without the root of another mount namespace."""
    modified: float
    """Unix seconds."""
    values: dict[str, Any]
    """The kept keys."""
    unknown: tuple[str, ...] = ()
    """Top-level keys that were meant to concern the sandbox, and that no version has."""
    problem: str | None = None
    """Why it could not be read; then it has no values."""
    text: str = ""
    """Its text, to find lines in; never shown."""

    def get(self, *keys: str) -> Any:
        """Return the value at a path of keys; None where there is none."""
        return look_up(self.values, keys)

    def line(self, *keys: str) -> int | None:
        """Return the line on which the statement that sets a key begins; None where it is not found."""
        return find_line(self.text, keys)


def read_config(path: Path, layer: RequestLayer, name: str | None = None) -> ConfigFile | None:
    """Read one file; None where it does not exist. Never raises.

    Args:
        path: where it is opened.
        layer: what it is.
        name: its path as its Codex has it, where that is another.
    """
    shown = clean_line(name or str(path))
    try:
        return parse_config(read_text(path), layer, shown, path.stat().st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = clean_line(getattr(error, "strerror", None) or str(error))
        return ConfigFile(layer=layer, path=shown, modified=0.0, values={}, problem=reason)


def parse_config(text: str, layer: RequestLayer, path: str, modified: float = 0.0) -> ConfigFile:
    """Parse the text of a file.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML.
        RecursionError: it is nested too deeply.
    """
    values = tomllib.loads(text)
    kept = {key: value for key, value in values.items() if key in KEPT}
    return ConfigFile(
        layer=layer,
        path=path,
        modified=modified,
        values=_without_secrets(kept),
        unknown=tuple(clean_line(key) for key in values if _is_misspelled(key)),
        text=text,
    )


def look_up(values: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value at a path of keys in nested tables; None where there is none."""
    found: Any = values
    for key in keys:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def find_line(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line, counted from 1, on which a key is set.

    The lines up to it are parsed with and without it: a value of several lines begins where the lines before
    it are whole and do not have the key yet.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if keys[-1] not in line:
            continue
        before = _parsed(lines[:number])
        if before is None or look_up(before, keys) is not None:
            continue
        for end in range(number + 1, min(number + _MAX_STATEMENT_LINES, len(lines)) + 1):
            found = _parsed(lines[:end])
            if found is not None:
                if look_up(found, keys) is not None:
                    return number + 1
                break
    return None


def _parsed(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines) + "\n")
    except tomllib.TOMLDecodeError:
        return None


def _is_misspelled(key: str) -> bool:
    about_sandbox = any(word in key.lower() for word in _POLICY_WORDS)
    return about_sandbox and key not in KEPT and key not in _KNOWN_POLICY_KEYS


def _without_secrets(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the kept values without those of variables: only their names are needed."""
    policy = kept.get("shell_environment_policy")
    if not isinstance(policy, dict) or not isinstance(policy.get("set"), dict):
        return kept
    return kept | {"shell_environment_policy": policy | {"set": dict.fromkeys(policy["set"], "")}}


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it."""
    return PurePath(path).is_relative_to(folder)
