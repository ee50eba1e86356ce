"""`agentdash reach`: what each worker could write, read or connect to now, as the document
`agentdash.reach/1` and as text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from agentdash.documents.worker import document
from agentdash.model.policy import Network, Policy
from agentdash.model.reach import Certainty, Reach, Reached, ReachKind, ReachTarget, union
from agentdash.model.states import Group
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import say

if TYPE_CHECKING:
    from rich.console import Console

_MAX_PROCESSES: Final = 16
"""Processes of one worker that are looked at: its newest ones."""
_FLEET_FROM: Final = 2
"""Workers from which a sum over the fleet is printed."""
_VERBS: Final = {"connect": "connect to", "write": "write", "read": "read"}


class ReachedReport(msgspec.Struct):
    """A target that a worker reaches."""

    kind: str
    """`escape`: a socket by which commands run outside any sandbox. `takeover`: a file that others run or
    trust. `credentials`: an agent that signs with keys. `secret`: keys or tokens. `worker`: the directory of
    another worker. `network`: that of the host."""
    path: str
    """As this machine sees it; `network` for the network."""
    what: str
    """What it is."""
    action: str
    """`connect`, `write` (also create or replace), `read`."""
    certainty: Literal["can", "may"]
    """`may`: what `limits` names could refuse it."""
    how: str
    """How, where that is not the plain way: `create`, `replace`, `change its mode`, another path."""


class WorkerReachReport(msgspec.Struct):
    """What one worker could reach: at most this."""

    id: str
    name: str
    agent: str
    state: str
    by: Literal["processes", "policy"] | None
    """`processes`: read from the kernel, of those in `pids`. `policy`: none of its commands runs now, so that
    it follows from the policy in force and from this user's rights. Null: not known."""
    pids: list[int]
    """The processes that were looked at."""
    limits: list[str]
    """What could refuse more, and cannot be read from outside."""
    reached: list[ReachedReport]
    """The worst first."""
    unknown: list[str]
    """Targets of which it is not visible whether it reaches them."""
    cannot: int
    """Number of targets that it cannot reach."""


class FleetReachReport(msgspec.Struct):
    """A target, and the workers that reach it."""

    kind: str
    """The kind of target: a secret, a socket, a network, another worker's directory."""
    path: str
    what: str
    """What it is."""
    action: str
    """`connect`, `write`, `read`."""
    workers: list[str]
    """Ids of those that can or may reach it."""


class ReachReport(msgspec.Struct):
    """The document of `agentdash reach --json`."""

    schema: Literal["agentdash.reach/1"]
    generated_at: str
    workers: list[WorkerReachReport]
    fleet: list[FleetReachReport]
    """Over all these workers, the worst first."""


def reach_report(snapshot: Snapshot, chosen: Sequence[Worker] | None = None) -> ReachReport:
    """Return what workers could reach now; without those of other hosts.

    Args:
        chosen: the workers; None: all but past ones.
    """
    here = [worker for worker in snapshot.workers if worker.host is None]
    present = [worker for worker in here if worker.group is not Group.PAST]
    if chosen is not None:
        present = [worker for worker in chosen if worker.host is None]
    workers, reached = [], dict[ReachTarget, list[str]]()
    for worker in present:
        reach, pids = _reach(worker, here)
        found = reach.reached() if reach else ()
        for each in found:
            reached.setdefault(each.target, []).append(worker.id)
        workers.append(
            document(
                WorkerReachReport,
                worker,
                agent=worker.agent.name,
                by=reach and reach.by,
                pids=pids,
                limits=reach.limits if reach else (),
                reached=[
                    document(ReachedReport, each.target, certainty=each.certainty, how=each.how)
                    for each in found
                ],
                unknown=_paths(reach, "unknown"),
                cannot=len(_paths(reach, "cannot")),
            )
        )
    order = list(ReachKind)
    ranked = sorted(reached.items(), key=lambda item: (order.index(item[0].kind), -len(item[1])))
    return ReachReport(
        schema="agentdash.reach/1",
        generated_at=iso(snapshot.at) or "",
        workers=workers,
        fleet=[document(FleetReachReport, target, workers=ids) for target, ids in ranked],
    )


