"""`agentdash config`: print the defaults, and check the file."""

from __future__ import annotations

from pathlib import Path

import click

from agentdash.cli.paths import FILE
from agentdash.config import Config, ConfigError, Problem, config_file, default_text, place_of, read
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
    path, result = file, "no such file, defaults apply"
    problems: list[str] = []
    try:
        path = file or config_file()
        text = read_text(path)
        found = read(text, path)
        problems += [problem.at(path) for problem in key_problems(found.get("keys", {}), text)]
        result = f"{len(found)} options set, all valid"
    except ConfigError as invalid:
        problems += invalid.lines
    except UnicodeDecodeError:
        problems.append(f"{clean_line(str(path))}: not valid UTF-8")
    except FileNotFoundError:
        pass
    for problem in problems or [f"{clean_line(str(path))}: {result}"]:
        click.echo(f"agentdash: {problem}" if problems else problem, err=bool(problems))
    return 2 if problems else 0


def checked_keys(config: Config) -> dict[str, str]:
    """Return the keys that a configuration sets, once `tui.keys` has validated them.

    Raises:
        click.UsageError: a key or an action is invalid; names the line in the file.
    """
    if config.keys:
        path = config_file()
        for problem in key_problems(config.keys, read_text(path)):
            raise click.UsageError(problem.at(path))
    return config.keys


def key_problems(keys: dict[str, str], text: str) -> list[Problem]:
    """Return the mistakes of a table of keys, in the order of their lines."""
    from agentdash.tui.keys import keymap_errors

    wrong = ((place_of(text, ("keys", each.action)), clean_line(str(each))) for each in keymap_errors(keys))
    return sorted(Problem(*place, message) for place, message in wrong)
