"""Settings files of Gemini CLI and Qwen Code: `settings.json` of system, workspace and user, and `.env`.

A value of a later file outranks one of an earlier file: user, workspace, system. Only what concerns sandbox
and approvals is kept; other keys (tokens, servers) are dropped as soon as a file is parsed.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.adapter import RequestReader
from agentdash.agents.settings_files import SettingsFile, SettingsReader, dated
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


_SETTINGS: Final = SettingsReader(_Settings, allows_comments=True)
_TRUST: Final = SettingsReader(dict[str, str], allows_comments=True)
_File = SettingsFile[_Settings]


def settings_files(
    family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path
) -> Iterator[_File]:
    """Yield the settings that are there, the weakest first.

    Args:
        root: where its file system is mounted.
    """
    yield from _SETTINGS.read(RequestLayer.USER, posixpath.join(home, "settings.json"), root)
    yield from _SETTINGS.read(
        RequestLayer.PROJECT, posixpath.join(cwd, family.directory, "settings.json"), root
    )
    system = env.get(family.system_variable) or family.system_file
    yield from _SETTINGS.read(RequestLayer.MANAGED, posixpath.join(cwd, system), root)


def is_trusted(family: Family, files: list[_File], home: str, cwd: str, root: Path) -> bool | None:
    """Return whether the workspace's settings count; None: it is not known."""
    enabled = family.is_trust_required
    for file in files:
        trust = file.settings.security.folder_trust
        if file.layer is not RequestLayer.PROJECT and trust is not None and trust.enabled is not None:
            enabled = trust.enabled
    if not enabled:
        return True
    path = posixpath.join(home, "trustedFolders.json")
    (trusted,) = _TRUST.read(RequestLayer.USER, path, root, required=True)
    if trusted.problem:
        return None
    best: tuple[int, bool | None] = (0, None)
    for folder, value in trusted.settings.items():
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


_IS_MACOS: Final = sys.platform == "darwin"


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
    system_file=(
        "/Library/Application Support/GeminiCli/settings.json"
        if _IS_MACOS
        else "/etc/gemini-cli/settings.json"
    ),
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
    system_file=(
        "/Library/Application Support/QwenCode/settings.json" if _IS_MACOS else "/etc/qwen-code/settings.json"
    ),
    is_trust_required=False,
)
"""0.15.10."""


_STARTUP_S: Final = 5.0
"""A file that was written so shortly after a process began was read by it: it rewrites its own settings as it
starts (0.61.0)."""
_FLAGS: Final = frozenset("dsy")
"""Short options without a value, which may stand together: `-ys`."""
_OFF: Final = ("0", "false", "")
_YOLO: Final = "yolo"


class GeminiRequests(RequestReader):
    """What a `gemini` or `qwen` process was asked for."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what arguments, environment and settings of a process ask for; None where they cannot be
        read."""
        del thread
        env, cwd = process.env, process.cwd
        home = self._family.home(env, cwd or "/") if env is not None else None
        if env is None or home is None or not cwd:
            return None
        files = list(settings_files(self._family, env, home, cwd, root))
        trusted = is_trusted(self._family, files, home, cwd, root)
        if process.once and self._family.is_trust_required:
            trusted = True  # without a screen every folder is trusted
        variables = env_file(self._family, env, home, cwd, root) if trusted else None
        found = requested(self._family, process, files, variables, trusted=trusted)
        started = process.key.started
        return dated(found, started, at, started + _STARTUP_S)


class _Asked(msgspec.Struct, frozen=True):
    """Whether a sandbox around the CLI is asked for."""

    is_on: bool | None
    """None: it is not known."""
    origin: RequestOrigin


def requested(
    family: Family,
    process: Process,
    files: Sequence[_File],
    variables: EnvFile | None,
    *,
    trusted: bool | None,
) -> Requested:
    """Return what a process is asked for.

    Args:
        family: Gemini CLI or Qwen Code.
        process: with its arguments and environment.
        files: its settings, the weakest first.
        variables: the `.env` file that it reads.
        trusted: whether settings of the workspace count; None: it is not known.
    """
    env, cwd = process.env or {}, process.cwd or "/"
    known = [file for file in files if trusted or file.layer is not RequestLayer.PROJECT]
    is_unknown = any(file.problem for file in known) or (trusted is None and len(known) < len(files))
    asked = _asked(family, process.argv, env, variables, known)
    tools = _around_commands(family, known, cwd) if asked.is_on is False else None
    mode, origins = _approval(family, process.argv, known)
    policy = Policy(approval=mode)
    is_typed = asked.origin.layer in (RequestLayer.ARGV, RequestLayer.ENVIRONMENT)
    if asked.is_on is not None and (is_typed or not is_unknown):
        origins.append(tools.origin if tools else asked.origin)
        found = tools.policy if tools else _policy(is_on=asked.is_on, cwd=cwd)
        policy = msgspec.structs.replace(found, approval=mode)
    written = [file.modified for file in known] + ([variables.modified] if variables else [])
    return Requested(
        policy=policy,
        origins=tuple(origins),
        files_written=max(written, default=None),
        scope="commands" if tools is not None else "worker",
        dropped_by=_inherited(env, variables),
        is_fixed=process.once,
    )


def _policy(*, is_on: bool, cwd: str) -> Policy:
    if not is_on:
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    rules = (PolicyRule("/", "read"), PolicyRule(cwd, "write"))
    return Policy(filesystem=Filesystem.WORKSPACE, rules=rules, enforced_by="agent")


