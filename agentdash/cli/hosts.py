"""The hosts that a command line means: those it names, or else those of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from agentdash.collect.remote.carrier import Carrier, CarrierError, carrier
from agentdash.config import Config, HostSettings
from agentdash.model.sanitize import clean_line

_MAX_NAME_CHARS: Final = 100


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


def _check(name: str, settings: HostSettings, config: Config) -> None:
    if not name or len(name) > _MAX_NAME_CHARS or name != clean_line(name) or name.startswith("-"):
        raise click.UsageError(f"{clean_line(name, _MAX_NAME_CHARS)!r} is not a name of a host")
    try:
        carrier(name, settings, config.ssh_config)
    except CarrierError as error:
        raise click.UsageError(clean_line(str(error))) from error
