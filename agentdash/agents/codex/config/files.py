"""Find and read the configuration files of one Codex: only what concerns the sandbox is kept, with the lines
of its keys.

| file | layer |
|---|---|
| `/etc/codex/config.toml` | system config |
| `$CODEX_HOME/config.toml` | user config |
| `$CODEX_HOME/NAME.config.toml` | profile (`-p NAME`) |
| `.codex/config.toml`, from the project's root to the working directory | project config, if it is trusted |
| `/etc/codex/managed_config.toml`, `/etc/codex/requirements.toml` | managed |

A project is trusted by `[projects."DIR"] trust_level = "trusted"` in the user's file, for the working
directory or the root of its repository. Managed settings from the cloud, or of a device, cannot be read.
Values of other keys (providers, MCP servers, tokens) are dropped as soon as a file is parsed. `auth.json` is
never opened.
"""

from __future__ import annotations

import json
import posixpath
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import Arguments
from agentdash.files import read_text
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

KEPT: Final = frozenset(
    (
        *("sandbox_mode", "sandbox_workspace_write", "approval_policy", "approvals_reviewer"),
        *("default_permissions", "profile", "profiles", "projects", "project_root_markers"),
        *("agents", "features", "allowed_sandbox_modes", "allowed_permission_profiles"),
        "allowed_approval_policies",
    )
)
"""Top-level keys that are kept: all that the rules look up."""
UNREAD: Final = (
    *("allowed_approvals_reviewers", "experimental_network", "remote_sandbox_config", "features"),
)
"""Keys of `requirements.toml` that decide as well, and whose rules are not known here."""
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
    problem: str | None = None
    """Why it could not be read, or is not understood."""
    text: str = ""
    """Its text, to find lines in; never shown."""

    def get(self, *keys: str) -> Any:
        """Return the value at a path of keys, or None."""
        return look_up(self.values, keys)


def read_config(path: Path, layer: RequestLayer, name: str | None = None) -> ConfigFile | None:
    """Read one file, or return None if it does not exist. Never raises.

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
        tomllib.TOMLDecodeError: it is not TOML.
        RecursionError: it is nested too deeply.
    """
    values = tomllib.loads(text)
    unread = next((key for key in UNREAD if key in values and layer is RequestLayer.MANAGED), None)
    return ConfigFile(
        layer=layer,
        path=path,
        modified=modified,
        values={key: value for key, value in values.items() if key in KEPT},
        problem=None if unread is None else f"{unread} is not understood",
        text=text,
    )


