"""Sum up denials by day, version or directory: where sandboxes cost most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class DeniedCalls(NamedTuple):
    """Denied calls of a thread that belong to one day, version or directory."""

    name: str
    """The day, version or directory."""
    thread: str
    calls: int
    is_open: bool
    """Whether no success came after."""


class DenialSum(NamedTuple):
    """The denials of one day, version or directory."""

    name: str
    calls: int
    threads: int
    """Threads with denials."""
    open: int
    """Threads that did not get past one."""


def sum_denials(denied: Iterable[DeniedCalls]) -> list[DenialSum]:
    """Return the sums by name, those with most calls first."""
    found: dict[str, list[DeniedCalls]] = {}
    for each in denied:
        found.setdefault(each.name, []).append(each)
    sums = [
        DenialSum(
            name=name,
            calls=sum(each.calls for each in group),
            threads=len({each.thread for each in group}),
            open=len({each.thread for each in group if each.is_open}),
        )
        for name, group in found.items()
    ]
    return sorted(sums, key=lambda each: (-each.calls, -each.open, each.name))
