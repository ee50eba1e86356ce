"""`agentdash wait`: wait until a worker reaches one of the given states."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from typing import Any, Final

import click

from agentdash.cli import termination
from agentdash.cli.fleet_access import Found, find, follow_fleet, no_such_worker, warn_if_indirect
from agentdash.cli.options import (
    FLEET_OPTIONS,
    HOST_OPTIONS,
    Span,
    config_of,
    json_option,
    options,
    target_argument,
)
from agentdash.cli.output import print_document, print_text, until_pipe_closes
from agentdash.config import Config
from agentdash.documents.worker import WorkerReport, document
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.suggestions import suggest
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.status import Outcome, WaitReport, wait_line

_APPEARANCE_TIMEOUT_S: Final = 10.0
"""For a worker that is not listed: one that was just started needs some seconds to write its first line."""
_EXIT_CERTAIN_AFTER_S: Final = 3.0
"""Time for which a worker must have exited: what it wrote last, under load, is read later than its end."""
WORKING_STATES: Final = (State.RUNNING, State.UNKNOWN)
_MEANINGS: Final = {"done": "completed", "finished": "completed", "idle": "waiting-input"}
"""What words mean that people use for states."""


def _states(_: click.Context, __: click.Parameter, text: str | None) -> tuple[State, ...]:
    """Return states by their names, separated by commas: `blocked-sandbox,completed`; by default the usual
    ones."""
    if text is None:
        return tuple(state for state in State if state not in WORKING_STATES)
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [str(state) for state in State]
    if wrong := [name for name in names or [""] if name not in known]:
        meant = suggest(_MEANINGS.get(wrong[0], wrong[0]), known)
        raise click.BadParameter(f"{wrong[0]!r} is unknown{meant}")
    return tuple(State(name) for name in names)


def _complete_states(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    before, comma, last = typed.rpartition(",")
    left = (state for state in State if state not in before.split(","))
    return [f"{before}{comma}{state}" for state in left if state.startswith(last)]


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@target_argument(required=True)
@click.option(
    "--until",
    callback=_states,
    shell_complete=_complete_states,
    metavar="STATE[,STATE...]",
    help="States to wait for.  [default: all but running and unknown]",
)
@click.option(
    "--timeout",
    type=Span(),
    metavar="TIME",
    help="Longest time to wait: seconds, or 90s, 5m, 8h.  [default: no limit]",
)
@json_option("wait/2")
def wait(target: str, until: tuple[State, ...], timeout: float | None, as_json: bool, **given: Any) -> int:
    """Wait until TARGET reaches one of the given states, and print that state.

    Exit code 0: it did. 1: timed out, or the worker is gone. 2: no worker matches, or it cannot be observed.
    A worker that is not listed yet may take 10 s to appear.

    \b
    agentdash wait %4 --until completed,blocked-sandbox --timeout 10m
    agentdash wait %4 --json       until it is no longer running
    """
    report = termination.run(until_pipe_closes(wait_for(config_of(given), target, until, timeout)))
    if report is None:
        return 1
    if as_json:
        print_document(report)
    else:
        print_text(wait_line(report))
    return 0 if report.outcome == "reached" else 1


async def wait_for(config: Config, target: str, wanted: tuple[State, ...], limit: float | None) -> WaitReport:
    """Return the outcome. The first snapshot does not count as waiting: limit 0 checks once."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    end = start + (math.inf if limit is None else limit)
    worker, snapshot, via = None, None, None
    outcome: Outcome = "timed-out"
    try:
        async with asyncio.timeout(None) as deadline, aclosing(follow_fleet(config, target)) as fleets:
            async for snapshot, via in fleets:
                found = _follow(snapshot, target, worker)
                if deadline.when() is None:
                    warn_if_indirect(via)
                    if not found.workers and limit != 0:
                        seconds = min(_APPEARANCE_TIMEOUT_S, math.inf if limit is None else limit)
                        named = repr(clean_line(target))
                        text = f"no worker matches {named} yet; waiting {seconds:g} s for it"
                        click.echo(f"agentdash: {text}", err=True)
                if found.workers:
                    worker = _single(found, target)
                    if worker.state in wanted and worker.state is not State.EXITED:
                        outcome = "reached"
                        break
                is_gone = found.has_ended or not found.workers
                before, patience = outcome, math.inf
                if worker is not None and found.workers and worker.state in wanted:
                    # the last lines of its session file may not have been read, nor whose they are
                    outcome, patience = "reached", _EXIT_CERTAIN_AFTER_S
                elif is_gone:
                    outcome, patience = "gone", _APPEARANCE_TIMEOUT_S
                else:
                    outcome = "timed-out"
                if outcome != before or outcome == "timed-out":
                    deadline.reschedule(min(end, loop.time() + patience))
    except TimeoutError:
        if worker is None:
            raise click.UsageError(no_such_worker(snapshot, target)) from None
    shown = document(WorkerReport, worker) if worker is not None else None
    waited = round(loop.time() - start, 1)
    return WaitReport("agentdash.wait/2", target, list(map(str, wanted)), outcome, waited, shown, via)


def _follow(snapshot: Snapshot, target: str, followed: Worker | None) -> Found:
    """Return the workers that match `target`: in the pane of the followed one, or else that one itself."""
    if followed is None:
        return find(snapshot, target)
    if followed.pane is not None and (found := find(snapshot, followed.pane.key.full)).workers:
        return found
    return find(snapshot, followed.id)


def _single(found: Found, target: str) -> Worker:
    """Return the only worker; of several in the named pane, one that needs the user, or was active last.

    Raises:
        click.UsageError: several workers match, and not by their pane.
    """
    workers = found.workers
    if len(workers) > 1 and found.pane is None:
        ids = ", ".join(worker.id for worker in workers[:3])
        raise click.UsageError(f"ambiguous target {target!r}: {len(workers)} workers match: {ids} ...")
    return max(workers, key=lambda worker: (worker.needs_you, worker.last_activity or 0.0))