def look_up(values: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value at a path of keys in nested tables, or None."""
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


# ---------------------------------------------------------------- which files count

ETC: Final = "/etc/codex"
_MAX_PARENTS: Final = 40
"""Directories above the working directory in which a repository is looked for."""
Trust = Literal["trusted", "untrusted"]


class ConfigLayers(msgspec.Struct, frozen=True):
    """The configuration files of one Codex."""

    files: tuple[ConfigFile, ...] = ()
    """Those that count, the weakest first; without managed ones."""
    managed: tuple[ConfigFile, ...] = ()
    """`managed_config.toml` and `requirements.toml`, as far as they exist."""
    disabled: tuple[ConfigFile, ...] = ()
    """Files of a project that is not trusted: they do not count."""
    trust: Trust | None = None
    """Of the project; None if it is not decided."""

    @property
    def all(self) -> tuple[ConfigFile, ...]:
        """All files, the weakest first."""
        return (*self.files, *self.disabled, *self.managed)

    @property
    def are_certain(self) -> bool:
        """Whether it is known which files count: all were read, and the trust of a project that has one, or
        where its root is, does not depend on more."""
        is_project_open = bool(self.disabled) and self.trust is None
        has_markers = any(file.get("project_root_markers") is not None for file in self.files)
        return not (is_project_open or has_markers or any(file.problem for file in self.all))


def read_layers(home: str, cwd: str, arguments: Arguments, *, root: Path = Path("/")) -> ConfigLayers:
    """Read the configuration files of a Codex. Never raises.

    Args:
        root: where its file system is mounted: `/proc/PID/root` of a process in another mount namespace.
    """

    def read(layer: RequestLayer, *paths: str) -> list[ConfigFile]:
        found = [read_config(root / path.lstrip("/"), layer, path) for path in paths]
        return [file for file in found if file is not None]

    user = [] if arguments.last("ignore-user-config") else read(RequestLayer.USER, f"{home}/config.toml")
    folders = _project_folders(cwd, root)
    trust = _trust(user[0], folders, root) if user else None
    places = [f"{folder.rstrip('/')}/.codex" for folder in folders]
    own = posixpath.normpath(home)
    project = read(RequestLayer.PROJECT, *(f"{place}/config.toml" for place in places if place != own))
    named = arguments.last("profile")
    profile = []
    if named is not None and "/" not in named.value:
        profile = read(RequestLayer.PROFILE, f"{home}/{named.value}.config.toml")
    system = read(RequestLayer.SYSTEM, f"{ETC}/config.toml")
    is_trusted = trust == "trusted"
    return ConfigLayers(
        files=(*system, *user, *profile, *(project if is_trusted else ())),
        managed=tuple(read(RequestLayer.MANAGED, f"{ETC}/managed_config.toml", f"{ETC}/requirements.toml")),
        disabled=() if is_trusted else tuple(project),
        trust=trust,
    )


def directory(arguments: Arguments, cwd: str) -> str:
    """Return the workspace of a Codex that was started in a directory."""
    option = arguments.last("cd")
    return posixpath.normpath(posixpath.join(cwd, option.value)) if option and option.value else cwd


def trusted_folders(home: str, cwd: str, is_wanted: Callable[[str], bool]) -> list[str]:
    """Return the directories of a trusted project, its root first, whose `.codex` counts and is wanted."""
    folders = _project_folders(cwd, Path("/"))
    wanted = list(filter(is_wanted, folders))
    user = read_config(Path(home, "config.toml"), RequestLayer.USER) if wanted else None
    return wanted if user is not None and _trust(user, folders, Path("/")) == "trusted" else []


def _project_folders(cwd: str, root: Path) -> list[str]:
    """Return the directories from the root of the repository to the working directory; that alone without a
    repository."""
    folder = PurePosixPath(posixpath.normpath(cwd))
    above = [str(each) for each in (folder, *folder.parents)][:_MAX_PARENTS]
    for number, each in enumerate(above):
        with suppress(OSError):  # a recorded directory may have a name that no file can have
            if (root / each.lstrip("/") / ".git").exists():
                return above[number::-1]
    return above[:1]


def _trust(user: ConfigFile, folders: Sequence[str], root: Path) -> Trust | None:
    for folder in (folders[-1], folders[0], _main_repository(folders[0], root)):
        level = user.get("projects", folder, "trust_level")
        if level in ("trusted", "untrusted"):
            return "trusted" if level == "trusted" else "untrusted"
    return None


def _main_repository(top: str, root: Path) -> str:
    """Return the repository that a linked worktree belongs to, whose `.git` is a file that names it; an empty
    path for others."""
    try:
        text = read_text(root / top.lstrip("/") / ".git")
    except (OSError, UnicodeDecodeError):
        return ""
    main, found, _ = text.partition("gitdir:")[2].strip().partition("/.git/worktrees/")
    return posixpath.normpath(main) if found and main.startswith("/") else ""


# ---------------------------------------------------------------- settings by layer: files and arguments


_MAX_TEXT_CHARS: Final = 200
Keys = tuple[str, ...]


class Setting(msgspec.Struct, frozen=True):
    """A value, and where it is set."""

    value: Any
    layer: RequestLayer
    text: str
    file: str | None = None
    line: int | None = None

    def origin(self, field: RequestField) -> RequestOrigin:
        """Return it as the origin of a part of a policy."""
        return RequestOrigin(field=field, layer=self.layer, text=self.text, file=self.file, line=self.line)


class Stack:
    """The settings of one Codex, by layer.

    Args:
        files: its configuration files, the weakest first; managed ones are left out here.
        managed: `managed_config.toml`, if it is to count.
    """

    def __init__(
        self, arguments: Arguments, files: Sequence[ConfigFile], managed: Sequence[ConfigFile] = ()
    ) -> None:
        self.arguments = arguments
        self.typed = _typed_settings(arguments)
        """What options other than `-c` set."""
        self._overrides = list(_overrides(arguments))[::-1]
        self._files = files[::-1]
        self._managed = [file for file in managed if file.path.endswith("managed_config.toml")]

    def _settings(self, keys: Keys) -> Iterator[Setting | None]:
        """Yield the setting of a key in each layer, the strongest first."""
        yield self.typed.get(keys)
        yield from (setting_of(file, keys) for file in self._managed)
        yield self._of_overrides(keys)
        yield from (setting_of(file, keys) for file in self._files)

    def find(self, *keys: str) -> Setting | None:
        """Return the strongest setting of a key."""
        return next((found for found in self._settings(keys) if found is not None), None)

    def look(self, *keys: str) -> Any:
        """Return the strongest value of a key."""
        found = self.find(*keys)
        return None if found is None else found.value

    def find_any(self, *either: Keys) -> tuple[Keys, Setting] | None:
        """Return the strongest value of keys that exclude each other, with its key; of one layer, the one
        that is named first here."""
        for layer in zip(*map(self._settings, either), strict=True):
            for keys, found in zip(either, layer, strict=True):
                if found is not None and not isinstance(found.value, Mapping):
                    return keys, found
        return None

    def refusal(self) -> str | None:
        """Return why Codex does not start with these profiles: `[profiles.NAME]` counted through 0.133."""
        if self.find("profile") is not None:
            return "`profile` selects no table any more: use -p NAME with NAME.config.toml"
        named = self.arguments.last("profile")
        if named is not None and self.find("profiles", named.value) is not None:
            return f"-p {cap(named.value)} beside [profiles.{cap(named.value)}]: move it to a file of its own"
        return None

    def _of_overrides(self, keys: Keys) -> Setting | None:
        """Look a key up in all `-c`: they are one layer, and the last one that sets it counts."""
        for set_keys, setting in self._overrides:
            rest = keys[len(set_keys) :]
            value = look_up({"": setting.value}, ("", *rest)) if keys == (*set_keys, *rest) else None
            if value is not None:
                return replace(setting, value=value)
        return None


def _overrides(arguments: Arguments) -> Iterator[tuple[Keys, Setting]]:
    """Yield what `-c`, `--enable` and `--disable` set (the same as `-c features.NAME=true`), in their
    order."""
    for option in arguments.options:
        text = cap(option.text)
        if option.name in ("enable", "disable"):
            yield ("features", option.value), Setting(option.name == "enable", RequestLayer.ARGV, text)
        key, equals, value = option.value.partition("=")
        if option.name == "config" and equals:
            keys = tuple(part.strip().strip('"') for part in key.split("."))
            yield keys, Setting(_toml_value(value), RequestLayer.ARGV, text)


def _toml_value(text: str) -> Any:
    """Return a value as Codex reads it: TOML, or else the words themselves."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip().strip("\"'")


