"""What Gemini CLI and Qwen Code were asked for: by settings of system, workspace and user, `.env`, variables
and arguments.

A value of a later file outranks one of an earlier file: user, workspace, system. Only what concerns sandbox
and approvals is kept; other keys (tokens, servers) are dropped as soon as a file is parsed.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.adapter import RequestReader
from agentdash.agents.settings_files import (
    SettingsFile,
    SettingsReader,
    dated,
    in_environment,
    options,
    typed,
)
from agentdash.files import read_bytes
from agentdash.model.observation import INHERITED
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PARENTS: Final = 40
"""Directories above a workspace in which a `.env` file is looked for."""
_STARTUP_S: Final = 5.0
"""A file that was written so shortly after a process began was read by it: it rewrites its own settings as it
starts (0.61.0)."""
_TRUSTED: Final = {"TRUST_FOLDER": True, "TRUST_PARENT": True, "DO_NOT_TRUST": False}
"""Values of `trustedFolders.json`."""
_FLAGS: Final = frozenset("dsy")
"""Short options without a value, which may stand together: `-ys`."""
_OFF: Final = ("0", "false", "")
_YOLO: Final = "yolo"
_SYSTEM: Final = "/Library/Application Support" if sys.platform == "darwin" else "/etc"


class Family(msgspec.Struct, frozen=True):
    """One of the two CLIs."""

    name: str
    directory: str
    """Its directory, in the home directory and in a workspace."""
    home_variable: str
    """Moves that directory: its parent for Gemini CLI, the directory itself for Qwen Code."""
    is_home_parent: bool
    sandbox_variable: str
    """Outranks the settings, and `--sandbox` unless that `does_argument_outrank`."""
    does_argument_outrank: bool
    """Whether `--sandbox` sets that variable to `true`, whatever it was."""
    system_variable: str
    """Names the file of the system's settings."""
    system_file: str
    is_trust_required: bool
    """Whether a workspace's settings count only in a trusted folder, where nothing is set
    (`security.folderTrust.enabled`)."""

    def home(self, env: Mapping[str, str], cwd: str) -> str | None:
        """Return its directory of settings and sessions, or None if unknown."""
        if named := env.get(self.home_variable):
            return posixpath.join(cwd, named, self.directory if self.is_home_parent else "")
        home = env.get("HOME")
        return posixpath.join(home, self.directory) if home else None


GEMINI: Final = Family(
    name="Gemini CLI",
    directory=".gemini",
    home_variable="GEMINI_CLI_HOME",
    is_home_parent=True,
    sandbox_variable="GEMINI_SANDBOX",
    does_argument_outrank=True,
    system_variable="GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    system_file=f"{_SYSTEM}/{'GeminiCli' if sys.platform == 'darwin' else 'gemini-cli'}/settings.json",
    is_trust_required=True,
)
"""0.61.0."""
QWEN: Final = Family(
    name="Qwen Code",
    directory=".qwen",
    home_variable="QWEN_HOME",
    is_home_parent=False,
    sandbox_variable="QWEN_SANDBOX",
    does_argument_outrank=False,
    system_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
    system_file=f"{_SYSTEM}/{'QwenCode' if sys.platform == 'darwin' else 'qwen-code'}/settings.json",
    is_trust_required=False,
)
"""0.15.10."""


class _Tools(msgspec.Struct, frozen=True, rename="camel"):
    sandbox: Any = None
    execution_sandbox: Any = None
    approval_mode: str | None = None


class _FolderTrust(msgspec.Struct, frozen=True):
    enabled: bool | None = None


class _Security(msgspec.Struct, frozen=True, rename="camel"):
    tool_sandboxing: bool | None = None
    folder_trust: _FolderTrust = _FolderTrust()


class _General(msgspec.Struct, frozen=True, rename="camel"):
    default_approval_mode: str | None = None


class _Settings(msgspec.Struct, frozen=True):
    tools: _Tools = _Tools()
    security: _Security = _Security()
    general: _General = _General()


_SETTINGS: Final = SettingsReader(_Settings, allows_comments=True)
_TRUST: Final = SettingsReader(dict[str, str], allows_comments=True)
_File = SettingsFile[_Settings]


class _Asked(NamedTuple):
    """The sandbox that is asked for."""

    policy: Policy | None
    """None: it is not known whether it is asked for."""
    origin: RequestOrigin


