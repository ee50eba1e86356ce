"""The thresholds of the configuration, and which of them a worker has passed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from agentdash.config import NO_THRESHOLDS, ThresholdSettings
from agentdash.model.states import Group
from agentdash.model.thread import Call, Tokens
from agentdash.model.times import DAY_S
from agentdash.model.worker import Worker
from agentdash.prices import priced_usd


def passed(worker: Worker, thresholds: ThresholdSettings, now: float) -> Iterator[tuple[str, str]]:
    """Yield the names of the thresholds that a worker has passed, each with words: `context`, `context 84 %`.

    Args:
        now: unix seconds.
    """
    if thresholds is NO_THRESHOLDS or worker.group is Group.PAST:
        return
    share = worker.context_share
    if thresholds.context is not None and share is not None and 100 * share >= thresholds.context:
        yield "context", f"context {100 * share:.0f} %"
    if thresholds.cost is not None and (cost := _cost(worker)) >= thresholds.cost:
        yield "cost", f"cost ${cost:.2f}"
    if thresholds.cost_day is not None and (cost := _cost_of_day(worker.tokens, now)) >= thresholds.cost_day:
        yield "cost_day", f"today ${cost:.2f}"
    silent = (now - worker.stalled) / 60 if worker.stalled is not None else 0.0
    if thresholds.stalled is not None and silent >= thresholds.stalled:
        yield "stalled", f"stalled {silent:.0f} min"
    if thresholds.failing is not None and (failures := failures_in_a_row(worker)) >= thresholds.failing:
        yield "failing", f"same call failed {failures} times"


def _cost(worker: Worker) -> float:
    """Return what a session has cost, as far as it has a price: by list prices, else by its screen."""
    shown = worker.on_screen.cost if worker.on_screen else None
    return priced_usd(worker.tokens.by_model) or shown or 0.0


def _cost_of_day(tokens: Tokens, now: float) -> float:
    if tokens.day != int(now // DAY_S):
        return 0.0
    return (priced_usd(tokens.by_model) or 0.0) - (priced_usd(tokens.before_day) or 0.0)


def failures_in_a_row(worker: Worker) -> int:
    """Return how often the newest call that has ended has failed without another one in between."""
    ended = [call for call in worker.calls if call.ended_at is not None]
    if not ended:
        return 0
    newest = _essence(ended[0])
    return len(list(takewhile(lambda call: call.failed and _essence(call) == newest, ended)))


def _essence(call: Call) -> tuple[str, str]:
    return call.tool, call.script or call.text
