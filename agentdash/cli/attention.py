"""What a dashboard keeps of its user, in the file and in the hub at once: looks, acknowledgements, known
findings, labels and pins; `agentdash known`, which lists these findings, and `agentdash label`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from msgspec.structs import replace

from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, options, target_argument
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.engine.judge.attention import NO_SESSION, bookmark_of, known_findings, known_kinds
from agentdash.model.events import AttentionRecalled
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import Acknowledgement, Attention, fact_digest
from agentdash.model.worker import Worker
from agentdash.store.attention import AttentionFile

_SLACK_S: Final = 1.0
"""Added to the time of an acknowledgement: a state may begin by a clock that is a little ahead."""


class UserAttention:
    """Keeps looks, acknowledgements, known findings, labels and pins of the user of one dashboard.

    Each method returns an error message where that fails.

    Args:
        hub: the hub that judges by them.
        file: where they are kept over restarts; None: they are not (the demo).
    """

    def __init__(self, hub: Hub, clock: Clock, file: AttentionFile | None = None) -> None:
        self._hub = hub
        self._clock = clock
        self._file = file

    def acknowledge(self, worker: Worker, *, undo: bool = False) -> str | None:
        """Acknowledge the present state of a worker, or withdraw that."""
        new = Acknowledgement(
            worker=worker.id,
            state=worker.state,
            at=self._clock.now() + _SLACK_S,
            fact=fact_digest(worker.fact) if worker.assessment.fact else "",
        )
        return self._keep(lambda known: known.remove(worker.id) if undo else known.add(new))

    def know(self, worker: Worker, kinds: Sequence[str]) -> str | None:
        """Mark kinds of findings as known in the directory of a worker; none: withdraw what is known."""
        new = known_findings(worker, kinds, self._clock.now())

        def changed(before: Attention) -> Attention:
            left = [each for each in before.known if kinds or not known_kinds(worker, [each])]
            return replace(before, known=(*left, *new))

        return self._keep(changed)

    def mark(self, worker: Worker, label: str, *, pinned: bool) -> str | None:
        """Label and pin the session of a worker."""
        new = bookmark_of(worker, label, pinned=pinned)
        return NO_SESSION if new is None else self._keep(lambda known: known.mark(new))

    def look(self, at: float) -> str | None:
        """Keep when the user last looked (unix seconds)."""
        return self._keep(lambda known: replace(known, looked_at=max(at, known.looked_at or 0.0)))

    def _keep(self, change: Callable[[Attention], Attention]) -> str | None:
        problem = None
        known = change(self._hub.fleet.attention or Attention())
        if self._file is not None:
            try:
                known = self._file.change(change)
            except OSError as error:
                problem = f"It is not kept after this dashboard ends: {clean_line(str(error))}"
        self._hub.emit([AttentionRecalled(at=self._clock.now(), attention=known)])
        return problem


# ------------------------------------------------------------


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