class GeminiRequests(RequestReader):
    """What a `gemini` or `qwen` process was asked for."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what arguments, environment and settings of a process ask for; None where they cannot be
        read."""
        del thread
        family, env, cwd = self._family, process.env, process.cwd
        home = family.home(env, cwd or "/") if env is not None else None
        if env is None or home is None or not cwd:
            return None
        files = list(_settings_files(family, env, home, cwd, root))
        # without a screen every folder is trusted
        is_trusted = process.once and family.is_trust_required
        trusted = True if is_trusted else _trust(family, files, home, cwd, root)
        counting = [file for file in files if trusted or file.layer is not RequestLayer.PROJECT]
        is_unknown = (
            any(file.problem for file in counting)
            or (trusted is None and len(counting) < len(files))
            or (trusted is not False and _is_in_env_file(family, env, home, cwd, root))
        )
        found = _requested(family, process, cwd, counting, is_unknown=is_unknown)
        started = process.key.started
        return dated(found, started, at, started + _STARTUP_S)


def _settings_files(
    family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path
) -> Iterator[_File]:
    """Yield the settings that are there, the weakest first."""
    own = posixpath.join(cwd, family.directory, "settings.json")
    system = posixpath.join(cwd, env.get(family.system_variable) or family.system_file)
    yield from _SETTINGS.read(RequestLayer.USER, posixpath.join(home, "settings.json"), root)
    yield from _SETTINGS.read(RequestLayer.PROJECT, own, root)
    yield from _SETTINGS.read(RequestLayer.MANAGED, system, root)


def _trust(family: Family, files: Sequence[_File], home: str, cwd: str, root: Path) -> bool | None:
    """Return whether the workspace's settings count; None: it is not known."""
    others = (file for file in reversed(files) if file.layer is not RequestLayer.PROJECT)
    values = (file.settings.security.folder_trust.enabled for file in others)
    if not next((value for value in values if value is not None), family.is_trust_required):
        return True
    path = posixpath.join(home, "trustedFolders.json")
    (trusted,) = _TRUST.read(RequestLayer.USER, path, root, required=True)
    best: tuple[int, bool | None] = (0, None)
    for folder, value in trusted.settings.items():
        place = posixpath.dirname(folder) if value == "TRUST_PARENT" else folder
        if cwd == place or cwd.startswith(place.rstrip("/") + "/"):
            best = max(best, (len(place), _TRUSTED.get(value)), key=lambda each: each[0])
    return best[1]


def _is_in_env_file(family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path) -> bool:
    """Return whether the `.env` file that the CLI reads as it starts names what concerns the sandbox, and the
    environment does not. It reads the nearest one above its working directory, or else one in the home
    directory."""
    names = [name for name in (INHERITED, family.sandbox_variable) if name not in env]
    above = [cwd, *(str(parent) for parent in Path(cwd).parents)][:_MAX_PARENTS]
    folders = [place for each in above for place in (posixpath.join(each, family.directory), each)]
    for folder in (*folders, home, env.get("HOME", "/")):
        try:
            content = read_bytes(root / posixpath.join(folder, ".env").lstrip("/"), _MAX_FILE_BYTES)
        except (OSError, ValueError):
            continue
        return any(f"{name}=".encode() in content.replace(b" ", b"") for name in names)
    return False


def _requested(
    family: Family, process: Process, cwd: str, files: Sequence[_File], *, is_unknown: bool
) -> Requested:
    """Return what a process is asked for.

    Args:
        family: Gemini CLI or Qwen Code.
        process: with its arguments and environment.
        cwd: its working directory.
        files: its settings that count, the weakest first.
        is_unknown: whether others may count, too.
    """
    env = process.env or {}
    asked = _asked(family, process.argv, env, files, cwd)
    around_commands = None
    if asked.policy is not None and asked.policy.is_full_access:
        around_commands = _around_commands(family, files, cwd)
    mode, origins = _approval(family, process.argv, files)
    policy = Policy(approval=mode)
    is_typed = asked.origin.layer in (RequestLayer.ARGV, RequestLayer.ENVIRONMENT)
    if asked.policy is not None and (is_typed or not is_unknown):
        found = around_commands or asked
        origins.append(found.origin)
        policy = msgspec.structs.replace(found.policy or policy, approval=mode)
    inherited = env.get(INHERITED)
    return Requested(
        policy=policy,
        origins=tuple(origins),
        files_written=max((file.modified for file in files), default=None),
        scope="commands" if around_commands is not None else "worker",
        dropped_by=in_environment(RequestField.FILESYSTEM, INHERITED, inherited) if inherited else None,
        is_fixed=process.once,
    )


def _policy(*, is_on: bool | None, cwd: str) -> Policy | None:
    if is_on is None:
        return None
    if not is_on:
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    rules = (PolicyRule("/", "read"), PolicyRule(cwd, "write"))
    return Policy(filesystem=Filesystem.WORKSPACE, rules=rules, enforced_by="agent")


