"""Readings of worker CLIs' screens, by the screen rules: derived from the fleet, not from files or
processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentdash.agents.registry import adapters
from agentdash.agents.screen_reader import ScreenReading, read_screen
from agentdash.agents.screen_rules import RulesProblem, ScreenRules, load_rules, package_rules
from agentdash.agents.user_patterns import SlowPatternError
from agentdash.model.events import Event, LabelRead, ScreenRead, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.pane import Pane, PaneKey, ScreenLabel
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel


class _Last(NamedTuple):
    """The newest reading of a pane, and what it was made of."""

    pane: Pane
    agent: str
    reading: ScreenReading


class ScreenReadingSource:
    """Reads a screen as soon as the screen, the title or the occupant of its pane changes.

    Args:
        rules_folder: the user's own rules, `<cli>.toml` each.
    """

    name = "screens"

    def __init__(self, clock: Clock, rules_folder: Path) -> None:
        self._clock = clock
        self._rules_folder = rules_folder
        self._rules: ScreenRules | None = None
        self._last: dict[PaneKey, _Last] = {}
        self._labels: dict[PaneKey, ScreenLabel] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the readings that changed."""
        if not fleet.occupants:
            return []
        now = self._clock.now()
        events: list[Event] = []
        if self._rules is None:
            self._rules, failures = self._load(now)
            events += failures
        self._labels = {key: label for key, label in self._labels.items() if key in fleet.panes}
        self._last = {key: last for key, last in self._last.items() if key in fleet.panes}
        for key, occupant in fleet.occupants.items():
            pane, last = fleet.panes.get(key), self._last.get(key)
            if pane is None or occupant.gone_at is not None:
                continue
            if last is not None and last.pane is pane and last.agent == occupant.agent:
                continue
            try:
                reading = _read(pane, occupant.agent, self._rules)
            except SlowPatternError as problem:
                self._rules = package_rules()
                events.append(self._failure(now, problem))
                reading = _read(pane, occupant.agent, self._rules)
            self._last[key] = _Last(pane, occupant.agent, reading)
            if last is None or (last.agent, last.reading) != (occupant.agent, reading):
                fields = msgspec.structs.asdict(reading)
                events.append(ScreenRead(at=now, key=key, agent=occupant.agent, **fields))
            events += self._labels_of(pane, occupant.agent, now)
        return events

    def _labels_of(self, pane: Pane, agent: str, now: float) -> Iterator[LabelRead]:
        """Yield what a screen states of a sandbox, if it has not been emitted."""
        adapter = adapters().get(agent)
        label = adapter.screen_label(pane.screen) if adapter is not None else None
        if label is not None and self._labels.get(pane.key) != label:
            self._labels[pane.key] = label
            yield LabelRead(at=now, label=label, key=pane.key)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit readings as they change."""
        fleet = channel.value
        while True:
            emit(await self.poll(fleet))
            fleet = await channel.wait_for_change(fleet)

    def _load(self, now: float) -> tuple[ScreenRules, list[SourceSeen]]:
        """Return the rules. Where the user's own are invalid, those of the package, with the error as the
        source's health."""
        try:
            return load_rules(self._rules_folder), []
        except RulesProblem as problem:
            return package_rules(), [self._failure(now, problem)]

    def _failure(self, now: float, problem: Exception) -> SourceSeen:
        return SourceSeen(at=now, name=self.name, ok=False, detail=clean_line(str(problem), 400))


def _read(pane: Pane, agent: str, rules: ScreenRules) -> ScreenReading:
    return read_screen(
        agent,
        pane.screen,
        title=pane.title,
        cursor_visible=pane.cursor_visible,
        width=pane.width,
        height=pane.height,
        rules=rules,
    )
