"""`agentdash config`: print, check and show options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agentdash.cli.options import APPEARANCE_OPTIONS, FLEET_OPTIONS, RECORDING_OPTIONS, options, settings_of
from agentdash.config import Config, ConfigError, config_file, default_text, line_of, read
from agentdash.files import read_text
from agentdash.model.sanitize import clean_line


@click.group()
def config() -> None:
    """Print, check and show the options of config.toml.

    The file is $AGENTDASH_CONFIG, or config.toml in agentdash's config directory (~/.config/agentdash).

    \b
    agentdash config default > ~/.config/agentdash/config.toml
    """


@config.command()
def default() -> None:
    """Print a config file with every option, its description and its default.

    \b
    agentdash config default > config.toml
    """
    from agentdash.tui.keys import KEYS

    click.echo(default_text({key.id: key.keys for key in KEYS if key.remappable}), nl=False)


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False, exists=True))
def check(file: Path | None) -> int:
    """Check the config file, or FILE, and print each problem with its line.

    Exit code 0: valid. 2: invalid.

    \b
    agentdash config check my.toml
    """
    path = file or config_file()
    try:
        text = read_text(path) if path.exists() else ""
        found = read(text, path)
        _check_keys(Config(**found), path, text)
    except (ConfigError, UnicodeDecodeError) as problem:
        not_utf8 = f"{clean_line(str(path))}: not valid UTF-8"
        for line in problem.lines if isinstance(problem, ConfigError) else (not_utf8,):
            click.echo(f"agentdash: {line}", err=True)
        return 2
    result = f"{len(found)} options set, all valid" if path.exists() else "no such file, defaults apply"
    click.echo(f"{clean_line(str(path))}: {result}")
    return 0


@config.command()
@options(FLEET_OPTIONS, APPEARANCE_OPTIONS, RECORDING_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.config/1.")
def show(as_json: bool, **given: Any) -> None:
    """Print every option in force, and its source: flag, environment, file or default.

    \b
    agentdash config show --theme light
    """
    from agentdash.cli.output import console
    from agentdash.cli.print_document import print_document
    from agentdash.report.settings import print_settings, settings_report

    report = settings_report(settings_of(given)[1])
    if as_json:
        print_document(report)
    else:
        print_settings(report, console())


def checked_keys(config: Config) -> dict[str, str]:
    """Return the keys that a configuration sets, once `tui.keys` has validated them.

    Raises:
        click.UsageError: a key or an action is invalid; names the line in the file.
    """
    if config.keys:
        path = config_file()
        try:
            _check_keys(config, path, read_text(path))
        except ConfigError as problem:
            raise click.UsageError(problem.lines[0]) from problem
    return config.keys


def _check_keys(config: Config, path: Path, text: str) -> None:
    if not config.keys:
        return
    from agentdash.tui.keys import KeymapError, remapped

    try:
        remapped(config.keys)
    except KeymapError as problem:
        raise ConfigError(
            f"{clean_line(str(path))}:{line_of(text, 'keys', problem.action)}: {clean_line(str(problem))}"
        ) from problem
