"""`agentdash schema`: the JSON Schemas of the documents."""

from __future__ import annotations

import click
import msgspec

from agentdash.report.schemas import DOCUMENTS
from agentdash.report.schemas import schema as schema_of


@click.command()
@click.argument("name", type=click.Choice(sorted(DOCUMENTS)), metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON Schema of a document that agentdash prints.

    \b
    agentdash schema status
    agentdash schema wait > wait.schema.json
    """
    click.echo(msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=2))
