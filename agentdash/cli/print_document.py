"""Documents on stdout. Apart from `output`, which imports Rich: `status --json` is called often."""

from __future__ import annotations

import sys
from contextlib import suppress

import click
import msgspec

from agentdash.report.elements import document_json


def print_document(document: msgspec.Struct) -> None:
    """Print a document as JSON: indented in a terminal, on one line in a pipe or file; secrets masked."""
    print_text(document_json(document, indent=2 if sys.stdout.isatty() else None))


def print_text(text: str | bytes, *, nl: bool = True) -> None:
    """Print a document, or as much as the reader of the pipe takes (`| head`): the exit code is the same."""
    with suppress(BrokenPipeError):
        click.echo(text, nl=nl)
