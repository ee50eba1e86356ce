"""`agentdash config`: print the defaults, and check the file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentdash.cli.paths import FILE
from agentdash.config import Config, ConfigError, config_file, default_text, read
from agentdash.config_problems import Problem, place_of
from agentdash.files import read_text
from agentdash.model.sanitize import clean_line


@click.group()
def config() -> None:
    """Print the defaults of config.toml, and check the file.

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
def check(file: Path | None) -> int:
    """Check the config file, or FILE, and print each problem with its line and column.

    Exit code 0: valid. 2: invalid.

    \b
    agentdash config check my.toml
    """
    try:
        path = file or config_file()
    except ConfigError as error:
        raise click.UsageError(error.lines[0]) from error
    problems, count = _problems(path)
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
