"""`agentdash config`: what can be set, whether it is set well, and what is in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agentdash.cli.options import FLEET, LIVE, LOOK, options, settings_of
from agentdash.config import Config, ConfigProblem, config_file, default_text, line_of, read
from agentdash.model.sanitize import clean_line


@click.group()
def config() -> None:
    """What can be set, in config.toml: its options, whether they are right, and what is in force.

    The file is config.toml in agentdash's config directory (~/.config/agentdash on Linux), or the one that AGENTDASH_CONFIG names.

    \b
    agentdash config default > ~/.config/agentdash/config.toml
    """


@config.command()
def default() -> None:
    """Print a file with every option, its comment and its default.

    \b
    agentdash config default > config.toml
    """
    from agentdash.tui.keys import KEYS

    click.echo(default_text({key.id: key.keys for key in KEYS if key.free}), nl=False)


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False, exists=True))
def check(file: Path | None) -> int:
    """Check the file, or FILE: one line for each problem, with its line. Exit code 0: it is right. 2: it is not.

    \b
    agentdash config check my.toml
    """
    path = file or config_file()
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        found = read(text, path)
        _check_keys(Config(**found), path, text)
    except (ConfigProblem, UnicodeDecodeError) as problem:
        lines = (
            problem.lines
            if isinstance(problem, ConfigProblem)
            else (f"{clean_line(str(path))}: it is not UTF-8",)
        )
        for line in lines:
            click.echo(f"agentdash: {line}", err=True)
        return 2
    click.echo(
        f"{clean_line(str(path))}: "
        + (f"{len(found)} options set, all right" if path.exists() else "there is none: all is as by default")
    )
    return 0


@config.command()
@options(FLEET, LOOK, LIVE)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.config/1.")
def show(as_json: bool, **given: Any) -> None:
    """Print every option as it is in force, and whether it comes from a flag, the environment, the file or the default.

    \b
    agentdash config show --theme light
    """
    from agentdash.cli.output import console
    from agentdash.report.document import document_json
    from agentdash.report.settings import print_settings, settings_report

    report = settings_report(settings_of(given)[1])
    if as_json:
        click.echo(document_json(report))
    else:
        print_settings(report, console())


def checked_keys(config: Config) -> dict[str, str]:
    """The keys that a configuration asks for, which screens alone can judge.

    Raises:
        click.UsageError: one of them cannot be; names the line.
    """
    if config.keys:
        path = config_file()
        try:
            _check_keys(config, path, path.read_text("utf-8"))
        except ConfigProblem as problem:
            raise click.UsageError(problem.lines[0]) from problem
    return config.keys


def _check_keys(config: Config, path: Path, text: str) -> None:
    if not config.keys:
        return
    from agentdash.tui.keys import KeysProblem, remapped

    try:
        remapped(config.keys)
    except KeysProblem as problem:
        raise ConfigProblem(
            f"{clean_line(str(path))}:{line_of(text, 'keys', problem.action)}: {clean_line(str(problem))}"
        ) from problem
