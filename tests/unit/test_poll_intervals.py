"""How often live sources are polled: more seldom where each poll reads much."""

from __future__ import annotations

import asyncio

import pytest

from agentdash.collect.scheduler import BUSY_INTERVAL_S, QUIET_INTERVAL_S, PollScheduler
from agentdash.collect.tmux.sensor import TmuxPaneSource, TmuxSensor
from agentdash.engine.hub import LatestFleet
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.replay.clock import VirtualClock


class DrawingSensor(TmuxSensor):
    """Panes that have all drawn since the last poll."""

    def __init__(self, panes: int) -> None:
        super().__init__([])
        self.panes = panes
        self.polls = 0

    def has_news(self) -> bool:
        return True

    async def poll(self, at: float) -> list[e.Event]:
        self.polls += 1
        if self.polls == 2:
            raise asyncio.CancelledError
        keys = (PaneKey("default", f"%{number}") for number in range(self.panes))
        return [e.PaneDrawn(at=at, key=key, screen=("x",)) for key in keys]


@pytest.mark.parametrize(("panes", "pause"), [(1, BUSY_INTERVAL_S), (30, 1.0), (600, QUIET_INTERVAL_S)])
async def test_panes_are_polled_more_seldom_where_many_draw(
    monkeypatch: pytest.MonkeyPatch, panes: int, pause: float
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    clock = VirtualClock(100.0)
    source = TmuxPaneSource(DrawingSensor(panes), clock, PollScheduler(clock), default_optional=False)
    with pytest.raises(asyncio.CancelledError):
        await source.stream(lambda _: None, LatestFleet())
    assert sum(pauses) == pytest.approx(pause)


@pytest.mark.parametrize(("processes", "pause"), [(3, BUSY_INTERVAL_S), (60, 1.0), (600, QUIET_INTERVAL_S)])
def test_processes_are_polled_more_seldom_where_many_are_followed(processes: int, pause: float) -> None:
    scheduler = PollScheduler(VirtualClock(100.0))
    keys = [ProcessKey(pid, 1.0) for pid in range(processes)]
    fleet = Fleet(processes={key: Process(key=key, ppid=1, name="sh") for key in keys})
    assert scheduler.pause(fleet) == pytest.approx(pause)
