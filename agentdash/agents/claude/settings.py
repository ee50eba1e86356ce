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
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.claude.home import MAX_FILE_BYTES, ClaudeHome, listed
from agentdash.agents.claude.transcript.records import LAST_VERSION
from agentdash.agents.settings_files import SettingsFile, SettingsReader, dated, options, typed
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread
from agentdash.model.versions import stand_in

_MAX_LISTED: Final = 100
"""Entries of one list in a file."""
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


class _Sandbox(msgspec.Struct, rename="camel"):
    enabled: bool | None = None
    enabled_platforms: list[str] | None = None
    excluded_commands: list[str] = []
    filesystem: Any = None


class _Permissions(msgspec.Struct, rename="camel"):
    default_mode: str | None = None


class _Settings(msgspec.Struct):
    sandbox: _Sandbox | None = None
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


class ClaudeRequests:
    """What a `claude` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what the arguments and settings of a process ask for; None where they cannot be read."""
        home = config_directory(process)
        cwd = thread.cwd if thread is not None and thread.cwd else process.cwd
        if home is None or not cwd:
            return None
        found = read_request(parse_arguments(process.argv), home, cwd, root)
        if (process.env or {}).get(_SCRUB, "").lower() in ("1", "true", "yes", "on"):
            found = _scrubbed(found)
        version = thread.version if thread is not None else None
        found = msgspec.structs.replace(found, rules_of=stand_in(version, LAST_VERSION))
        # it may write its settings itself as it starts (2.1.197), before the session begins
        begun = (thread.created_at or 0.0) if thread is not None else 0.0
        return _since(found, process.key.started, at, read_until=begun)

    def read_role(self, process: Process, thread: Thread, root: Path, at: float) -> Requested | None:
        """Return the permission mode that the role of a sub-agent asks for, or None."""
        home = config_directory(process)
        if home is None or not thread.cwd or thread.created_at is None or thread.file is None:
            return None
        found = read_role(Path(thread.file.path), home, thread.cwd, root)
        return _since(found, thread.created_at, at) if found else None

    def read_past(self, thread: Thread, at: float) -> Requested | None:
        """Return what the settings beside the transcript of a thread ask for."""
        return request_of_transcript(Path(thread.file.path), thread, at) if thread.file else None


def request_of_transcript(path: Path, thread: Thread, at: float) -> Requested | None:
    """Return what the settings beside a transcript ask for, of a process that is not known any more.

    Args:
        path: the transcript.
        at: now (unix seconds): a file that was written after the thread began is the setting as of now.
    """
    projects = next((parent for parent in path.absolute().parents if parent.name == "projects"), None)
    if projects is None or thread.cwd is None or thread.created_at is None:
        return None
    home, root = ClaudeHome(projects.parent), Path("/")
    if thread.parent is not None:
        role = read_role(path, str(home.root), thread.cwd, root)
        return _since(role, thread.created_at, at) if role else None
    found = read_request(Arguments(), str(home.root), thread.cwd, root)
    stands_in = stand_in(thread.version, LAST_VERSION)
    found = msgspec.structs.replace(found, are_arguments_known=False, rules_of=stands_in)
    return _since(found, thread.created_at, at)


def config_directory(process: Process) -> str | None:
    """Return the configuration directory of a process; None where its environment cannot be read."""
    if process.env is None:
        return None
    if named := process.env.get("CLAUDE_CONFIG_DIR"):
        return posixpath.join(process.cwd or "/", named)
    home = process.env.get("HOME")
    return posixpath.join(home, ".claude") if home else None


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
    return Requested(
        policy=msgspec.structs.replace(policy, approval=mode),
        origins=origins,
        files_written=max((file.modified for file in files), default=None),
        excluded=tuple(
            clean_line(command)
            for file in files
            if file.settings.sandbox is not None
            for command in file.settings.sandbox.excluded_commands[:_MAX_LISTED]
        ),
        is_fixed=arguments.is_printing,
    )