def _paths(reach: Reach | None, certainty: Certainty) -> list[str]:
    return [each.target.path for each in reach.targets if each.certainty == certainty] if reach else []


def print_reach(report: ReachReport, console: Console) -> None:
    """Print what each worker reaches, and the sum over the fleet."""
    for worker in report.workers:
        say(console, f"{worker.name}  ({worker.agent}, {worker.id})", style="bold")
        if worker.by is None:
            say(console, "not known: none of its processes is visible, and no policy is stated", 2)
            continue
        seen = (
            f"The rights of its {len(worker.pids)} processes"
            if worker.by == "processes"
            else "The rules of its policy"
        )
        places = len(worker.reached) + worker.cannot
        say(console, f"{seen} let it reach at most {len(worker.reached)} of {places} places.", 2)
        if worker.unknown:
            say(console, f"{len(worker.unknown)} more could not be checked.", 2)
        if worker.limits:
            say(console, f"What it may reach could still be blocked by {', '.join(worker.limits)}.", 2)
        for each in worker.reached:
            note = f" ({each.how})" if each.how else ""
            what = f"{_VERBS[each.action]} {each.path}{note}: {each.kind}, {each.what}"
            say(console, f"{each.certainty} {what}", 2)
    if len(report.workers) >= _FLEET_FROM:
        say(console, "all workers", style="bold")
        for entry in report.fleet:
            count = f"{len(entry.workers)} of {len(report.workers)}"
            say(console, f"{count} can or may {_VERBS[entry.action]} {entry.path} ({entry.what})", 2)
    if not report.workers:
        say(console, "no workers")


def _reach(worker: Worker, here: Sequence[Worker]) -> tuple[Reach | None, list[int]]:
    """Return what a worker reaches, and the processes that show it.

    Args:
        here: all workers of this machine.
    """
    if sys.platform != "linux":
        return None, []
    from agentdash.collect.processes.reach import reach_of, reach_targets, with_fleet  # noqa: PLC0415

    servers = {each.pane.key.server for each in here if each.pane is not None}
    present = (each for each in reversed(here) if each.group is not Group.PAST)
    trees = {each.cwd: each.name for each in present if each.cwd}
    targets = with_fleet(reach_targets(), servers, worker.cwd, trees)
    found = {pid: reach_of(pid, targets) for pid in worker.pids[-_MAX_PROCESSES:]}
    seen = {pid: reach for pid, reach in found.items() if reach is not None}
    if seen:
        return union(tuple(seen.values())), list(seen)
    policy = worker.sandbox.configured
    own = reach_of(os.getpid(), targets) if policy is not None else None
    return (reach_by_policy(own, policy) if own is not None and policy is not None else None), []


def reach_by_policy(own: Reach, policy: Policy) -> Reach:
    """Return what commands under a policy may reach, if nothing else limits this user's rights.

    Args:
        own: what agentdash itself reaches, which is in no sandbox.
    """
    if policy.is_full_access:
        return Reach(own.targets, own.limits, "policy")
    return Reach(tuple(_under(each, policy) for each in own.targets), ("its sandbox",), "policy")


def _under(each: Reached, policy: Policy) -> Reached:
    if each.certainty == "cannot":
        return each
    match each.target.action:
        case "write":
            allowed = policy.may_write(each.target.path)
        case "connect":
            allowed = {Network.ON: True, Network.OFF: False}.get(policy.network)
        case _:
            allowed = None if policy.has_deny else True
    if allowed is False:
        return Reached(each.target, "cannot", "its policy")
    certainty: Certainty = "unknown" if allowed is None or each.certainty == "unknown" else "may"
    return Reached(each.target, certainty, each.how)
