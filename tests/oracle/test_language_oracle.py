"""Flags read from programs in other languages never contradict their environment; few are missed."""

from __future__ import annotations

import shutil

import pytest

from tests.oracle.env_probes import Comparison, compare
from tests.oracle.language_probes import LANGUAGES, UNSEEN, live, recorded

READ_AT_LEAST = 0.90
"""Of the flags that a program shows."""
FLOORS = {"unseen_4": 0.88}
"""Less is read of programs whose author had not seen the readers."""
LIVE = ("awk", "jq", "perl")
"""Languages whose interpreters `tests/run` installs, or Debian has always."""


@pytest.mark.parametrize("language", [*LANGUAGES, *UNSEEN])
def test_recorded_programs_never_contradict_their_environment(language: str) -> None:
    comparison = compare(recorded(language))
    assert comparison.wrong == []
    assert comparison.shown > 100
    assert comparison.recall >= FLOORS.get(language, READ_AT_LEAST), "\n\n".join(comparison.missed[:20])


def test_programs_that_change_what_they_read_are_never_taken_for_others() -> None:
    comparison = compare(recorded("mixed"))
    assert comparison.probes > 400
    assert comparison.wrong == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", LIVE)
def test_programs_that_run_now_never_contradict_their_environment(language: str) -> None:
    assert shutil.which(language) is not None
    comparison: Comparison = compare(live(language))
    assert comparison.wrong == []
    assert comparison.read > 100
