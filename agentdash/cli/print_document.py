"""Documents on stdout. Apart from `output`, which imports Rich: `status --json` is called often."""

from __future__ import annotations

import sys

import click
import msgspec

from agentdash.report.document import document_json


def print_document(document: msgspec.Struct) -> None:
    """Print a document as JSON: indented in a terminal, on one line in a pipe or file; secrets masked."""
    text = document_json(document)
    click.echo(text if sys.stdout.isatty() else msgspec.json.format(text, indent=-1))
