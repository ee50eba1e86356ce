"""Settings files of Gemini CLI and Qwen Code: `settings.json` of system, workspace and user, and `.env`.

A value of a later file outranks one of an earlier file: user, workspace, system. Only what concerns sandbox
and approvals is kept; other keys (tokens, servers) are dropped as soon as a file is parsed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.gemini.family import Family
from agentdash.agents.json_comments import without_comments
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.observation import INHERITED
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PARENTS: Final = 40
"""Directories above a workspace in which a `.env` file is looked for."""
_TRUSTED: Final = {"TRUST_FOLDER": True, "TRUST_PARENT": True, "DO_NOT_TRUST": False}
"""Values of `trustedFolders.json`."""


class _Tools(msgspec.Struct, frozen=True, rename="camel"):
    sandbox: Any = None
    execution_sandbox: Any = None
    approval_mode: str | None = None


class _FolderTrust(msgspec.Struct, frozen=True):
    enabled: bool | None = None


class _Security(msgspec.Struct, frozen=True, rename="camel"):
    tool_sandboxing: bool | None = None
    folder_trust: _FolderTrust | None = None


class _General(msgspec.Struct, frozen=True, rename="camel"):
    default_approval_mode: str | None = None


class _Settings(msgspec.Struct, frozen=True):
    tools: _Tools = _Tools()
    security: _Security = _Security()
    general: _General = _General()


_decoder: Final = JsonDecoder(_Settings)
_trust: Final = msgspec.json.Decoder(dict[str, str])


class SettingsFile(msgspec.Struct, frozen=True):
    """One settings file."""

    layer: RequestLayer
    path: str
    modified: float
    text: str = ""
    settings: _Settings = _Settings()
    problem: bool = False
    """Whether it is there and cannot be read or parsed."""

    @property
    def approval(self) -> str | None:
        """The approval mode that it sets."""
        return self.settings.general.default_approval_mode or self.settings.tools.approval_mode

    @property
    def approval_key(self) -> str:
        """The key of that mode: of Gemini CLI, or of Qwen Code."""
        return "defaultApprovalMode" if self.settings.general.default_approval_mode else "approvalMode"

    def origin(self, field: RequestField, words: str, key: str) -> RequestOrigin:
        """Return the line on which a key is set first."""
        at = self.text.find(f'"{key}"')
        line = self.text.count("\n", 0, at) + 1 if at >= 0 else None
        return RequestOrigin(field=field, layer=self.layer, text=clean_line(words), file=self.path, line=line)


def settings_files(
    family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path
) -> Iterator[SettingsFile]:
    """Yield the settings that are there, the weakest first.

    Args:
        root: where its file system is mounted.
    """
    yield from _file(RequestLayer.USER, posixpath.join(home, "settings.json"), root)
    yield from _file(RequestLayer.PROJECT, posixpath.join(cwd, family.directory, "settings.json"), root)
    system = env.get(family.system_variable) or family.system_file
    yield from _file(RequestLayer.MANAGED, posixpath.join(cwd, system), root)


def _file(layer: RequestLayer, path: str, root: Path) -> Iterator[SettingsFile]:
    place, shown = root / path.lstrip("/"), clean_line(path)
    try:
        modified = place.stat().st_mtime
        text = read_bytes(place, _MAX_FILE_BYTES).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        yield SettingsFile(layer=layer, path=shown, modified=0.0, problem=True)
        return
    try:
        settings = _decoder.decode(without_comments(text)) if text.strip() else _Settings()
    except (msgspec.DecodeError, RecursionError):
        yield SettingsFile(layer=layer, path=shown, modified=modified, problem=True)
        return
    yield SettingsFile(layer=layer, path=shown, modified=modified, text=text, settings=settings)


def is_trusted(family: Family, files: list[SettingsFile], home: str, cwd: str, root: Path) -> bool | None:
    """Return whether the workspace's settings count; None: it is not known."""
    enabled = family.is_trust_required
    for file in files:
        trust = file.settings.security.folder_trust
        if file.layer is not RequestLayer.PROJECT and trust is not None and trust.enabled is not None:
            enabled = trust.enabled
    if not enabled:
        return True
    try:
        path = root / posixpath.join(home, "trustedFolders.json").lstrip("/")
        folders = _trust.decode(
            without_comments(read_bytes(path, _MAX_FILE_BYTES).decode("utf-8", "replace"))
        )
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return None
    best: tuple[int, bool | None] = (0, None)
    for folder, value in folders.items():
        place = posixpath.dirname(folder) if value == "TRUST_PARENT" else folder
        if cwd == place or cwd.startswith(place.rstrip("/") + "/"):
            best = max(best, (len(place), _TRUSTED.get(value)), key=lambda each: each[0])
    return best[1]


# ---------------------------------------------------------------- .env


class EnvFile(msgspec.Struct, frozen=True):
    """What a `.env` file sets of what concerns the sandbox."""

    path: str
    modified: float
    values: dict[str, tuple[str, int]]
    """Value and line by name."""


def env_file(family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path) -> EnvFile | None:
    """Return the `.env` file that the CLI reads as it starts: the nearest one above its working directory, or
    else in the home directory."""
    for directory in _directories(cwd):
        for path in (posixpath.join(directory, family.directory, ".env"), posixpath.join(directory, ".env")):
            if (found := _read_env(family, path, root)) is not None:
                return found
    for path in (posixpath.join(home, ".env"), posixpath.join(env.get("HOME", "/"), ".env")):
        if (found := _read_env(family, path, root)) is not None:
            return found
    return None


def _directories(cwd: str) -> Iterator[str]:
    directory = cwd
    for _ in range(_MAX_PARENTS):
        yield directory
        above = posixpath.dirname(directory)
        if above == directory:
            return
        directory = above


def _read_env(family: Family, path: str, root: Path) -> EnvFile | None:
    place = root / path.lstrip("/")
    try:
        modified = place.stat().st_mtime
        text = read_bytes(place, _MAX_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    names = f"{INHERITED}|{family.sandbox_variable}"
    values = {
        found[1]: (clean_line(_unquoted(found[2])), number)
        for number, line in enumerate(text.split("\n"), 1)
        if (found := re.match(rf"\s*(?:export\s+)?({names})\s*=\s*(.*)", line))
    }
    return EnvFile(path=clean_line(path), modified=modified, values=values)


def _unquoted(value: str) -> str:
    quoted = re.match(r"""(['"`])(.*?)\1""", value)
    return quoted[2] if quoted else value.split("#", maxsplit=1)[0].strip()
