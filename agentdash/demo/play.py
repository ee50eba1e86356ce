"""The hub of the demo. The day is parsed when the hub runs: the first picture comes first."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from agentdash.demo.conversations import DayConversations
from agentdash.demo.source import ScriptedSource
from agentdash.engine.hub import Hub
from agentdash.model.clock import Clock
from agentdash.model.events import Event
from agentdash.replay.clock import VirtualClock

_DAY: Final = files("agentdash.demo") / "day.toml"


def demo_hub(speed: float = 1.0, at: float = 0.0) -> tuple[Hub, VirtualClock]:
    """Return a hub over the scripted day, and its clock.

    Args:
        speed: virtual seconds per real second.
        at: seconds of the day that have passed already.
    """
    start = tomllib.loads(_DAY.read_text("utf-8"))["start"].timestamp()
    clock = VirtualClock(start + at, speed)
    return Hub([ScriptedSource(_events, clock)], clock), clock


def demo_conversations(clock: Clock) -> DayConversations:
    """Return the conversations of the scripted day, as they are at the time of a clock."""
    return DayConversations(_events, clock)


def _events() -> Sequence[Event]:
    from agentdash.demo.day import demo_events  # noqa: PLC0415 - it imports the parsers of everything

    return demo_events()[1]
