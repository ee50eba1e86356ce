"""`agentdash config`, `agentdash doctor`, `agentdash completion`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, carrier_of, config_of, json_option, options
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
        problems += invalid.args
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
    from agentdash.tui.keys import wrong_keys

    return sorted(
        Problem(*place_of(text, ("keys", action)), clean_line(f"keys.{action}: {reason}"))
        for action, reason in wrong_keys(keys)
    )


# ------------------------------------------------------------


SHELLS: Final = ("bash", "zsh", "fish")
_BEFORE: Final = {
    # a fresh .zshrc has not loaded the completion system yet
    "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n",
    # fish makes completions from manual pages, which offer the options of all commands
    "fish": "complete --erase --command agentdash\n",
}
"""Lines before the script of click."""
_VARIABLE: Final = "_AGENTDASH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, flags and workers in SHELL: bash, zsh or fish.

    \b
    eval "$(agentdash completion bash)"                  in ~/.bashrc
    eval "$(agentdash completion zsh)"                   in ~/.zshrc
    agentdash completion fish > ~/.config/fish/completions/agentdash.fish
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"the installed version of click does not support {shell}")
    click.echo(
        _BEFORE.get(shell, "") + completer(context.find_root().command, {}, "agentdash", _VARIABLE).source()
    )


# ------------------------------------------------------------


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@click.option(
    "--report",
    "for_others",
    is_flag=True,
    help="Leave out the names of homes, users and hosts, for a bug report. Nothing is sent.",
)
@json_option("doctor/1")
def doctor(for_others: bool, as_json: bool, **given: Any) -> int:
    """Check what agentdash depends on: Codex, tmux, processes, sandboxes, hosts, file events.

    Each check is ok, warn or fail, with advice. Exit code 0: nothing failed. 1: something failed.

    \b
    agentdash doctor
    agentdash doctor --host build1            whether it is reached, and has agentdash
    agentdash doctor --report > doctor.txt
    agentdash doctor --json | jq '.checks[] | select(.level != "ok")'
    """
    from agentdash.cli.output import show
    from agentdash.report.doctor import diagnose, print_doctor
    from agentdash.report.redact import Scrubber, map_texts

    config = config_of(given)
    report = diagnose(config, [carrier_of(name, each, config) for name, each in config.hosts.items()])
    if for_others:
        scrubber = Scrubber.of_this_machine(config.hosts)
        scrubber.learn(report)
        report = map_texts(report, scrubber.text)
    show(report, as_json, print_doctor, soft_wrap=False)
    return report.exit_code
