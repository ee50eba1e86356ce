"""`agentdash wait`: returns when a worker gets where it is wanted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final

import click

from agentdash.cli.fleet_access import Via, chosen, follow, no_such_worker, via_report, warn_if_indirect
from agentdash.cli.options import FLEET, config_of, options, target_argument
from agentdash.cli.output import until_unheard
from agentdash.config import Config
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.report.document import document_json
from agentdash.report.wait import Outcome, WaitReport, wait_line, wait_report

_ARRIVAL: Final = 10.0
"""Seconds that a worker that has just been started has to show up, and one that is not listed to show up again."""
_AT_WORK: Final = (State.RUNNING, State.UNKNOWN)


# generic since click 8.3 only
class _States(click.ParamType):  # type: ignore[type-arg]
    """`blocked-sandbox,completed`."""

    name = "states"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[State, ...]:
        if isinstance(value, tuple):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        known = [str(state) for state in State]
        if wrong := [name for name in names if name not in known] or ([""] if not names else []):
            self.fail(f"{wrong[0]!r} is no state; there are {', '.join(known)}", param, ctx)
        return tuple(State(name) for name in names)


@click.command()
@options(FLEET)
@target_argument(required=True)
@click.option(
    "--until",
    type=_States(),
    metavar="STATE[,STATE...]",
    help="The states to wait for.  [default: all but running and unknown]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long to wait at most.  [default: for ever]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.wait/1.")
def wait(
    target: str, until: tuple[State, ...] | None, timeout: float | None, as_json: bool, **given: Any
) -> int:
    """Wait until TARGET is in one of some states, and print where it is.

    Exit code 0: it is. 1: the time was up, or the worker has gone. 2: nobody is called so, or nothing can be seen.

    \b
    agentdash wait %4 --until completed,blocked-sandbox --timeout 600
    agentdash wait %4 --json       until it is not running any more
    """
    wanted = until or tuple(state for state in State if state not in _AT_WORK)
    report = asyncio.run(until_unheard(_wait(config_of(given), target, wanted, timeout)))
    if report is None:
        return 1
    click.echo(document_json(report) if as_json else wait_line(report))
    return 0 if report.outcome == "reached" else 1


async def _wait(config: Config, target: str, wanted: tuple[State, ...], patience: float | None) -> WaitReport:
    """How it went. The first look is always waited for, so that no patience at all means one look."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    end = start + (math.inf if patience is None else patience)
    worker: Worker | None = None
    via: Via | None = None
    outcome: Outcome = "timed-out"
    try:
        async with asyncio.timeout(None) as limit, aclosing(follow(config)) as fleets:
            async for snapshot, via in fleets:
                if limit.when() is None:
                    warn_if_indirect(via)
                found = chosen(snapshot, target)
                if found is not None:
                    worker = _one(found.workers, target)
                    limit.reschedule(end)
                    if worker.state in wanted:
                        outcome = "reached"
                        break
                elif outcome != "gone":
                    limit.reschedule(min(end, loop.time() + _ARRIVAL))
                outcome = "timed-out" if found is not None else "gone"
    except TimeoutError:
        if worker is None:
            raise click.UsageError(no_such_worker(target)) from None
    return wait_report(target, wanted, outcome, loop.time() - start, worker, via_report(via))


def _one(workers: Sequence[Worker], target: str) -> Worker:
    """The one that is meant: of several in one pane the one that was active last.

    Raises:
        click.UsageError: several others are called so.
    """
    if len(workers) > 1 and any(
        worker.pane is None or target not in (worker.pane.key.id, str(worker.pane.key)) for worker in workers
    ):
        raise click.UsageError(
            f"{len(workers)} workers are called {target!r}: {', '.join(worker.id for worker in workers[:3])} ..."
        )
    return max(workers, key=lambda worker: worker.last_activity or 0)
