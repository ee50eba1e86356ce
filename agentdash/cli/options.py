"""Options that several commands share, and the configuration built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click
from msgspec.structs import replace

from agentdash.cli import debug_log
from agentdash.cli.paths import FILE, FOLDER, PATH
from agentdash.config import THEMES, Config, ConfigError, HostSettings, journal_folder, load
from agentdash.files import expand_user
from agentdash.model.limits import REPLAY_SPEEDS
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_span

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from agentdash.collect.remote.carrier import Carrier

_F = TypeVar("_F", bound=Callable[..., Any])
_Names: TypeAlias = str | tuple[str, ...] | None
SHARED: Final = {
    "fleet": ("codex_home", "socket_names", "socket_paths", "no_tmux", "everything"),
    "host": ("hosts", "containers", "carriers", "ssh_config", "no_hosts"),
}
"""Options that many commands have, by group: help lists them after those of the command itself."""
_MAX_SECONDS: Final = 10 * 365 * 86_400.0
"""Ten years, the longest time of any option. Event loops and calendars fail at absurd times."""
_MAX_HOST_CHARS: Final = 100
_MAX_OFFERED_THREADS: Final = 50
"""Completions if no agentdash publishes its workers; a longer menu is useless."""


class Span(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3 only
    """A span of time: seconds, or a number with a unit (`90s`, `5m`, `8h`)."""

    name = "seconds"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds; fail if it is not a span, or out of range."""
        seconds = value if isinstance(value, float) else parse_span(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a time: give seconds, or 90s, 5m, 8h.", param, ctx)
        if not self._least <= seconds <= _MAX_SECONDS:
            self.fail(f"{value!r} is not between {self._least:g} s and ten years.", param, ctx)
        return seconds


def _host_names(_: click.Context, __: click.Parameter, prefix: str) -> list[str]:
    """Complete the name of a host of the configuration."""
    try:
        return [name for name in load({}).hosts if name.startswith(prefix)]
    except ConfigError:
        return []


def not_empty(_: click.Context, __: click.Parameter, names: _Names) -> _Names:
    """Return the names of an argument or option; fail where one is empty, as in `wait "$UNSET"`."""
    given = (names,) if isinstance(names, str) else names or ()
    if not all(name.strip() for name in given):
        raise click.BadParameter("the name is empty.")
    return names


SPEEDS: Final = {f"{speed:g}": speed for speed in REPLAY_SPEEDS}
"""The speeds of replays, and of the demo, by their names."""
SPEED_OPTION = click.option(
    "--speed",
    type=click.Choice(list(SPEEDS)),
    default="1",
    show_default=True,
    metavar="N",
    help="Factor of real time, from 0.25 to 64.",
)
NO_CACHE_OPTION = click.option(
    "--no-cache", is_flag=True, help="Read all files again, and keep no digests of them."
)
CODEX_HOME_OPTION = click.option(
    "--codex-home", type=FOLDER, metavar="DIR", help="Codex home to read (default: $CODEX_HOME or ~/.codex)."
)
SSH_CONFIG_OPTION = click.option(
    "--ssh-config", type=FILE, metavar="FILE", help="Configuration file for ssh, as for `ssh -F`."
)
JOURNAL_OPTION = click.option(
    "--journal",
    type=FOLDER,
    metavar="DIR",
    help="Directory of recordings by `agentdash --record` (default: in the state directory).",
)
FLEET_OPTIONS = (
    CODEX_HOME_OPTION,
    click.option(
        "-L",
        "socket_names",
        multiple=True,
        callback=not_empty,
        metavar="NAME",
        help="Also watch this tmux server, as for `tmux -L`.",
    ),
    click.option(
        "-S",
        "socket_paths",
        multiple=True,
        type=PATH,
        metavar="PATH",
        help="Also watch this tmux socket, as for `tmux -S`.",
    ),
    click.option("--no-tmux", is_flag=True, default=None, help="Do not watch tmux."),
    click.option(
        "--all",
        "everything",
        is_flag=True,
        default=None,
        help="Read all sessions at the start, not only the newest 50 and some of the last day.",
    ),
)
HOST_OPTIONS = (
    click.option(
        "--host",
        "hosts",
        multiple=True,
        metavar="HOST",
        shell_complete=_host_names,
        help="Watch this host over ssh: [USER@]HOST[:PORT], or a name from config.toml. Replaces the"
        " configured hosts.",
    ),
    click.option(
        "--container",
        "containers",
        multiple=True,
        metavar="NAME",
        help="Also watch this container, by `docker exec` or `podman exec`.",
    ),
    click.option(
        "--carrier",
        "carriers",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Also watch what COMMAND reaches; {} in it is the shell line to run there.",
    ),
    SSH_CONFIG_OPTION,
    click.option(
        "--no-hosts", is_flag=True, default=None, help="Do not watch the hosts of the configuration."
    ),
)
RECORDING_OPTIONS = (
    click.option(
        "--record",
        is_flag=False,
        flag_value="",
        metavar="[DIR]",
        help="Record panes, processes and screens for `agentdash replay` (default: in the state directory). "
        "Recordings contain the text of screens.",
    ),
)
APPEARANCE_OPTIONS = (
    click.option("--ascii", is_flag=True, default=None, help="Draw with plain ASCII characters."),
    click.option("--theme", type=click.Choice(THEMES), metavar="NAME", help=f"Colours: {', '.join(THEMES)}."),
)


def json_option(*schemas: str) -> Callable[[_F], _F]:
    """Return a decorator that adds `--json` to a command that prints documents of these schemas."""
    named = " or ".join(f"agentdash.{schema}" for schema in schemas)
    return click.option("--json", "as_json", is_flag=True, help=f"One JSON document, schema {named}.")


def options(*groups: tuple[Callable[[_F], _F], ...]) -> Callable[[_F], _F]:
    """Return a decorator that adds groups of options to a command, in this order."""

    def add(command: _F) -> _F:
        for group in reversed(groups):
            for option in reversed(group):
                command = option(command)
        return command

    return add


def _workers(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Complete a pane or id from the workers of the status file, else from the newest threads."""
    import time

    from click.shell_completion import CompletionItem

    from agentdash.agents.codex.home import CodexHome, default_home, thread_id
    from agentdash.store.status_file import current_files, status_file

    home = default_home()
    if (published := current_files(time.time()).get(status_file(home))) is not None:
        offered = {
            worker.pane.key.id if worker.pane else worker.id: f"{worker.state} {worker.name}"
            for worker in published.snapshot.workers
        }
    else:
        newest = islice(CodexHome(home).rollouts(), _MAX_OFFERED_THREADS)
        offered = dict.fromkeys(filter(None, map(thread_id, newest)), "")
    return [CompletionItem(name, help=text) for name, text in offered.items() if name.startswith(prefix)]


def target_argument(*, required: bool) -> Callable[[_F], _F]:
    """Return a decorator that adds the TARGET argument, completed with the workers."""
    return click.argument("target", required=required, callback=not_empty, shell_complete=_workers)


def given_flags(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given on the command line."""
    return {name: value for name, value in values.items() if value not in (None, ())}


def flags_in_force(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given before and after the name of the command; the latter count."""
    return {**(click.get_current_context().find_object(dict) or {}), **given_flags(given)}


def config_of(given: dict[str, Any]) -> Config:
    """Return the configuration in force; an option after the subcommand overrides the same one before it.

    Raises:
        click.UsageError: the configuration is invalid.
    """
    flags = flags_in_force(given)
    same = ("codex_home", "socket_names", "socket_paths", "ascii", "theme", "ssh_config")
    values: dict[str, Any] = {name: flags[name] for name in same if name in flags}
    values |= {"tmux": False} if flags.get("no_tmux") else {}
    values |= {"sessions": None} if flags.get("everything") else {}
    values |= {"record": _folder(flags["record"])} if "record" in flags else {}
    values |= debug_log.given(click.get_current_context())
    try:
        config = load(values)
    except ConfigError as problem:
        raise click.UsageError(problem.args[0]) from problem
    if config.debug_log is not None:
        debug_log.start(config.debug_log)
    if config.hosts or any(flags.get(name) for name in ("hosts", "containers", "carriers")):
        config = replace(config, hosts=_chosen_hosts(config, flags))
    return config


def _chosen_hosts(config: Config, flags: Mapping[str, Any]) -> dict[str, HostSettings]:
    """Return the hosts to watch, by name: those of the flags, or else those of the configuration.

    Raises:
        click.UsageError: a host is not valid.
    """
    chosen: dict[str, HostSettings] = {}
    for name in flags.get("hosts", ()):
        chosen[name] = config.hosts.get(name) or HostSettings(ssh=name)
    for name in flags.get("containers", ()):
        chosen[name] = HostSettings(container=name)
    for given in flags.get("carriers", ()):
        name, equals, template = given.partition("=")
        if not (name and equals and template.strip()):
            raise click.UsageError(f"--carrier: {clean_line(given)!r}: expected NAME=COMMAND")
        chosen[name] = HostSettings(carrier=template)
    if not chosen and not flags.get("no_hosts"):
        chosen = dict(config.hosts)
    for name, settings in chosen.items():
        carrier_of(name, settings, config)
    return chosen


def carrier_of(name: str, settings: HostSettings, config: Config) -> Carrier:
    """Return the carrier of a host.

    Raises:
        click.UsageError: it is not valid.
    """
    from agentdash.collect.remote.carrier import CarrierError, carrier

    if not name or len(name) > _MAX_HOST_CHARS or name != clean_line(name) or name.startswith("-"):
        kind = "host" if settings.container is None else "container"
        raise click.UsageError(f"{clean_line(name, _MAX_HOST_CHARS)!r} is not a name of a {kind}")
    try:
        return carrier(name, settings, config.ssh_config)
    except CarrierError as error:
        raise click.UsageError(clean_line(str(error))) from error


def _folder(named: str) -> Path:
    """Return the directory to record to.

    Raises:
        click.UsageError: the path exists and is not a directory.
    """
    try:
        folder = expand_user(named) if named else journal_folder()
    except OSError as error:
        raise click.UsageError(f"--record: {clean_line(error.strerror or '')}") from error
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"--record: {clean_line(str(folder))} is not a directory")
    return folder


def flags_of(config: Config) -> list[str]:
    """Return the command-line flags that give another agentdash process this configuration.

    Without `--codex-home`, which accepts no missing directory: `CODEX_HOME` does.
    """
    flags = [part for name in config.socket_names for part in ("-L", name)]
    flags += [part for path in config.socket_paths for part in ("-S", str(path))]
    for name, host in config.hosts.items():
        value = f"{name}={host.carrier}" if host.kind == "carrier" else host.container or name
        flags += [f"--{host.kind}" if host.kind in ("carrier", "container") else "--host", value]
    flags += ["--ssh-config", str(config.ssh_config)] if config.ssh_config else []
    flags += ["--theme", config.theme] if config.theme else []
    flags += ["--record", str(config.record)] if config.record else []
    flags += ["--debug-log", str(config.debug_log)] if config.debug_log else []
    switches = {"--no-tmux": not config.tmux, "--ascii": config.ascii, "--all": config.sessions is None}
    return flags + [flag for flag, on in switches.items() if on]
