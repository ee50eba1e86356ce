"""`agentdash known`, which lists the findings that the user knows of, and `agentdash label`."""

from __future__ import annotations

import time
from typing import Any

import click
from msgspec.structs import replace

from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, options, target_argument
from agentdash.config import Config
from agentdash.engine.judge.attention import NO_SESSION, bookmark_of
from agentdash.model.sanitize import clean_line
from agentdash.store.attention import AttentionFile


@click.command()
@options(FLEET_OPTIONS)
@click.option(
    "--undo", type=click.IntRange(1), metavar="N", multiple=True, help="Let number N count again; repeatable."
)
def known(undo: tuple[int, ...], **given: Any) -> None:
    """List the sandbox problems that you marked as known (`K` on the dashboard), or undo some.

    A kind of finding that is known does not count in its directory, until the policy there changes.

    \b
    agentdash known
    agentdash known --undo 2
    """
    file = _file(config_of(given))
    found = file.read().known
    if undo and (wrong := max(undo)) > len(found):
        raise click.UsageError(f"there is no number {wrong}: `agentdash known` lists {len(found)}")
    gone = [found[number - 1] for number in undo]
    if gone:
        file.change(lambda now: replace(now, known=tuple(each for each in now.known if each not in gone)))
    for number, each in enumerate(found, 1):
        if each in gone or not gone:
            under = f" under {each.policy}" if each.policy else ""
            since = time.strftime("since %Y-%m-%d", time.localtime(each.at))
            counts = "counts again" if gone else since
            click.echo(f"{number:>3}  {each.kind} in {each.directory}{under}, {counts}")
    if not found:
        click.echo("Nothing is marked as known. K on the dashboard marks a sandbox problem.")


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
    from agentdash.cli.fleet_access import read_fleet

    config = config_of(given)
    snapshot, via = read_fleet(config, target)
    if via is not None:
        raise click.UsageError("inside a sandbox nothing can be labelled")
    if len(ids := [each.id for each in snapshot.workers]) > 1:
        several = f"{len(ids)} workers match {clean_line(target)!r}"
        raise click.UsageError(f"{several}: name one by its id: {', '.join(ids[:3])}")
    (worker,) = snapshot.workers
    if (new := bookmark_of(worker, text, pinned=worker.pinned)) is None:
        raise click.UsageError(NO_SESSION)
    try:
        _file(config).change(lambda known: known.mark(new))
    except OSError as error:
        raise click.UsageError(clean_line(str(error))) from error
    click.echo(f"{worker.name}: {new.label or 'no label'}")


def _file(config: Config) -> AttentionFile:
    from agentdash.cli.live_hub import attention_file

    return attention_file(config)
