"""`agentdash config`: print, check and show options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentdash.cli.options import APPEARANCE_OPTIONS, FLEET_OPTIONS, RECORDING_OPTIONS, options, settings_of
from agentdash.cli.paths import FILE
from agentdash.config import Config, ConfigError, config_file, default_text, read
from agentdash.config_problems import Problem, place_of
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
@click.argument("file", required=False, type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.config-check/1.")
def check(file: Path | None, as_json: bool) -> int:
    """Check the config file, or FILE, and print each problem with its line and column.

    Exit code 0: valid. 2: invalid.

    \b
    agentdash config check my.toml
    """
    from agentdash.cli.output import print_document
    from agentdash.report.settings import config_check_report

    try:
        path = file or config_file()
    except ConfigError as error:
        raise click.UsageError(error.lines[0]) from error
    problems, count = _problems(path)
    if as_json:
        print_document(config_check_report(path, count, problems))
        return 2 if problems else 0
    for problem in problems:
        click.echo(f"agentdash: {problem}", err=True)
    if problems:
        return 2
    result = f"{count} options set, all valid" if path.exists() else "no such file, defaults apply"
    click.echo(f"{clean_line(str(path))}: {result}")
    return 0


def _problems(path: Path) -> tuple[list[str], int]:
    """Return the problems of a file with their places, and how many options it sets."""
    shown = clean_line(str(path))
    try:
        text = read_text(path) if os.path.lexists(path) else ""
        found = read(text, path)
    except UnicodeDecodeError:
        return [f"{shown}: not valid UTF-8"], 0
    except ConfigError as problem:
        return [*problem.lines, *_problems_of_keys(path)], 0
    return [problem.at(shown) for problem in key_problems(found.get("keys", {}), text)], len(found)


def _problems_of_keys(path: Path) -> list[str]:
    """Return the problems of the keys of a file with other problems."""
    import tomllib

    text = read_text(path)
    try:
        keys = tomllib.loads(text).get("keys", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    texts = (
        {name: value for name, value in keys.items() if isinstance(value, str)}
        if isinstance(keys, dict)
        else {}
    )
    return [problem.at(clean_line(str(path))) for problem in key_problems(texts, text)]


@config.command()
@options(FLEET_OPTIONS, APPEARANCE_OPTIONS, RECORDING_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.config/1.")
def show(as_json: bool, **given: Any) -> None:
    """Print every option in force, and its source: flag, environment, file or default.

    \b
    agentdash config show --theme light
    """
    from agentdash.cli.output import console, print_document
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
        for problem in key_problems(config.keys, read_text(path)):
            raise click.UsageError(problem.at(clean_line(str(path))))
    return config.keys


def key_problems(keys: dict[str, str], text: str) -> list[Problem]:
    """Return the mistakes of a table of keys, in the order of their lines."""
    if not keys:
        return []
    from agentdash.tui.keys import keymap_errors

    return sorted(
        Problem(*place_of(text, ("keys", error.action)), clean_line(str(error)))
        for error in keymap_errors(keys)
    )
