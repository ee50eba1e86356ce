"""The past, wherever in it one goes: stepped through or sought, it is the same, and its end is what `status` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.codex.home import CodexHome
from agentdash.judge.picture import picture
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import find_family
from agentdash.replay.index import Index
from agentdash.replay.tape import family_tape
from tests.unit.test_recordings import RECORDINGS

NO_HOME = CodexHome(Path("/nonexistent"))
DATA = RECORDINGS.parent
EVERYTHING = sorted({path.parent for path in DATA.glob("r*/*/*/rollout-*.jsonl*")})


def family_of(folder: Path):
    return find_family(NO_HOME, str(min(folder.glob("rollout-*"))))


def index_of(family) -> Index:
    """An index with a checkpoint at every beat."""
    index = Index(lambda: family_tape(family), 1, 2.0, lambda _: False)
    index._apart = -1.0
    index.read()
    return index


def workers(cursor: Cursor):
    return picture(cursor.fleet, cursor.at).workers


@pytest.mark.parametrize("folder", EVERYTHING, ids=lambda p: f"{p.parent.name}/{p.name}")
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_stepping_and_seeking_meet(folder: Path, data: st.DataObject) -> None:
    family = family_of(folder)
    index = index_of(family)
    stepped, seen = Cursor(family_tape(family)), []
    while stepped.advance():
        seen.append((stepped.at, workers(stepped)))
    assert len(seen) == len(index.times)
    for number in data.draw(st.lists(st.integers(1, len(seen)), min_size=1, max_size=4)):
        sought = index.cursor(number)
        assert (sought.at, workers(sought)) == seen[number - 1]
        for after in seen[number : number + 3]:
            sought.advance()
            assert (sought.at, workers(sought)) == after
