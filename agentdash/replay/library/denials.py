"""What sandboxes refused in the listed sessions: kept with each entry, and summed up over many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from agentdash.engine.common_remedies import CommonRemedy, common_remedies
from agentdash.engine.denial_sums import DenialSum, DeniedCalls, sum_denials
from agentdash.model.times import day_of
from agentdash.model.worker import Worker

if TYPE_CHECKING:
    from agentdash.replay.library.entry import Entry

_MAX_KEPT: Final = 40
"""Denials kept of an entry, the newest."""


class EntryDenial(msgspec.Struct, frozen=True, omit_defaults=True):
    """All denials of one operation on one target in a session."""

    target: str | None
    count: int
    """In how many calls."""
    days: tuple[tuple[int, int], ...]
    """As of `LedgerEntry`: days since 1970 (UTC), and calls on them."""
    is_open: bool
    """Whether no success came after."""
    remedy: str | None = None
    remedy_where: str | None = None


def denials_of(worker: Worker) -> tuple[EntryDenial, ...]:
    """Return the newest denials of a worker."""
    return tuple(
        EntryDenial(
            target=each.target,
            count=each.count,
            days=each.days,
            is_open=not each.got_past,
            remedy=each.remedy.text if each.remedy else None,
            remedy_where=each.remedy.where if each.remedy else None,
        )
        for each in worker.sandbox.denials[-_MAX_KEPT:]
    )


class DenialSums(NamedTuple):
    """The denials of many sessions."""

    by_day: list[DenialSum]
    """Oldest first."""
    by_version: list[DenialSum]
    """Most calls first."""
    by_directory: list[DenialSum]
    remedies: list[CommonRemedy]
    """Most avoided calls first."""


def sums_of(entries: Sequence[Entry]) -> DenialSums:
    """Return the sums over entries."""
    denied = [(entry, denial) for entry in entries for denial in entry.denials]
    by_version = (
        DeniedCalls(f"{entry.agent} {entry.version or '?'}", entry.id, denial.count, denial.is_open)
        for entry, denial in denied
    )
    by_directory = (
        DeniedCalls(entry.cwd or "?", entry.id, denial.count, denial.is_open) for entry, denial in denied
    )
    return DenialSums(
        by_day=sorted(sum_denials(_by_day(denied)), key=lambda each: each.name),
        by_version=sum_denials(by_version),
        by_directory=sum_denials(by_directory),
        remedies=sorted(common_remedies(denial for _, denial in denied), key=lambda each: -each.calls),
    )


def _by_day(denied: Iterable[tuple[Entry, EntryDenial]]) -> Iterator[DeniedCalls]:
    for entry, denial in denied:
        last = max((day for day, _ in denial.days), default=None)
        for day, calls in denial.days:
            yield DeniedCalls(day_of(day), entry.id, calls, is_open=day == last and denial.is_open)