_TYPED: Final[dict[str, dict[str, str | None]]] = {
    "sandbox": {"sandbox_mode": None},
    "full-auto": {"sandbox_mode": "workspace-write", "approval_policy": "on-request"},
    "approval": {"approval_policy": None},
    "bypass": {"sandbox_mode": "danger-full-access", "approval_policy": "never"},
    "approve-for-me": {
        "sandbox_mode": "workspace-write",
        "approval_policy": "on-request",
        "approvals_reviewer": "auto_review",
    },
}
"""Options and the settings that they stand for, the weakest first; None: the value of the option."""


def _typed_settings(arguments: Arguments) -> dict[Keys, Setting]:
    given = [(option, _TYPED[name]) for name in _TYPED if (option := arguments.last(name)) is not None]
    return {
        (key,): Setting(option.value if value is None else value, RequestLayer.ARGV, cap(option.text))
        for option, settings in given
        for key, value in settings.items()
    }


def setting_of(file: ConfigFile, keys: Keys) -> Setting | None:
    """Return the setting of a key in a file, or None."""
    value = file.get(*keys)
    if value is None:
        return None
    name = ".".join(keys)
    written = f"{name} = {json.dumps(value, ensure_ascii=False, default=str)}"
    text = f"[{name}]" if isinstance(value, Mapping) else cap(written)
    return Setting(value, file.layer, text, file.path, find_line(file.text, keys))


def cap(text: str) -> str:
    """Return a text from a file or an argument on one line, shortened."""
    return clean_line(text, _MAX_TEXT_CHARS)
