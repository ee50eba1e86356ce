"""Start other programs: only such that no worker can have put in place, and with the environment they need.

agentdash starts programs by itself, while sandboxed workers write to their workspaces and to `/tmp`. So a
directory of the PATH is left out where one may put a `git` of its own: relative ones, what lies below the
working directory, a virtual environment or `node_modules`, and what everyone may write. Variables are passed
on by name: no program gets keys of models and clouds.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

_ALWAYS: Final = ("HOME", "LANG", "LC_*", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_*")
"""Variables for every program, beside the PATH."""
_DESKTOP: Final = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
_CONTAINERS: Final = ("CONTAINER_*", "CONTAINERS_*", "DOCKER_*", "PODMAN_*", "SSH_AUTH_SOCK")
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "docker": _CONTAINERS,
    "git": (),
    "podman": _CONTAINERS,
    "ssh": ("KRB5*", "SSH_*", *_DESKTOP),
    "tmux": ("TMUX", "TMUX_PANE"),
}
"""The variables that each program needs beside those. A program that is not listed here was named by the user
(`--carrier`): what it needs is not known, and it gets everything."""


def environment(program: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a program, by its name."""
    is_wanted = _wanted(program).match
    return {name: value for name, value in environ.items() if is_wanted(name)} | {"PATH": safe_path(environ)}


@cache
def _wanted(program: str) -> re.Pattern[str]:
    """Return a pattern of the names of variables that a program gets."""
    needs = _NEEDS.get(program)
    return re.compile("|".join(map(translate, ("*",) if needs is None else (*_ALWAYS, *needs))))


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of a program on the PATH; a name with a `/` is returned as it is.

    Raises:
        FileNotFoundError: there is none, or only where a worker may have put it.
    """
    if "/" in name:
        return name
    if (found := shutil.which(name, path=safe_path(environ) or os.devnull)) is not None:
        return found
    elsewhere = shutil.which(name, path=environ.get("PATH"))
    why = f"only {elsewhere}, which a worker may have put there" if elsewhere else "not installed"
    raise FileNotFoundError(errno.ENOENT, why, name)


def is_installed(name: str) -> bool:
    """Return whether a program is found."""
    try:
        return bool(find_program(name))
    except FileNotFoundError:
        return False


def safe_path(environ: Mapping[str, str] = os.environ) -> str:
    """Return the PATH without the directories in which a worker may put programs."""
    workspaces = [environ["VIRTUAL_ENV"]] if environ.get("VIRTUAL_ENV") else []
    with suppress(OSError):  # the working directory may be gone
        here = Path.cwd()
        if not Path(environ.get("HOME") or "/").is_relative_to(here):  # there `~/.local/bin` counts
            workspaces.append(str(here))
    return _safe_path(environ.get("PATH", os.defpath), tuple(workspaces))


@lru_cache(maxsize=8)
def _safe_path(path: str, workspaces: tuple[str, ...]) -> str:
    folders = [Path(each) for each in path.split(os.pathsep) if each]
    return os.pathsep.join(str(each) for each in folders if not _workers_may_write(each, workspaces))


def _workers_may_write(folder: Path, workspaces: tuple[str, ...]) -> bool:
    if not folder.is_absolute() or "node_modules" in folder.parts:
        return True
    real = folder.resolve()
    if any(place.is_relative_to(workspace) for workspace in workspaces for place in (folder, real)):
        return True
    try:
        return any(place.stat().st_mode & stat.S_IWOTH for place in (real, *real.parents))
    except OSError:
        return True
