"""Runs of a program that differ in conditions which are not known."""

from __future__ import annotations

from collections.abc import Callable

from agentdash.engine.detect.env_output.streams import Result
from agentdash.engine.detect.env_output.unknown import UnknownError

Decisions = tuple[bool, ...]
"""The truth of the conditions that are not known, in the order in which they come up."""


def run_each(run: Callable[[Decisions], tuple[list[Result], Decisions]], most: int) -> list[Result]:
    """Return the results of a program, for each way in which its unknown conditions can turn out.

    Args:
        run: runs the program under decisions, false for those behind them; returns its results, and all
            decisions that it came to.
        most: results above which a program is not followed: `UnknownError`.
    """
    results: list[Result] = []
    pending: list[Decisions] = [()]
    while pending:
        if len(results) > most:
            raise UnknownError
        decisions = pending.pop()
        found, decided = run(decisions)
        results += found
        pending += [(*decided[:number], True) for number in range(len(decisions), len(decided))]
    return list(dict.fromkeys(results))
