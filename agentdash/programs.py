"""Start other programs: only such that no worker can have put in place, and with the environment they need.

agentdash starts programs by itself, while sandboxed workers write to their workspaces and to `/tmp`. So a
directory of the PATH is left out where one may put a `git` of its own: relative ones, what lies below the
working directory, a virtual environment or `node_modules`, and what everyone may write. Variables are passed
on by name: keys for models and clouds are nobody's business but their programs'.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_ALWAYS: Final = ("HOME", "LANG", "LC_*", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_*")
"""Variables for every program, beside the PATH."""
TMUX: Final = ("TMUX", "TMUX_PANE")
"""By these tmux knows the client that agentdash runs in."""
SSH: Final = ("SSH_*", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "KRB5*")
CONTAINERS: Final = ("DOCKER_*", "CONTAINER_*", "CONTAINERS_*", "PODMAN_*", "SSH_AUTH_SOCK")
DESKTOP: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")


def environment(*names: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a program.

    Args:
        names: variables that it needs beside the usual ones; `*` stands for the rest of a name.
    """
    wanted = (*_ALWAYS, *names)
    kept = {name: value for name, value in environ.items() if any(fnmatchcase(name, each) for each in wanted)}
    return {**kept, "PATH": safe_path(environ)}


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
    why = f"only {elsewhere}, which a worker may have put there" if elsewhere else os.strerror(errno.ENOENT)
    raise FileNotFoundError(errno.ENOENT, why, name)


def safe_path(environ: Mapping[str, str] = os.environ) -> str:
    """Return the PATH without the directories in which a worker may put programs."""
    here, home = Path.cwd(), Path(environ.get("HOME") or "/")
    workspaces = [] if home.is_relative_to(here) else [here]  # `~/.local/bin` counts, also in the home
    if environ.get("VIRTUAL_ENV"):
        workspaces.append(Path(environ["VIRTUAL_ENV"]))
    folders = (Path(each) for each in environ.get("PATH", os.defpath).split(os.pathsep) if each)
    return os.pathsep.join(str(folder) for folder in folders if not _workers_may_write(folder, workspaces))


def _workers_may_write(folder: Path, workspaces: list[Path]) -> bool:
    if not folder.is_absolute() or "node_modules" in folder.parts:
        return True
    real = folder.resolve()
    if any(place.is_relative_to(workspace) for workspace in workspaces for place in (folder, real)):
        return True
    try:
        return any(place.stat().st_mode & stat.S_IWOTH for place in (real, *real.parents))
    except OSError:
        return True
