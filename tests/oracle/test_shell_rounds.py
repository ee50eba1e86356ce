"""Flags read from whole scripts of several shells never contradict their environment; few are missed."""

from __future__ import annotations

import pytest

from tests.oracle.env_probes import compare
from tests.oracle.shell_rounds import recorded, rounds

READ_AT_LEAST = {
    "round_1": 0.88,
    "round_2": 0.93,
    "round_3": 0.92,
    "round_4": 0.93,
    "round_5": 0.95,
    "round_6": 0.92,
    "round_7": 0.94,
    "round_8": 0.94,
    "round_9": 0.95,
    "round_10": 0.83,
    "round_11": 0.90,
    "round_12": 0.95,
}
"""Of the flags that the scripts of a round show: as measured, rounded down. What is missed needs another
program's output to be known (`base64`, `od`), or shows a value without a name that says which."""
_IS_LONG = ("round_1", "round_2", "round_3", "round_4", "round_5")


def test_each_round_has_its_figure() -> None:
    assert rounds() == sorted(READ_AT_LEAST)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in _IS_LONG else []) for n in READ_AT_LEAST]
)
def test_scripts_as_typed_never_contradict_their_environment(name: str) -> None:
    comparison = compare(recorded(name))
    assert comparison.wrong == []
    assert comparison.shown > 400
    assert comparison.recall >= READ_AT_LEAST[name], "\n\n".join(comparison.missed[:20])


def test_scripts_that_imitate_or_change_the_flags_mislead_nothing() -> None:
    comparison = compare(recorded("hostile"))
    assert comparison.wrong == []
    assert comparison.probes > 500
