"""`agentdash status`: the current workers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import click

from agentdash.cli import termination
from agentdash.cli.options import (
    FLEET_OPTIONS,
    HOST_OPTIONS,
    Span,
    config_of,
    json_option,
    options,
    target_argument,
)
from agentdash.model.sanitize import clean_line

if TYPE_CHECKING:
    from agentdash.config import Config
    from agentdash.model.worker import Snapshot


class _StatusCommand(click.Command):
    """Accept `--json=state,why` beside `--json`: an option of click has a value always, or never."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rewritten = [
            f"--fields={arg.removeprefix('--json=')}" if arg.startswith("--json=") else arg for arg in args
        ]
        return super().parse_args(ctx, rewritten)


@click.command(cls=_StatusCommand)
@options(FLEET_OPTIONS, HOST_OPTIONS)
@target_argument(required=False)
@json_option("status/2")
@click.option(
    "--fields",
    metavar="FIELD[,FIELD...]",
    help="JSON with these fields of each worker only; also --json=FIELD,...: state, why, findings ...",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Keep watching: one line of JSON for each change, schema agentdash.change/2.",
)
@click.option(
    "--follow", is_flag=True, help="Keep watching: one sentence for each change, for logs and screen readers."
)
@click.option(
    "--heartbeat",
    type=Span(0.1),
    metavar="SECONDS",
    help="With --watch: also write a line after each SECONDS, and end when stdin does.",
)
def status(
    target: str | None,
    as_json: bool,
    fields: str | None,
    watch: bool,
    follow: bool,
    heartbeat: float | None,
    **given: Any,
) -> int:
    """Show all workers, or TARGET: a thread id or its prefix, a pane (%4), or a name.

    \b
    agentdash status                     all workers, as a table
    agentdash status %4 --json           one of them, as JSON
    agentdash status --json=state,why    of each worker these fields
    agentdash status --watch | jq .      changes, as they happen
    agentdash status --follow            the same as sentences
    """
    modes = {"--json=": fields is not None, "--watch": watch, "--follow": follow}
    if sum(modes.values()) > 1:
        given_modes = " and ".join(name for name, is_given in modes.items() if is_given)
        raise click.UsageError(f"{given_modes} exclude each other")
    chosen = () if fields is None else _chosen_fields(fields)
    config = config_of(given)
    if heartbeat is not None and not watch:
        raise click.UsageError("--heartbeat needs --watch")
    if watch or follow:
        from agentdash.cli.output import until_pipe_closes

        following = _watch(config, target, heartbeat) if watch else _tell_news(config, target)
        termination.run(until_pipe_closes(following, with_stdin=heartbeat is not None))
        return 0
    from agentdash.cli.fleet_access import exit_code, read_fleet
    from agentdash.cli.output import console, print_document
    from agentdash.report.status import print_status, status_fields_report, status_report

    snapshot, via = read_fleet(config, target)
    if chosen:
        print_document(status_fields_report(snapshot, chosen, via))
    elif as_json:
        print_document(status_report(snapshot, via))
    else:
        print_status(snapshot, console(), console(soft_wrap=True, notes=True))
    return exit_code(snapshot, given)


def _chosen_fields(text: str) -> tuple[str, ...]:
    """Return the fields that were asked for.

    Raises:
        click.UsageError: one does not exist.
    """
    from agentdash.report.status import UnknownFieldError, parse_fields

    try:
        return parse_fields(text)
    except UnknownFieldError as error:
        raise click.UsageError(clean_line(str(error), 400)) from error


async def _watch(config: Config, target: str | None, heartbeat: float | None) -> None:
    """Print each change as a line of JSON, and lines in between that show that this program lives."""
    import asyncio

    import msgspec

    from agentdash.collect.clock import SystemClock
    from agentdash.documents.worker import ChangeReport
    from agentdash.model.secrets import mask_fields
    from agentdash.report.status import Heartbeats, changes

    last: Snapshot | None = None
    beat: asyncio.Task[None] | None = None
    heartbeats, clock = Heartbeats(), SystemClock()

    def write(change: ChangeReport) -> None:
        heartbeats.add(change)
        click.echo(msgspec.json.encode(mask_fields(change)))

    async def write_heartbeats(interval: float) -> None:
        while True:
            write(heartbeats.next(clock.now(), last.workers if last else ()))
            await asyncio.sleep(interval)

    try:
        async for now in _chosen(config, target):
            for change in changes(last, now):
                write(change)
            last = now
            if beat is None and heartbeat is not None:
                beat = asyncio.create_task(write_heartbeats(heartbeat))
    finally:
        if beat is not None:
            beat.cancel()


async def _tell_news(config: Config, target: str | None) -> None:
    """Print how many workers there are, and then a sentence for each change of a state or finding."""
    from agentdash.model.secrets import mask_secrets
    from agentdash.report.status import news

    last: Snapshot | None = None
    async for now in _chosen(config, target):
        if last is None and target is not None and not now.workers:
            click.echo(f"agentdash: no worker matches {target!r} yet: see `agentdash status`", err=True)
        for line in news(last, now):
            click.echo(mask_secrets(line))
        last = now


async def _chosen(config: Config, target: str | None) -> AsyncGenerator[Snapshot, None]:
    """Yield the fleet, or the workers of it that match `target`, and again whenever it changes."""
    from msgspec.structs import replace

    from agentdash.cli.fleet_access import follow_fleet, select_workers, warn_if_indirect

    is_first = True
    async for snapshot, via in follow_fleet(config, target):
        if is_first:
            warn_if_indirect(via)
        is_first = False
        yield select_workers(snapshot, target) or replace(snapshot, workers=())
