"""Errors of the command line as one line: what is wrong, what was probably meant, and where the rest is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import click

from agentdash.model.suggestions import did_you_mean

_UNEXPECTED: Final = re.compile(r"Got unexpected extra argument")
_NUMBERS: Final = {
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
}
"""What click calls its types, and what they are."""
_MAX_LISTED: Final = 20
"""Choices that a line names; where there are more, `--help` has them."""


def error_line(problem: click.ClickException) -> str:
    """Return an error as one line.

    A mistake of the command line ends with the command that explains it; other errors (a worker that does
    not exist, a file that cannot be read) stand alone.
    """
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    text = " ".join(_text(problem, context).split()).rstrip(".")
    if context is None or not _is_of_the_syntax(problem):
        return text
    return f"{text} (see {context.command_path} --help)"


def _is_of_the_syntax(problem: click.ClickException) -> bool:
    """Return whether click raised it: a `UsageError` of the commands' own has the next step in its text."""
    return type(problem) is not click.UsageError or bool(_UNEXPECTED.match(problem.format_message()))


def _text(problem: click.ClickException, context: click.Context | None) -> str:
    if isinstance(problem, click.BadParameter) and problem.param is not None:
        return _of_parameter(problem, problem.param)
    if context is None:
        return problem.format_message()
    command = context.command
    if isinstance(problem, click.NoSuchOption):
        return f"No such option '{problem.option_name}'{did_you_mean(problem.option_name, _options(command))}"
    if isinstance(command, click.Group):
        return _of_group(problem, command.list_commands(context))
    return problem.format_message()


def _of_group(problem: click.ClickException, commands: list[str]) -> str:
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        return f"Missing command. Choose from {_listed(commands)}"
    unknown = re.match(r"No such command '([^']*)'", problem.format_message())
    return f"{unknown[0]}{did_you_mean(unknown[1], commands)}" if unknown else problem.format_message()


def _of_parameter(problem: click.BadParameter, parameter: click.Parameter) -> str:
    text = problem.format_message()
    for name, meaning in _NUMBERS.items():
        text = text.replace(name, meaning)
    if not isinstance(parameter.type, click.Choice):
        return text
    choices = [str(choice) for choice in parameter.type.choices]
    if isinstance(problem, click.MissingParameter):
        return f"Missing argument {parameter.human_readable_name}. Choose from {_listed(choices)}"
    wrong = re.search(r"'([^']*)' is not one of", text)
    if wrong is None:
        return text
    before = text.partition(" is not one of")[0]
    return f"{before} is none of {_listed(choices)}{did_you_mean(wrong[1], choices)}"


def _listed(words: Iterable[str]) -> str:
    listed = list(words)
    return ", ".join(listed[:_MAX_LISTED]) + (", ..." if len(listed) > _MAX_LISTED else "")


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield from parameter.opts
    yield "--help"
