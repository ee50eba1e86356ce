"""What OpenCode was asked for: its permission rules.

It has no sandbox (1.18.33): its rules decide what it asks about, and keep no command from doing anything. The
rules of all files are merged, key by key: global, `OPENCODE_CONFIG`, project from its root down to the
working directory, `.opencode`, `OPENCODE_CONFIG_CONTENT`, `OPENCODE_PERMISSION`; a later one outranks an
earlier one. `opencode debug config` prints the result.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.adapter import RequestReader
from agentdash.agents.json_comments import without_comments
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.process import Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_PARENTS: Final = 40
_MAX_WORDS_CHARS: Final = 200
_CLOCK_TOLERANCE_S: Final = 1.0
"""A file that was written so shortly after a process began was read by it, too."""
_GLOBAL_NAMES: Final = ("config.json", "opencode.json", "opencode.jsonc")
_PROJECT_NAMES: Final = ("opencode.json", "opencode.jsonc")
_ACTIONS: Final = ("allow", "ask", "deny")
_AUTO: Final = "--auto"
"""Allows what no rule denies."""


class _Config(msgspec.Struct):
    permission: Any = None


_decoder: Final = JsonDecoder(_Config)


class RulesSource(msgspec.Struct, frozen=True):
    """One place that sets permission rules."""

    layer: RequestLayer
    rules: dict[str, Any]
    """`{"bash": "ask"}`, `{"bash": {"git *": "allow"}}`."""
    path: str | None = None
    modified: float = 0.0
    line: int | None = None
    problem: bool = False
    """Whether it is there and cannot be read or parsed."""

    def origin(self) -> RequestOrigin:
        """Return it as the origin of the approval policy."""
        text = f'"permission": {msgspec.json.encode(self.rules).decode()}'
        return RequestOrigin(
            field=RequestField.APPROVAL,
            layer=self.layer,
            text=clean_line(text, _MAX_WORDS_CHARS),
            file=self.path,
            line=self.line,
        )


class OpencodeRequests(RequestReader):
    """What an `opencode` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return the rules in force for a process; None where its environment cannot be read."""
        del thread
        if process.env is None or not process.cwd:
            return None
        sources = list(rules_sources(process.env, process.cwd, root))
        found = requested(process.argv, sources)
        started = process.key.started
        is_newer = (found.files_written or 0.0) > started + _CLOCK_TOLERANCE_S
        return msgspec.structs.replace(
            found, since=started, read_at=at if is_newer else None, is_fixed=process.once
        )


def requested(argv: Sequence[str], sources: Sequence[RulesSource]) -> Requested:
    """Return what arguments and rules ask for.

    Args:
        sources: the places that set rules, the weakest first.
    """
    text = "OpenCode has no sandbox: permissions are questions, no walls"
    origins = [RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text=text)]
    approval: str | None = None
    if not any(source.problem for source in sources):
        approval = rules_in_words(merged(sources))
        origins += [source.origin() for source in reversed(sources) if source.rules]
    if _AUTO in argv[: argv.index("--")] if "--" in argv else _AUTO in argv:
        approval = f"{_AUTO}, {approval}" if approval else _AUTO
        typed = RequestOrigin(field=RequestField.APPROVAL, layer=RequestLayer.ARGV, text=_AUTO)
        origins.insert(1, typed)
    policy = Policy(Filesystem.UNRESTRICTED, Network.ON, approval=approval, enforced_by="nobody")
    return Requested(
        policy=policy,
        origins=tuple(origins),
        files_written=max((source.modified for source in sources), default=None),
        scope="worker",
    )


def merged(sources: Sequence[RulesSource]) -> dict[str, Any]:
    """Return the rules of all places: of the same key the later one counts, patterns are joined."""
    rules: dict[str, Any] = {}
    for source in sources:
        for name, value in source.rules.items():
            before = rules.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                rules[name] = before | value
            else:
                rules[name] = value
    return rules


def rules_in_words(rules: Mapping[str, Any]) -> str | None:
    """Return rules on one line: `bash ask, edit deny`; those with patterns by their number. None without
    rules."""
    words = []
    for name, value in sorted(rules.items()):
        if value in _ACTIONS:
            words.append(f"{clean_line(name, 40)} {value}")
        elif isinstance(value, dict):
            words.append(f"{clean_line(name, 40)} by {len(value)} pattern{'s' * (len(value) != 1)}")
    return ", ".join(words) or None


# ---------------------------------------------------------------- places


def rules_sources(env: Mapping[str, str], cwd: str, root: Path) -> Iterator[RulesSource]:
    """Yield the places that are there, the weakest first.

    Args:
        root: where its file system is mounted.
    """
    config = env.get("XDG_CONFIG_HOME") or posixpath.join(env.get("HOME", "/"), ".config")
    for name in _GLOBAL_NAMES:
        yield from _file(RequestLayer.USER, posixpath.join(config, "opencode", name), root)
    if named := env.get("OPENCODE_CONFIG"):
        yield from _file(RequestLayer.ENVIRONMENT, posixpath.join(cwd, named), root)
    directories = _project_directories(cwd, root)
    for directory in directories:
        for name in _PROJECT_NAMES:
            yield from _file(RequestLayer.PROJECT, posixpath.join(directory, name), root)
    for directory in directories:
        for name in _PROJECT_NAMES:
            yield from _file(RequestLayer.PROJECT, posixpath.join(directory, ".opencode", name), root)
    if content := env.get("OPENCODE_CONFIG_CONTENT"):
        yield _parsed(RequestLayer.ENVIRONMENT, content)
    if content := env.get("OPENCODE_PERMISSION"):
        yield _parsed(RequestLayer.ENVIRONMENT, f'{{"permission": {content}}}')


def _project_directories(cwd: str, root: Path) -> list[str]:
    """Return the directories from the root of the repository down to the working directory."""
    found: list[str] = []
    directory = cwd
    for _ in range(_MAX_PARENTS):
        found.insert(0, directory)
        try:
            is_top = (root / directory.lstrip("/") / ".git").exists()
        except (OSError, ValueError):
            is_top = True
        above = posixpath.dirname(directory)
        if is_top or above == directory:
            return found
        directory = above
    return found


def _file(layer: RequestLayer, path: str, root: Path) -> Iterator[RulesSource]:
    place, shown = root / path.lstrip("/"), clean_line(path)
    try:
        modified = place.stat().st_mtime
        text = read_bytes(place, _MAX_FILE_BYTES).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError):
        yield RulesSource(layer=layer, rules={}, path=shown, problem=True)
        return
    yield _parsed(layer, text, path=shown, modified=modified)


def _parsed(layer: RequestLayer, text: str, *, path: str | None = None, modified: float = 0.0) -> RulesSource:
    """Parse the text of a configuration. Never raises."""
    rules: dict[str, Any] = {}
    problem = False
    try:
        permission = _decoder.decode(without_comments(text)).permission if text.strip() else None
    except (msgspec.DecodeError, RecursionError):
        permission, problem = None, True
    if isinstance(permission, str):
        rules = {"*": permission}
    elif isinstance(permission, dict):
        rules = {str(name): value for name, value in permission.items()}
    at = text.find('"permission"')
    line = text.count("\n", 0, at) + 1 if path and at >= 0 else None
    return RulesSource(layer=layer, rules=rules, path=path, modified=modified, line=line, problem=problem)
