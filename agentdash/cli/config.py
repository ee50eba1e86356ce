"""`agentdash config`: print the defaults; and the check of the keys that a file sets."""

from __future__ import annotations

import click

from agentdash.config import Config, Problem, config_file, default_text, place_of
from agentdash.files import read_text
from agentdash.model.sanitize import clean_line


@click.group()
def config() -> None:
    """Print the defaults of config.toml.

    The file is $AGENTDASH_CONFIG, or config.toml in agentdash's config directory (~/.config/agentdash). Every
    command names the first mistake in it, with its line and column.

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


def checked_keys(config: Config) -> dict[str, str]:
    """Return the keys that a configuration sets, once `tui.keys` has validated them.

    Raises:
        click.UsageError: a key or an action is invalid; names the line in the file.
    """
    if config.keys:
        from agentdash.tui.keys import keymap_errors

        path = config_file()
        text = read_text(path)
        found = [
            Problem(*place_of(text, ("keys", error.action)), clean_line(str(error)))
            for error in keymap_errors(config.keys)
        ]
        for problem in sorted(found):
            raise click.UsageError(problem.at(path))
    return config.keys
