"""`agentdash label`: name the session of a worker as you call it."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.fleet_access import read_fleet
from agentdash.cli.live_hub import attention_file
from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, options, target_argument
from agentdash.engine.judge.attention import NO_SESSION, bookmark_of
from agentdash.model.sanitize import clean_line


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@target_argument(required=True)
@click.argument("text")
def label(target: str, text: str, **given: Any) -> None:
    """Label the session of TARGET with TEXT, which lists show in place of its name; an empty one removes it.

    The label is kept in agentdash's state directory, and is a TARGET as well. Workers see nothing of it.

    \b
    agentdash label %4 "payment retries"
    agentdash label %4 ""
    """
    config = config_of(given)
    snapshot, via = read_fleet(config, target)
    if via is not None:
        raise click.UsageError("inside a sandbox nothing can be labelled")
    if len(snapshot.workers) > 1:
        ids = ", ".join(worker.id for worker in snapshot.workers[:3])
        number = len(snapshot.workers)
        raise click.UsageError(f"{number} workers match {clean_line(target)!r}: name one by its id: {ids}")
    worker = snapshot.workers[0]
    if (new := bookmark_of(worker, text, pinned=worker.pinned)) is None:
        raise click.UsageError(NO_SESSION)
    try:
        attention_file(config).change(lambda known: known.mark(new))
    except OSError as error:
        raise click.UsageError(clean_line(str(error))) from error
    click.echo(f"{worker.name}: {new.label or 'no label'}")