def _asked(
    family: Family, argv: Sequence[str], env: Mapping[str, str], files: Sequence[_File], cwd: str
) -> _Asked:
    """Return the sandbox around the CLI that is asked for, by a variable, an argument, a file, or nothing."""
    name = family.sandbox_variable
    of_argument = _of_argument(argv, cwd)
    is_off = of_argument and of_argument.policy and of_argument.policy.is_full_access
    if of_argument is not None and not is_off and family.does_argument_outrank:
        return of_argument
    if value := env.get(name, "").strip():
        origin = in_environment(RequestField.FILESYSTEM, name, value)
        return _Asked(_policy(is_on=value.lower() not in _OFF, cwd=cwd), origin)
    if of_argument is not None:
        return of_argument
    for file in reversed(files):
        if (setting := file.settings.tools.sandbox) is not None:
            words = f'"sandbox": {msgspec.json.encode(setting).decode()}'
            origin = file.origin(RequestField.FILESYSTEM, words, "sandbox")
            return _Asked(_policy(is_on=_is_on(setting), cwd=cwd), origin)
    text = f"{family.name} starts no sandbox unless it is asked to"
    origin = RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text=text)
    return _Asked(_policy(is_on=False, cwd=cwd), origin)


def _of_argument(argv: Sequence[str], cwd: str) -> _Asked | None:
    """Return what `--sandbox` asks for; None where it is not among the arguments."""
    words = options(argv)
    for word, after in pairwise((*words, "")):
        shown, is_on = clean_line(word), True
        if word == "--sandbox" and after in ("true", "false"):
            shown, is_on = f"{word} {after}", after == "true"
        elif word in ("--no-sandbox", "--sandbox=false"):
            is_on = False
        elif word.startswith("--sandbox=") and word != "--sandbox=true":
            return _Asked(None, typed(RequestField.FILESYSTEM, shown))
        elif not (word in ("--sandbox", "--sandbox=true") or (_is_cluster(word) and "s" in word)):
            continue
        return _Asked(_policy(is_on=is_on, cwd=cwd), typed(RequestField.FILESYSTEM, shown))
    return None


def _is_cluster(word: str) -> bool:
    return word[:1] == "-" and len(word) > 1 and set(word[1:]) <= _FLAGS


def _is_on(value: Any) -> bool | None:
    """Return whether a value of `tools.sandbox` switches it on: a boolean, the name of a program, an object.
    None: it names a variable."""
    if isinstance(value, dict):
        return bool(value.get("enabled"))
    if isinstance(value, str):
        return None if "$" in value else value.lower() not in _OFF
    return value if isinstance(value, bool) else None


def _around_commands(family: Family, files: Sequence[_File], cwd: str) -> _Asked | None:
    """Return the sandbox around each command that settings ask for; None where none is asked for."""
    workspace = _policy(is_on=True, cwd=cwd)
    for file in reversed(files):
        is_on, value = file.settings.security.tool_sandboxing, file.settings.tools.execution_sandbox
        if family is GEMINI and is_on is not None:
            origin = file.origin(RequestField.FILESYSTEM, '"toolSandboxing": true', "toolSandboxing")
            return _Asked(workspace, origin) if is_on else None
        if family is GEMINI or file.layer is RequestLayer.PROJECT or not isinstance(value, dict):
            continue
        policy = workspace or Policy()
        if value.get("filesystem") == "read-only":
            policy = Policy(Filesystem.READ_ONLY, rules=(PolicyRule("/", "read"),), enforced_by="agent")
        network = Network.OFF if value.get("network") == "closed" else Network.ON
        words = f'"executionSandbox": {msgspec.json.encode(value).decode()}'
        origin = file.origin(RequestField.FILESYSTEM, words, "executionSandbox")
        return _Asked(msgspec.structs.replace(policy, network=network), origin)
    return None


def _approval(
    family: Family, argv: Sequence[str], files: Sequence[_File]
) -> tuple[str | None, list[RequestOrigin]]:
    """Return the approval mode that is asked for, and where."""
    words = options(argv)
    for word, after in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        if name == "--approval-mode":
            mode = clean_line(value if equals else after)
            return mode, [typed(RequestField.APPROVAL, f"--approval-mode {mode}")]
    for word in words:
        if word == "--yolo" or (_is_cluster(word) and "y" in word):
            return _YOLO, [typed(RequestField.APPROVAL, word)]
    for file in reversed(files):
        general, tools = file.settings.general.default_approval_mode, file.settings.tools.approval_mode
        key = "defaultApprovalMode" if general else "approvalMode"
        mode = clean_line(general or tools or "")
        if mode and not (family is GEMINI and mode == _YOLO):  # which takes this from arguments alone
            return mode, [file.origin(RequestField.APPROVAL, f'"{key}": "{mode}"', key)]
    return None, []