def _scrubbed(found: Requested) -> Requested:
    """Return a request in an environment that turns the sandbox on: which one is not known, if the settings
    ask for none."""
    if found.policy.filesystem is not Filesystem.UNRESTRICTED:
        return found
    words = f"{_SCRUB} puts commands into a sandbox"
    origins = [origin for origin in found.origins if origin.field is not RequestField.FILESYSTEM]
    over = [o.text for o in found.origins if o not in origins and o.layer is not RequestLayer.DEFAULT]
    words = f"{words}, over {over[0]}" if over else words
    origin = RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.ENVIRONMENT, text=words)
    policy = Policy(approval=found.policy.approval)
    return msgspec.structs.replace(found, policy=policy, origins=(*origins, origin))


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
    for each in listed(root / f"{_MANAGED}/managed-settings.d".lstrip("/"), "*.json"):
        yield from SETTINGS.read(RequestLayer.MANAGED, f"{_MANAGED}/managed-settings.d/{each.name}", root)


# ---------------------------------------------------------------- values


def _enabled(files: Sequence[_File]) -> tuple[bool, RequestOrigin]:
    for file in reversed(files):
        sandbox = file.settings.sandbox
        if sandbox is None or sandbox.enabled is None:
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
        filesystem = file.settings.sandbox.filesystem if file.settings.sandbox else None
        allowed = filesystem.get("allowWrite") if isinstance(filesystem, dict) else None
        for path in allowed[:_MAX_LISTED] if isinstance(allowed, list) else ():
            if isinstance(path, str):
                yield clean_line(path), file


def _expanded(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return posixpath.normpath(posixpath.join(posixpath.dirname(home), path[2:]))
    if path.startswith("//"):
        return posixpath.normpath(path[1:])
    return posixpath.normpath(posixpath.join(cwd, path))


def _since(found: Requested, since: float, at: float, read_until: float = 0.0) -> Requested:
    return dated(found, since, at, max(since, read_until) + _CLOCK_TOLERANCE_S)


_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\s*\n", re.DOTALL)


class _Meta(msgspec.Struct, rename="camel"):
    agent_type: str | None = None


_meta: Final = JsonDecoder(_Meta)


def read_role(transcript: Path, home: str, cwd: str, root: Path) -> Requested | None:
    """Return the permission mode in the file of a sub-agent's role: of the project, or else of the user."""
    try:
        content = read_bytes(transcript.with_suffix(".meta.json"), MAX_FILE_BYTES)
        wanted = _meta.decode(content).agent_type
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return None
    directories = (posixpath.join(cwd, ".claude/agents"), posixpath.join(home, "agents"))
    for directory in directories if wanted else ():
        for place in listed(root / directory.lstrip("/"), "*.md"):
            try:
                modified = place.stat().st_mtime
                text = read_bytes(place, MAX_FILE_BYTES).decode("utf-8", "replace")
            except (OSError, ValueError):
                continue
            name, mode, line = parse_role(text)
            if name == wanted:
                file = clean_line(posixpath.join(directory, place.name))
                found = role_request(mode, file, line) if mode else None
                return msgspec.structs.replace(found, files_written=modified) if found else None
    return None


def role_request(mode: str, file: str, line: int) -> Requested:
    """Return what a role asks for that sets a permission mode."""
    origin = RequestOrigin(
        field=RequestField.APPROVAL,
        layer=RequestLayer.ROLE,
        text=f"permissionMode: {mode}",
        file=file,
        line=line,
    )
    return Requested(policy=Policy(approval=mode), origins=(origin,))


def parse_role(text: str) -> tuple[str | None, str | None, int]:
    """Return the name of a role, its permission mode, and the line that sets it, of the text of its file."""
    head = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    values: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(head[1].split("\n") if head else (), 2):
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip()] = (clean_line(value).strip("'\""), number)
    name, _ = values.get("name", (None, 0))
    mode, at = values.get("permissionMode", (None, 0))
    return name, mode or None, at
