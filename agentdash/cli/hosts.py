"""The hosts that a command line means: those it names, or else those of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from agentdash.collect.remote.carrier import Carrier, CarrierError, carrier
from agentdash.config import Config, HostSettings
from agentdash.model.sanitize import clean_line

_MAX_NAME_CHARS: Final = 100
_THREAD_THERE: Final = re.compile(r"(?P<host>[^/\s]+):(?P<thread>[0-9a-f][0-9a-f-]{3,35})", re.ASCII)
"""A host, and an id of a thread or its beginning."""


def chosen_hosts(config: Config, flags: Mapping[str, Any]) -> dict[str, HostSettings]:
    """Return the hosts to watch, by name: those of the flags, or else those of the configuration.

    Args:
        flags: the values of the options of `HOST_OPTIONS` that were given.

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
        _check(name, settings, config)
    return chosen


def carrier_named(name: str, config: Config) -> Carrier:
    """Return the carrier of one host: of the configuration, or else `[USER@]HOST[:PORT]`.

    Raises:
        click.UsageError: it is not valid.
    """
    settings = config.hosts.get(name) or HostSettings(ssh=name)
    _check(name, settings, config)
    return carrier(name, settings, config.ssh_config)


def split_host(target: str, config: Config) -> tuple[Carrier | None, str]:
    """Return the carrier of the host that a target like `build1:01a1fa8b` names, and the thread there; no
    carrier where it names none."""
    for name in sorted(config.hosts, key=len, reverse=True):
        if target.startswith(f"{name}:"):
            return carrier_named(name, config), target.removeprefix(f"{name}:")
    named = _THREAD_THERE.fullmatch(target)
    return (carrier_named(named["host"], config), named["thread"]) if named else (None, target)


def _check(name: str, settings: HostSettings, config: Config) -> None:
    if not name or len(name) > _MAX_NAME_CHARS or name != clean_line(name) or name.startswith("-"):
        raise click.UsageError(f"{clean_line(name, _MAX_NAME_CHARS)!r} is not a name of a host")
    try:
        carrier(name, settings, config.ssh_config)
    except CarrierError as error:
        raise click.UsageError(clean_line(str(error))) from error
