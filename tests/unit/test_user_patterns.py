"""Patterns of users: the same matches as by `re`, refused or stopped where they would take for ever."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentdash.agents.registry import adapters, shared_rules_text
from agentdash.agents.screen_reader import read_screen
from agentdash.agents.screen_rules import RulesProblem, load_rules
from agentdash.agents.user_patterns import SlowPatternError, UserPattern
from agentdash.collect.sources.workers import ScreenReadingSource
from agentdash.model.events import ScreenRead, SourceSeen
from agentdash.model.fleet import Fleet, PaneOccupant
from agentdash.model.pane import Pane
from agentdash.model.process import ProcessKey
from agentdash.replay.clock import VirtualClock
from tests.unit.captures import FOLDERS, captures
from tests.unit.story import PANE
from tests.unit.test_screen_reader import read

SLOW = "(?:a|aa)+$"
LONG = "a" * 60 + "!"


def rules_of(folder: Path, pattern: str) -> Path:
    head = "[[rules]]\nid = 'mine'\nstate = 'waiting-input'\nregion = 'tail'\npriority = 99"
    rule = f"{head}\nany = ['{pattern}']"
    (folder / "codex.toml").write_text(rule)
    return folder


@pytest.mark.slow
def test_package_rules_read_the_same_as_a_users(tmp_path: Path) -> None:
    (tmp_path / "any.toml").write_text(shared_rules_text())
    for name, adapter in adapters().items():
        (tmp_path / f"{name}.toml").write_text(adapter.toml_text)
    rules = load_rules(tmp_path)
    decided = 0
    for folder in FOLDERS:
        for name in captures(folder):
            reading = read(folder, name)
            assert read(folder, name, rules=rules) == reading
            decided += reading.rule is not None
    assert decided > 100


def test_slow_search_is_stopped() -> None:
    with pytest.raises(SlowPatternError, match="mine: a search takes longer than"):
        UserPattern(SLOW, re.MULTILINE, "mine").search(LONG)
    with pytest.raises(SlowPatternError):
        UserPattern(SLOW, re.MULTILINE, "mine").sub("", LONG)


@pytest.mark.parametrize(
    "pattern",
    ["a{1000000000}", "((a{1000}){1000}){1000}", "a{99}b{999}", "x" * 3_000, "(?:" * 999 + "a" + ")*" * 999],
    ids=lambda pattern: pattern[:20],
)
def test_too_large_a_pattern_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(RulesProblem, match=r'codex\.toml:2: rule "mine": any: bad regex'):
        load_rules(rules_of(tmp_path, pattern))


def test_reader_says_which_rule_is_slow(tmp_path: Path) -> None:
    rules = load_rules(rules_of(tmp_path, SLOW))
    with pytest.raises(SlowPatternError, match=r'codex\.toml:2: rule "mine": any: a search takes longer'):
        read_screen("codex", [LONG], rules=rules)


async def test_source_goes_on_with_the_rules_of_the_package(tmp_path: Path) -> None:
    source = ScreenReadingSource(VirtualClock(0.0), rules_of(tmp_path, SLOW))
    pane = Pane(key=PANE, session="s", window="0:w", pid=1, command="codex", screen=(LONG,))
    occupied = PaneOccupant(agent="codex", key=ProcessKey(1, 0.0))
    events = await source.poll(Fleet(panes={PANE: pane}, occupants={PANE: occupied}))
    health, reading = events
    assert isinstance(health, SourceSeen)
    assert not health.ok
    assert 'rule "mine"' in health.detail
    assert isinstance(reading, ScreenRead)
    assert await source.poll(Fleet(panes={PANE: pane}, occupants={PANE: occupied})) == []
