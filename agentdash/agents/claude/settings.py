"""What Claude Code was asked for: settings.json of user, project, local and managed, and its arguments.

A value of a later file outranks one of an earlier file: user, project, local, `--settings`, managed. Only
what concerns sandbox and permissions is kept; other keys (tokens, hooks, servers) are dropped as soon as a
file is parsed. Keys of 2.1.197 to 2.1.330.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.adapter import RequestReader
from agentdash.agents.claude.home import metadata_of
from agentdash.agents.claude.transcript.records import LAST_VERSION
from agentdash.agents.settings_files import SettingsFile, SettingsReader, dated, options, typed
from agentdash.files import read_bytes
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import resolve_path
from agentdash.model.thread import Thread
from agentdash.model.versions import stand_in

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_LISTED: Final = 100
"""Entries of one list in a file, and files of one directory."""
_CLOCK_TOLERANCE_S: Final = 1.0
"""A file that was written so shortly after a process began was read by it, too."""
_MANAGED: Final = (
    "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
)
_PLATFORM: Final = "macos" if sys.platform == "darwin" else "linux"
"""Its name in `sandbox.enabledPlatforms`."""
_SCRUB: Final = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"
"""A variable that puts commands into a sandbox whatever the settings say (2.1.197 to 2.1.332)."""
_SKIP_PERMISSIONS: Final = "--dangerously-skip-permissions"
_BYPASS: Final = "bypassPermissions"


class _Writable(msgspec.Struct, rename="camel"):
    allow_write: list[str] = []


class _Sandbox(msgspec.Struct, rename="camel"):
    enabled: bool | None = None
    enabled_platforms: list[str] | None = None
    excluded_commands: list[str] = []
    filesystem: _Writable = msgspec.field(default_factory=_Writable)


class _Permissions(msgspec.Struct, rename="camel"):
    default_mode: str | None = None


class _Settings(msgspec.Struct):
    sandbox: _Sandbox = msgspec.field(default_factory=_Sandbox)
    permissions: _Permissions = msgspec.field(default_factory=_Permissions)


SETTINGS: Final = SettingsReader(_Settings, allows_comments=False)
_File = SettingsFile[_Settings]


class Arguments(msgspec.Struct, frozen=True):
    """What concerns the policy in the arguments of `claude`."""

    mode: str | None = None
    words: str = ""
    """The option that sets the mode, as written."""
    settings: str | None = None
    sources: tuple[str, ...] | None = None
    """`--setting-sources`; None: all."""
    is_printing: bool = False
    """`-p`: nothing can be changed while it runs."""


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Return what concerns the policy in an argument vector."""
    found: dict[str, str] = {}
    words = options(argv)
    for word, after in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        if name in ("--permission-mode", "--settings", "--setting-sources"):
            found[name] = value if equals else after
    mode = found.get("--permission-mode")
    sources = found.get("--setting-sources")
    skips = _SKIP_PERMISSIONS in words
    return Arguments(
        mode=_BYPASS if skips else mode,
        words=_SKIP_PERMISSIONS if skips else f"--permission-mode {mode}",
        settings=found.get("--settings"),
        sources=tuple(source.strip() for source in sources.split(",")) if sources is not None else None,
        is_printing="-p" in words or "--print" in words,
    )


class ClaudeRequests(RequestReader):
    """What a `claude` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what the arguments and settings of a process ask for; None where they cannot be read."""
        home = _config_directory(process)
        cwd = thread.cwd if thread is not None and thread.cwd else process.cwd
        if home is None or not cwd:
            return None
        found = read_request(parse_arguments(process.argv), home, cwd, root)
        if (process.env or {}).get(_SCRUB, "").lower() in ("1", "true", "yes", "on"):
            found = _scrubbed(found)
        found = replace(
            found, rules_of=stand_in(thread.version if thread is not None else None, LAST_VERSION)
        )
        # it may write its settings itself as it starts (2.1.197), before the session begins
        begun = (thread.created_at or 0.0) if thread is not None else 0.0
        since = process.key.started
        return dated(found, since, at, max(since, begun) + _CLOCK_TOLERANCE_S)

    def read_role(self, process: Process, thread: Thread, root: Path, at: float) -> Requested | None:
        """Return the permission mode that the role of a sub-agent asks for, or None."""
        home = _config_directory(process)
        return _begun(_read_role(thread, home, root), thread, at) if home is not None else None

    def read_past(self, thread: Thread, at: float) -> Requested | None:
        """Return what the settings beside the transcript of a thread ask for: a file that was written after
        it began is the setting as of now."""
        if thread.file is None or not thread.cwd or thread.created_at is None:
            return None
        parents = Path(thread.file.path).absolute().parents
        projects = next((parent for parent in parents if parent.name == "projects"), None)
        if projects is None:
            return None
        home, root = str(projects.parent), Path("/")
        if thread.parent is not None:
            return _begun(_read_role(thread, home, root), thread, at)
        found = read_request(Arguments(), home, thread.cwd, root)
        rules_of = stand_in(thread.version, LAST_VERSION)
        return _begun(replace(found, are_arguments_known=False, rules_of=rules_of), thread, at)


