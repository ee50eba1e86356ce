"""What Gemini CLI and Qwen Code were asked for: by arguments, a variable, and `tools.sandbox` of the user.

The settings of a workspace or of the system, a `.env` file, and a sandbox around each command outrank that
key in ways that differ by version: where there are any, only what was typed or exported is stated.
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
from agentdash.model.state_paths import resolve_path
from agentdash.model.thread import Thread

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PARENTS: Final = 40
"""Directories above a workspace in which a `.env` file is looked for."""
_STARTUP_S: Final = 5.0
"""A file that was written so shortly after a process began was read by it: it rewrites its own settings as it
starts (0.61.0)."""
_FLAGS: Final = frozenset("dsy")
"""Short options without a value, which may stand together: `-ys`."""
_OFF: Final = ("0", "false", "")
_AROUND_COMMANDS: Final = ('"toolSandboxing"', '"executionSandbox"')
"""Keys of a sandbox around each command."""
_SYSTEM: Final = "/Library/Application Support" if sys.platform == "darwin" else "/etc"


class Family(msgspec.Struct, frozen=True):
    """One of the two CLIs."""

    name: str
    directory: str
    """Its directory in a workspace."""
    home: str
    """Its directory of settings and sessions, with the variable that moves it."""
    sandbox_variable: str
    """Outranks the settings, and `--sandbox` unless that `does_argument_outrank`."""
    does_argument_outrank: bool
    """Whether `--sandbox` sets that variable to `true`, whatever it was."""
    system_variable: str
    """Names the file of the system's settings."""
    system_file: str


GEMINI: Final = Family(
    name="Gemini CLI",
    directory=".gemini",
    home="$GEMINI_CLI_HOME/.gemini",
    sandbox_variable="GEMINI_SANDBOX",
    does_argument_outrank=True,
    system_variable="GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    system_file=f"{_SYSTEM}/{'GeminiCli' if sys.platform == 'darwin' else 'gemini-cli'}/settings.json",
)
"""0.61.0."""
QWEN: Final = Family(
    name="Qwen Code",
    directory=".qwen",
    home="$QWEN_HOME",
    sandbox_variable="QWEN_SANDBOX",
    does_argument_outrank=False,
    system_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
    system_file=f"{_SYSTEM}/{'QwenCode' if sys.platform == 'darwin' else 'qwen-code'}/settings.json",
)
"""0.15.10."""


class _Tools(msgspec.Struct, frozen=True):
    sandbox: Any = None


class _Settings(msgspec.Struct, frozen=True):
    tools: _Tools = _Tools()


_SETTINGS: Final = SettingsReader(_Settings, allows_comments=True)


class _Asked(NamedTuple):
    """Whether a sandbox is asked for, and by what."""

    is_on: bool | None
    """None: it is not known."""
    origin: RequestOrigin


class GeminiRequests(RequestReader):
    """What a `gemini` or `qwen` process was asked for."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what arguments, environment and settings of a process ask for; None where they cannot be
        read."""
        del thread
        env, cwd = process.env, process.cwd
        home = resolve_path(self._family.home, env or {})
        if env is None or home is None or not cwd:
            return None
        asked = _stated(self._family, process.argv, env)
        mode, words = _approval_mode(options(process.argv))
        origins = [typed(RequestField.APPROVAL, words)] if words else []
        policy = Policy(approval=mode)
        file = next(_SETTINGS.read(RequestLayer.USER, posixpath.join(home, "settings.json"), root), None)
        if asked is None and not _may_others_decide(self._family, env, home, cwd, root, file):
            asked = _set(self._family, file)
        if asked is not None and asked.is_on is not None:
            origins.append(asked.origin)
            policy = msgspec.structs.replace(_policy(cwd, is_on=asked.is_on), approval=mode)
        inherited = env.get(INHERITED)
        found = Requested(
            policy=policy,
            origins=tuple(origins),
            files_written=file.modified if file is not None else None,
            dropped_by=in_environment(RequestField.FILESYSTEM, INHERITED, inherited) if inherited else None,
            is_fixed=process.once,
        )
        started = process.key.started
        return dated(found, started, at, started + _STARTUP_S)


def _policy(cwd: str, *, is_on: bool) -> Policy:
    if not is_on:
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    rules = (PolicyRule("/", "read"), PolicyRule(cwd, "write"))
    return Policy(filesystem=Filesystem.WORKSPACE, rules=rules, enforced_by="agent")


