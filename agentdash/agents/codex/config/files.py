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
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import msgspec

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

    def line(self, *keys: str) -> int | None:
        """Return the line on which the statement that sets a key begins, or None."""
        return find_line(self.text, keys)


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
    def managed_config(self) -> ConfigFile | None:
        """`managed_config.toml`."""
        return next((file for file in self.managed if file.path.endswith("managed_config.toml")), None)

    @property
    def newest(self) -> float:
        """When the newest of them was written (unix seconds)."""
        return max((file.modified for file in (*self.files, *self.managed)), default=0.0)

    def written_after(self, at: float) -> tuple[str, ...]:
        """Return the files that were written after a time (unix seconds)."""
        return tuple(file.path for file in self.all if file.modified > at)

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

    def read(path: str, layer: RequestLayer) -> ConfigFile | None:
        return read_config(root / path.lstrip("/"), layer, path)

    ignores_user = arguments.last("ignore-user-config") is not None
    user = None if ignores_user else read(posixpath.join(home, "config.toml"), RequestLayer.USER)
    trust = _trust(user, cwd, root)
    projects = [
        file
        for folder in _project_folders(cwd, root)
        if posixpath.join(folder, ".codex") != posixpath.normpath(home)
        and (file := read(posixpath.join(folder, ".codex/config.toml"), RequestLayer.PROJECT)) is not None
    ]
    named = arguments.last("profile")
    profile = None
    if named is not None and "/" not in named.value:
        profile = read(posixpath.join(home, f"{named.value}.config.toml"), RequestLayer.PROFILE)
    managed = (
        read(posixpath.join(ETC, name), RequestLayer.MANAGED)
        for name in ("managed_config.toml", "requirements.toml")
    )
    system = read(posixpath.join(ETC, "config.toml"), RequestLayer.SYSTEM)
    counting = (system, user, profile, *(projects if trust == "trusted" else ()))
    return ConfigLayers(
        files=tuple(file for file in counting if file is not None),
        managed=tuple(file for file in managed if file is not None),
        disabled=() if trust == "trusted" else tuple(projects),
        trust=trust,
    )


def directory(arguments: Arguments, cwd: str) -> str:
    """Return the workspace of a Codex that was started in a directory."""
    option = arguments.last("cd")
    return posixpath.normpath(posixpath.join(cwd, option.value)) if option and option.value else cwd


def _trust(user: ConfigFile | None, cwd: str, root: Path) -> Trust | None:
    if user is None:
        return None
    top = _repository(cwd, root)
    for folder in dict.fromkeys((cwd, top, *_main_repository(top, root))):
        level = user.get("projects", folder, "trust_level")
        if level in ("trusted", "untrusted"):
            return "trusted" if level == "trusted" else "untrusted"
    return None


def _main_repository(top: str, root: Path) -> Iterator[str]:
    """Yield the repository that a linked worktree belongs to: its `.git` is a file that names it."""
    try:
        text = read_text(root / top.lstrip("/") / ".git")
    except (OSError, UnicodeDecodeError):
        return
    named = text.partition("gitdir:")[2].strip()
    main = named.partition("/.git/worktrees/")
    if main[1] and main[0].startswith("/"):
        yield posixpath.normpath(main[0])


def _repository(cwd: str, root: Path) -> str:
    """Return the root of the repository of a directory; the directory itself without one."""
    for folder in _parents(cwd):
        with suppress(OSError):  # a recorded directory may have a name that no file can have
            if (root / folder.lstrip("/") / ".git").exists():
                return folder
    return cwd


def _project_folders(cwd: str, root: Path) -> Sequence[str]:
    """Return the directories from the root of the repository to the working directory."""
    top = _repository(cwd, root)
    folders = [
        folder for folder in _parents(cwd) if folder == top or folder.startswith(top.rstrip("/") + "/")
    ]
    return folders[::-1]


def _parents(cwd: str) -> list[str]:
    """Return a directory and those above it."""
    folder = PurePosixPath(posixpath.normpath(cwd))
    return [str(each) for each in (folder, *folder.parents)][:_MAX_PARENTS]


def trusted_folders(home: str, cwd: str, is_wanted: Callable[[str], bool]) -> list[str]:
    """Return the directories of a trusted project, its root first, whose `.codex` counts and is wanted."""
    wanted = [folder for folder in _project_folders(cwd, Path("/")) if is_wanted(folder)]
    if not wanted:
        return []
    user = read_config(Path(home, "config.toml"), RequestLayer.USER)
    return wanted if _trust(user, cwd, Path("/")) == "trusted" else []


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
    """The settings of one Codex, by layer, the weakest first.

    Args:
        files: its configuration files, the weakest first; managed ones are left out here.
        managed: `managed_config.toml`, if it is to count.
    """

    def __init__(
        self, arguments: Arguments, files: Sequence[ConfigFile], managed: ConfigFile | None = None
    ) -> None:
        self.arguments = arguments
        self.typed = _typed_settings(arguments)
        """What options other than `-c` set."""
        self._overrides = list(arguments.overrides())
        above = () if managed is None else (managed,)
        self._layers: list[Callable[[Keys], Setting | None]] = [
            self.typed.get,
            *(partial(setting_of, file) for file in above),
            self._of_overrides,
            *(partial(setting_of, file) for file in reversed(files)),
        ]
        """Look a key up in one layer; the strongest first."""

    def find(self, *keys: str) -> Setting | None:
        """Return the strongest setting of a key."""
        return next((found for layer in self._layers if (found := layer(keys)) is not None), None)

    def look(self, *keys: str) -> Any:
        """Return the strongest value of a key."""
        found = self.find(*keys)
        return None if found is None else found.value

    def find_any(self, *either: Keys) -> tuple[Keys, Setting] | None:
        """Return the strongest value of keys that exclude each other, with its key; of one layer, the one
        that is named first here."""
        for layer in self._layers:
            for keys in either:
                found = layer(keys)
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
        for one in reversed(self._overrides):
            rest = keys[len(one.keys) :]
            found = look_up({"": one.value}, ("", *rest)) if keys == (*one.keys, *rest) else None
            if found is not None:
                return Setting(found, RequestLayer.ARGV, cap(one.text))
        return None


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
    return Setting(value, file.layer, statement(keys, value), file.path, file.line(*keys))


def statement(keys: Keys, value: Any) -> str:
    """Return a setting on one line, as in a configuration file."""
    if isinstance(value, Mapping):
        return f"[{'.'.join(keys)}]"
    return cap(f"{'.'.join(keys)} = {json.dumps(value, ensure_ascii=False, default=str)}")


def cap(text: str) -> str:
    """Return a text from a file or an argument on one line, shortened."""
    return clean_line(text, _MAX_TEXT_CHARS)