def _begun(found: Requested | None, thread: Thread, at: float) -> Requested | None:
    """Return a request with its times, of a thread that has begun with it."""
    since = thread.created_at or 0.0
    return dated(found, since, at, since + _CLOCK_TOLERANCE_S) if found is not None else None


def _config_directory(process: Process) -> str | None:
    """Return the configuration directory of a process; None where its environment does not show it."""
    return resolve_path("$CLAUDE_CONFIG_DIR", process.env or {})


def read_request(arguments: Arguments, home: str, cwd: str, root: Path) -> Requested:
    """Read the request of a Claude Code with these arguments in a directory. Never raises.

    Args:
        root: where its file system is mounted.
    """
    return requested(arguments, list(_files(arguments, home, cwd, root)), home=home, cwd=cwd)


def requested(arguments: Arguments, files: Sequence[_File], *, home: str, cwd: str) -> Requested:
    """Return what arguments and settings ask for.

    Args:
        files: its settings, the weakest first.
    """
    mode, origins = _mode(arguments, files)
    if any(file.problem for file in files):  # which value is in force is not known
        if arguments.mode is None:
            return Requested()
        return Requested(policy=Policy(approval=mode), origins=origins)
    enabled, origin = _enabled(files)
    roots = list(_write_roots(files))
    policy = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    origins = (*origins, origin)
    if enabled:
        writable = (cwd, *(_expanded(path, cwd, home) for path, _ in roots))
        rules = (PolicyRule("/", "read"), *(PolicyRule(path, "write") for path in writable))
        policy = Policy(Filesystem.WORKSPACE, Network.MEDIATED, rules, enforced_by="agent")
    if enabled and roots:
        words = f'"allowWrite": {msgspec.json.encode([path for path, _ in roots]).decode()}'
        origin = roots[0][1].origin(RequestField.WRITABLE_ROOTS, words, "sandbox", "allowWrite")
        origins = (*origins, origin)
    excluded = (command for file in files for command in file.settings.sandbox.excluded_commands)
    return Requested(
        policy=replace(policy, approval=mode),
        origins=origins,
        files_written=max((file.modified for file in files), default=None),
        excluded=tuple(map(clean_line, islice(excluded, _MAX_LISTED))),
        is_fixed=arguments.is_printing,
    )


def _scrubbed(found: Requested) -> Requested:
    """Return a request in an environment that turns the sandbox on: which one is not known, if the settings
    ask for none."""
    asked = found.origin(RequestField.FILESYSTEM)
    if found.policy.filesystem is not Filesystem.UNRESTRICTED or asked is None:
        return found
    words = f"{_SCRUB} puts commands into a sandbox"
    if asked.layer is not RequestLayer.DEFAULT:
        words = f"{words}, over {asked.text}"
    origin = RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.ENVIRONMENT, text=words)
    origins = (*(each for each in found.origins if each is not asked), origin)
    return replace(found, policy=Policy(approval=found.policy.approval), origins=origins)


# ---------------------------------------------------------------- files


