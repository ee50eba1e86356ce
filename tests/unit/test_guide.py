"""The guide has a section for each state and each kind of finding, which `explain` prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentdash import guide
from agentdash.guide import sections
from agentdash.model.findings import FINDING_KINDS, FindingKind
from agentdash.model.states import State
from agentdash.tui.theme import UNICODE


def test_sections() -> None:
    assert list(sections()) == [*map(str, State), *map(str, FindingKind)]


@pytest.mark.parametrize("kind", [kind for kind, info in FINDING_KINDS.items() if info.severity != "info"])
def test_what_to_do(kind: FindingKind) -> None:
    assert "**What to do.**" in sections()[kind]


@pytest.mark.parametrize("state", State)
def test_each_state_is_shown_with_its_sign(state: State) -> None:
    page = (Path(guide.__file__).parent / "states.md").read_text("utf-8")
    row = page.partition(f"## `{state}`\n\n```text\n")[2].partition("\n")[0]
    assert row.split()[0] == UNICODE.states[state]
    assert "```" not in sections()[state]


def test_explain_prints_a_section() -> None:
    run = [sys.executable, "-m", "agentdash", "explain", "stale-network-flag"]
    environ = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environ)
    text = sections()["stale-network-flag"].replace("**", "")
    assert done.stdout.split() == ["stale-network-flag", *text.split()]
    assert 60 < max(map(len, done.stdout.splitlines())) <= 80