# ---------------------------------------------------------------- what was typed or exported


def _stated(family: Family, argv: Sequence[str], env: Mapping[str, str]) -> _Asked | None:
    """Return what an argument or the variable asks for, or None if neither does."""
    argument = next(_sandbox_arguments(options(argv)), None)
    value = env.get(family.sandbox_variable, "").strip()
    does_outrank = argument is not None and argument.is_on is not False and family.does_argument_outrank
    if does_outrank or not value:
        return argument
    origin = in_environment(RequestField.FILESYSTEM, family.sandbox_variable, value)
    return _Asked(value.lower() not in _OFF, origin)


def _sandbox_arguments(words: Sequence[str]) -> Iterator[_Asked]:
    """Yield what each argument about the sandbox asks for; a program's name may mean anything."""
    for word, after in pairwise((*words, "")):
        shown, is_on = clean_line(word), None
        if word == "--sandbox" and after in ("true", "false"):
            shown, is_on = f"{word} {after}", after == "true"
        elif word in ("--no-sandbox", "--sandbox=false"):
            is_on = False
        elif word in ("--sandbox", "--sandbox=true") or (_is_cluster(word) and "s" in word):
            is_on = True
        elif not word.startswith("--sandbox="):
            continue
        yield _Asked(is_on, typed(RequestField.FILESYSTEM, shown))


def _is_cluster(word: str) -> bool:
    return word[:1] == "-" and len(word) > 1 and set(word[1:]) <= _FLAGS


def _approval_mode(words: Sequence[str]) -> tuple[str | None, str]:
    """Return the approval mode that was typed, and the words; None and empty if none was."""
    for word, after in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        if name == "--approval-mode":
            mode = clean_line(value if equals else after)
            return mode, f"--approval-mode {mode}"
    yolo = next((word for word in words if word == "--yolo" or (_is_cluster(word) and "y" in word)), "")
    return "yolo" if yolo else None, yolo


# ---------------------------------------------------------------- files


def _set(family: Family, file: SettingsFile[_Settings] | None) -> _Asked:
    """Return what the user's settings ask for: a boolean, the name of a program, or an object."""
    value = file.settings.tools.sandbox if file is not None else None
    if file is None or value is None:
        text = f"{family.name} starts no sandbox unless it is asked to"
        return _Asked(False, RequestOrigin(RequestField.FILESYSTEM, RequestLayer.DEFAULT, text))
    words = f'"sandbox": {msgspec.json.encode(value).decode()}'
    origin = file.origin(RequestField.FILESYSTEM, words, "sandbox")
    if isinstance(value, dict):
        return _Asked(bool(value.get("enabled")), origin)
    if isinstance(value, str) and "$" not in value:  # else it names a variable
        return _Asked(value.lower() not in _OFF, origin)
    return _Asked(value if isinstance(value, bool) else None, origin)


def _may_others_decide(
    family: Family,
    env: Mapping[str, str],
    home: str,
    cwd: str,
    root: Path,
    file: SettingsFile[_Settings] | None,
) -> bool:
    """Return whether something that is not read may decide over the key of the user."""
    if file is not None and (file.problem or any(key in file.text for key in _AROUND_COMMANDS)):
        return True
    own = posixpath.join(cwd, family.directory, "settings.json")
    system = posixpath.join(cwd, env.get(family.system_variable) or family.system_file)
    others = {own, system} - {posixpath.join(home, "settings.json")}
    if any((root / path.lstrip("/")).exists() for path in others):
        return True
    names = [f"{name}=".encode() for name in (INHERITED, family.sandbox_variable) if name not in env]
    contents = (content.replace(b" ", b"") for content in _env_files(family, env, home, cwd, root))
    return any(name in content for content in contents for name in names)


def _env_files(family: Family, env: Mapping[str, str], home: str, cwd: str, root: Path) -> Iterator[bytes]:
    """Yield the contents of the `.env` files above a workspace and in the home directory: the CLI reads one
    of them."""
    above = [cwd, *map(str, Path(cwd).parents)][:_MAX_PARENTS]
    folders = [place for each in above for place in (posixpath.join(each, family.directory), each)]
    for folder in (*folders, home, env.get("HOME", "/")):
        try:
            yield read_bytes(root / posixpath.join(folder, ".env").lstrip("/"), _MAX_FILE_BYTES)
        except (OSError, ValueError):
            continue
