"""How a command line is run on another host: by ssh, in a container, or by any other program.

Everything here comes from the command line and the configuration file of this machine.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.config import HostSettings
from agentdash.model.sanitize import clean_line
from agentdash.programs import is_installed

_DESTINATION: Final = re.compile(
    r"(?!-)(?:[^@\s:]+@)?(?!-)(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:@\[\]]+)(?::\d{1,5})?"
)
"""`[USER@]HOST[:PORT]`."""
_SSH_OPTIONS: Final = (
    *("-o", "BatchMode=yes"),  # nothing is there to answer questions
    *("-o", "ConnectTimeout=10"),
    *("-o", "ClearAllForwardings=yes"),  # a forwarded port may be taken by a session of the user already
    *("-o", "PermitLocalCommand=no"),
    *("-o", "RemoteCommand=none"),
)
"""Beside the user's configuration of ssh."""
_PATH: Final = 'PATH="$PATH:$HOME/.local/bin:/opt/homebrew/bin:/usr/local/bin"'
"""`uv`, `pipx` and `pip --user` install to the first; shells that are not interactive do not look there."""
_PANE: Final = re.compile(
    r"(?:(?:-L (?P<server>[\w.-]{1,100})|(?P<socket>/[\w./-]{1,200})) )?(?P<id>%\d{1,9})", re.ASCII
)
"""A pane of a server by its name, or by its socket."""
_ENGINES: Final = ("docker", "podman")
"""Programs that run commands in containers by `exec -i NAME`, the preferred one first."""


class CarrierError(Exception):
    """A host cannot be reached as it is given. The message is one line."""


class Carrier(NamedTuple):
    """Runs command lines on one host.

    Each program is started with the arguments before the command line, which is one argument for a shell, and
    those after it.
    """

    name: str
    settings: HostSettings
    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    terminal: tuple[str, ...] | None = None
    """In place of `before`, for a command on a terminal; None: it cannot have one."""

    @property
    def source(self) -> str:
        """Return the name of what reports whether it is reached: `host build1`, `container devbox`."""
        return clean_line(f"{'container' if self.settings.container else 'host'} {self.name}")

    def argv(self, arguments: str) -> list[str]:
        """Return what runs the agentdash there with these arguments, quoted for a shell."""
        return [*self.before, self._line(f"exec {self.settings.command} {arguments}"), *self.after]

    def attach_command(self, pane: str | None) -> str:
        """Return the shell command that shows a pane there, or a shell if it has none.

        Args:
            pane: as the agentdash there names it: foreign text, which is used only if it is a plain name.
        """
        named = _PANE.fullmatch(pane or "")
        script = []
        if named is not None:
            server = ["-L", named["server"]] if named["server"] else []
            server += ["-S", named["socket"]] if named["socket"] else []
            script = ["tmux", *server, "attach", "-t", named["id"]]
        if self.terminal is None:
            return shlex.join([*self.before, "…"])
        if self.settings.kind == "ssh":
            options = [word for word in self.before[2:] if word not in _SSH_OPTIONS and word != "--"]
            return shlex.join(["ssh", "-t", *options, *([shlex.join(script)] if script else [])])
        return shlex.join([*self.terminal[:-2], *(script or ["sh"])])

    def _line(self, script: str) -> str:
        line = f"{_PATH}; {script}"
        # ssh passes the line to the login shell, which may not be a POSIX shell
        return f"sh -c {shlex.quote(line)}" if self.settings.kind == "ssh" else line


def carrier(name: str, settings: HostSettings, ssh_config: Path | None = None) -> Carrier:
    """Return the carrier of a host.

    Raises:
        CarrierError: the settings are not valid.
    """
    match settings.kind:
        case "carrier":
            return _by_template(name, settings, settings.carrier or "")
        case "container":
            return _in_container(name, settings, settings.container or "")
        case _:
            return _by_ssh(name, settings, ssh_config)


def _by_ssh(name: str, settings: HostSettings, config: Path | None) -> Carrier:
    to = settings.ssh or name
    if _DESTINATION.fullmatch(to) is None:
        raise CarrierError(f"{to!r} is not a host: expected [USER@]HOST[:PORT]")
    options = (*(("-F", str(config)) if config else ()), *_SSH_OPTIONS)
    to = f"ssh://{to}" if ":" in to else to
    return Carrier(
        name=name,
        settings=settings,
        before=("ssh", "-T", *options, "--", to),
        terminal=("ssh", "-t", *options, "--", to),
    )


def _in_container(name: str, settings: HostSettings, container: str) -> Carrier:
    engine, _, rest = container.rpartition(":")
    if engine not in ("", *_ENGINES) or not rest or rest.startswith("-"):
        raise CarrierError(f"{container!r} is not a container")
    engine = engine or next(filter(is_installed, _ENGINES), _ENGINES[0])
    return Carrier(
        name=name,
        settings=settings,
        before=(engine, "exec", "-i", rest, "sh", "-c"),
        terminal=(engine, "exec", "-it", rest, "sh", "-c"),
    )


def _by_template(name: str, settings: HostSettings, template: str) -> Carrier:
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise CarrierError(f"{name}: the carrier {template!r} cannot be parsed: {error}") from error
    if not words:
        raise CarrierError(f"{name}: the carrier is empty")
    if words.count("{}") > 1:
        raise CarrierError(f"{name}: the carrier {template!r} has more than one {{}}")
    at = words.index("{}") if "{}" in words else None
    if at is None:
        return Carrier(name=name, settings=settings, before=(*words, "sh", "-c"))
    return Carrier(name=name, settings=settings, before=tuple(words[:at]), after=tuple(words[at + 1 :]))
