"""Documents on stdout. Apart from `output`, which imports Rich: `status --json` is called often."""

from __future__ import annotations

import sys

import click
import msgspec

from agentdash.report.document import document_json


def print_document(document: msgspec.Struct) -> None:
    """Print a document as JSON: indented in a terminal, on one line in a pipe or file; secrets masked."""
    click.echo(document_json(document, indent=2 if sys.stdout.isatty() else None))