def _files(arguments: Arguments, home: str, cwd: str, root: Path) -> Iterator[_File]:
    """Yield the settings that are there, the weakest first."""
    own = {
        "user": (RequestLayer.USER, posixpath.join(home, "settings.json")),
        "project": (RequestLayer.PROJECT, posixpath.join(cwd, ".claude/settings.json")),
        "local": (RequestLayer.PROJECT, posixpath.join(cwd, ".claude/settings.local.json")),
    }
    for source, (layer, path) in own.items():
        if arguments.sources is None or source in arguments.sources:
            yield from SETTINGS.read(layer, path, root)
    if arguments.settings is not None:
        if arguments.settings.lstrip().startswith("{"):
            yield SETTINGS.parse(RequestLayer.ARGV, arguments.settings)
        else:
            path = posixpath.join(cwd, arguments.settings)
            yield from SETTINGS.read(RequestLayer.ARGV, path, root, required=True)
    yield from SETTINGS.read(RequestLayer.MANAGED, f"{_MANAGED}/managed-settings.json", root)
    for path in _listed(f"{_MANAGED}/managed-settings.d", "*.json", root):
        yield from SETTINGS.read(RequestLayer.MANAGED, path, root)


def _listed(folder: str, pattern: str, root: Path) -> list[str]:
    """Return the first files of a directory by name; none where it cannot be read."""
    try:
        names = sorted(path.name for path in (root / folder.lstrip("/")).glob(pattern))
    except OSError:
        return []
    return [posixpath.join(folder, name) for name in names[:_MAX_LISTED]]


# ---------------------------------------------------------------- values


def _enabled(files: Sequence[_File]) -> tuple[bool, RequestOrigin]:
    for file in reversed(files):
        sandbox = file.settings.sandbox
        if sandbox.enabled is None:
            continue
        platforms = sandbox.enabled_platforms
        words = f'"sandbox": {{"enabled": {str(sandbox.enabled).lower()}}}'
        if platforms is not None:
            words = f"{words}, enabledPlatforms {', '.join(map(clean_line, platforms[:_MAX_LISTED]))}"
        origin = file.origin(RequestField.FILESYSTEM, words, "sandbox", "enabled")
        return sandbox.enabled and (platforms is None or _PLATFORM in platforms), origin
    return False, RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text="no sandbox")


def _mode(arguments: Arguments, files: Sequence[_File]) -> tuple[str | None, tuple[RequestOrigin, ...]]:
    if arguments.mode is not None:
        return clean_line(arguments.mode), (typed(RequestField.APPROVAL, arguments.words),)
    for file in reversed(files):
        if mode := clean_line(file.settings.permissions.default_mode or ""):
            words = f'"defaultMode": "{mode}"'
            return mode, (file.origin(RequestField.APPROVAL, words, "permissions", "defaultMode"),)
    return None, ()


def _write_roots(files: Iterable[_File]) -> Iterator[tuple[str, _File]]:
    """Yield the entries of `sandbox.filesystem.allowWrite` of all files: lists are joined."""
    for file in files:
        for path in file.settings.sandbox.filesystem.allow_write[:_MAX_LISTED]:
            yield clean_line(path), file


def _expanded(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return posixpath.normpath(posixpath.join(posixpath.dirname(home), path[2:]))
    if path.startswith("//"):
        return posixpath.normpath(path[1:])
    return posixpath.normpath(posixpath.join(cwd, path))


# ---------------------------------------------------------------- roles of sub-agents


_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\s*\n", re.DOTALL)


def _read_role(thread: Thread, home: str, root: Path) -> Requested | None:
    """Return the permission mode in the file of a sub-agent's role: of the project, or else of the user."""
    if thread.file is None or thread.created_at is None or not thread.cwd:
        return None
    if (wanted := metadata_of(Path(thread.file.path)).agent_type) is None:
        return None
    folders = (posixpath.join(thread.cwd, ".claude/agents"), posixpath.join(home, "agents"))
    for path in (path for folder in folders for path in _listed(folder, "*.md", root)):
        try:
            place = root / path.lstrip("/")
            modified = place.stat().st_mtime
            text = read_bytes(place, _MAX_FILE_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        name, found = parse_role(text, clean_line(path))
        if name == wanted:
            return replace(found, files_written=modified) if found else None
    return None


def parse_role(text: str, file: str) -> tuple[str | None, Requested | None]:
    """Return a role's name by the text of its file, and what it asks for if it sets a permission mode."""
    head = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    values: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(head[1].split("\n") if head else (), 2):
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip()] = (clean_line(value).strip("'\""), number)
    name, _ = values.get("name", (None, 0))
    mode, at = values.get("permissionMode", ("", 0))
    if not mode:
        return name, None
    origin = RequestOrigin(RequestField.APPROVAL, RequestLayer.ROLE, f"permissionMode: {mode}", file, at)
    return name, Requested(policy=Policy(approval=mode), origins=(origin,))
