"""Files that agentdash 0.1.0 wrote are still read: event tags on disk are explicit strings, not class
names."""

import json
from pathlib import Path

import msgspec
import pytest

from agentdash.model import events as e
from agentdash.replay.journal import JournalReader

WRITTEN = Path(__file__).parents[1] / "data" / "written-by-0.1.0"
LINES = (WRITTEN / "events.jsonl").read_bytes().splitlines()
REMOVED = {"backend", "effort", "provider", "limit_used", "limit_resets_at", "turn", "readable"}
"""Fields of 0.1.0 that nothing reads any more: ignored in old files, and not written again."""


@pytest.mark.parametrize(
    "line", LINES, ids=[f"{n}-{json.loads(line)['event']}" for n, line in enumerate(LINES)]
)
def test_event_written_by_0_1_0_is_decoded_and_encoded_alike(line: bytes) -> None:
    written = {name: value for name, value in json.loads(line).items() if name not in REMOVED}
    if written["event"] == "child-spawned":
        del written["nickname"]  # the child's own log has it
    assert json.loads(e.encode(e.decode(line))) == written


def test_tags_are_explicit() -> None:
    tags = [msgspec.inspect.type_info(event).tag for event in e.EVENTS]
    assert len(tags) == len(set(tags)) >= 31
    assert all(isinstance(tag, str) and tag.islower() for tag in tags)


def test_journal_written_by_0_1_0_is_read_whole() -> None:
    lines = (WRITTEN / "journal.jsonl").read_bytes().splitlines()
    events = JournalReader(0.0).read(lines)
    assert [event.name for event in events if isinstance(event, e.SourceSeen) and not event.ok] == []
    kinds = {type(event) for event in events}
    assert kinds >= {e.PaneSeen, e.PaneDrawn, e.ProcessSeen, e.ProcessGone}
    assert kinds >= {e.ScreenRead, e.StatusPushed, e.LocksSeen}
    screens = [event.screen for event in events if isinstance(event, e.PaneDrawn)]
    assert screens[1] == (*"ab", "changed", *"de")