def _asked(
    family: Family,
    argv: Sequence[str],
    env: Mapping[str, str],
    variables: EnvFile | None,
    files: Sequence[_File],
) -> _Asked:
    """Return what decides whether a sandbox is asked for: a variable, an argument, a file, or nothing."""
    name = family.sandbox_variable
    typed = _typed_sandbox(argv)
    if typed is not None and typed.is_on is not False and family.does_argument_outrank:
        return typed
    if value := env.get(name, "").strip():
        return _Asked(is_on=value.lower() not in _OFF, origin=_in_environment(f"{name}={value}"))
    if variables is not None and name not in env and variables.values.get(name, ("", 0))[0]:
        value, line = variables.values[name]
        origin = RequestOrigin(
            field=RequestField.FILESYSTEM,
            layer=RequestLayer.ENVIRONMENT,
            text=f"{name}={value}",
            file=variables.path,
            line=line,
        )
        return _Asked(is_on=value.lower() not in _OFF, origin=origin)
    if typed is not None:
        return typed
    for file in reversed(files):
        if (value_set := file.settings.tools.sandbox) is not None:
            words = f'"sandbox": {msgspec.json.encode(value_set).decode()}'
            return _Asked(
                is_on=_is_on(value_set), origin=file.origin(RequestField.FILESYSTEM, words, "sandbox")
            )
    text = f"{family.name} starts no sandbox unless it is asked to"
    return _Asked(
        is_on=False,
        origin=RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text=text),
    )


def _typed_sandbox(argv: Sequence[str]) -> _Asked | None:
    """Return what `--sandbox` asks for; None where it is not among the arguments."""
    for number, word in enumerate(argv[1:], 1):
        if word == "--":
            break
        if (found := _flag(word, argv[number + 1 : number + 2])) is not None:
            return _Asked(is_on=found[0], origin=_typed(RequestField.FILESYSTEM, found[1]))
    return None


def _flag(word: str, after: Sequence[str]) -> tuple[bool | None, str] | None:
    """Return the value of an argument that is `--sandbox`, and its words; None for other arguments."""
    if word in ("--no-sandbox", "--sandbox=false"):
        return False, word
    if word == "--sandbox" and after and after[0] in ("true", "false"):
        return after[0] == "true", f"{word} {after[0]}"
    if word in ("--sandbox", "--sandbox=true"):
        return True, word
    if word.startswith("--sandbox="):
        return None, clean_line(word)
    return (True, word) if _is_cluster(word) and "s" in word else None


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


class _AroundCommands(msgspec.Struct, frozen=True):
    """A sandbox around each command that settings ask for."""

    policy: Policy
    origin: RequestOrigin


def _around_commands(family: Family, files: Sequence[_File], cwd: str) -> _AroundCommands | None:
    """Return the sandbox around each command; None where none is asked for."""
    workspace = _policy(is_on=True, cwd=cwd)
    if family is GEMINI:
        values = ((file, file.settings.security.tool_sandboxing) for file in reversed(files))
        file, is_on = next(((file, value) for file, value in values if value is not None), (None, False))
        if file is None or not is_on:
            return None
        origin = file.origin(RequestField.FILESYSTEM, '"toolSandboxing": true', "toolSandboxing")
        return _AroundCommands(workspace, origin)
    for file in reversed(files):
        value = file.settings.tools.execution_sandbox
        if file.layer is RequestLayer.PROJECT or not isinstance(value, dict):
            continue
        if value.get("filesystem") == "read-only":
            workspace = Policy(Filesystem.READ_ONLY, rules=(PolicyRule("/", "read"),), enforced_by="agent")
        network = Network.OFF if value.get("network") == "closed" else Network.ON
        words = f'"executionSandbox": {msgspec.json.encode(value).decode()}'
        origin = file.origin(RequestField.FILESYSTEM, words, "executionSandbox")
        return _AroundCommands(msgspec.structs.replace(workspace, network=network), origin)
    return None


def _approval(
    family: Family, argv: Sequence[str], files: Sequence[_File]
) -> tuple[str | None, list[RequestOrigin]]:
    """Return the approval mode that is asked for, and where."""
    options = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    for number, word in enumerate(options):
        name, equals, value = word.partition("=")
        if name == "--approval-mode":
            mode = clean_line(value if equals else next(iter(options[number + 1 : number + 2]), ""))
            return mode, [_typed(RequestField.APPROVAL, f"--approval-mode {mode}")]
    for word in options:
        if word == "--yolo" or (_is_cluster(word) and "y" in word):
            return _YOLO, [_typed(RequestField.APPROVAL, word)]
    for file in reversed(files):
        general, tools = file.settings.general.default_approval_mode, file.settings.tools.approval_mode
        key = "defaultApprovalMode" if general else "approvalMode"
        mode = clean_line(general or tools or "")
        if mode and not (family is GEMINI and mode == _YOLO):  # which takes this from arguments alone
            return mode, [file.origin(RequestField.APPROVAL, f'"{key}": "{mode}"', key)]
    return None, []


def _inherited(env: Mapping[str, str], variables: EnvFile | None) -> RequestOrigin | None:
    """Return the variable that makes it take itself for sandboxed already."""
    if value := env.get(INHERITED):
        return _in_environment(f"{INHERITED}={value}")
    if variables is None or INHERITED in env or not variables.values.get(INHERITED, ("", 0))[0]:
        return None
    value, line = variables.values[INHERITED]
    return RequestOrigin(
        field=RequestField.FILESYSTEM,
        layer=RequestLayer.ENVIRONMENT,
        text=f"{INHERITED}={value}",
        file=variables.path,
        line=line,
    )


def _in_environment(words: str) -> RequestOrigin:
    return RequestOrigin(
        field=RequestField.FILESYSTEM, layer=RequestLayer.ENVIRONMENT, text=clean_line(words)
    )


def _typed(field: RequestField, words: str) -> RequestOrigin:
    return RequestOrigin(field=field, layer=RequestLayer.ARGV, text=clean_line(words))
