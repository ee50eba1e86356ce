"""The guide has a section for each state and each kind of finding, which `explain` prints."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentdash.guide import sections
from agentdash.model.findings import FINDING_KINDS, FindingKind
from agentdash.model.states import State


def test_sections() -> None:
    assert list(sections()) == [*map(str, State), *map(str, FindingKind)]


@pytest.mark.parametrize("kind", [kind for kind, info in FINDING_KINDS.items() if info.severity != "info"])
def test_what_to_do(kind: FindingKind) -> None:
    assert "**What to do.**" in sections()[kind]


def test_explain_prints_a_section() -> None:
    run = [sys.executable, "-m", "agentdash", "explain", "stale-network-flag"]
    environ = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environ)
    text = sections()["stale-network-flag"].replace("**", "")
    assert done.stdout.split() == ["stale-network-flag", *text.split()]
    assert 60 < max(map(len, done.stdout.splitlines())) <= 80
