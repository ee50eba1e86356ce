"""Flags read from scripts that were really run never contradict their environment."""

import os
import shutil

import pytest

from tests.oracle.flag_probes import SHELLS, compare, generate, run_kept

SEED = int(os.environ.get("AGENTDASH_SEED", "20261122"))
"""Other seeds find other cases."""
PROBES = 300


def test_shells_are_there() -> None:
    assert [shell for shell in SHELLS if shutil.which(shell) is None] == []


@pytest.mark.timeout(600)
def test_flags_never_contradict_the_environment() -> None:
    probes = generate(SEED, PROBES)
    for shell_is_known in (False, True):
        comparison = compare(probes, shell_is_known=shell_is_known)
        assert comparison.wrong == []
        assert comparison.read > 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["hostile", "typed"])
def test_kept_scripts_never_contradict_their_environment(kind: str) -> None:
    comparison = compare(run_kept(kind, SEED))
    assert comparison.wrong == []
    assert comparison.probes > 200
