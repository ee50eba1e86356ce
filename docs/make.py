"""Write the generated pages of the documentation: `python -m docs.make [FOLDER]`.

Commands from their definitions, keys from the key table, options from their defaults, documents from their
schemas.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from agentdash.agents.knowledge import Knowledge, knowledge, screen_versions
from agentdash.cli import app
from agentdash.cli.options import SHARED
from agentdash.config import default_text
from agentdash.report.schemas import DOCUMENTS, schema
from agentdash.tui.keys import KEYS, HandledBy
from man.make import commands_of

PAGES = Path(__file__).parent / "pages" / "reference"


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {
        "agents.md": agents(),
        "commands.md": commands(),
        "keys.md": keys(),
        "options.md": options(),
        "documents.md": documents(),
    }


def agents() -> str:
    """Return the page of the agents, and how well each is known."""
    about = "What is read of each agent, and the versions that this was tested on."
    rows = [
        f"| {known.name} | {_screens(agent, known)} | {known.sessions} | {known.sandbox} |"
        for agent, known in sorted(knowledge().items(), key=_rank)
    ]
    head = ["| worker CLI | screens tested on | sessions | sandbox |", "|---|---|---|---|"]
    return "\n".join([f"# Agents\n\n{about}\n", *head, *rows]) + "\n"


def _rank(item: tuple[str, Knowledge]) -> tuple[int, bool, bool, str]:
    """Return where a CLI stands in the table: those that are known best come first."""
    agent, known = item
    first = {"codex": 0, "claude": 1}.get(agent, 2)
    return first, known.sessions == "-", not screen_versions(agent), agent


def _screens(agent: str, known: Knowledge) -> str:
    versions = screen_versions(agent)
    if not versions:
        return f"untested: {known.untested}"
    tested = versions[0] if len(versions) == 1 else f"{versions[-1]} to {versions[0]}"
    return f"{tested}: {known.untested}" if known.untested else tested


def commands() -> str:
    """Return the page of all commands, with their options and examples."""
    context = click.Context(app, info_name="agentdash", **app.context_settings)
    parts = [
        "# Commands\n\n`agentdash COMMAND --help` prints the same. Exit codes are those of the"
        " [table](../headless.md#exit-codes), where a command names no others.",
        *(
            f"## {group.capitalize()} options\n\n"
            + _table(_options([each for each in app.params if each.name in names], context))
            for group, names in SHARED.items()
        ),
        _command("agentdash", app, context),
    ]
    for name, command in commands_of(app, context):
        parts.append(_command(f"agentdash {name}", command, context))
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    context = parent if command is app else click.Context(command, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    text, examples = _help(command)
    parts = [f"## `{name}`", f"```text\n{name} {usage}\n```", text]
    if examples:
        parts.append("```text\n" + examples + "\n```")
    own = command.params
    for group, names in SHARED.items():
        if set(names) <= {each.name for each in own}:
            parts.append(f"With the [{group} options](#{group}-options).")
            own = [each for each in own if each.name not in names]
    if rows := list(_options(own, context)):
        parts.append(_table(rows))
    return "\n\n".join(parts)


def _table(rows: Iterable[str]) -> str:
    return "\n".join(["| option | does |", "|---|---|", *rows])


def _help(command: click.Command) -> tuple[str, str]:
    """Return the text of a command and its examples, which begin after a backspace."""
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    paragraphs = (" ".join(block.split()) for block in text.strip().split("\n\n"))
    return "\n\n".join(_escaped(block) for block in paragraphs), examples.strip("\n")


def _options(parameters: Iterable[click.Parameter], context: click.Context) -> Iterator[str]:
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is not None:
            yield f"| `{record[0].replace('|', chr(92) + '|')}` | {_escaped(' '.join(record[1].split()))} |"


def _escaped(text: str) -> str:
    """Return text whose angle brackets, bars and asterisks stand for themselves outside code."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*") for part in parts[::2]]
    parts[1::2] = [part.replace("|", "\\|") for part in parts[1::2]]
    return "`".join(parts)


_HANDLED_BY: Final[dict[HandledBy, str]] = {
    "app": "On every screen",
    "fleet": "In the list of workers",
    "lines": "In a list or a text",
    "player": "In a replay",
    "library": "In the library",
    "textual": "Always",
}


def keys() -> str:
    """Return the page of all keys, by what handles them."""
    parts = [
        "# Keys",
        "`?` shows these on the screen. Every action can have other keys:"
        " [configuration](../configuration.md#keys).",
    ]
    for on, title in _HANDLED_BY.items():
        rows = [
            f"| {', '.join(f'`{name}`' for name in key.shown)} | {_escaped(key.help)} | `{key.id}` |"
            for key in KEYS
            if key.on == on
        ]
        parts.append("\n".join([f"## {title}\n", "| key | does | action |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def options() -> str:
    """Return the page of the options of `config.toml`, as `config default` prints them."""
    text = default_text({key.id: key.keys for key in KEYS if key.remappable}).strip()
    return f"# Options\n\n`agentdash config default` prints this file.\n\n```toml\n{text}\n```\n"


def documents() -> str:
    """Return the page of the documents, with their fields."""
    parts = [
        "# Documents",
        "`agentdash schema NAME` prints the JSON Schema of a document. Fields may be added to a document; a"
        " field that is removed or changes its meaning gives the document another number.",
        *map(_document, sorted(DOCUMENTS)),
    ]
    return "\n\n".join(parts) + "\n"


def _document(name: str) -> str:
    described = schema(name)
    top = described["$defs"][described["$ref"].rpartition("/")[2]]
    rows = [
        f"| `{field}` | {_escaped(' '.join(str(of.get('description', '')).split()))} |"
        for field, of in top["properties"].items()
    ]
    about = _escaped(" ".join(str(top.get("description", "")).split()))
    return "\n".join([f"## `{described['$id']}`\n", about, "", "| field | |", "|---|---|", *rows])


def main() -> None:
    """Write the pages."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
