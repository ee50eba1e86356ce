"""Find the configuration files of one Codex, and put its request together.

| file | layer |
|---|---|
| `/etc/codex/config.toml` | system config |
| `$CODEX_HOME/config.toml` | user config |
| `$CODEX_HOME/NAME.config.toml` | profile (`-p NAME`, 0.134+) |
| `.codex/config.toml`, from the project's root to the working directory | project config, if it is trusted |
| `/etc/codex/managed_config.toml`, `/etc/codex/requirements.toml` | managed |

A project is trusted by `[projects."DIR"] trust_level = "trusted"` in the user's file, for the working
directory or the root of its repository. Managed settings from the cloud, or of a device, cannot be read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import Arguments, Option
from agentdash.agents.codex.config.files import ConfigFile, read_config
from agentdash.agents.codex.config.managed import constrain
from agentdash.agents.codex.config.precedence import Asked, ask
from agentdash.agents.codex.config.stack import Stack, dropped_options
from agentdash.agents.codex.config.versions import Rules
from agentdash.files import read_text
from agentdash.model.requested import Requested, RequestLayer, RequestOrigin

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
    """Of the project; None where it is not decided."""

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
        return not (self.problems or is_project_open or has_markers)

    @property
    def problems(self) -> tuple[ConfigFile, ...]:
        """Those that could not be read."""
        return tuple(file for file in self.all if file.problem)


def read_layers(
    home: str, cwd: str, arguments: Arguments, rules: Rules, *, root: Path = Path("/")
) -> ConfigLayers:
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
    if named is not None and not rules.profile_tables and "/" not in named.value:
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


def request(layers: ConfigLayers, arguments: Arguments, rules: Rules, *, cwd: str) -> tuple[Asked, Asked]:
    """Return the policy that was asked for, and the one that Codex makes of it."""
    decided = layers.trust is not None
    wanted = ask(Stack(arguments, layers.files, rules), cwd=cwd, decided=decided)
    stack = Stack(arguments, layers.files, rules, managed=layers.managed_config, honoured=True)
    given = constrain(ask(stack, cwd=cwd, decided=decided), stack, layers.managed, cwd=cwd)
    return wanted, _with_dropped_options(wanted, given, dropped_options(arguments, rules))


def _with_dropped_options(wanted: Asked, given: Asked, dropped: Sequence[Option]) -> Asked:
    """Return a policy of which the origins name the options that this version leaves out."""
    origins = {origin.field: origin for origin in given.origins}
    for origin in wanted.origins:
        options = [option.text for option in dropped if option.text in origin.text]
        if origin.layer is not RequestLayer.ARGV or not options or origins.get(origin.field) == origin:
            continue
        why = f"this version drops {', '.join(options)} without a word"
        other = origins.get(origin.field)
        if other is None:
            origins[origin.field] = RequestOrigin(origin.field, RequestLayer.DEFAULT, why)
        else:
            origins[origin.field] = replace(other, text=f"{other.text} ({why})")
    return replace(given, origins=tuple(origins.values()))


def requested(wanted: Asked, given: Asked | None) -> Requested:
    """Return a request as the model has it: only what was asked for, not what is the default."""
    kept = tuple(origin for origin in wanted.origins if origin.layer is not RequestLayer.DEFAULT)
    result = given if given is not None and given.refusal is None else None
    return Requested(
        policy=wanted.policy,
        origins=kept,
        given=result.policy if result else None,
        given_origins=result.origins if result else (),
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
        if level == "trusted":
            return "trusted"
        if level == "untrusted":
            return "untrusted"
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
    return next((folder for folder in _parents(cwd) if (root / folder.lstrip("/") / ".git").exists()), cwd)


def _project_folders(cwd: str, root: Path) -> Sequence[str]:
    """Return the directories from the root of the repository to the working directory."""
    top = _repository(cwd, root)
    folders = [
        folder for folder in _parents(cwd) if folder == top or folder.startswith(top.rstrip("/") + "/")
    ]
    return folders[::-1]


def _parents(cwd: str) -> Iterator[str]:
    folder = posixpath.normpath(cwd)
    for _ in range(_MAX_PARENTS):
        yield folder
        if folder == "/":
            return
        folder = posixpath.dirname(folder)


def trusted_folders(home: str, cwd: str, is_wanted: Callable[[str], bool]) -> list[str]:
    """Return the directories of a trusted project, its root first, whose `.codex` counts and is wanted."""
    wanted = [folder for folder in _project_folders(cwd, Path("/")) if is_wanted(folder)]
    if not wanted:
        return []
    user = read_config(Path(home, "config.toml"), RequestLayer.USER)
    return wanted if _trust(user, cwd, Path("/")) == "trusted" else []
