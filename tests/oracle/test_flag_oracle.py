"""Flags read from scripts that were really run never contradict their environment."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.oracle.flag_probes import SHELLS, compare, generate, run_kept

SEEDS = (20261122, int(os.environ.get("AGENTDASH_SEED", "7")))
"""The second one may be set: other seeds find other cases."""
PROBES = 300
"""Of each of the two seeds; `python -m tests.flags_report` runs more."""


def test_shells_are_there() -> None:
    assert [shell for shell in SHELLS if shutil.which(shell) is None] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_flags_never_contradict_the_environment(seed: int) -> None:
    probes = generate(seed, PROBES)
    for shell_is_known in (False, True):
        comparison = compare(probes, shell_is_known=shell_is_known)
        assert comparison.wrong == []
        assert comparison.read > 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["hostile", "typed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_kept_scripts_never_contradict_their_environment(kind: str, seed: int) -> None:
    comparison = compare(run_kept(kind, seed))
    assert comparison.wrong == []
    assert comparison.probes > 250
