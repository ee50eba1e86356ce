"""Write the manual page from the definitions of the commands: `python -m man.make [FOLDER]`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from agentdash import __version__
from agentdash.cli import app

_SEE_ALSO = (
    "tmux(1). The config file is described by `agentdash config default`, "
    "documents by `agentdash schema NAME`."
)


def page() -> str:
    """Return the page, as roff with man macros."""
    context = click.Context(app, info_name="agentdash", **app.context_settings)
    return "\n".join(
        [
            f'.TH AGENTDASH 1 "" "agentdash {__version__}" "User Commands"',
            ".SH NAME",
            "agentdash \\- what every coding agent is doing, why, and in which sandbox",
            ".SH SYNOPSIS",
            *_synopsis(context),
            ".SH DESCRIPTION",
            *_text(app.help or ""),
            ".SH OPTIONS",
            *_options(app, context),
            f".TP\n.B {_plain('-h, --help')}\nShow what there is, of agentdash or of a command, and exit.",
            ".SH COMMANDS",
            *(
                line
                for name, command in commands_of(app, context)
                for line in _command(name, command, context)
            ),
            ".SH EXIT STATUS",
            _plain(
                "0 where all is well; 2 and one line on stderr where an argument is wrong "
                "or something cannot be read; "
            ),
            _plain("1 as each command documents; 130 after ctrl-c."),
            ".SH SEE ALSO",
            _plain(_SEE_ALSO),
            "",
        ]
    )


def commands_of(
    group: click.Group, context: click.Context, prefix: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands in order, without groups, each with its full name."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, context, f"{prefix}{name} ")
        elif command is not None:
            yield f"{prefix}{name}", command


def _command(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    yield f".SS {_plain(' '.join([name, *command.collect_usage_pieces(context)]))}"
    yield from _text(command.help or "")
    yield from _options(command, context)


def _synopsis(context: click.Context) -> Iterator[str]:
    yield f".B agentdash\n{_plain('[OPTIONS]')}"
    for name, command in commands_of(app, context):
        pieces = command.collect_usage_pieces(click.Context(command, info_name=name))
        yield f".br\n.B agentdash {_plain(name)}\n{_plain(' '.join(pieces))}"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:  # does not include --help, which all have
        if (record := parameter.get_help_record(context)) is not None:
            yield f".TP\n.B {_plain(record[0])}\n{_plain(record[1])}"


def _text(text: str) -> Iterator[str]:
    """Yield paragraphs; those that begin with a backspace are not filled, as in click."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = [_plain(line) for line in paragraph.splitlines()]
        yield "\n".join([".PP", ".nf", *lines[1:], ".fi"] if paragraph.startswith("\b") else [".PP", *lines])


def _plain(text: str) -> str:
    """Escape text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(folder: Path) -> None:
    """Write the page into `folder`."""
    (folder / "agentdash.1").write_text(page(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
